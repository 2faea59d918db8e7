# SPDX-License-Identifier: BSD-3-Clause
"""The harness: bursts of a counter."""

import numpy as np

from bench.bursts import bursts

NS = 10**9


def counter(at_ns, n_bytes, unsure_ns=0):
    """What is seen of a counter that steps at some times, each of which is known so well."""
    early = np.array([0, *(at - unsure_ns for at in at_ns)])
    late = np.array([0, *(at + unsure_ns for at in at_ns)])
    return np.stack([early, late, np.cumsum([7, *n_bytes])], axis=1)


def even(step, period_ns, n):
    return [NS + period_ns * i for i in range(n)], [step] * n


def test_a_steady_counter_has_bursts_of_one_step_and_its_rate():
    found = bursts(counter(*even(1000, 10_000, 1001)), 1e8, 1.0)
    assert (found["burst_bytes"], found["burst_most_bytes"]) == (1000, 1000)
    assert found["average_bytes"] * NS == found["average_ns"] * 100_000_000
    assert (found["steps"], found["grain_ns"], found["longest_grain_ns"]) == (1001, 0, 0)


def test_what_is_caught_up_after_a_pause_is_a_burst():
    at, n_bytes = even(1000, 10_000, 1001)
    at = [max(t, NS + 5_000_000) if t > NS + 2_000_000 else t for t in at]
    found = bursts(counter(at, n_bytes), 1e8, 1.0)
    # All that was due in 3 ms came at once.
    assert found["burst_bytes"] == found["burst_most_bytes"] == 300_000


def test_a_counter_that_grows_too_fast_fills_a_bucket_without_end():
    found = bursts(counter(*even(2000, 10_000, 1001)), 1e8, 1.0)
    assert found["burst_bytes"] == 1000 * 1001 + 1000


def test_the_longest_burst_lies_between_its_bounds_where_times_are_unsure():
    rng = np.random.default_rng(31)
    for unsure_ns in (0, 500, 5000):
        at = NS + np.cumsum(rng.integers(2 * unsure_ns + 1, 40_000, 300))
        n_bytes = rng.integers(1, 3000, 300)
        true = bursts(counter(at, n_bytes), 1e8, 1.0)["burst_bytes"]
        seen = counter(at, n_bytes, unsure_ns)
        found = bursts(seen, 1e8, 1.0)
        assert found["burst_bytes"] <= true <= found["burst_most_bytes"]
        # By brute force, and of the packets' own bytes alone.
        early, late, total = seen.T
        window = [
            (total[j] - total[i - 1]) * 0.9 - (late[j] - early[i]) / 10
            for i in range(1, 301)
            for j in range(i, 301)
        ]
        assert bursts(seen, 1e8, 0.9)["burst_bytes"] == round(max(window))
