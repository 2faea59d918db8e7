# SPDX-License-Identifier: BSD-3-Clause
"""Where packets are lost: each place in its turn, and every packet accounted for."""

import pytest

from bench import losing, receivers, sweeps
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.records import Sample

#: So few bytes that the socket has room for all of them, unless it is to have less.
HEAPS, HEAP_SIZE, PACKETS_OF_HEAP = 30, 1 << 16, 8


def sample(variant: str) -> Sample:
    case = Case("ours", "python", sweeps.LOST, HEAP_SIZE, variant=variant)
    reason = receivers.missing(case)
    if reason is not None:
        pytest.skip(reason)
    with receivers.open_lab() as lab:
        return losing.take(lab, Step(0, False, case), HEAPS)


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


def test_where_nothing_is_in_the_way_all_arrives():
    one = sample("0.1 GB/s")
    assert places(one) == {}
    assert (one.received_heaps, one.incomplete_packets) == (HEAPS, 0)


def test_what_is_lost_on_the_way_costs_whole_heaps():
    one = sample("0.1 GB/s, 2 % lost")
    assert set(places(one)) == {"lost_packets"}
    assert one.incomplete_packets > one.lost_packets


def test_a_small_buffer_loses_packets_though_the_ring_is_never_full():
    one = sample("0.1 GB/s, bursts of 1024 KiB, buffer of 8 KiB, ring of 64")
    assert set(places(one)) == {"received_dropped"}
    assert one.ring_waits == 0
    assert one.socket_buffer_bytes == 2 * 8 << 10


def test_a_slow_program_has_the_ring_full_first_and_then_the_socket():
    one = sample("0.1 GB/s, ring of 1, 100 ms a heap, buffer of 128 KiB")
    assert set(places(one)) == {"received_dropped"}
    assert one.ring_waits > 0
    assert one.longest_ring_wait_ns > 0


def test_a_full_ring_that_drops_loses_whole_heaps_and_nothing_in_the_socket():
    one = sample("0.1 GB/s, ring of 1, 100 ms a heap, full ring drops")
    assert set(places(one)) == {"ring_dropped_packets"}
    assert (one.ring_waits, one.incomplete_packets) == (0, 0)


def test_a_program_that_fails_is_said_to(monkeypatch, tmp_path):
    monkeypatch.setattr(losing, "PROGRAM", tmp_path / "gone.py")
    assert "gone.py" in str(sample("0.1 GB/s").failure)


def test_words_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="'a wet wire' is nothing that packets could be lost by"):
        losing.Setting.of("0.1 GB/s, a wet wire")
    for case in sweeps.find_sweep("receive-lost").cases:
        losing.Setting.of(case.variant)


#: Of three heaps of 1000 bytes in two packets, the program got one, and the ring dropped one.
COUNTS = dict.fromkeys(losing._FATES, 0) | {
    "got": 1,
    "ring_dropped": 1,
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
        ({"packets_placed": 5}, "of 6 packets received, 5 are in it"),
        ({"got": 2}, "of 2 complete heaps, 3 are in it"),
        ({"incomplete_bytes": 0}, "of 2501 bytes of heaps, 2001 are in it"),
        ({"incomplete_heaps_flushed": 2}, "3 heaps were sent; 2 are complete and 2 are not"),
        ({"packets_received": 4, "packets_placed": 4}, "2 are complete and 1 are not, of 4"),
    ],
)
def test_counts_that_do_not_add_up_are_no_sample(changed, complaint):
    found = losing.contradiction(COUNTS | changed, 3, 1000, 2)
    assert found is None if complaint is None else complaint in found
