# SPDX-License-Identifier: BSD-3-Clause
"""Records held against each other: which controls are to be trusted, and what is judged."""

import dataclasses
import importlib.util
import random
import sys
import types
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench import compare, controls, peers
from bench import plan as planning
from spead_tutorial.measure.records import Header, RecordError, Recording, Sample
from support.bench import bench, fails, made, recording, succeeds, write
from support.records import HEADER


def noise(middle: float, seed: object, n: int = 9) -> list[float]:
    source = random.Random(str(seed))
    return [middle * (1 + source.gauss(0, 0.03)) for _ in range(n)]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw intervals from fewer of them: they say the same here."""
    monkeypatch.setattr("spead_tutorial.measure.stats._RESAMPLES", 300)


# ---- What controls are made of ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that has all that controls are made of."""
    for name in ("wheel", "built/spead2", "peer"):
        made = tmp_path / name
        made.mkdir(parents=True)
        (made / "__init__.py").write_text("import _spead2\n")
        (made / "_spead2.so").write_bytes(name.encode())
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ceiling").write_bytes(b"loops")
    monkeypatch.setattr(peers, "_FROM_SOURCE", tmp_path / "built")
    monkeypatch.setattr(peers, "PACKAGE", tmp_path)
    monkeypatch.setattr(peers, "_installed_peer", lambda: tmp_path / "wheel")
    return tmp_path


def test_a_record_names_no_build_of_what_is_not_there(folder, monkeypatch):
    (folder / "bin" / "ceiling").unlink()
    monkeypatch.setattr(peers, "_FROM_SOURCE", folder / "nowhere")
    assert set(peers.builds()) == {"spead2"}
    monkeypatch.setattr(peers, "_installed_peer", lambda: None)
    assert peers.builds() == {}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("wheel/_spead2.so", {"spead2"}),
        ("built/spead2/_spead2.so", {"spead2-source"}),
        ("peer/_spead2.so", {"spead2", "spead2-source"}),
        ("bin/ceiling", {"ceiling"}),
    ],
)
def test_what_is_changed_of_a_program_beside_ours_is_another_build_of_it(folder, file, changed):
    before = peers.builds()
    assert planning.versions().items() >= {f"{name}-build": before[name] for name in before}.items()
    assert len({*before.values()}) == 3
    (folder / "wheel" / "__pycache__").mkdir()
    (folder / "wheel" / "__pycache__" / "made_at_any_time.pyc").write_bytes(b"")
    assert peers.builds() == before
    (folder / file).write_bytes(b"another")
    after = peers.builds()
    assert {name for name in before if before[name] != after[name]} == changed


def test_the_installed_peer_is_found_where_python_finds_it(monkeypatch, tmp_path):
    spec = types.SimpleNamespace(origin=str(tmp_path / "spead2" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert peers._installed_peer() == tmp_path / "spead2"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert peers._installed_peer() is None


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


#: Headers that name the build of each control.
NAMED = replace(
    HEADER, versions=HEADER.versions | {peers.build_key(name): name for name in controls.CONTROLS}
)


def with_controls(
    seed: str, header: Header = NAMED, ours: float = 1.0, **scales: float
) -> Recording:
    """Ours and some controls, each so many times as fast as usual."""
    programs = {"spead2": "tut_6_send_pktsize", "source": "tut_6_send_pktsize"}
    groups = [many(ours, seed)] + [
        many(scale, seed, name.replace("source", "spead2-source"), program=programs.get(name, name))
        for name, scale in scales.items()
    ]
    return recording(*groups, header=header)


def of_ours(found: compare.Comparison) -> Counter[str]:
    return Counter(v.word for v in found.verdicts if v.setting[0].implementation == "ours")


def why(found: compare.Comparison) -> str:
    return "\n".join(found.drift.why)


def words_of(found: compare.Comparison) -> Counter[str]:
    return Counter(verdict.word for verdict in found.verdicts)


def test_two_runs_of_the_same_cannot_be_told_apart():
    one, other = (recording(many(1.0, seed)) for seed in "ab")
    found = words_of(compare.compare(one, other))
    assert found["cannot tell"] >= POINTS - 1
    assert found.total() == POINTS


@pytest.mark.parametrize(("scale", "word"), [(0.8, "slower"), (1.25, "faster")])
def test_a_change_is_found_at_every_point(scale, word):
    one, other = recording(many(1.0, "a")), recording(many(scale, "b"))
    found = compare.compare(one, other)
    assert words_of(found) == {word: POINTS}
    ratios = [verdict.ratio for verdict in found.verdicts]
    assert sum(r is not None and r.low < scale < r.high for r in ratios) >= POINTS - 2


def on_a_slower_machine(ours: float, ceiling: float) -> compare.Comparison:
    before = with_controls("a", ceiling=1.0)
    return compare.compare(before, with_controls("b", ours=ours, ceiling=ceiling))


def test_on_a_machine_that_became_slower_only_what_did_so_more_is_called_slower():
    found = on_a_slower_machine(0.8, 0.8)
    assert found.drift.ratio == pytest.approx(0.8, rel=0.03)
    assert "did not change" in why(found)
    assert words_of(found)["cannot tell"] >= 2 * POINTS - 1
    found = on_a_slower_machine(0.56, 0.8)
    assert words_of(found) == {"slower": POINTS, "cannot tell": POINTS}
    assert words_of(on_a_slower_machine(1.0, 0.7))["faster"] == 0


def test_implementations_in_one_record_are_compared_round_by_round():
    drift = [1.0, 0.5, 2.0, 0.7, 1.5, 0.9, 1.1, 3.0, 0.4]
    theirs = made([1e9 * d for d in drift], implementation="spead2", case="theirs")
    mine = made([1.2e9 * d for d in drift], case="mine")
    both = recording(theirs, mine)
    found = compare.compare(both, both, before="spead2", after="ours")
    assert [verdict.word for verdict in found.verdicts] == ["faster"]
    ratio = found.verdicts[0].ratio
    assert ratio.low == pytest.approx(1.2) == ratio.high


def test_no_interval_that_has_one_in_it_is_called_slower(tmp_path):
    rates = {
        "a": [middle + 0.001 * n for n in range(6) for middle in (1.0, 1.2)],
        "b": [*(0.7 + 0.001 * n for n in range(7)), *(1.05 + 0.001 * n for n in range(5))],
    }
    paths = []
    for seed, its in rates.items():
        of_8 = made([1e9 * rate for rate in its], chapter=8, case="8")
        control = many(1.0, seed, "ceiling", program="ceiling", chapter=10)
        paths.append(write(tmp_path / seed, recording(of_8, control, header=NAMED)))
    shown = succeeds("compare", *paths, "--chapter", "8")
    assert "0.64 0.59\N{EN DASH}1.05 cannot tell" in " ".join(shown.split())


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


def test_a_program_that_takes_twice_as_long_is_found_in_five_rounds():
    def five(scale, seed):
        samples = with_controls(seed, ours=scale, ceiling=1.0).samples
        return recording([one for one in samples if one.round < 5], header=NAMED)

    found = words_of(compare.compare(five(1.0, "a"), five(0.5, "b")))
    assert found == {"slower": POINTS, "cannot tell": POINTS}


# ---- Controls that are not to be trusted ----


def test_a_control_of_another_build_does_not_hide_that_ours_is_slower():
    versions = NAMED.versions | {peers.build_key("spead2"): "another"}
    header = replace(NAMED, versions=versions)
    one = with_controls("a", spead2=1.0, ceiling=1.0)
    other = with_controls("b", header, ours=0.7, spead2=1.6, ceiling=1.0)
    found = compare.compare(one, other)
    assert of_ours(found) == {"slower": POINTS}
    assert found.drift.ratio == pytest.approx(1.0, rel=0.03)
    assert "Not a control: spead2, as its build was spead2 and another" in why(found)
    assert "by ceiling (1.0" in why(found)


def test_a_control_that_a_record_does_not_name_is_none_and_small_differences_do_not_count():
    one, other = (
        with_controls(seed, HEADER, scale, ceiling=2.0 - scale)
        for seed, scale in (("a", 1.0), ("b", 0.7))
    )
    found = compare.compare(one, other)
    assert of_ours(found) == {"slower": POINTS}
    assert found.drift.ratio == 1.0
    assert "Not a control: ceiling, as a record does not name its build" in why(found)
    assert "No control shows what the machine did" in why(found)


@pytest.mark.parametrize("key", ["python", "numpy"])
def test_a_peer_that_another_python_or_numpy_ran_is_no_control(key):
    elsewhere = replace(NAMED, versions=NAMED.versions | {key: "99"})
    one = with_controls("a", spead2=1.0, ceiling=1.0)
    found = compare.compare(one, with_controls("b", elsewhere, spead2=1.0, ceiling=1.0))
    assert f"Not a control: spead2, as its {key} was {NAMED.versions[key]} and 99" in why(found)
    assert "by ceiling (1.0" in why(found)


@pytest.mark.parametrize(
    "faster",
    [
        {"spead2": 1.6, "ceiling": 1.0},
        {"spead2": 1.0, "ceiling": 1.6},
        {"spead2": 1.6, "ceiling": 1.6},
        pytest.param({"spead2": 1.6, "source": 1.6, "ceiling": 1.0}, marks=pytest.mark.thorough),
        pytest.param({"spead2": 1.6, "source": 1.0, "ceiling": 1.0}, marks=pytest.mark.thorough),
        {"spead2": 1.15, "ceiling": 1.0},
        pytest.param({"spead2": 1.6, "source": 1.3, "ceiling": 1.0}, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_whichever_control_became_faster_ours_that_is_slower_is_called_slower(faster):
    one = with_controls("a", **dict.fromkeys(faster, 1.0))
    found = compare.compare(one, with_controls("b", ours=0.8, **faster))
    assert of_ours(found) == {"slower": POINTS}


@pytest.mark.parametrize(
    ("more", "words"),
    [({}, "spead2 (0.70) and"), ({"source": 0.7}, "spead2 (0.70), spead2-source (0.70) and")],
)
def test_of_controls_that_disagree_none_corrects_and_what_any_did_cannot_be_told(more, words):
    one = with_controls("a", spead2=1.0, ceiling=1.0, **dict.fromkeys(more, 1.0))
    for ours, word in ((0.8, "cannot tell"), (0.5, "slower"), (1.3, "faster")):
        other = with_controls("b", ours=ours, spead2=0.7, ceiling=1.0, **more)
        found = compare.compare(one, other)
        assert of_ours(found)[word] >= POINTS - 1, ours
        assert found.drift.ratio == 1.0
        assert f"In doubt: {words} ceiling (1.00) do not agree" in why(found)


def test_two_points_are_no_control():
    def few(seed):
        three = with_controls(seed, ceiling=1.0)
        kept = [
            one for one in three.samples if one.implementation == "ours" or one.heap_size <= 1 << 14
        ]
        return dataclasses.replace(three, samples=tuple(kept))

    found = compare.compare(few("a"), few("b"))
    assert "Not a control: ceiling, as both records have 2 points of it" in why(found)


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
    (verdict,) = compare.compare(both, both, before="old", after="new").verdicts
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
    assert compare.table(compare.compare(alone, alone)).splitlines()[0].endswith("  range of 3")
    both = recording(few, made(noise(1e9, "enough", 9), case="enough", heap_size=2048))
    heading, short, long, *_ = compare.table(compare.compare(both, both)).splitlines()
    assert heading.endswith("ratio")
    assert " range of 3 " in short
    assert " 95 % interval " in long


def test_without_scipy_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    one, other = (recording(many(1.0, seed)) for seed in "ab")
    with pytest.raises(RecordError, match=r"needs SciPy: pip install 'spead-tutorial\[bench\]'"):
        compare.compare(one, other)
    with pytest.raises(RecordError, match=r"needs SciPy"):
        compare.compare(one, one, before="ours", after="ours")
