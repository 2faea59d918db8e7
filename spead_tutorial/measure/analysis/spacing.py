# SPDX-License-Identifier: BSD-3-Clause
"""How evenly the messages of a run left: how long it was silent, and how much came at once.

Both are a heap's: its time reaches from its first message to the first of the heap after it. The
median of the heaps counts, so that one that was held up by something else does not.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from spead_tutorial.measure.records import Spacing

__all__ = ["burst", "silence"]

_Numbers = np.ndarray[Any, Any]


def silence(run: Spacing) -> float:
    """Return the longest time between two messages: the median of the heaps, in ns."""
    return float(np.median([np.diff(times).max() for times, _ in _of_heaps(run)]))


def burst(run: Spacing) -> float:
    """Return how much came at once: the median of the heaps, in bytes.

    It is what a bucket must hold, that is emptied at the heap's own average rate, for all of the
    heap to pass. Of a message that came as soon as the bucket had room for it, that is one message.
    """
    return float(np.median([_burst(*heap) for heap in _of_heaps(run)]))


def _of_heaps(run: Spacing) -> Iterator[tuple[_Numbers, _Numbers]]:
    """Yield of each heap but the last the times of its messages and of what follows, and bytes."""
    begins = [0, *(place for place, (a, b) in enumerate(pairwise(run.heaps), 1) if a != b)]
    if len(begins) < 2:
        raise ValueError(f"{run.program}: there are no two heaps one after the other")
    for begin, end in pairwise(begins):
        yield np.array(run.time_ns[begin : end + 1]), np.array(run.message_bytes[begin:end])


def _burst(times: _Numbers, n_bytes: _Numbers) -> float:
    time = times - times[0]
    paid = time[:-1] * (n_bytes.sum() / max(time[-1], 1))
    after = np.cumsum(n_bytes)
    return float((after - paid + np.maximum.accumulate(paid - (after - n_bytes))).max())
