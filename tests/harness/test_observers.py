# SPDX-License-Identifier: BSD-3-Clause
"""What observers of receivers see: losses, lateness, both ends, one slow sender of an array."""

import dataclasses
import json

import pytest

from bench import lateness, losing, receivers, sweeps
from bench.both_ends import BOTH_ENDS, BothEnds, receiver_of
from bench.one_slow import ONE_SLOW, counted
from bench.sweeps import SIZES, find_sweep
from spead_tutorial.chapters.catalogue import ARRAY, MEASURED
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.programs import Done, ProgramError
from spead_tutorial.measure.records import Received
from spead_tutorial.recv._config import ACCOUNT
from support.labs import needs_lab


def observed(observer: receivers.Receiving, case: Case, heaps: int) -> Received:
    """What an observer sees of a case, where that can be."""
    if (reason := observer.missing(case)) is not None:
        pytest.skip(reason)
    with receiving_lab() as lab:
        return observer.take(lab, Step(0, False, case), heaps)


# ---- Where packets are lost: each place in its turn ----

#: So few bytes that the socket has room for all of them, unless it is to have less.
HEAPS, HEAP_SIZE, PACKETS_OF_HEAP = 30, 1 << 16, 8


def lost(variant: str) -> Received:
    case = Case("ours", "python", receivers.LOST, HEAP_SIZE, variant=variant)
    return observed(losing.LOSING, case, HEAPS)


def places(one: Received) -> dict[str, int]:
    """Where packets were lost, and how many; the failure is that it does not add up."""
    assert one.failure is None
    names = ("lost_packets", "received_dropped", "ring_dropped_packets")
    there = {name: getattr(one, name) for name in names}
    assert one.packets == HEAPS * PACKETS_OF_HEAP + 1
    rest = there["ring_dropped_packets"] + one.incomplete_packets
    whole = one.received_heaps * PACKETS_OF_HEAP + 1
    assert one.received_packets == whole + rest
    assert one.packets == whole + rest + there["lost_packets"] + there["received_dropped"]
    return {name: n for name, n in there.items() if n}


thorough = pytest.mark.thorough
WHERE = [
    ("0.1 GB/s, 2 % lost", "lost_packets", lambda one: one.incomplete_packets > one.lost_packets),
    (
        "0.1 GB/s, ring of 1, 100 ms a heap, full ring drops",
        "ring_dropped_packets",
        lambda one: (one.ring_waits, one.incomplete_packets) == (0, 0),
    ),
    (
        "0.1 GB/s, no thread, 10 ms a heap, buffer of 128 KiB",
        "received_dropped",
        lambda one: one.ring_waits == 0,
    ),
    pytest.param("0.1 GB/s", None, lambda one: one.incomplete_packets == 0, marks=thorough),
    pytest.param(
        "0.1 GB/s, ring of 1, 100 ms a heap, buffer of 128 KiB",
        "received_dropped",
        lambda one: min(one.ring_waits, one.longest_ring_wait_ns) > 0,
        marks=thorough,
    ),
    pytest.param(
        "0.1 GB/s, bursts of 1024 KiB, buffer of 8 KiB, ring of 64",
        "received_dropped",
        lambda one: (one.ring_waits, one.socket_buffer_bytes) == (0, 2 * 8 << 10),
        marks=thorough,
    ),
]


@pytest.mark.parametrize(("words", "lost_at", "is_so"), WHERE)
def test_packets_are_lost_where_there_is_no_room_and_only_there(words, lost_at, is_so):
    """A lost one costs a heap; a slow program has the ring full first and then the socket."""
    one = lost(words)
    assert set(places(one)) == ({lost_at} if lost_at else set())
    assert is_so(one), one
    assert (one.received_heaps == HEAPS) == (lost_at is None)


def test_a_program_that_fails_is_said_to(monkeypatch, tmp_path):
    monkeypatch.setattr(losing, "PROGRAM", tmp_path / "gone.py")
    assert "gone.py" in str(lost("0.1 GB/s").failure)


def test_words_that_mean_nothing_are_refused():
    case = Case("ours", "python", receivers.LOST, variant="0.1 GB/s, a wet wire")
    with pytest.raises(ValueError, match="'a wet wire' means nothing to a receiver"):
        receivers.flags(case)
    for sweep in sweeps.SWEEPS:
        for case in sweep.cases:
            if isinstance(case.observer, BothEnds):
                case = receiver_of(case)  # the words of its sender say which
            if isinstance(case.observer, receivers.Receiving):
                receivers.flags(case)


#: Of three heaps of 1000 bytes in two packets, the program got one, and the ring dropped one.
COUNTS = dict.fromkeys([one.name for one in ACCOUNT], 0) | {
    "got": 1,
    "ring_dropped": 1,
    "heaps_begun": 3,
    "heaps_complete": 2,
    "incomplete_heaps_evicted": 0,
    "incomplete_heaps_flushed": 1,
    "packets_received": 6,
    "packets_placed": 6,
    "payload_bytes": 2501,
    "incomplete_bytes": 500,
}


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, None),
        ({"packets_placed": 5}, "of 6 packets 1 is missing in this stream"),
        ({"got": 2}, "of 2 complete heaps 1 is too many between the stream and the program"),
        ({"incomplete_bytes": 0}, "of 2501 bytes 500 are missing in heaps, complete or not"),
        (
            {"incomplete_heaps_flushed": 2, "heaps_begun": 4},
            "of 3 heaps 1 is too many in heaps of which something came",
        ),
        ({"packets_received": 4, "packets_placed": 4}, "4 packets 1 is too many in complete heaps"),
    ],
)
def test_counts_that_do_not_add_up_are_no_sample(changed, complaint):
    found = losing.contradiction(COUNTS | changed, 3, 1000, 2)
    assert found is None if complaint is None else complaint in found


# ---- How late a heap's result is ----


def late(program: str) -> Received:
    case = Case("ours", "c", program, 1 << 20, variant="0.2 GB/s, one by one")
    return observed(lateness.LATENESS, case, 3)


@needs_lab
def test_every_heap_is_waited_for_and_none_is_lost():
    one = late("tut_7_recv_power")
    assert one.failure is None
    assert (one.received_heaps, one.received_dropped) == (3, 0)
    assert one.payload_bytes >= 2 << 20
    assert one.cpu_user_ns + one.cpu_system_ns > 0
    # Below 0 where the result was there before a busy sender came to its clock.
    assert 0 < abs(one.lateness_ns) < 10**10


@needs_lab
def test_a_program_that_prints_no_result_is_a_failure(monkeypatch):
    monkeypatch.setattr(lateness, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(lateness, "_RESULT", "nothing begins like this")
    assert late("tut_7_recv_power").failure == "of heap 0 no result was printed"


# ---- Both ends over a link ----


@pytest.mark.parametrize("language", MEASURED)
def test_a_run_of_both_ends_says_what_arrived_and_what_each_side_took(language):
    case = next(one for one in find_sweep("both-ends").cases if one.language == language)
    case = dataclasses.replace(case, link=800_000_000)
    if reason := BOTH_ENDS.missing(case):
        pytest.skip(reason)
    with receiving_lab() as lab:
        (one,) = BOTH_ENDS.observe(lab, SIZES["tiny"], Step(0, False, case), None)
    assert one.failure is None
    assert (one.implementation, one.variant) == ("ours", "to ours, link of 0.8 Gb/s")
    assert one.heaps == max(4, int(0.02 * 1e8) >> 20)
    assert one.packets > one.heaps * (1 << 20) // 9000
    assert one.received_packets + one.received_dropped == one.packets
    assert one.sender_cpu_ns > 0
    assert one.cpu_user_ns + one.cpu_system_ns > 0
    assert one.growth_bytes >= 0
    assert 0 <= one.fullest_percent <= 100


def test_each_sender_goes_to_each_receiver_in_its_language():
    cases = find_sweep("both-ends").cases
    both = {(one.implementation, one.language, receiver_of(one)) for one in cases}
    assert len(both) == len(cases) == 8
    for who, language, receiver in both:
        assert (receiver.language == "python") == (language == "python"), who
        assert {"ours", "spead2-source"} >= {who, receiver.implementation}


# ---- An array of which one sender is slow ----


@pytest.mark.parametrize("variant", ["", "lossy"])
def test_every_packet_of_each_sender_is_accounted_for(variant):
    case = Case("ours", "c", ARRAY[1].name, 1 << 16, variant=variant, observer=ONE_SLOW)
    one = observed(ONE_SLOW, case, 100)
    assert one.failure is None
    assert (one.heaps, one.slow_heaps) == (100, 5)
    assert one.received_packets + one.received_dropped == one.packets
    if not one.received_dropped:  # the slow one is less than a window behind
        assert (one.received_heaps, one.slow_received_heaps) == (100, 5)


SENT = [
    Done(f"sender {i}", 0, json.dumps({"packets": n, "heaps": n, "elapsed_ns": 9}), "")
    for i, n in enumerate((8, 8, 1))
]


def received(*packets: int, status: int = 0) -> Done:
    came = [{"heaps": n, "packets": n, "dropped": 1} for n in packets]
    return Done("receiver", status, json.dumps({"senders": came}), "")


def test_heaps_of_the_slow_one_are_counted_by_themselves():
    found, failure = counted(SENT, received(7, 7, 0, status=1), 10)
    assert failure is None
    assert (found["received_heaps"], found["payload_bytes"]) == (14, 140)
    assert (found["slow_heaps"], found["slow_received_heaps"]) == (1, 0)
    assert (found["packets"], found["received_packets"], found["received_dropped"]) == (17, 14, 3)


def test_packets_that_nothing_counted_are_no_sample_and_nor_is_what_fails():
    _, failure = counted(SENT, received(7, 5, 0), 10)
    assert failure == "the account does not add up: of 8 packets 2 are missing from sender 1"
    with pytest.raises(ProgramError, match="receiver: it ended with status 1 and said nothing"):
        counted(SENT, Done("receiver", 1, "", ""), 10)
    with pytest.raises(ProgramError, match="sender 1: it ended with status 3"):
        counted([SENT[0], Done("sender 1", 3, "{}", ""), SENT[2]], received(7, 7, 0), 10)
