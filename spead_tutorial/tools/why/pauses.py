# SPDX-License-Identifier: BSD-3-Clause
"""Times in which a receiver reads nothing, and what it does in them. No I/O, no clock."""

import bisect
import itertools
import operator
import statistics
from collections.abc import Sequence

from spead_tutorial.tools.why.calls import Ended
from spead_tutorial.tools.why.facts import Pauses

#: Times without a read count as pauses that are as long as this, and as many times the median.
_PAUSE_S, _FAR_LONGER = 5e-3, 20
_AT = operator.attrgetter("at")


def pauses(seen: Sequence[Ended], reads: Sequence[Ended], starved: float, own: float) -> Pauses:
    """Find times without a read, in the calls of those that read."""
    readers = {one.who for one in reads}
    reads = sorted(reads, key=_AT)
    theirs = sorted((one for one in seen if one.who in readers), key=_AT)
    # A read that waited for packets is no pause: they begin where a read ended.
    gaps = [
        (then.at + then.took, now.at)
        for then, now in itertools.pairwise(reads)
        if now.at > then.at + then.took
    ]
    usual = statistics.median([end - start for start, end in gaps]) if gaps else 0.0
    least = max(_PAUSE_S, _FAR_LONGER * usual)
    long = [(start, end) for start, end in gaps if end - start >= least]
    in_pauses = sum(end - start - _in_calls(theirs, start, end) for start, end in long)
    between = sum(end - start - _in_calls(theirs, start, end) for start, end in gaps) - in_pauses
    # What they or strace had no core for was no work; of their own, what is not between reads was.
    worked = max(0.0, in_pauses - starved, own - between)
    return Pauses(
        len(long), max((end - start for start, end in long), default=0.0), min(worked, in_pauses)
    )


def _in_calls(calls: Sequence[Ended], start: float, end: float) -> float:
    """Return how much of a time was spent in calls that began in it, those that wait included."""
    first, last = (bisect.bisect_left(calls, at, key=_AT) for at in (start, end))
    took = sum(min(end, one.at + one.took) - one.at for one in calls[first:last])
    return min(end - start, took)
