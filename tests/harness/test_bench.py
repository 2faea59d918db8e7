# SPDX-License-Identifier: BSD-3-Clause
"""The harness: what it measures, how it goes on after a kill, and what it makes of records."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bench import memory, peers, receivers, senders, status, sweeps
from bench import plan as planning
from bench.cli import cli
from bench.senders import SENDING, TIMELINES, Installed
from spead_tutorial.chapters.catalogue import ARRAY, CHAPTERS, STEPS, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure import machine, rounds
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.programs import ProgramError, program
from spead_tutorial.measure.records import (
    Header,
    RecordError,
    Recording,
    Sample,
    Split,
    locked,
    read,
)
from support import ROOT, arrays
from support.bench import PATIENCE_S, bench, fails, keys, made, recording, start, succeeds, write
from support.labs import needs_lab
from support.records import HEADER, make_spacing

RECORDS = ROOT / "bench" / "results"
PAGE = os.sysconf("SC_PAGESIZE")
SPLIT, SPACING = Split("one", 0, "p", "c", 1, 1), make_spacing("p", False, 0)
thorough = pytest.mark.thorough
FULL, QUICK, TINY = (sweeps.SIZES[name] for name in ("full", "quick", "tiny"))


# ---- What is measured ----


@pytest.mark.parametrize("sweep", sweeps.SWEEPS, ids=lambda sweep: sweep.name)
def test_a_sweep_has_the_cases_of_its_committed_record_and_a_quick_one_all_of_some_points(sweep):
    found = read(RECORDS / f"{sweep.name}.jsonl")
    sampled = [case for case in sweep.cases if case.observer.asked(Step(0, False, case)) is None]
    measured = {(one.case, one.series) for one in found.samples}
    wanted = {(case.name, case.series) for case in sampled}
    assert measured <= wanted
    since = {series.implementation for _, series in wanted - measured}
    # Sweeps got spead2's C++ after their records, and this one more.
    assert since <= {"spead2-source"} or sweep.name == "receive"
    others = [case for case in sweep.cases if case not in sampled]
    steps = rounds.schedule(others, 9, 1)
    asked = Counter(step.case.observer.asked(step).key for step in steps)
    assert asked == Counter(one.key for one in found.taken if not isinstance(one, Sample))
    assert len(sampled) == len(wanted)  # no two have the same name
    points = {case.point for case in sweep.quick}
    there = {case for case in sweep.cases if case.point in points}
    assert set(sweep.quick) <= there
    some = "receive", "receive-loss", "receive-lossless"
    assert set(sweep.quick) == there or sweep.name in some
    assert len(set(sweep.quick)) == len(sweep.quick)


def test_every_program_is_in_some_sweep_and_a_sweep_is_found_by_name_and_number():
    assert sweeps.find_sweep("10") is sweeps.find_sweep("heap-sizes")
    assert sweeps.find_sweep("13").name == "heap-sizes"  # as it has all of that chapter
    with pytest.raises(ValueError, match="there are ladder, tut-5"):
        sweeps.find_sweep("tut-99")
    measured = {case.program for sweep in sweeps.SWEEPS for case in sweep.cases}
    others = {"ceiling", *receivers.RECEIVERS, ARRAY[1].name, "latency", "rate"}
    assert measured == {chapter.name for chapter in (*CHAPTERS, *STEPS)} | others


def test_words_of_zero_copy_are_options_of_the_programs():
    sweep = sweeps.find_sweep("tut-15")
    switches = Counter(c.options().switches for c in sweep.cases if c.implementation == "ours")
    every = [(), ("small pages",), ("copy",), ("fill",), ("copy", "fill")]
    assert switches == dict.fromkeys(every, 2 * 3)


@pytest.mark.parametrize(
    ("sweep", "lacking", "word", "reasons", "n"),
    [
        ("tut-5", ("two_cores", None), "pinned", {"there are no two cores to pin threads to"}, 10),
        (
            "tut-5",
            ("why_no_link", "no link of {}".format),
            "link",
            {"no link of 10000000000", "no link of 1000000000"},
            14,
        ),
        ("ceiling", ("_zero_copy", False), "copy", {"the kernel does not offer zero-copy"}, 30),
    ],
)
def test_cases_that_this_machine_cannot_run_are_skipped(
    monkeypatch, sweep, lacking, word, reasons, n
):
    name, value = lacking
    monkeypatch.setattr(senders, name, value if callable(value) else lambda: value)
    plan = planning.plan_of(sweeps.find_sweep(sweep), QUICK)
    skipped = {name: why for name, why in plan.skipped.items() if word in name}
    assert set(skipped.values()) == reasons
    assert len(skipped) == n
    left = {case.name for case in plan.cases}
    assert left
    assert not any(re.search(rf"\b{word}( |,|$)", name) for name in left)


@pytest.mark.parametrize(
    ("siblings", "cores"),
    [
        ({0: "0", 1: "1"}, (0, 1)),
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, (0, 2)),
        ({0: "0-1", 1: "0-1"}, (0, 1)),
        ({3: "3", 5: "5"}, (3, 5)),
        ({0: "0"}, None),
    ],
)
def test_threads_are_pinned_to_cores_of_which_none_hinders_the_other(
    monkeypatch, tmp_path, siblings, cores
):
    for core, text in siblings.items():
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    monkeypatch.setattr(machine, "_CPUS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(siblings))
    assert machine.two_cores() == cores


# ---- The plan ----


def test_another_installation_is_measured_in_the_same_rounds():
    sweep = sweeps.find_sweep("heap-sizes")
    plan = planning.plan_of(sweep, QUICK, installations={"old": Installed(Path(), Path())})
    ours, old = (
        {
            dataclasses.replace(case, implementation="", observer=SENDING)
            for case in plan.cases
            if case.implementation == name
        }
        for name in ("ours", "old")
    )
    assert ours == old


def test_a_sample_lasts_as_long_as_its_warm_up_lets_one_expect():
    case = Case("ours", "c", CHAPTERS[-1].name, 8192)
    slow, fast = (made([rate])[0] for rate in (1e8, 1e11))
    assert SENDING.heaps(case, FULL, slow) == int(FULL.longest_s * 1e8) // 8192
    assert SENDING.heaps(case, FULL, fast) == (32 << 30) // 8192
    failed = replace(slow, failure="it failed")
    assert SENDING.heaps(case, FULL, failed) == SENDING.heaps(case, FULL, None) > 2
    large, small = (dataclasses.replace(case, heap_size=size) for size in (1 << 26, 256))
    assert SENDING.heaps(large, TINY, slow) == 2
    assert SENDING.heaps(small, FULL, None) == 1 << 16  # a GiB of them would take a minute


def test_cases_of_a_peer_that_is_not_installed_are_skipped_and_named(monkeypatch, tmp_path):
    argv = ("run", "heap-sizes", "--quick", "--dry-run", "-o", tmp_path / "results")
    built = "24 of 90 cases of heap-sizes are skipped: spead2 has not been built from its source:"
    done = bench(*argv)
    # All that this build is missing for is no reason to call a run incomplete.
    assert (done.returncode, done.stderr) == (0, f"{built} make peer\n")
    assert "66 cases, 5 rounds and a warm-up, to " in done.stdout
    monkeypatch.setitem(sys.modules, "spead2", None)
    done = bench(*argv)
    assert done.returncode == 3
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"3 of 90 cases .* skipped: spead2 is not installed: pip .*", first)
    assert second.startswith(built)
    assert "63 cases" in done.stdout
    assert not (tmp_path / "results").exists()


def test_the_peers_second_build_is_found_before_the_first(tmp_path, monkeypatch):
    (tmp_path / "spead2").mkdir()
    (tmp_path / "spead2" / "__init__.py").write_text("raise SystemExit('this one')")
    monkeypatch.setattr(peers, "_FROM_SOURCE", tmp_path)
    (case,) = (
        case
        for case in sweeps.find_sweep("heap-sizes").quick
        if (case.implementation, case.language) == ("spead2-source", "python")
        and case.heap_size == 8192
        and "batch" in case.program
    )
    assert case.observer.missing(case) is None
    start = SENDING.launch(case, 4)
    done = subprocess.run(start(("127.0.0.1", 9)), capture_output=True, text=True)
    assert done.stderr == "this one\n"


def test_an_installation_that_is_none_is_an_error(tmp_path):
    with pytest.raises(ProgramError, match="cannot be started"):
        peers.find_installation(str(tmp_path / "python"))
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(ProgramError, match="has no spead_tutorial"):
        peers.find_installation(str(bare))


# ---- Measuring, as a process ----


@needs_lab
def test_ctrl_c_says_what_is_kept(tmp_path):
    path = tmp_path / "tut-6-loopback.jsonl"
    with start("run", "tut-6-loopback", "--tiny", "-o", tmp_path) as process:
        while process.poll() is None and not (path.exists() and read_or_none(path)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, errors
    kept = len(read(path).samples)
    assert f"{kept} of 24 samples have been taken" in errors
    assert "goes on from there" in errors
    assert "Traceback" not in errors
    status_now = bench("status", path)
    assert status_now.returncode == 1
    assert f"{24 - kept} missing" in status_now.stdout


def read_or_none(path: Path) -> bool:
    try:
        return len(read(path, unfinished=True).samples) > 0
    except RecordError:
        return False


@needs_lab
@thorough
@pytest.mark.timeout(400)
def test_a_sweep_is_measured_and_drawn(tmp_path):
    done = bench("run", "tut-5", "--tiny", "-o", tmp_path / "bench", "--plot")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "bench" / "tut-5.jsonl"
    timelines = [(one.random, one.variant) for one in read(path).timelines]
    assert timelines == [(True, ""), (False, "")] * 2 + [(False, "link of 10 Gb/s")] * 2
    check_samples(read(path))
    assert (tmp_path / "figures" / "tut-5-send-pipeline-timeline.svg").exists()


def check_samples(found: Recording) -> None:
    assert {one.implementation for one in found.samples} == {"ours"}
    for one in found.samples:
        assert one.failure is None
        assert one.rate is not None
        assert one.counted_packets == one.messages
        assert None not in (one.steal_ns, one.load, one.page_faults, one.context_switches)


@needs_lab
def test_a_record_is_whole_and_is_not_gone_on_with_by_another_build(tmp_path, monkeypatch):
    case = Case("ours", "c", "tut_6_send_pktsize", 8192, 1472, observer=SENDING)
    timeline = Case("ours", "python", "tut_5_send_pipeline", 8192, 1472, observer=TIMELINES)
    cases = (case, dataclasses.replace(case, packet_size=9000), timeline)
    small = sweeps.Sweep("two", "two programs and a timeline", cases, cases)
    monkeypatch.setattr(sweeps, "SWEEPS", (small,))
    argv = ("run", "two", "--tiny", "-o", tmp_path, "--plot")
    path = tmp_path / "two.jsonl"
    succeeds(*argv)
    assert list(tmp_path.iterdir()) == [path]  # there are no pictures of it
    whole = read(path)
    found = {(one.case, one.heap_size, len(one.completed_ns)) for one in whole.timelines}
    assert found == {(timeline.name, 8192, 24)}
    check_samples(whole)
    assert set(keys(whole).values()) == {1}
    assert len(keys(whole)) == 2 * 3
    succeeds(*argv, "--rounds", 3)
    assert len(keys(read(path))) == 2 * 4 == len(keys(whole) | keys(read(path)))

    first, *others = path.read_text().splitlines(keepends=True)
    header = json.loads(first)
    header["versions"]["build"] = "another"
    changed = json.dumps(header) + "\n" + "".join(others)
    path.write_text(changed)
    assert "was begun otherwise (build is another, and" in fails(*argv)
    assert path.read_text() == changed
    one = dataclasses.replace(small, cases=cases[:1], quick=cases[:1])
    monkeypatch.setattr(sweeps, "SWEEPS", (one,))
    succeeds(*argv, "--restart", "--rounds", 1)
    assert len(read(path).samples) == 2
    assert read(path).header.versions["build"] != "another"


def test_what_a_strangers_record_says_is_no_more_than_letters_to_a_terminal(tmp_path):
    red = "\x1b]0;red\x07"
    found = recording(made([1e9] * 3, failure=red))
    header = replace(found.header, settings=found.header.settings | {"skipped": {"one": red}})
    path = write(tmp_path / "tut-6-loopback.jsonl", dataclasses.replace(found, header=header))
    done = bench("status", path)
    said = done.stdout + done.stderr
    assert "red" in said
    assert "\x1b" not in said


def test_of_an_arrays_record_the_account_is_shown_and_what_is_wrong_is_one_line(tmp_path):
    found = arrays.account([arrays.sender(0, 9)], [arrays.receiver(0, 8)])
    path = write(tmp_path / "array.jsonl", arrays.recorded(found))
    assert "\n".join(found.lines()) in succeeds("status", path)
    path.write_text(path.read_text().replace('"machine": 0', '"machine": 9'))
    said = "array.jsonl line 2: a program ran on none of 1 machine"
    assert said in fails("status", path)
    drawn = bench("plot", "-i", tmp_path, "-o", tmp_path)
    assert (drawn.returncode, drawn.stderr) == (1, f"tut-19-array.svg: {said}\n")


def taken(lab: Lab, case: Case) -> Sample:
    """One sample of a case."""
    return take(Device(lab), Step(0, False, case), 4, launch=SENDING.launch(case, 4))


@needs_lab
def test_bare_loops_of_several_streams_add_up_to_what_the_device_counts(make_lab):
    case = Case("ceiling", "c", "ceiling", 8192, variant="one thread", streams=2)
    with make_lab() as lab:
        measured = taken(lab, case)
    assert measured.failure is None
    assert measured.streams == 2
    assert measured.packets == 4
    assert measured.series == case.series
    assert case.series.variant == "one thread, 2 streams"


@needs_lab
def test_a_bare_loop_puts_more_packets_into_a_message_that_is_read_out_of_huge_pages(make_lab):
    ordinary, huge = (
        Case("ceiling", "c", "ceiling", 1 << 20, variant=f"one thread, no fill, zero-copy{more}")
        for more in ("", ", huge pages")
    )
    with make_lab() as lab:
        found = [taken(lab, case) for case in (ordinary, huge)]
    if found[1].failure and "huge pages" in found[1].failure:
        pytest.skip(found[1].failure)
    assert [one.failure for one in found] == [None, None]
    assert found[0].packets == found[1].packets
    assert found[0].messages > found[1].messages
    assert [one.zero_copy_messages for one in found] == [one.messages for one in found]


@needs_lab
def test_a_bare_loop_can_send_with_the_faults_that_senders_have(make_lab):
    """A packet in a call, or a few in several; in fragments; new memory; pieces; unconnected."""
    command = [*program("ceiling", "c"), "-t", "1", "-n", "2", "-H", "1000000", "-b", "1000000"]
    with make_lab() as lab:
        found = []
        for words in (
            ["-k", "1", "-m", "1"],
            ["-k", "2", "-m", "3", "--pieces", "100"],
            ["-k", "1", "-p", "60000", "--unconnected"],
        ):
            before = lab.counters()
            argv = [*command, "--json", "--fresh", *words, lab.address, str(lab.port)]
            said = json.loads(lab.run(argv, capture_output=True, check=True).stdout)
            counted = (lab.counters() - before).packets
            assert said["page_faults"] >= 2 * 1000000 // PAGE
            counts = [said[name] for name in ("packets", "messages", "send_calls")]
            found.append((*counts, counted))
    # 112 packets of 9000 bytes for a heap; or 16 in seven pieces, and one in five.
    assert found == [(224, 224, 224, 224), (224, 112, 38, 112), (34, 34, 2, 234)]


@needs_lab
@pytest.mark.parametrize("language", ["c", pytest.param("python", marks=thorough)])
def test_another_installation_runs_its_own_programs(make_lab, language):
    """This one, taken for another."""
    old = Installed(*peers.find_installation(sys.executable))
    with make_lab() as lab:
        for name, random in ((CHAPTERS[-1].name, False), ("tut_5_send_pipeline", True)):
            packet_size = find_chapter(name).packet_size
            case = Case("old", language, name, packet_size=packet_size, random=random, heaps=4)
            (one,) = old.observe(lab, TINY, Step(0, False, case), made([1e9])[0])
            assert one.failure is None
            assert one.series == case.series
            assert one.rate


# ---- One run at a time in a folder ----


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "tut-6-loopback", "--tiny", "-o", "{folder}"),
        ("run", "tut-6-loopback", "--restart", "-o", "{folder}"),
    ],
)
def test_where_a_run_writes_a_second_one_is_one_line(tmp_path, arguments):
    path = write(tmp_path / "tut-6-loopback.jsonl", recording(made([1e9])))
    whole = path.read_bytes()
    with locked(tmp_path):
        line = fails(*(word.format(folder=tmp_path) for word in arguments))
    assert f"another run writes to {tmp_path}: " in line
    assert (list(tmp_path.iterdir()), path.read_bytes()) == ([path], whole)


def test_what_only_reads_asks_for_no_folder_of_its_own(tmp_path):
    path = write(tmp_path / "tut-6-loopback.jsonl", recording(made([1e9] * 9)))
    with locked(tmp_path):
        succeeds("run", "tut-6-loopback", "--dry-run", "-o", tmp_path)
        succeeds("status", path)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ([9 << 20] + [1 << 20] * 9, None),
        ([1 << 20] * 4, "it was over after 4 looks"),
        ([*range(0, 10 << 20, 1 << 20)], "its memory grew by 7340032 bytes after the warm-up"),
    ],
)
def test_memory_is_flat_that_does_not_grow_after_the_warm_up(seen, words):
    found = memory.complaint(seen)
    assert found is None if words is None else words in found


# ---- Asked for wrongly ----


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_help_with_an_example(name):
    assert re.search(rf"Example: python -m bench {name}", succeeds(name, "--help"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "tut-99"], "there is no sweep 'tut-99'"),
        (["run", "heap-sizes", "--rounds", "0"], "--rounds"),
        (["run", "heap-sizes", "--beside", "old"], "--beside is 'old'"),
        (["run", "heap-sizes", "--beside", "ours=python3"], "--beside is"),
        (["compare", "some.jsonl"], "Missing option '--before'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(arguments, words):
    assert words in fails(*arguments, status=2)


def test_what_cannot_be_used_is_one_line_and_status_1(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes(b"a,b\n1,2\n")
    assert "not a JSON object" in fails("status", path)
    assert "No such file" in fails("status", tmp_path / "none.jsonl")


# ---- How certain numbers are ----


def test_the_table_says_how_busy_each_side_was_net_of_looking():
    cpu = {"cpu_user_ns": 8 * 10**6, "cpu_system_ns": 5 * 10**6}
    ours = made([1e9] * 2, **cpu, program_cpu_ns=6 * 10**6, looking_ns=10**6, waiting_looking_ns=0)
    assert ours[0].elapsed_ns == 10 * (1 << 20)
    peer = made([1e9] * 2, **cpu, program_cpu_ns=10**6, case="two", implementation="spead2")
    old = made([1e9] * 2, **cpu, case="three", implementation="old")
    heading, *lines = status.table(recording(ours, peer, old)).splitlines()
    assert re.search("program +others$", heading)
    found = {line.split()[3]: re.findall(r"\d+%", line) for line in lines}
    assert found == {"ours": ["57%", "57%"], "spead2": ["10%", "114%"], "old": []}


def test_notes_say_what_makes_numbers_uncertain():
    def notes(samples: list[Sample], **facts: object) -> list[str]:
        header = replace(HEADER, machine=HEADER.machine | facts)
        return status.advice(recording(samples, header=header))

    wide = recording(*(made([1e9, 3e9] * n, case=str(n)) for n in (1, 9)))
    assert "MB/s  95 % (n<6: range)" in re.sub("  +", "  ", status.table(wide))
    words = "2 of 2 cases have a 95 % (n<6: range) wider than 10%"
    assert any(words in line for line in status.advice(wide))
    busy = made([1e9, 2e9, 3e9], load=9.0, steal_ns=10**9)
    found = "\n".join(notes(busy, governor="powersave", turbo="on", virtualisation="kvm"))
    for words in (
        "3 rounds: fewer than 9",
        "1 of 1 cases have a range wider than 10%",
        "governor powersave",
        "turbo is on",
        "a virtual machine (kvm)",
        "3 of 3 samples were taken at a load above 2",
        "gave more than 1% of the time to others",
    ):
        assert words in found
    assert status.noise_floor(recording(made([1e9, 1.5e9] * 4))) == pytest.approx(0.5)
    assert status.noise_floor(recording(made([1e9, 1e9]))) is None
    calm = made([1e9] * 9, load=0.5, steal_ns=0)
    floor = "noise floor: the same case twice differs by up to 0% here (A/A)"
    assert notes(calm, governor="performance", virtualisation="none") == [floor]


# ---- Formats ----


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"machine": {"kernel": "0.1"}}, "kernel is 6.1, and 0.1"),
        ({"machine": {"turbo": "on"}}, "turbo is unknown, and on"),
        ({"lab": {"kind": "strange"}}, "lab kind is dummy, and strange"),
        ({"revision": "another"}, "revision is unknown, and another"),
        ({"machine": {"load": 99.0}}, None),
        ({"settings": {"rounds": 99}}, None),
        ({"versions": {"build": "2"}}, "build is unknown, and 2"),
    ],
)
def test_a_record_goes_on_where_all_is_the_same_but_load_and_rounds(fields, words):
    assert machine.differs(HEADER, changed(HEADER, fields)) == words


def changed(header: Header, fields: dict[str, Any]) -> Header:
    new = {
        name: getattr(header, name) | value if isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return replace(header, **new)


def test_status_says_how_many_failed_and_were_repeated(tmp_path):
    failed = [replace(one, failure="it failed") for one in made([1e9])]
    shown = succeeds("status", write(tmp_path / "some.jsonl", recording(failed, made([1e9] * 9))))
    assert "besides 1 that failed and were repeated" in shown
    assert "1 samples failed and were repeated: the later ones count" in shown
    assert shown.count(" 1 repeated\n") == 1


def test_status_of_a_record_that_does_not_say_how_much_it_is_to_hold_shows_its_samples(tmp_path):
    header = replace(HEADER, experiment="tut-6", settings={"size": "full"})
    path = write(tmp_path / "some.jsonl", recording(made([1e9] * 9), header=header))
    assert "9 samples of full size, complete" in succeeds("status", path)
