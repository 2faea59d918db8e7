# SPDX-License-Identifier: BSD-3-Clause
"""What overlapping gains: the times of runs in numbers, and the model that predicts them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis.intervals import Interval, preparing, sending, shares
from spead_tutorial.measure.records import Timeline

if TYPE_CHECKING:
    import pandas

__all__ = ["median_ms", "overlapping", "predict_overlap", "time_shares"]


def median_ms(intervals: Sequence[Interval]) -> float:
    """Return how long it takes, in ms: the median of several times.

    Parameters
    ----------
    intervals : sequence of tuple of int
        Begin and end of each, in ns, such as ``analysis.intervals.preparing`` returns.
    """
    return stats.median([(end - begin) / 1e6 for begin, end in intervals]).median


def _period_ms(one: Timeline) -> float:
    """Return how long it takes from one heap to the next."""
    return median_ms(list(pairwise(one.prepare_ns)))


def overlapping(one: Timeline) -> int:
    """Return how many heaps were still being sent when the next one was begun.

    Parameters
    ----------
    one : Timeline
        What `watch` returned.
    """
    pairs = zip(one.last_packet_ns, one.prepare_ns[1:], strict=False)
    return sum(begun < sent for sent, begun in pairs)


def time_shares(**timelines: Timeline) -> "pandas.DataFrame":
    """Return what the time of each run went to, as a table.

    Parameters
    ----------
    **timelines : Timeline
        Runs by what the table calls them, with underscores for spaces.
    """
    import pandas

    rows = {}
    for name, one in timelines.items():
        share = shares(one)
        rows[name.replace("_", " ")] = {
            "preparing, ms": f"{median_ms(preparing(one)):.2f}",
            "sending, ms": f"{median_ms(sending(one)):.2f}",
            "from heap to heap, ms": f"{_period_ms(one):.2f}",
            "program prepares": f"{share.preparing:.0%}",
            "program waits": f"{share.waiting:.0%}",
            "thread sends": f"{share.sending:.0%}",
        }
    return pandas.DataFrame(rows).T


def predict_overlap(before: Timeline, after: Timeline) -> None:
    """Say how much overlapping gains by the model, and how much it did gain.

    By the model, a heap in turns takes as long as preparing and sending it, and overlapped as the
    longer of the two.

    Parameters
    ----------
    before, after : Timeline
        A run in turns, and one that overlaps.
    """
    parts = median_ms(preparing(before)), median_ms(sending(before))
    print(f"Preparing takes {parts[0]:.2f} ms, and sending {parts[1]:.2f} ms.")
    print(f"By the model, overlapped is {sum(parts) / max(parts):.2f} times as fast.", end=" ")
    print(f"It became {_period_ms(before) / _period_ms(after):.2f} times as fast.")
