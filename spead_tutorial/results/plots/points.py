# SPDX-License-Identifier: BSD-3-Clause
"""What a recording has to say of each point of a picture: medians, intervals, gains.

The bare system calls of a recording are sorted here, too.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from spead_tutorial.measure import search, stats
from spead_tutorial.measure.records import Recording, Sample, Series, joined, words_of
from spead_tutorial.measure.stats import Estimate

__all__ = [
    "Point",
    "Value",
    "bare_name",
    "best_bare",
    "faults",
    "gain",
    "gains",
    "highest",
    "is_bare",
    "points",
    "rate",
    "require",
    "top",
]

Value = Callable[[Sample], float | None]


def rate(one: Sample) -> float | None:
    """Return a sample's rate in MB/s (10⁶ bytes of payload a second)."""
    return None if one.rate is None else one.rate / 1e6


def faults(one: Sample) -> float | None:
    """Return the page faults of a heap."""
    if one.failure is not None or one.page_faults is None:
        return None
    return one.page_faults / one.heaps


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """The samples of one case."""

    samples: tuple[Sample, ...]  # those that count

    @property
    def failed(self) -> int:
        """How many of them failed; with any, the point has no median."""
        return sum(sample.failure is not None for sample in self.samples)

    @property
    def key(self) -> tuple[str, ...]:
        """What its samples have in common with those of other sizes of heaps, as a page has it.

        Those of a search are told apart from those of runs: they are another kind of rate.
        """
        one = self.samples[0]
        searched = ["searched"] * search.is_search(one)
        return (*dataclasses.astuple(one.series), str(one.packet_size), *searched)

    def values(self, value: Value = rate) -> dict[tuple[int, int], float]:
        """Return what they have, by machine and round; those that failed have nothing."""
        values_by_round: dict[tuple[int, int], float] = {}
        for sample in self.samples:
            x, key = value(sample), (sample.source, sample.round)
            if key in values_by_round and x is not None:
                raise ValueError(f"the recording has several samples of {sample.case} in a round")
            if x is not None:
                values_by_round[key] = x
        return values_by_round

    @property
    def median(self) -> float:
        """The median rate; 0 where there is none."""
        estimate = self.estimate()
        return 0.0 if estimate is None else estimate.median

    def estimate(self, value: Value = rate) -> Estimate | None:
        """Return their median; None where one of them failed, or none has the value."""
        values = self.values(value)
        return stats.median(list(values.values())) if values and not self.failed else None


def points(recording: Recording, x: str = "heap_size") -> dict[Series, dict[int, Point]]:
    """Sort the samples that count into series, and those by size."""
    samples_by_series: dict[Series, dict[int, list[Sample]]] = {}
    for sample in recording.samples:
        if not sample.warm_up:
            samples_by_series.setdefault(sample.series, {}).setdefault(
                getattr(sample, x), []
            ).append(sample)
    return {
        series: {size: Point(tuple(samples)) for size, samples in sorted(sizes.items())}
        for series, sizes in samples_by_series.items()
    }


def gain(before: Point | None, after: Point | None) -> Estimate | None:
    """Return how many times as fast it became within rounds; None where one has no rate."""
    if before is None or after is None or before.failed or after.failed:
        return None
    old, new = before.values(), after.values()
    return stats.gain(old, new) if old.keys() & new.keys() else None


def gains(before: Mapping[int, Point], after: Mapping[int, Point]) -> dict[int, Estimate | None]:
    """Return the gain at each size: None where one has no rate; nothing where none has a gain."""
    estimates = {x: gain(before.get(x), point) for x, point in after.items()}
    return estimates if any(estimate is not None for estimate in estimates.values()) else {}


def highest(found: Iterable[Point], value: Value = rate) -> float:
    """Return the highest value that a sample of some points has; 0 where none has one."""
    return max((x for point in found for x in point.values(value).values()), default=0.0)


def top(recording: Recording) -> float:
    """Return the highest rate of a recording in MB/s.

    It is that of all its samples that count, also those which a picture leaves out: pictures
    of one recording have the same scale, and can be held beside each other.
    """
    rates = (rate(sample) for sample in recording.samples if not sample.warm_up)
    return max((x for x in rates if x is not None), default=1.0)


def require(found: Mapping[Series, object], wanted: Iterable[Series], sweep: str) -> None:
    """Raise `ValueError` where a recording has nothing of what a picture is about."""
    all_series = list(wanted)
    if not any(series in found for series in all_series):
        programs = " or ".join(dict.fromkeys(series.program for series in all_series))
        raise ValueError(f"the recording has no sample of {programs}: python -m bench run {sweep}")


# ---------------------------------------------------------------------------------------
# The bare system calls


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
            if x not in best or point.median > best[x][1].median:
                best[x] = series, point
    return dict(sorted(best.items()))
