# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9's programs, measured: what arrives of what was sent, and what the pool had to do."""

import pytest

from bench import pools, receivers, sweeps
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.programs import Done
from support.labs import needs_lab

MIB = 1 << 20
SENT = {"packets": 100}
RECEIVED = {
    "packets_placed": 90,
    "packets_late": 1,
    "socket_datagrams": 91,
    "socket_dropped": 4,
    "heaps_complete": 3,
}


def case_of(language: str, variant: str = "") -> Case:
    return Case(
        "ours", language, sweeps.POOL, MIB, 9000, variant=variant, heaps=5, link=400_000_000
    )


@needs_lab
@pytest.mark.parametrize("language", ["c", pytest.param("python", marks=pytest.mark.thorough)])
def test_a_sample_says_what_arrived_and_how_often_the_pool_was_empty(language):
    case = case_of(language, "pool of 0")
    reason = receivers.missing(case)
    if reason is not None:
        pytest.skip(reason)
    with receivers.open_lab() as lab:
        sample = pools.take(lab, Step(0, False, case), 5)
    assert sample.failure is None
    assert (sample.heaps, sample.received_heaps, sample.pool_empty) == (5, 5, 6)  # and the stop
    assert (sample.chapter, sample.variant) == (9, "pool of 0, link of 0.4 Gb/s")
    assert sample.packets == sample.received_packets
    assert sample.payload_bytes == 5 * MIB
    assert sample.page_faults > 0


def failure(
    received: dict[str, int], sent: dict[str, int], statuses: tuple[int, int] = (1, 0)
) -> str | None:
    both = (Done("receiver", statuses[0], "", "why"), Done("sender", statuses[1], "", "why"))
    return pools._failure(both, received, sent | {"heaps": 5} if sent else {})


def test_heaps_that_are_lost_are_no_failure_and_an_account_that_does_not_add_up_is_one():
    assert failure(RECEIVED, SENT) is None
    assert "accounted for" in str(failure(RECEIVED | {"packets_late": 2}, SENT))
    assert "does not add up" in str(failure(RECEIVED | {"socket_dropped": 10}, SENT))


def test_a_program_that_fails_or_says_nothing_is_a_failure():
    assert failure({}, SENT) == "receiver: why"
    assert failure(RECEIVED, {}) is not None
    assert failure(RECEIVED, SENT, (1, 1)) == "sender: why"
    assert failure(RECEIVED, SENT, (-9, 0)) == "receiver: it was ended by SIGKILL"
