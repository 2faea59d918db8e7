# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9's programs, measured: what arrives of what was sent, and what the pool had to do."""

import pytest

from bench import pools, receivers, sweeps
from spead_tutorial.measure.case import Case, Step
from support.labs import needs_lab

MIB = 1 << 20


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
