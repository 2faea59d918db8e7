# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of measurements: medians, their intervals, and gains within rounds."""

import dataclasses
import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

__all__ = ["FEWEST", "Estimate", "differs", "gain", "median", "spread"]

_Round = TypeVar("_Round", bound=Hashable)

#: Fewer values than these make no interval: their range is given instead.
FEWEST = 6
_RESAMPLES = 2000
_KEPT = 64  # values at most whose median is kept: rounds, and not every packet's time
_AT_ONCE = 1 << 20  # values that are held at once: all resamples may be more than there is memory


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """A median with its interval."""

    median: float  #: In the unit of the values.
    #: One end of the 95 % bootstrap interval (of so few values as one has here, it covers the truth
    #: a little less often than that); of fewer than `FEWEST` values, of their range.
    low: float
    high: float  #: The other end.
    n: int  #: How many values there were.

    @property
    def spread(self) -> str:
        """What its ends are, in words."""
        return spread([self.n])


def spread(counts: Iterable[int]) -> str:
    """Say what the ends of estimates are, of as many values each as `counts` says.

    It is ``"95 % interval"``, ``"range"`` where all have fewer values than make one, or both.
    """
    few = {n < FEWEST for n in counts}
    if few == {True, False}:
        return f"95 % (n<{FEWEST}: range)"
    return "range" if few == {True} else "95 % interval"


def differs(gain: Estimate) -> bool:
    """Return whether a gain, or a loss, can be told from chance: its interval leaves out 1.

    Nothing is called faster or slower otherwise, by no other test. The interval is
    taken as it is printed, with two digits after the point. A range of three values leaves 1 out
    by chance in one case of four: that of fewer than `FEWEST` has to be as far from it as its ends
    are from each other.
    """
    apart = gain.high / gain.low if gain.n < FEWEST else 1.0
    return not round(gain.low / apart, 2) <= 1 <= round(gain.high * apart, 2)


def median(values: Sequence[float], *, seed: int = 1) -> Estimate:
    """Estimate the median of values, in their unit; without any, that is a ValueError.

    The interval is found by resampling, for which random numbers have a `seed`: the same values,
    in whatever order, give the same interval.
    """
    if not len(values):
        raise ValueError("there are no values to take the median of")
    estimate = _median if len(values) <= _KEPT else _median.__wrapped__
    return estimate(tuple(map(float, values)), seed)


@functools.lru_cache(4096)  # a picture, and a page, ask for the same several times
def _median(values: tuple[float, ...], seed: int) -> Estimate:
    data = np.sort(values)
    if data.size < FEWEST:
        ends = (float(data.min()), float(data.max()))
        return Estimate(float(np.median(data)), *ends, int(data.size))
    low, high = np.quantile(_resampled(data, np.random.default_rng(seed)), [0.025, 0.975])
    return Estimate(float(np.median(data)), float(low), float(high), int(data.size))


def _resampled(values: Sequence[float] | np.ndarray, random: np.random.Generator) -> np.ndarray:
    data = np.sort(values)  # the order that they came in says nothing
    rows = max(1, _AT_ONCE // data.size)
    sizes = [min(rows, _RESAMPLES - begun) for begun in range(0, _RESAMPLES, rows)]
    return np.concatenate(
        [np.median(random.choice(data, size=(n, data.size)), axis=1) for n in sizes]
    )


def gain(
    before: Mapping[_Round, float], after: Mapping[_Round, float], *, seed: int = 1
) -> Estimate:
    """Estimate how many times as fast something became, by its rates in each round.

    A ratio after / before is taken within each round, so that what disturbs a whole round cancels.
    Rounds that only one of them has are left out; a ValueError says that they have none in common.
    The `seed` is as for `median`.
    """
    rounds = [number for number in before if number in after]
    if not rounds:
        raise ValueError("no round has both a rate before and a rate after")
    return median([after[number] / before[number] for number in rounds], seed=seed)
