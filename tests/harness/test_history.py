# SPDX-License-Identifier: BSD-3-Clause
"""Records of many revisions: which changes are told, at which revision, and which are not."""

import dataclasses
import functools
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import history, peers
from bench.compare import Thresholds
from bench.controls import CONTROLS
from spead_tutorial.records import Recording, Sample, read
from support import ROOT
from support.bench import bench, fails, succeeds, write

PROGRAM = "ours c tut_10_send_reuse_heaps"
SIZES = (8 << 10, 1 << 20, 16 << 20)
thorough = pytest.mark.thorough
Scale = Callable[[Sample, int], float]


@functools.cache
def committed() -> Recording:
    """Some sizes of a committed record."""
    whole = read(ROOT / "bench" / "results" / "tut-10.jsonl")
    samples = tuple(one for one in whole.samples if one.heap_size in SIZES)
    named = {peers.build_key(name): name for name in CONTROLS}
    header = dataclasses.replace(whole.header, versions=whole.header.versions | named)
    return Recording(header, samples)


def of_revisions(
    n: int, scale: Scale = lambda one, number: 1.0, seed: int = 1, **machine: str
) -> list[Recording]:
    """The committed record as so many revisions, each with noise of its samples and of its run."""
    source, known = random.Random(seed), committed()
    found = []
    for number in range(n):
        header = dataclasses.replace(
            known.header,
            time=f"2026-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00+00:00",
            revision=f"{number:03}{source.getrandbits(36):09x}",
            machine=known.header.machine | machine,
        )
        run = 1 + source.gauss(0, 0.015)
        samples = [
            dataclasses.replace(
                one,
                elapsed_ns=round(
                    (one.elapsed_ns or 0) / (scale(one, number) * run * (1 + source.gauss(0, 0.02)))
                ),
            )
            for one in known.samples
        ]
        found.append(Recording(header, tuple(samples)))
    return found


def slower_since(revision: int, ratio: float = 0.8) -> Scale:
    """Make one program, in one language, slower from a revision on."""

    return lambda one, number: ratio if number >= revision and of_changed(one) else 1.0


def of_changed(one: Sample) -> bool:
    return str(one.series) == PROGRAM


def changes_of(recordings: list[Recording]) -> dict[tuple[str, int, int], str]:
    """What is told: by line, and by the number of the revision."""
    found = {}
    for track in history.tracks(recordings):
        for line in history.lines_of(track, lambda one: True, Thresholds()):
            for change in line.changes:
                number = int(track.revisions[change.at].name[:3])
                found[(str(line.place[0]), line.place[1], number)] = change.word
    return found


def write_all(folder: Path, recordings: list[Recording]) -> Path:
    """Write recordings to folders of their own in a folder."""
    for number, one in enumerate(recordings):
        write(folder / str(number) / "tut-10.jsonl", one)
    return folder


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw intervals from fewer of them: they say the same here."""
    monkeypatch.setattr("spead_tutorial.stats._RESAMPLES", 300)


# ---- What is told ----


@pytest.mark.parametrize(
    ("n", "revision"),
    [
        (2, 1),
        (20, 12),
        *(pytest.param(*one, marks=thorough) for one in ((4, 2), (20, 18), (50, 30))),
    ],
)
def test_a_step_is_told_at_its_revision_and_nowhere_else(n, revision):
    found = changes_of(of_revisions(n, slower_since(revision, 0.7)))
    assert found == {(PROGRAM, size, revision): "slower" for size in SIZES}


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=thorough) for n in (2, 3))])
def test_of_twenty_revisions_of_the_same_none_is_told(seed):
    assert changes_of(of_revisions(20, seed=seed)) == {}


@pytest.mark.parametrize(
    ("slow", "ratio", "told"),
    [(range(8, 14), 0.7, {8: "slower", 14: "faster"}), (range(8, 9), 0.6, {})],
)
def test_the_revision_that_mended_a_step_is_told_too_but_no_run_that_was_disturbed(
    slow, ratio, told
):
    there = of_revisions(20, lambda one, n: ratio if n in slow and of_changed(one) else 1.0)
    wanted = {(PROGRAM, size, at): word for size in SIZES for at, word in told.items()}
    assert changes_of(there) == wanted


def test_what_moved_as_the_controls_did_is_said_to_be_the_machine():
    def scale(one: Sample, number: int) -> float:
        return (0.75 if number >= 6 else 1.0) * slower_since(12, 0.7)(one, number)

    found = changes_of(of_revisions(18, scale))
    told = {key[1:]: word for key, word in found.items() if word != history.WITH_MACHINE}
    assert told == {(size, 12): "slower" for size in SIZES}
    assert {key[2] for key, word in found.items() if word == history.WITH_MACHINE} == {6}


def test_records_of_different_machines_are_different_tracks():
    here, there = of_revisions(8), of_revisions(8, lambda one, n: 0.5, 2, cpu="another")
    tracks = history.tracks([*here[::2], *there[1::2]])
    assert [len(track.revisions) for track in tracks] == [4, 4]
    assert changes_of([*here[::2], *there[1::2]]) == {}


def test_a_revision_that_was_measured_twice_is_one():
    first, second = of_revisions(2)
    again = dataclasses.replace(second.header, time="2026-03-01T00:00:00+00:00")
    tracks = history.tracks([second, dataclasses.replace(second, header=again), first])
    ((one, other),) = (track.revisions for track in tracks)
    assert (one.name[:3], other.name[:3]) == ("000", "001")
    assert len(other.recording.samples) == 2 * len(second.samples)


def test_quick_runs_and_full_ones_are_not_held_against_each_other():
    first, second = of_revisions(2)
    quick = dataclasses.replace(second.header, settings=second.header.settings | {"size": "quick"})
    tracks = history.tracks([first, dataclasses.replace(second, header=quick)])
    assert [len(track.revisions) for track in tracks] == [1, 1]


# ---- As a command ----


def test_history_says_and_draws_what_changed(tmp_path):
    folder = write_all(tmp_path / "records", of_revisions(8, slower_since(5, 0.7)))
    picture = tmp_path / "pictures" / "some.svg"
    said = succeeds("history", folder, "--chapter", "10", "--heap-size", "1MiB", "-o", picture)
    (row,) = re.findall(".*slower since.*", said)
    assert f"{PROGRAM} " in row
    assert re.search(r"since 005[0-9a-f]{4} \(2026-01-06\): 0\.[67]\d times as fast", row)
    assert "1 of 6 lines changed" in said
    assert "heaps of 1 MiB, packets of 9000 bytes" in picture.read_text()
    assert picture.with_name("some-dark.svg").exists()


def test_a_file_that_is_no_record_is_left_out_and_said(tmp_path):
    folder = write_all(tmp_path, of_revisions(2))
    (folder / "broken.jsonl").write_text("no record\n")
    (folder / "cut.jsonl").write_bytes((folder / "0" / "tut-10.jsonl").read_bytes()[:-5])
    latency = (ROOT / "bench" / "results" / "latency.jsonl").read_bytes()
    (folder / "latency.jsonl").write_bytes(latency)
    done = bench("history", folder)
    assert done.returncode == 1
    assert re.fullmatch(
        r"left out: \S+: broken.jsonl line 1 is not a JSON object[^\n]*\n"
        r"left out: \S+: cut.jsonl line \d+ is cut off[^\n]*\n",
        done.stderr,
    )
    assert "2 revisions" in done.stdout


def test_what_makes_no_history_is_one_line(tmp_path):
    empty, one, two = (tmp_path / name for name in ("empty", "one", "two"))
    empty.mkdir()
    assert "there are no records with samples" in fails("history", empty)
    (empty / "some.jsonl").write_text("no record\n")
    write_all(one, of_revisions(1))
    write_all(two, of_revisions(2))
    much = "which holds 8: choose by --chapter, --heap-size or --case"
    png = ("--case", "ours c tut_10_send_reuse", "-o", tmp_path / "a.png")
    for arguments, words in (
        ((tmp_path / "nowhere",), "there is no folder"),
        ((empty,), "some.jsonl line 1 is not a JSON object"),
        ((one,), "a history takes two"),
        ((two, "--chapter", "4"), "no case that is asked for"),
    ):
        assert words in fails("history", *arguments)
    for options, words in ((("-o", tmp_path / "some.svg"), much), (png, "does not end with .svg")):
        done = bench("history", two, *options)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert words in done.stderr
    line = fails("history", two, "--heap-size", "much", status=2)
    assert "'much' is no size: it must be like 8192, 64KiB or 1MiB" in line
