# SPDX-License-Identifier: BSD-3-Clause
"""Records of many revisions: which changes are told, at which revision, and which are not."""

import dataclasses
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import history, peers
from bench.compare import Thresholds
from bench.controls import CONTROLS
from spead_tutorial.records import Recording, Sample, Writer, read
from support import ROOT
from support.bench import bench, fails

SIZES = (8 << 10, 1 << 20, 16 << 20)
Scale = Callable[[Sample, int], float]


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

    def scale(one: Sample, number: int) -> float:
        changed = number >= revision and of_changed(one)
        return ratio if changed else 1.0

    return scale


def of_changed(one: Sample) -> bool:
    return str(one.series) == "ours c tut_10_send_reuse_heaps"


def changes_of(recordings: list[Recording]) -> dict[tuple[str, int, int], str]:
    """What is told: by line, and by the number of the revision."""
    found = {}
    for track in history.tracks(recordings):
        for line in history.lines_of(track, lambda one: True, Thresholds()):
            for change in line.changes:
                number = int(track.revisions[change.at].name[:3])
                found[(str(line.place[0]), line.place[1], number)] = change.word
    return found


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write recordings to a folder, in folders of their own."""

    def writes(recordings: list[Recording], name: str = "records") -> Path:
        for number, one in enumerate(recordings):
            path = tmp_path / name / str(number) / "tut-10.jsonl"
            path.parent.mkdir(parents=True)
            with Writer(path, one.header) as writer:
                for sample in one.samples:
                    writer.add(sample)
        return tmp_path / name

    return writes


@pytest.fixture(autouse=True)
def disk_that_needs_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda fd: None)


# ---- What is told ----


@pytest.mark.parametrize(("n", "revision"), [(2, 1), (4, 2), (20, 12), (20, 18), (50, 30)])
def test_a_step_is_told_at_its_revision_and_nowhere_else(n, revision):
    found = changes_of(of_revisions(n, slower_since(revision, 0.7)))
    wanted = {("ours c tut_10_send_reuse_heaps", size, revision): "slower" for size in SIZES}
    assert found == wanted


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_of_twenty_revisions_of_the_same_none_is_told(seed):
    assert changes_of(of_revisions(20, seed=seed)) == {}


def test_two_steps_are_told_and_the_revision_that_mended_it_too():
    there = of_revisions(20, lambda one, n: 0.7 if 8 <= n < 14 and of_changed(one) else 1.0)
    program = "ours c tut_10_send_reuse_heaps"
    found = changes_of(there)
    assert {key[1:]: word for key, word in found.items()} == {
        (size, at): word for size in SIZES for at, word in ((8, "slower"), (14, "faster"))
    }
    assert {key[0] for key in found} == {program}


def test_one_run_that_was_disturbed_is_no_change():
    there = of_revisions(20, lambda one, n: 0.6 if n == 8 and of_changed(one) else 1.0)
    assert changes_of(there) == {}


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


def test_history_says_and_draws_what_changed(write, tmp_path):
    folder = write(of_revisions(8, slower_since(5, 0.7)))
    picture = tmp_path / "pictures" / "some.svg"
    done = bench("history", folder, "--chapter", "10", "--heap-size", "1MiB", "-o", picture)
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = re.findall(".*slower since.*", done.stdout)
    assert "ours c tut_10_send_reuse_heaps " in row
    assert re.search(r"since 005[0-9a-f]{4} \(2026-01-06\): 0\.[67]\d times as fast", row)
    assert "1 of 6 lines changed" in done.stdout
    assert "heaps of 1 MiB, packets of 9000 bytes" in picture.read_text()
    assert picture.with_name("some-dark.svg").exists()


def test_a_file_that_is_no_record_is_left_out_and_said(write):
    folder = write(of_revisions(2))
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


def test_what_makes_no_history_is_one_line(write, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "there is no folder" in fails("history", tmp_path / "nowhere")
    assert "there are no records with samples" in fails("history", tmp_path / "empty")
    (tmp_path / "empty" / "some.jsonl").write_text("no record\n")
    assert "some.jsonl line 1 is not a JSON object" in fails("history", tmp_path / "empty")
    assert "a history takes two" in fails("history", write(of_revisions(1), "one"))
    two = write(of_revisions(2), "two")
    assert "no case that is asked for" in fails("history", two, "--chapter", "4")
    line = fails("history", two, "--heap-size", "much", status=2)
    assert "'much' is no size: it must be like 8192, 64KiB or 1MiB" in line


def test_a_picture_of_too_many_lines_is_refused_with_what_to_choose_by(write, tmp_path):
    folder = write(of_revisions(2))
    done = bench("history", folder, "-o", tmp_path / "some.svg")
    assert done.returncode == 1
    assert "which holds 8: choose by --chapter, --heap-size or --case" in done.stderr
    done = bench("history", folder, "--case", "ours c tut_10_send_reuse", "-o", tmp_path / "a.png")
    assert "a.png does not end with .svg" in done.stderr
