# SPDX-License-Identifier: BSD-3-Clause
"""The tour: that it measures every chapter, its records add up, and a failure is shown."""

import os
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.sweeps import PEER, PEER_FROM_SOURCE, find_sweep
from spead_tutorial.chapters.catalogue import BESIDE_LADDER, CHAPTERS, MEASURED
from spead_tutorial.lab import LabError
from spead_tutorial.measure import baselines
from spead_tutorial.measure.analysis import rows
from spead_tutorial.measure.place import Loopback
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import OURS, RecordError, Recording, locked, read
from spead_tutorial.tools import tour
from support import ROOT
from support.labs import needs_lab
from support.records import HEADER, SAMPLE
from support.tours import recorded
from support.typed import Typed, check_refused, run

TINY = ["tour", "--tiny", "--output", "out"]

#: A tour is dozens of processes, and a machine may have other things to do.
pytestmark = pytest.mark.timeout(300)

#: Has Python believe in a user and a machine whose names are no words of a record, by chance.
NAMES = """
import getpass, os, socket
known = os.uname()
os.uname = lambda: os.uname_result((known[0], "vm-of-nobody", *known[2:]))
socket.gethostname = lambda: "vm-of-nobody"
getpass.getuser = os.getlogin = lambda: "somebody-else"
"""

#: The command, but a tour has no more than chapters 4 and 6, a bare loop and one of spead2's.
SHORT = """
from spead_tutorial.tools import cli, tour
kept = {"tut_4_send_perf", "tut_6_send_pktsize", "tut_8_send_reuse_memory", "ceiling"}
whole = tour.planned
def planned(size, loopback):
    cases, without = whole(size, loopback)
    return [case for case in cases if case.program in kept and case.heap_size == 1 << 20
            and (case.implementation != "ours" or not case.program.startswith("tut_8"))], without
tour.planned = planned
cli.main()
"""


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Typed]:
    """A tour, and the folder that it was done in."""
    folder, names = tmp_path_factory.mktemp("tour"), tmp_path_factory.mktemp("names")
    (names / "sitecustomize.py").write_text(NAMES)
    environment = os.environ | {"PYTHONPATH": str(names)}
    words = [sys.executable, "-c", SHORT, *TINY]
    return folder, run(*words, cwd=folder, env=environment, timeout=280)


@needs_lab
def test_a_tour_runs_its_cases_and_its_records_add_up(toured):
    folder, done = toured
    assert (done.returncode, done.stderr) == (0, "")
    recording = read(folder / "out" / "tour.jsonl")
    cases = {one.case for one in recording.samples}
    assert f"\n✓ {len(cases)} programs and settings: " in done.stdout
    assert "✗" not in done.stdout

    assert recording.header.settings["size"] == "tiny"
    counted = [one for one in recording.samples if not one.warm_up]
    assert len(counted) == 2 * len(cases)
    ours = {(one.chapter, one.language) for one in counted if one.implementation == OURS}
    assert ours == {(chapter, language) for chapter in (4, 6) for language in MEASURED}
    for one in recording.samples:
        assert one.failure is None
        assert one.payload_bytes == one.heaps * one.heap_size
        assert one.spead_bytes > one.payload_bytes
        assert (one.messages or 0) <= one.counted_packets <= one.packets
        header = 28 if one.device == "lo" else 42
        assert one.counted_bytes == one.spead_bytes + header * one.counted_packets

    for name in ("tut-ladder.svg", "tut-ladder-dark.svg"):
        assert ET.parse(folder / "out" / name).getroot().tag.endswith("svg")
        assert f"out/{name}" in done.stdout
    assert done.stdout.split("Look at\n")[1].startswith("  out/index.html\n")
    suffixes = sorted(path.suffix for path in (folder / "out").iterdir())
    assert suffixes == [".html", ".jsonl", ".svg", ".svg"]


@needs_lab
def test_what_a_tour_leaves_names_no_machine_no_user_and_no_folder(toured):
    for name in ("tour.jsonl", "index.html"):
        text = (toured[0] / "out" / name).read_text()
        for private in (str(toured[0]), f"{Path.home()}/", "vm-of-nobody", "somebody-else"):
            assert private not in text


@needs_lab
def test_a_tour_can_be_shown_again_from_its_record(toured, monkeypatch, here):
    folder, done = toured
    monkeypatch.chdir(folder)
    page = Path("out/index.html")
    before = page.read_text()
    page.unlink()
    again = here(*TINY, "--from-record")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout in done.stdout
    assert page.read_text() == before


@pytest.mark.parametrize("other", ["receive", "tut-8"])
def test_a_record_of_something_else_is_no_tours(here, elsewhere, other):
    Path("out").mkdir()
    shutil.copy(ROOT / "bench" / "results" / f"{other}.jsonl", Path("out", tour.RECORDS))
    check_refused(here("tour", "--output", "out", "--from-record"), 1, "none that a tour writes")


def test_a_tour_has_its_folder_for_itself_from_sample_to_picture(tmp_path, monkeypatch):
    tried = []

    def at(name: str, given: object) -> None:
        def step(*_: object) -> object:
            with pytest.raises(RecordError), locked(tmp_path):
                pass
            tried.append(name)
            return given

        monkeypatch.setattr(tour, name, step)

    at("_measure", Recording(HEADER, (SAMPLE,)))
    at("_draw", [])
    assert tour.do_tour("tiny", tmp_path, loopback=True) == 0
    assert tried == ["_measure", "_draw"]


def test_where_there_can_be_no_lab_a_tour_takes_loopback(tmp_path, monkeypatch, capsys):
    def no_lab() -> None:
        raise LabError("it is forbidden here")

    def measure(place: object, *_: object) -> Recording:
        assert isinstance(place, Loopback)
        header = replace(HEADER, lab={"kind": "loopback, no lab", "mtu": 65536})
        return Recording(header, (SAMPLE,))

    monkeypatch.setattr(tour, "Lab", no_lab)
    monkeypatch.setattr(tour, "_measure", measure)
    assert tour.do_tour("tiny", tmp_path) == 0
    assert "No lab: it is forbidden here." in capsys.readouterr().out


BAD = replace(SAMPLE, failure="counted 1, not 2")


@pytest.mark.parametrize(
    ("recording", "said"),
    [
        (Recording(HEADER, (BAD, SAMPLE)), "counted 1, not 2"),
        (Recording(HEADER, (replace(BAD, warm_up=True), SAMPLE)), "counted 1, not 2"),
    ],
    ids=["a run", "a warm-up"],
)
def test_one_failure_fails_the_tour(tmp_path, monkeypatch, capsys, recording, said):
    monkeypatch.setattr(tour, "_measure", lambda *_: recording)
    monkeypatch.setattr(tour, "_draw", lambda *_: [])
    assert tour.do_tour("tiny", tmp_path, loopback=True) == 1
    shown = capsys.readouterr()
    assert "✗" in shown.out
    assert shown.err == f"spead-tutorial: {said}\n"


def test_without_matplotlib_a_tour_still_has_its_table_and_its_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(tour, "_measure", lambda *_: recorded())
    assert tour.do_tour("tiny", tmp_path, loopback=True) == 0
    assert "No pictures: drawing needs matplotlib" in capsys.readouterr().out
    page = (tmp_path / "index.html").read_text()
    assert "<svg" not in page
    assert "Bigger packets" in page


def test_what_cannot_be_measured_beside_the_chapters_is_said_and_not_there(monkeypatch):
    monkeypatch.setattr(baselines.importlib.util, "find_spec", lambda name: None)
    cases, without = tour.planned("tiny", False)
    assert {case.implementation for case in cases} == {"ours", "ceiling"}
    assert without == [
        "Without the peer: spead2 is not installed: pip install 'spead-tutorial[peer]'."
    ]
    cases, without = tour.planned("tiny", True)
    assert {case.implementation for case in cases} == {"ours"}
    assert len(without) == 2


def test_a_program_that_cannot_be_started_is_a_row_that_failed(monkeypatch, tmp_path):
    some = tour.planned("tiny", True)[0][:1]

    def refuse(*_: object, **__: object) -> None:
        raise ProgramError("it is not there: pip install .")

    monkeypatch.setattr(tour, "take_case", refuse)
    monkeypatch.setattr(tour, "planned", lambda *_: (some, []))
    recording = tour._measure(Loopback(), "tiny", tmp_path / "tour.jsonl")
    assert {one.failure for one in recording.samples} == {"it is not there: pip install ."}
    assert {one.kind for one in recording.samples} == {"loopback, no lab"}


def test_a_row_is_the_median_of_its_samples_without_the_warm_up_or_nothing_if_one_failed():
    same = {"payload_bytes": 1000, "send_calls": 20, "cpu_user_ns": 300, "cpu_system_ns": 200}
    taken = [replace(SAMPLE, **same, elapsed_ns=ns) for ns in (1, 1000, 2000, 4000)]
    taken[0] = replace(taken[0], warm_up=True)
    (row,) = rows(Recording(HEADER, tuple(taken)))
    assert row.rate.median == pytest.approx(0.5e9)
    assert row.calls_per_heap == pytest.approx(2.0)
    assert row.cpu_s_per_gb == pytest.approx(0.5)
    (row,) = rows(Recording(HEADER, (replace(BAD, warm_up=True), *taken)))
    assert (row.rate, row.calls_per_heap, row.cpu_s_per_gb) == (None, None, None)


def test_a_tour_is_the_sweep_ladder_with_the_installed_peer_and_all_cores():
    def points(cases, implementation, languages=("python", "c")):
        return {
            (case.program, case.language, case.heap_size, case.packet_size, case.variant)
            for case in cases
            if case.implementation == implementation and case.language in languages
        }

    cases, sweep = tour.planned("tiny", False)[0], find_sweep("ladder").cases
    assert len({case.name for case in cases}) == len(cases)
    assert {one[0] for one in points(cases, OURS)} >= {chapter.name for chapter in CHAPTERS}
    besides = {rung.program for rung in BESIDE_LADDER}
    ours = {one for one in points(cases, OURS) if one[0] not in besides}
    assert ours == points(sweep, OURS)
    assert points(cases, PEER) == points(sweep, PEER_FROM_SOURCE)
    assert points(cases, "ceiling") == points(sweep, "ceiling")
