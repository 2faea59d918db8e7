# SPDX-License-Identifier: BSD-3-Clause
"""Timelines: that they show what the loops of chapters 4 and 5 really do, in their order."""

import subprocess

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure import timeline as taking
from spead_tutorial.measure.programs import ProgramError, ProgramOptions, command, finish
from spead_tutorial.measure.records import Timeline
from spead_tutorial.measure.timeline import record
from support.records import TIMELINE
from support.sockets import messages

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


@pytest.mark.parametrize(
    ("pipelined", "random", "program"),
    [
        (False, False, "tut_4_send_constant"),
        (False, True, "tut_4_send_perf"),
        (True, True, "tut_5_send_pipeline"),
        pytest.param(True, False, "tut_5_send_pipeline", marks=pytest.mark.thorough),
    ],
)
def test_it_sends_what_the_programs_send(receiver, pipelined, random, program):
    options = ProgramOptions(5, 10000, random=random and pipelined)
    argv = command(find_chapter(program), "python", options, receiver.getsockname())
    assert finish(subprocess.run, program, argv).status == 0
    expected = messages(receiver)
    assert len(expected) > 5 * 6
    how = {"pipelined": pipelined, "random": random, "heaps": 5, "heap_size": 10000}
    timeline = record(subprocess.run, receiver.getsockname(), **how)
    assert messages(receiver) == expected
    check_order(timeline, 5)
    assert (timeline.program, timeline.random) == (program, random)
    assert (timeline.language, timeline.heap_size, timeline.packet_size) == ("python", 10000, 1472)


def test_what_the_program_refuses_is_told(receiver):
    how = {"pipelined": False, "random": False}
    with pytest.raises(ProgramError, match="70000 bytes"):
        record(subprocess.run, receiver.getsockname(), **how, packet_size=70000)
