# SPDX-License-Identifier: BSD-3-Clause
"""What is sent to receivers that are measured, and whether what both sides say adds up."""

import os
import shutil
import subprocess

import pytest

from spead_tutorial.chapters.catalogue import find_chapter, find_receiver
from spead_tutorial.lab import Lab, LabError
from spead_tutorial.measure import delivery
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.delivery import claims, contradiction, failure
from spead_tutorial.measure.programs import Done, ProgramOptions
from spead_tutorial.measure.running import Running, finish
from support.labs import needs_lab

SENT = {"heaps": 10, "packets": 100, "dropped": 0}
RECEIVED = {"heaps": 10, "packets": 100}


@pytest.mark.parametrize(
    ("sent", "received", "lossless", "words"),
    [
        ({}, {}, True, None),
        ({}, {"packets": 99}, False, "1 is missing between"),
        ({"dropped": 1}, {"packets": 93, "heaps": 9}, True, "though the sender left room"),
        ({"dropped": 1}, {"packets": 93, "heaps": 9}, False, None),
        ({}, {"heaps": 9}, True, "of 10 heaps 1 is missing between the sender and the program"),
        ({}, {"heaps": 11}, False, "of 10 heaps 1 is too many between"),
        ({}, {"not_understood": 3}, False, "3 heaps came whole, but were not understood"),
    ],
)
def test_what_was_sent_has_been_received_or_dropped(sent, received, lossless, words):
    found = contradiction(SENT | sent, RECEIVED | received, lossless=lossless)
    assert found is None if words is None else words in found


@pytest.mark.parametrize(("complete", "no_place"), [(111, 0), (110, 1)])
def test_the_heap_with_the_descriptors_is_no_heap_wherever_a_program_has_put_it(complete, no_place):
    said = {"heaps_complete": complete, "packets_no_place": no_place, "heaps_not_understood": 0}
    said |= {"socket_datagrams": 222, "socket_dropped": 0}
    found = claims(said, Case("ours", "c", "tut_12_recv_chunks", 1024), 10)
    assert found["heaps"] == 100


def test_a_program_that_fails_or_says_nothing_is_a_failure_and_that_heaps_are_missing_is_none():
    def wrong(received: int, sent: int = 0, said: str = '{"packets": 1}') -> str | None:
        return failure(Done("sender", sent, "{\"packets\": 1}", "why"),
                       Done("receiver", received, said, "why"))  # fmt: skip

    assert wrong(1) is None
    assert wrong(1, said="") == "receiver: why"
    assert wrong(1, 1) == "sender: why"
    assert wrong(-9) == "receiver: it was ended by SIGKILL"
    assert wrong(-40) == "receiver: it was ended by signal 40"


def test_what_is_measured_has_no_threads_for_linear_algebra_unless_it_is_told_to(monkeypatch):
    argv = ["sh", "-c", "echo $OPENBLAS_NUM_THREADS"]
    for own, threads in ("", "1\n"), ("2", "2\n"):
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        if own:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", own)
        assert finish(subprocess.run, "sh", argv).output == threads
        with Running(subprocess.Popen, "sh", argv) as running:
            assert running.wait().output == threads


@pytest.mark.parametrize(
    ("number", "options", "kept", "streams"),
    [
        ("6", ProgramOptions(), 1, None),
        ("6", ProgramOptions(cores="1,2"), None, None),
        ("14", ProgramOptions(), 1, 2),
        ("14", ProgramOptions(streams=3), 1, 3),
    ],
)
def test_behind_a_link_a_sender_is_on_a_core_with_its_streams(
    monkeypatch, number, options, kept, streams
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 2})
    core, asked = delivery._on_one_core(find_chapter(number), options)
    assert (core, asked.streams) == (kept, streams)


@needs_lab
def test_without_a_link_to_a_second_machine_it_arrives_over_loopback_from_one_core(monkeypatch):
    """From two its packets would lose their order."""
    cores = []

    class Watched(Running):
        def __init__(self, *args, core=None):
            cores.append(core)
            super().__init__(*args, core=core)

    def without_veth(kind: str | None = None, *, receiver: bool) -> Lab:
        if kind is None:
            raise LabError("this kernel offers no veth")
        return Lab(kind, receiver=receiver)

    monkeypatch.setattr(delivery, "Lab", without_veth)
    monkeypatch.setattr(delivery, "Running", Watched)
    with delivery.receiving_lab() as lab:
        pair = find_receiver("7"), find_chapter("6"), ("c", "c")
        done = delivery.deliver(lab, *pair, ProgramOptions(heaps=4), bits_per_s=8 * 10**8)
    assert (lab.kind, done.failure) == ("loopback", None)
    assert cores == [min(os.sched_getaffinity(0))]


def test_where_others_send_too_none_are_said_to_be_missing():
    received = {**RECEIVED, "packets": 101}
    assert delivery._counts(SENT, received, searched=False)["received_dropped"] == 0


def test_a_program_is_on_its_core_before_it_begins(monkeypatch):
    """Threads that have begun stay where they are; and no other program is needed for it."""
    core, grep = max(os.sched_getaffinity(0)), str(shutil.which("grep"))
    argv = [grep, "Cpus_allowed_list", "/proc/self/status"]
    monkeypatch.setenv("PATH", "")
    for _ in range(20):
        with Running(subprocess.Popen, "grep", argv, core=core) as running:
            assert running.wait().output.split() == ["Cpus_allowed_list:", str(core)]
