# SPDX-License-Identifier: BSD-3-Clause
"""What the time of a run was used for: preparing heaps, waiting for them, sending them."""

import bisect
import dataclasses
from collections.abc import Iterable

from spead_tutorial.measure.records import Timeline

__all__ = [
    "Interval",
    "Shares",
    "first_steady",
    "preparing",
    "sending",
    "shares",
    "span",
    "steady",
    "waiting",
]

#: Begin and end in ns.
Interval = tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of the time of `steady`."""

    preparing: float  # in which the program prepared heaps
    waiting: float  # in which it waited for them
    rest: float  # in which it did anything else; these three make 1
    # in which the network thread was between the first and the last packet of a heap
    sending: float


def shares(timeline: Timeline) -> Shares:
    """Return what the time of a run was used for.

    It is plain arithmetic with intervals: the time that at least one of them covers, divided by
    the time that the heaps took which count. `preparing`, `waiting`, `sending` and `steady` say
    which intervals.
    """
    begin, end = steady(timeline)
    whole = max(1, end - begin)
    prepared, waited, sent = (
        _covered((max(one, begin), min(other, end)) for one, other in intervals) / whole
        for intervals in (preparing(timeline), waiting(timeline), sending(timeline))
    )
    return Shares(prepared, waited, max(0.0, 1 - prepared - waited), sent)


def first_steady(timeline: Timeline) -> int:
    """Return the first heap that counts: the third part of a run before it is a cold start.

    Memory is new there, its pages have yet to be found, and threads are asleep.
    """
    return len(timeline.prepare_ns) // 3


def steady(timeline: Timeline) -> Interval:
    """Return when the heaps that count began, and when a run had waited for its last heap."""
    return timeline.prepare_ns[first_steady(timeline)], span(timeline)[1]


def span(timeline: Timeline) -> Interval:
    """Return when a run began, and when it had waited for its last heap."""
    return timeline.prepare_ns[0], max(*timeline.resumed_ns, *timeline.last_packet_ns)


def preparing(timeline: Timeline) -> list[Interval]:
    """Return when the program prepared each heap, until it was queued."""
    return list(zip(timeline.prepare_ns, timeline.queued_ns, strict=True))


def sending(timeline: Timeline) -> list[Interval]:
    """Return when the network thread sent each heap, its first packet to its last.

    One call may have the end of a heap and the beginning of the next: the next one's time begins
    when the first has been sent, so that no time counts for two heaps.
    """
    before = (0, *timeline.last_packet_ns)
    first = map(max, timeline.first_packet_ns, before)
    return list(zip(first, timeline.last_packet_ns, strict=True))


def waiting(timeline: Timeline) -> list[Interval]:
    """Return when the program waited for heaps.

    What ends when it goes on with a heap began when it had last queued one, or gone on with one.
    """
    queued = set(timeline.queued_ns)
    marks = sorted({*queued, *timeline.resumed_ns})
    intervals = []
    for end in sorted(set(timeline.resumed_ns) - queued):  # at others it went on at once
        place = bisect.bisect_left(marks, end)
        if place > 0:
            intervals.append((marks[place - 1], end))
    return intervals


def _covered(intervals: Iterable[Interval]) -> int:
    """Return how long at least one of the intervals lasts."""
    total = 0
    last: int | None = None
    for begin, end in sorted(intervals):
        begin = begin if last is None else max(begin, last)
        total += max(0, end - begin)
        last = end if last is None else max(end, last)
    return total
