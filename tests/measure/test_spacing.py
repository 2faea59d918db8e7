# SPDX-License-Identifier: BSD-3-Clause
"""How evenly messages leave: what one says of their times, and the times themselves."""

import numpy as np
import pytest
from msgspec.structs import replace

from bench.timing import bursts
from spead_tutorial.measure.analysis.spacing import burst, silence
from support.records import make_spacing

US, KIB = 1000, 1 << 10


def test_silence_is_the_longest_time_between_two_messages():
    assert silence(make_spacing("some", True, 70)) == 70 * US
    assert silence(make_spacing("some", True, 5, 20)) == 20 * US


def test_a_heap_that_was_held_up_does_not_count():
    even = make_spacing("some", True, 10)
    late = tuple(
        time + 1000 * US * (heap > 10) for heap, time in zip(even.heaps, even.time_ns, strict=True)
    )
    held_up = replace(even, time_ns=late)
    assert silence(held_up) == silence(even)
    assert burst(held_up) == burst(even)


def test_of_messages_far_apart_one_comes_at_once_and_of_those_together_all_must_be_queued():
    assert burst(make_spacing("some", False, 10, 10)) == pytest.approx(64 * KIB)
    # In a hundredth of the time of a heap, a hundredth of it has left the bucket.
    assert burst(make_spacing("some", True, 2997, 1)) == pytest.approx(256 * KIB * (1 - 3 / 3000))


def test_a_burst_is_what_it_is_of_a_stream_with_a_rate():
    """Of one heap, at its own rate, the harness says the same of a counter."""
    one = make_spacing("some", True, 33, 7, heaps=2)
    times, n_bytes = np.array(one.time_ns[:4]), np.cumsum(one.message_bytes[:4])
    rate = 256 * KIB / (one.time_ns[4] / 1e9)
    # A first step of nothing, as what is counted from is no step.
    seen = np.stack([[0, *times], [0, *times], [0, *n_bytes]], axis=1)
    assert burst(one) == pytest.approx(bursts(seen, rate, 1.0)["burst_bytes"], abs=1)


def test_one_heap_alone_has_no_time():
    with pytest.raises(ValueError, match="no two heaps"):
        silence(make_spacing("some", True, 10, heaps=1))
