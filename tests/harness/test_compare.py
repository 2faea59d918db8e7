# SPDX-License-Identifier: BSD-3-Clause
"""Records held against each other: what is judged, and how."""

import random
import re
from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bench.compare import Verdict, compare, table
from spead_tutorial.measure.records import Recording, Sample
from support.bench import bench, fails, made, recording, succeeds, write


def noise(middle: float, seed: object, n: int = 9) -> list[float]:
    source = random.Random(str(seed))
    return [middle * (1 + source.gauss(0, 0.03)) for _ in range(n)]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw intervals from fewer of them: they say the same here."""
    monkeypatch.setattr("spead_tutorial.measure.stats._RESAMPLES", 300)


# ---- Comparing ----


#: Of heaps, as powers of two; each is measured in two languages.
SIZES = range(14, 27, 2)
POINTS = 2 * len(SIZES)
SIDES = "--before", "old", "--after", "ours"


def many(scale: float, seed: str, implementation: str = "ours", **more: object) -> list[Sample]:
    return [
        one
        for n in SIZES
        for language in ("python", "c")
        for one in made(
            noise(scale * (1e9 + n * 1e8), f"{seed}/{n}/{language}/{implementation}"),
            heap_size=1 << n,
            language=language,
            implementation=implementation,
            case=f"{n}/{language}/{implementation}",
            **more,
        )
    ]


def words_of(found: Sequence[Verdict]) -> Counter[str]:
    return Counter(verdict.word for verdict in found)


def both(rounds: int, scale: float) -> Recording:
    """The first rounds of two builds, of which the later one is faster by a factor."""
    builds = many(1.0, "a", "old"), many(scale, "b")
    return recording(*([one for one in its if one.round < rounds] for its in builds))


@pytest.mark.parametrize("rounds", [5, 9])
def test_two_runs_of_the_same_cannot_be_told_apart(rounds):
    found = words_of(compare(both(rounds, 1.0), "old", "ours"))
    assert found["cannot tell"] >= POINTS - 1
    assert found.total() == POINTS


@pytest.mark.parametrize(
    ("scale", "word", "rounds"), [(0.8, "slower", 9), (1.25, "faster", 9), (0.5, "slower", 5)]
)
def test_a_change_is_found_at_every_point(scale, word, rounds):
    found = compare(both(rounds, scale), "old", "ours")
    assert words_of(found) == {word: POINTS}
    ratios = [verdict.ratio for verdict in found]
    assert sum(r is not None and r.low < scale < r.high for r in ratios) >= POINTS - 2


def test_implementations_in_one_record_are_compared_round_by_round():
    drift = [1.0, 0.5, 2.0, 0.7, 1.5, 0.9, 1.1, 3.0, 0.4]
    theirs = made([1e9 * d for d in drift], implementation="spead2", case="theirs")
    mine = made([1.2e9 * d for d in drift], case="mine")
    (verdict,) = compare(recording(theirs, mine), "spead2", "ours")
    assert verdict.word == "faster"
    assert verdict.ratio.low == pytest.approx(1.2) == verdict.ratio.high


def pair(before: Sequence[float], after: Sequence[float], **more: object) -> Recording:
    """One point of two builds, with these rates."""
    name = str(more)
    return recording(
        made(before, implementation="old", case=f"old {name}", **more),
        made(after, case=f"ours {name}", **more),
    )


def test_no_interval_that_has_one_in_it_is_called_slower(tmp_path):
    path = write(tmp_path / "a", pair([1e9] * 9, [0.7e9] * 5 + [1.2e9] * 4))
    shown = " ".join(succeeds("compare", path, *SIDES).split())
    assert "0.70 0.70\N{EN DASH}1.20 9 cannot tell" in shown


def test_what_has_no_round_in_common_has_no_ratio():
    one, other = made([1e9] * 3, implementation="old"), made([2e9])
    found = recording(one, [replace(other[0], round=9)])
    assert words_of(compare(found, "old", "ours")) == {"no common round": 1}


@pytest.mark.parametrize(
    ("after", "failure", "options", "status", "words"),
    [
        (1e9, "it failed", [], 1, "0 faster, 0 slower, 0 cannot tell, 1 failed"),
        (0.7e9, None, [], 1, "0 faster, 1 slower"),
        (2e9, None, [], 0, "1 faster, 0 slower"),
        (0.7e9, None, ["--threshold", "0.6"], 0, "a difference below 60% does not count"),
    ],
)
def test_the_status_is_1_where_something_is_slower_or_failed(
    tmp_path, after, failure, options, status, words
):
    later = [replace(one, failure=failure) for one in made(noise(after, 2))]
    found = recording(made(noise(1e9, 1), implementation="old", case="old"), later)
    done = bench("compare", write(tmp_path / "a", found), *SIDES, *options)
    assert (done.returncode, done.stderr) == (status, "")
    assert words in done.stdout


def test_an_implementation_that_is_not_there_is_one_line(tmp_path):
    path = write(tmp_path / "one", recording(made([1e9])))
    assert "nothing of 'old': it has ours" in fails("compare", path, *SIDES)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_few_rounds_give_no_verdict(n):
    (verdict,) = compare(pair([1e9] * n, [2e9] * n), "old", "ours")
    assert verdict.word == ("cannot tell" if n < 5 else "faster")


@pytest.mark.parametrize("given", ["much", "-1", "nan"])
def test_a_threshold_that_is_none_is_one_line(given):
    line = fails("compare", "one.jsonl", *SIDES, f"--threshold={given}", status=2)
    assert "Invalid value for '--threshold'" in line


def test_a_range_of_few_values_is_not_called_an_interval():
    def shown(*groups: Recording) -> list[str]:
        found = recording(*(one.samples for one in groups))
        return table(compare(found, "old", "ours"), 0.05).splitlines()

    few, enough = (pair(noise(1e9, n, n), noise(1e9, -n, n), heap_size=n << 10) for n in (3, 9))
    assert re.search("ratio +range +n$", shown(few)[0])
    heading, short, long, *_ = shown(few, enough)
    assert re.search(r"ratio +95 % \(n<6: range\) +n$", heading)
    assert short.endswith(" 3  cannot tell")
    assert long.endswith(" 9  cannot tell")
