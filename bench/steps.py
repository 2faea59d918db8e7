# SPDX-License-Identifier: BSD-3-Clause
"""Where a series of rates changes its level: what a change between two revisions has to look like.

The levels are ruptures's: the segments whose squared errors, with a price for each, are least. Its
price takes the noise between one revision and the next, which differences tell.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Any

from spead_tutorial.records import RecordError

__all__ = ["FEWEST_REVISIONS", "noise", "steps"]

#: Fewer do not tell a change from what two runs of the same differ by: each place is asked about.
FEWEST_REVISIONS = 6
_PRICE = 5.0
_OF_NORMAL = 0.6745  # median of absolute values, in standard deviations
_LEAST_NOISE = 1e-4


def noise(rates: Sequence[float]) -> float:
    """Return the standard deviation of rates' logarithms, of what is no change of the level.

    A change is one large difference, and hardly moves the median of all differences.
    """
    apart = [abs(math.log(b / a)) for a, b in itertools.pairwise(rates)]
    return statistics.median(apart) / _OF_NORMAL / math.sqrt(2) if apart else 0.0


def steps(rates: Sequence[float], noise: float) -> list[int]:
    """Return where a new level may begin: indices, of the first rate of each level but the first.

    A level of one rate, with others after it, is an accident of its run, and no level. The last
    rate may be a level by itself.
    """
    if len(rates) < FEWEST_REVISIONS:
        return list(range(1, len(rates)))
    left = list(range(len(rates)))
    while True:
        starts = _levels([math.log(rates[index]) for index in left], max(noise, _LEAST_NOISE))
        ends = [*starts[1:], len(left)]
        single = {a for a, b in zip(starts, ends, strict=True) if b - a == 1 and b != len(left)}
        if not single:
            return [left[start] for start in starts[1:]]
        left = [index for place, index in enumerate(left) if place not in single]


def _levels(values: Sequence[float], noise: float) -> list[int]:
    """Return where the levels of values begin, the first one too."""
    import numpy as np

    if len(values) < 2:
        return [0]
    price = _PRICE * math.log(len(values)) * noise**2
    search = _ruptures().Pelt(model="l2", min_size=1, jump=1)
    ends = search.fit(np.asarray(values).reshape(-1, 1)).predict(pen=price)
    return [0, *map(int, ends[:-1])]


def _ruptures() -> Any:
    try:
        import ruptures
    except ImportError:
        raise RecordError("this needs ruptures: pip install 'spead-tutorial[bench]'") from None
    return ruptures
