# SPDX-License-Identifier: BSD-3-Clause
"""Records held against each other: what is judged, and how."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.compare import Verdict, compare, table
from spead_tutorial.measure.records import Recording, Sample
from support.bench import bench, fails, made, recording, succeeds, write
from support.records import HEADER


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


@pytest.mark.parametrize("rounds", [5, 9])
def test_two_runs_of_the_same_cannot_be_told_apart(rounds):
    one, other = (first(rounds, recording(many(1.0, seed))) for seed in "ab")
    found = words_of(compare(one, other))
    assert found["cannot tell"] >= POINTS - 1
    assert found.total() == POINTS


@pytest.mark.parametrize(
    ("scale", "word", "rounds"), [(0.8, "slower", 9), (1.25, "faster", 9), (0.5, "slower", 5)]
)
def test_a_change_is_found_at_every_point(scale, word, rounds):
    one, other = (
        first(rounds, recording(many(scale, seed))) for seed, scale in (("a", 1.0), ("b", scale))
    )
    found = compare(one, other)
    assert words_of(found) == {word: POINTS}
    ratios = [verdict.ratio for verdict in found]
    assert sum(r is not None and r.low < scale < r.high for r in ratios) >= POINTS - 2


def first(rounds: int, of: Recording) -> Recording:
    """Return the first rounds of a recording."""
    return dataclasses.replace(of, samples=tuple(one for one in of.samples if one.round < rounds))


def test_implementations_in_one_record_are_compared_round_by_round():
    drift = [1.0, 0.5, 2.0, 0.7, 1.5, 0.9, 1.1, 3.0, 0.4]
    theirs = made([1e9 * d for d in drift], implementation="spead2", case="theirs")
    mine = made([1.2e9 * d for d in drift], case="mine")
    both = recording(theirs, mine)
    (verdict,) = compare(both, both, before="spead2", after="ours")
    assert verdict.word == "faster"
    assert verdict.ratio.low == pytest.approx(1.2) == verdict.ratio.high


def test_no_interval_that_has_one_in_it_is_called_slower(tmp_path):
    rates = {"a": [1.0] * 9, "b": [0.7] * 5 + [1.2] * 4}
    paths = [
        write(tmp_path / name, recording(made([1e9 * rate for rate in its])))
        for name, its in rates.items()
    ]
    shown = " ".join(succeeds("compare", *paths).split())
    assert "0.70 0.70\N{EN DASH}1.20 9 cannot tell" in shown
    assert "what the machine did in between is in the ratios" in shown


def test_what_has_no_round_in_common_has_no_ratio():
    one, other = (made([1e9] * 3), [replace(one, round=9) for one in made([2e9])])
    assert words_of(compare(recording(one), recording(other))) == {"no common round": 1}


def test_a_slower_record_or_a_failed_point_has_status_1_and_a_faster_record_0(tmp_path):
    good, fast = made(noise(1e9, 1)), made(noise(2e9, 2))
    failed = [replace(one, failure="it failed") for one in good]
    groups = {"good": good, "fast": fast, "failed": failed}
    paths = {name: write(tmp_path / name, recording(group)) for name, group in groups.items()}
    for one, other, status, words in (
        ("good", "failed", 1, "0 faster, 0 slower, 0 cannot tell, 1 failed"),
        ("fast", "good", 1, "0 faster, 1 slower"),
        ("good", "fast", 0, "1 faster, 0 slower"),
    ):
        done = bench("compare", paths[one], paths[other])
        assert (done.returncode, done.stderr) == (status, "")
        assert words in done.stdout


def test_records_of_different_machines_are_refused_unless_told_otherwise(tmp_path):
    elsewhere = replace(HEADER, machine=HEADER.machine | {"cpu": "another"})
    one = write(tmp_path / "one", recording(made(noise(1e9, 1))))
    other = write(tmp_path / "other", recording(made(noise(1e9, 2)), header=elsewhere))
    line = fails("compare", one, other)
    assert "different machines (cpu: a processor and another)" in line
    succeeds("compare", one, other, "--different-machines")
    line = fails("compare", one, "--before", "spead2", "--after", "ours")
    assert "nothing of 'spead2': it has ours" in line


# ---- What is asked for ----


def in_chapters(seed: str, scale: float) -> Recording:
    of_8 = [replace(one, chapter=8, case=f"8/{one.case}") for one in many(scale, f"{seed}8")]
    return recording(of_8, many(scale, seed, program="tut_10_send_reuse_heaps", chapter=10))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two records, of which the later one is slower in both of its chapters."""
    folder = tmp_path_factory.mktemp("changed")
    return [
        write(folder / seed, in_chapters(seed, scale)) for seed, scale in (("a", 1.0), ("b", 0.7))
    ]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ("--chapter 10", 1, "0 faster, 14 slower, 0 cannot tell"),
        ("--chapter 10 --chapter tut_8_send_reuse_memory", 1, "0 faster, 28 slower, 0 cannot tell"),
        ("--chapter 8 --threshold 0.6", 0, "0 faster, 0 slower, 14 cannot tell"),
        ("--threshold 0.6", 0, "a difference below 60% does not count"),
    ],
)
def test_only_the_chapters_that_are_asked_for_are_judged_by_the_threshold_that_is_given(
    changed, options, status, words
):
    done = bench("compare", *changed, *options.split())
    assert (done.returncode, done.stderr) == (status, "")
    assert words in done.stdout


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_few_rounds_give_no_verdict(n):
    sides = {"old": 1e9, "new": 2e9}
    both = recording(*(made([rate] * n, implementation=name) for name, rate in sides.items()))
    (verdict,) = compare(both, both, before="old", after="new")
    assert verdict.word == ("cannot tell" if n < 5 else "faster")


def test_the_points_of_a_chapter_that_receives_can_be_asked_for(tmp_path):
    points = recording(made([1e9] * 9, chapter=7), made([1e9] * 9, case="two", chapter=8))
    path = write(tmp_path / "one.jsonl", points)
    assert "1 cannot tell" in succeeds("compare", path, path, "--chapter", "tut_7_recv_power")


def test_a_chapter_that_is_not_in_the_records_is_one_line(changed):
    line = fails("compare", *changed, "--chapter", "4")
    assert "the records have nothing of chapter 4: they have 8, 10" in line


@pytest.mark.parametrize("given", ["much", "-1", "nan"])
def test_a_threshold_that_is_none_is_one_line(given):
    line = fails("compare", "one.jsonl", "other.jsonl", f"--threshold={given}", status=2)
    assert "Invalid value for '--threshold'" in line


# ---- What is said ----


def test_a_range_of_few_values_is_not_called_an_interval():
    few = made(noise(1e9, "few", 3), case="few", heap_size=1024)
    alone = recording(few)
    assert re.search("ratio +range +n$", table(compare(alone, alone), 0.05).splitlines()[0])
    both = recording(few, made(noise(1e9, "enough", 9), case="enough", heap_size=2048))
    heading, short, long, *_ = table(compare(both, both), 0.05).splitlines()
    assert re.search(r"ratio +95 % \(n<6: range\) +n$", heading)
    assert short.endswith(" 3  cannot tell")
    assert long.endswith(" 9  cannot tell")
