# SPDX-License-Identifier: BSD-3-Clause
"""What a recording has to say of each point of a picture: medians, intervals, gains."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from spead_tutorial import stats
from spead_tutorial.records import Recording, Sample, Series
from spead_tutorial.stats import Estimate

__all__ = [
    "Point",
    "Value",
    "faults",
    "gain",
    "gains",
    "highest",
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
    """The samples of one case.

    Parameters
    ----------
    samples : tuple of Sample
        Those that count.
    """

    samples: tuple[Sample, ...]

    @property
    def failed(self) -> int:
        """How many of them failed; with any, the point has no median."""
        return sum(one.failure is not None for one in self.samples)

    def values(self, value: Value = rate) -> dict[tuple[int, int], float]:
        """Return what they have, by machine and round; those that failed have nothing.

        Raises
        ------
        ValueError
            Where there are two of a round: they are not of one case.
        """
        found: dict[tuple[int, int], float] = {}
        for one in self.samples:
            x, key = value(one), (one.source, one.round)
            if key in found and x is not None:
                raise ValueError(f"the recording has several samples of {one.case} in a round")
            if x is not None:
                found[key] = x
        return found

    def estimate(self, value: Value = rate) -> Estimate | None:
        """Return their median; None where one of them failed, or none has the value."""
        found = self.values(value)
        return stats.median(list(found.values())) if found and not self.failed else None


def points(recording: Recording, x: str = "heap_size") -> dict[Series, dict[int, Point]]:
    """Sort the samples that count into series, and those by size."""
    found: dict[Series, dict[int, list[Sample]]] = {}
    for one in recording.samples:
        if not one.warm_up:
            found.setdefault(one.series, {}).setdefault(getattr(one, x), []).append(one)
    return {
        series: {size: Point(tuple(samples)) for size, samples in sorted(sizes.items())}
        for series, sizes in found.items()
    }


def gain(before: Point | None, after: Point | None) -> Estimate | None:
    """Return how many times as fast it became within rounds; None where one has no rate."""
    if before is None or after is None or before.failed or after.failed:
        return None
    old, new = before.values(), after.values()
    return stats.gain(old, new) if old.keys() & new.keys() else None


def gains(before: Mapping[int, Point], after: Mapping[int, Point]) -> dict[int, Estimate | None]:
    """Return the gain at each size: None where one has no rate; nothing where none has a gain."""
    found = {x: gain(before.get(x), point) for x, point in after.items()}
    return found if any(one is not None for one in found.values()) else {}


def highest(found: Iterable[Point], value: Value = rate) -> float:
    """Return the highest value that a sample of some points has; 0 where none has one."""
    return max((x for point in found for x in point.values(value).values()), default=0.0)


def top(recording: Recording) -> float:
    """Return the highest rate of a recording in MB/s.

    It is that of all its samples that count, also those which a picture leaves out: pictures
    of one recording have the same scale, and can be held beside each other.
    """
    rates = (rate(one) for one in recording.samples if not one.warm_up)
    return max((x for x in rates if x is not None), default=1.0)


def require(found: Mapping[Series, object], wanted: Iterable[Series], sweep: str) -> None:
    """Raise `ValueError` where a recording has nothing of what a picture is about."""
    series = list(wanted)
    if not any(one in found for one in series):
        programs = " or ".join(dict.fromkeys(one.program for one in series))
        raise ValueError(f"the recording has no sample of {programs}: python -m bench run {sweep}")
