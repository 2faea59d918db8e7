# SPDX-License-Identifier: BSD-3-Clause
"""Where packets are lost: each place in its turn, and every packet accounted for."""

import pytest

from bench import losing, receivers, sweeps
from bench.both_ends import BothEnds, receiver_of
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.records import Sample
from spead_tutorial.recv._config import ACCOUNT

#: So few bytes that the socket has room for all of them, unless it is to have less.
HEAPS, HEAP_SIZE, PACKETS_OF_HEAP = 30, 1 << 16, 8


def sample(variant: str) -> Sample:
    case = Case("ours", "python", receivers.LOST, HEAP_SIZE, variant=variant)
    reason = losing.LOSING.missing(case)
    if reason is not None:
        pytest.skip(reason)
    with receiving_lab() as lab:
        return losing.LOSING.take(lab, Step(0, False, case), HEAPS)


def places(one: Sample) -> dict[str, int]:
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
    one = sample(words)
    assert set(places(one)) == ({lost_at} if lost_at else set())
    assert is_so(one), one
    assert (one.received_heaps == HEAPS) == (lost_at is None)


def test_a_program_that_fails_is_said_to(monkeypatch, tmp_path):
    monkeypatch.setattr(losing, "PROGRAM", tmp_path / "gone.py")
    assert "gone.py" in str(sample("0.1 GB/s").failure)


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
