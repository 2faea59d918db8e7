# SPDX-License-Identifier: BSD-3-Clause
"""Records held against each other: which controls are to be trusted, and what is judged."""

import dataclasses
import importlib.util
import random
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from test_bench import bench, fails, load_bench, made, recording
from test_records import HEADER

from spead_tutorial.records import Recording, Sample, Writer

load_bench()
from bench import compare, peers  # noqa: E402
from bench import plan as planning  # noqa: E402


def noise(middle: float, seed: object, n: int = 9, spread: float = 0.03) -> list[float]:
    source = random.Random(str(seed))
    return [middle * (1 + source.gauss(0, spread)) for _ in range(n)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a recording to a file, with all its headers."""

    def writes(what: Recording, name: str = "some.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with Writer(path, what.header) as writer:
            for source, header in enumerate(what.headers):
                if source:
                    writer.begin(header)
                for one in what.samples:
                    if one.source == source:
                        writer.add(one)
        return path

    return writes


# ---- What controls are made of ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that has all that controls are made of."""
    for name in ("wheel", "built/spead2", "programs"):
        made = tmp_path / name
        made.mkdir(parents=True)
        (made / "__init__.py").write_text("import _spead2\n")
        (made / "_spead2.so").write_bytes(name.encode())
    (tmp_path / "ceiling").write_bytes(b"loops")
    monkeypatch.setattr(peers, "_FROM_SOURCE", tmp_path / "built")
    monkeypatch.setattr(peers, "_PEERS", tmp_path / "programs")
    monkeypatch.setattr(peers, "_installed_peer", lambda: tmp_path / "wheel")
    monkeypatch.setattr(peers, "_ceiling", lambda: tmp_path / "ceiling")
    return tmp_path


def test_a_record_names_the_build_of_each_program_beside_ours(folder):
    found = planning.versions()
    names = {name for name in found if name.endswith("-build")}
    assert names == {"ceiling-build", "spead2-build", "spead2-source-build"}
    assert len({found[name] for name in names}) == 3
    assert all(len(found[name]) == 12 for name in names)


def test_a_record_names_no_build_of_what_is_not_there(folder, monkeypatch):
    (folder / "ceiling").unlink()
    monkeypatch.setattr(peers, "_FROM_SOURCE", folder / "nowhere")
    assert set(peers.builds()) == {"spead2"}
    monkeypatch.setattr(peers, "_installed_peer", lambda: None)
    assert peers.builds() == {}


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("wheel/_spead2.so", {"spead2"}),
        ("built/spead2/_spead2.so", {"spead2-source"}),
        ("programs/_spead2.so", {"spead2", "spead2-source"}),
        ("ceiling", {"ceiling"}),
    ],
)
def test_what_is_changed_of_a_program_beside_ours_is_another_build_of_it(folder, file, changed):
    before = peers.builds()
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


def many(scale: float, seed: str, implementation: str = "ours", **more: object) -> list[Sample]:
    return [
        one
        for n in range(13, 27)
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


def words_of(found: compare.Comparison) -> Counter[str]:
    return Counter(verdict.word for verdict in found.verdicts)


def test_two_runs_of_the_same_cannot_be_told_apart():
    one, other = (recording(many(1.0, seed)) for seed in "ab")
    found = words_of(compare.compare(one, other, threshold=0.05))
    assert found["cannot tell"] >= 27
    assert found.total() == 28


@pytest.mark.parametrize(("scale", "word"), [(0.8, "slower"), (1.25, "faster")])
def test_a_change_is_found_at_every_point(scale, word):
    one, other = recording(many(1.0, "a")), recording(many(scale, "b"))
    found = compare.compare(one, other, threshold=0.05)
    assert words_of(found) == {word: 28}
    ratios = [verdict.ratio for verdict in found.verdicts]
    assert sum(r is not None and r.low < scale < r.high for r in ratios) >= 24


def test_a_machine_that_became_slower_as_a_whole_makes_no_program_slower():
    one, other = (
        recording(many(scale, seed), many(scale, seed, "ceiling", program="ceiling"))
        for scale, seed in ((1.0, "a"), (0.8, "b"))
    )
    found = compare.compare(one, other, threshold=0.05)
    assert found.drift.ratio == pytest.approx(0.8, rel=0.03)
    assert "did not change" in found.drift.why
    assert words_of(found)["cannot tell"] >= 55


def test_a_program_that_became_slower_is_found_on_a_machine_that_did_too():
    one, other = (
        recording(many(mine, seed), many(theirs, seed, "ceiling", program="ceiling"))
        for mine, theirs, seed in ((1.0, 1.0, "a"), (0.56, 0.8, "b"))
    )
    found = words_of(compare.compare(one, other, threshold=0.05))
    assert found == {"slower": 28, "cannot tell": 28}


def test_what_stayed_as_it_was_on_a_machine_that_became_slower_is_not_called_faster():
    one, other = (
        recording(many(1.0, seed), many(theirs, seed, "ceiling", program="ceiling"))
        for theirs, seed in ((1.0, "a"), (0.7, "b"))
    )
    assert words_of(compare.compare(one, other, threshold=0.05))["faster"] == 0


def test_implementations_in_one_record_are_compared_round_by_round():
    drift = [1.0, 0.5, 2.0, 0.7, 1.5, 0.9, 1.1, 3.0, 0.4]
    theirs = made([1e9 * d for d in drift], implementation="spead2", case="theirs")
    mine = made([1.2e9 * d for d in drift], case="mine")
    both = recording(theirs, mine)
    found = compare.compare(both, both, threshold=0.05, before="spead2", after="ours")
    assert [verdict.word for verdict in found.verdicts] == ["faster"]
    ratio = found.verdicts[0].ratio
    assert ratio is not None
    assert ratio.low == pytest.approx(1.2) == ratio.high


def test_a_failed_point_is_neither_faster_nor_slower(write):
    good = made(noise(1e9, 1))
    failed = [dataclasses.replace(one, failure="it failed") for one in good]
    one, other = write(recording(good), "one.jsonl"), write(recording(failed), "other.jsonl")
    done = bench("compare", one, other)
    assert done.returncode == 1
    assert "1 failed" in done.stdout


def test_a_slower_record_has_status_1_and_a_faster_one_0(write):
    slow, fast = (write(recording(made(noise(rate, rate))), f"{rate}.jsonl") for rate in (1e9, 2e9))
    assert bench("compare", fast, slow).returncode == 1
    assert bench("compare", slow, fast).returncode == 0


def test_records_of_different_machines_are_refused_unless_told_otherwise(write):
    elsewhere = dataclasses.replace(HEADER, machine=HEADER.machine | {"cpu": "another"})
    one = write(recording(made(noise(1e9, 1))), "one.jsonl")
    other = write(recording(made(noise(1e9, 2)), header=elsewhere), "other.jsonl")
    line = fails("compare", one, other)
    assert "different machines (cpu: a processor and another)" in line
    assert bench("compare", one, other, "--different-machines").returncode == 0


def test_chances_are_corrected_for_how_many_there_are():
    assert compare._corrected([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert compare._corrected([]) == []


def test_a_program_that_takes_twice_as_long_is_found_in_five_rounds():
    def five(scale, seed):
        samples = [*many(scale, seed), *many(1.0, seed, "ceiling", program="ceiling")]
        return recording([one for one in samples if one.round < 5])

    found = words_of(compare.compare(five(1.0, "a"), five(0.5, "b"), threshold=0.05))
    assert found == {"slower": 28, "cannot tell": 28}


def test_an_implementation_that_is_not_in_the_record_is_an_error(write):
    path = write(recording(made(noise(1e9, 1))))
    line = fails("compare", path, "--before", "spead2", "--after", "ours")
    assert "nothing of 'spead2': it has ours" in line
