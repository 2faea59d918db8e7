# SPDX-License-Identifier: BSD-3-Clause
"""What comes of an array's senders while one is slow, and every packet accounted for."""

import json

import pytest

from bench.one_slow import ONE_SLOW, counted
from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.programs import Done, ProgramError


@pytest.mark.parametrize("variant", ["", "lossy"])
def test_every_packet_of_each_sender_is_accounted_for(variant):
    case = Case("ours", "c", ARRAY[1].name, 1 << 16, variant=variant, observer=ONE_SLOW)
    if (reason := ONE_SLOW.missing(case)) is not None:
        pytest.skip(reason)
    with receiving_lab() as lab:
        one = ONE_SLOW.take(lab, Step(0, False, case), 100)
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
