# SPDX-License-Identifier: BSD-3-Clause
"""Timelines: that they show what the loops of chapters 4 and 5 really do, in their order."""

import json
import re
import subprocess

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import LabError
from spead_tutorial.measure import timeline as taking
from spead_tutorial.measure.programs import ProgramError, ProgramOptions, command, finish
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.timeline import record
from support.records import TIMELINE
from support.sockets import messages
from support.typed import check_refused

STEPS = [field.name for field in fields(Timeline) if field.name.endswith("_ns")]
#: So slow that a heap is on its way for half a second, once the first burst is gone.
SLOW = {"heaps": 3, "heap_size": 150000, "rate": 250000.0}

# In an empty folder, the source does not hide the installed package.
pytestmark = pytest.mark.usefixtures("elsewhere")


def check_order(timeline: Timeline, heaps: int) -> None:
    times = [getattr(timeline, step) for step in STEPS]
    assert [len(one) for one in times] == [heaps] * len(STEPS)
    for heap in zip(*times, strict=True):
        assert list(heap) == sorted(heap)
    assert timeline.prepare_ns[0] == 0
    for one in times:
        assert list(one) == sorted(one)


# ---- Recording ----


@pytest.mark.parametrize("pipelined", [False, True], ids=["chapter 4", "chapter 5"])
def test_in_a_lab_chapter_5_begins_a_heap_before_the_last_is_done_and_4_after(lab, pipelined):
    how = {"pipelined": pipelined, "random": False, **SLOW}
    before = lab.counters().packets
    timeline = record(lab.run, (lab.address, lab.port), **how)
    check_order(timeline, 3)
    ended = timeline.completed_ns if pipelined else timeline.resumed_ns
    for begun, end in zip(timeline.prepare_ns[1:], ended, strict=False):
        assert begun < end if pipelined else begun >= end
    assert lab.counters().packets > before
    with pytest.raises(ProgramError, match="unreachable"):
        record(lab.run, ("198.51.100.1", 9), **how)


def test_times_that_cannot_be_are_refused():
    taking._check(TIMELINE)
    wrong = replace(TIMELINE, completed_ns=(35, 79))
    with pytest.raises(ProgramError, match=r"heap 1 contradict.*last_packet_ns is 80"):
        taking._check(wrong)


# ---- As a command ----


def test_it_says_what_time_was_used_for(receiver, here):
    done = here("timeline", "-n", "3", "-H", "8192", "-p", "9000", *receiver.getsockname())
    assert (done.returncode, done.stderr) == (0, "")
    (words,) = done.stdout.splitlines()
    assert re.match(r"3 heaps in [\d.]+ ms; from heap 1 on, counted from 0, the", words)
    assert words.count("%") == 4
    assert len(messages(receiver)) == 3 + 1  # with the stop heap


@pytest.mark.parametrize(
    ("flags", "program"),
    [
        ((), "tut_4_send_constant"),
        (("--random",), "tut_4_send_perf"),
        (("--pipelined", "--random", "-c", "0,0"), "tut_5_send_pipeline"),
        pytest.param(("--pipelined",), "tut_5_send_pipeline", marks=pytest.mark.thorough),
    ],
)
def test_it_sends_what_the_programs_send_and_prints_json(receiver, here, flags, program):
    is_random = "--random" in flags
    options = ProgramOptions(5, 10000, random=is_random and "--pipelined" in flags)
    argv = command(find_chapter(program), "python", options, receiver.getsockname())
    assert finish(subprocess.run, program, argv).status == 0
    expected = messages(receiver)
    assert len(expected) > 5 * 6
    done = here("timeline", "--json", *flags, "-n", "5", "-H", "10000", *receiver.getsockname())
    assert (done.returncode, done.stderr) == (0, "")
    assert messages(receiver) == expected
    found = json.loads(done.stdout)
    timeline = Timeline(**{k: tuple(v) if k in STEPS else v for k, v in found.items()})
    check_order(timeline, 5)
    assert (timeline.program, timeline.random) == (program, is_random)
    assert (timeline.language, timeline.heap_size, timeline.packet_size) == ("python", 10000, 1472)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["-p", "70000", "127.0.0.1", "8888"], 1, "70000 bytes"),
        (["not a host", "8888"], 1, "no address is known"),
        (["-c", "0,1023", "127.0.0.1", "8888"], 1, "on core 1023"),
        (["-c", "0", "127.0.0.1", "8888"], 1, "must be two cores, such as 0,1, not '0'"),
        (["-n", "0", "127.0.0.1", "8888"], 2, "it must be a whole number from 1 to"),
        (["127.0.0.1"], 2, "Missing argument 'PORT'"),
    ],
)
def test_an_error_is_one_line(here, arguments, status, words):
    check_refused(here("timeline", *arguments), status, words)


def test_a_real_interface_is_refused(monkeypatch, here):
    def refuse(host: str, *, allow_real_network: bool) -> None:
        raise LabError(f"{host} {allow_real_network}")

    monkeypatch.setattr("spead_tutorial.tools.timeline.check_destination", refuse)
    assert here("timeline", "192.0.2.1", "9").stderr == "spead-tutorial: 192.0.2.1 False\n"
