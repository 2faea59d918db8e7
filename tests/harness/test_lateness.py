# SPDX-License-Identifier: BSD-3-Clause
"""How long after its last packet a heap's result is there."""

from bench import lateness
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.records import Received
from support.labs import needs_lab

HEAP_SIZE, HEAPS = 1 << 20, 3
pytestmark = needs_lab


def sample(program: str) -> Received:
    case = Case("ours", "c", program, HEAP_SIZE, variant="0.2 GB/s, one by one")
    with receiving_lab() as lab:
        return lateness.LATENESS.take(lab, Step(0, False, case), HEAPS)


def test_every_heap_is_waited_for_and_none_is_lost():
    one = sample("tut_7_recv_power")
    assert one.failure is None
    assert (one.received_heaps, one.received_dropped) == (HEAPS, 0)
    assert one.payload_bytes >= (HEAPS - 1) * HEAP_SIZE
    assert one.cpu_user_ns + one.cpu_system_ns > 0
    # Below 0 where the result was there before a busy sender came to its clock.
    assert 0 < abs(one.lateness_ns) < 10**10


def test_a_program_that_prints_no_result_is_a_failure(monkeypatch):
    monkeypatch.setattr(lateness, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(lateness, "_RESULT", "nothing begins like this")
    assert sample("tut_7_recv_power").failure == "of heap 0 no result was printed"
