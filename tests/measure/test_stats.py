# SPDX-License-Identifier: BSD-3-Clause
"""Statistics: medians and gains, and what their intervals are."""

import random
import tracemalloc

import numpy as np
import pytest

from spead_tutorial.measure import stats


def test_the_median_of_few_values_has_their_range():
    assert stats.median([3.0, 1.0, 2.0]) == stats.Estimate(2.0, 1.0, 3.0, 3)
    assert stats.median([5.0]) == stats.Estimate(5.0, 5.0, 5.0, 1)


def test_an_interval_does_not_depend_on_the_order_of_the_values():
    source, values = random.Random(1), list(range(1, 10))
    for _ in range(100):
        source.shuffle(values)
        assert stats.median(values) == stats.Estimate(5.0, 2.0, 8.0, 9)


def test_what_is_said_of_an_estimates_ends_is_what_they_are():
    few, enough = (stats.median([1.0] * n) for n in (stats.FEWEST - 1, stats.FEWEST))
    assert (few.spread, enough.spread) == ("range", "95 % interval")
    assert stats.spread([few.n, few.n]) == "range"
    assert stats.spread([enough.n, 2 * enough.n]) == "95 % interval"
    assert stats.spread([few.n, enough.n]) == f"95 % (n<{stats.FEWEST}: range)"


def test_an_interval_of_many_values_takes_little_memory(monkeypatch):
    values = np.random.default_rng(1).normal(size=20_001)
    monkeypatch.setattr(stats, "_RESAMPLES", 150)
    with monkeypatch.context() as at_once:
        at_once.setattr(stats, "_AT_ONCE", 150 * values.size)
        expected = stats.median(values)
    tracemalloc.start()
    try:
        assert stats.median(values) == expected
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_the_interval_of_a_median_covers_the_truth_about_as_often_as_it_says():
    source = random.Random(2)
    covered = 0
    for n in range(200):
        values = [source.gauss(0, 1) for _ in range(15)]
        found = stats.median(values)
        assert min(values) <= found.low <= found.median <= found.high <= max(values)
        assert n or found == stats.median(values)  # the same every time
        covered += found.low <= 0 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_a_gain_is_taken_within_rounds():
    before = {0: 10.0, 1: 20.0, 2: 40.0, 7: 1.0}
    after = {0: 20.0, 1: 40.0, 2: 80.0, 8: 1.0}
    assert stats.gain(before, after) == stats.Estimate(2.0, 2.0, 2.0, 3)


def test_three_rounds_tell_a_difference_that_is_larger_than_what_they_differ_by():
    found = [(1.02, 1.1), (1.2, 1.3), (0.9, 0.98), (0.7, 0.8), (2.0, 3.9), (2.0, 4.1)]
    told = [stats.differs(stats.Estimate(low, low, high, 3)) for low, high in found]
    assert told == [False, True, False, True, True, False]
    assert stats.differs(stats.Estimate(1.05, 1.02, 1.1, stats.FEWEST))
    assert not stats.differs(stats.Estimate(1.2, 1.004, 1.4, stats.FEWEST))  # printed as 1.00


def test_no_values_are_an_error():
    with pytest.raises(ValueError, match="no values"):
        stats.median([])
    with pytest.raises(ValueError, match="no round"):
        stats.gain({0: 1.0}, {1: 1.0})
