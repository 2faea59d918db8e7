# SPDX-License-Identifier: BSD-3-Clause
"""Both ends over a link: every packet has a place, and what both took is noted."""

import dataclasses

import pytest

from bench.both_ends import BOTH_ENDS, receiver_of
from bench.sweeps import SIZES, find_sweep
from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.delivery import receiving_lab


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
