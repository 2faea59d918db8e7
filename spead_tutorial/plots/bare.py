# SPDX-License-Identifier: BSD-3-Clause
"""The bare system calls of a recording: what each loop does, and which of them is the best."""

from collections.abc import Mapping

from spead_tutorial.plots.points import Point
from spead_tutorial.records import Series, joined, words_of

__all__ = ["BEST", "bare_name", "best_bare", "is_bare"]

#: What a legend calls the best of all that were measured together.
BEST = "the best of all bare loops here"


def is_bare(series: Series) -> bool:
    """Return whether it is one of the loops."""
    return series.implementation == "ceiling"


def bare_name(variant: str) -> str:
    """Say who sends in a loop and what is done with the bytes, as a record names what it is not."""
    words = words_of(variant)
    streams = [word for word in words if word.endswith("streams")]
    threads = [word for word in words if word.endswith(("thread", "threads"))]
    work = "read in place" if "zero-copy" in words else "copy"
    fill = "" if "no fill" in words else "fill and "
    pages = ["huge pages"] if "huge pages" in words else []
    return joined(*(streams or threads), fill + work, *pages)


def best_bare(
    points_by_series: Mapping[Series, Mapping[int, Point]], named: Series
) -> dict[int, tuple[Series, Point]]:
    """Return which loop was the fastest at each size, and its point: where none was, the named."""
    loops = [named, *(series for series in points_by_series if is_bare(series) and series != named)]
    best: dict[int, tuple[Series, Point]] = {}
    for series in loops:
        for x, point in points_by_series[series].items():
            if x not in best or _median(point) > _median(best[x][1]):
                best[x] = series, point
    return dict(sorted(best.items()))


def _median(point: Point) -> float:
    estimate = point.estimate()
    return 0.0 if estimate is None else estimate.median
