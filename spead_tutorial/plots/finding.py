# SPDX-License-Identifier: BSD-3-Clause
"""What a recording says, in so few words that a title has room for them."""

import math
from collections.abc import Mapping
from typing import TypeVar

from spead_tutorial.stats import Estimate, is_told
from spead_tutorial.units import times

__all__ = ["NOT_TOLD", "gained", "strongest"]

_Place = TypeVar("_Place")

NOT_TOLD = "no difference found"
_NOT_KNOWN = "not known"


def gained(gains: Mapping[str, Estimate | None]) -> str:
    """Say how many times as fast something became, and whose gain that is."""
    owners: dict[str, list[str]] = {}
    for owner, gain in gains.items():
        if gain is not None:
            owners.setdefault(times(gain.median) if is_told(gain) else NOT_TOLD, []).append(owner)
    if not owners:
        return _NOT_KNOWN
    if list(owners) == [NOT_TOLD]:
        return NOT_TOLD
    return ", ".join(f"{words} ({', '.join(names)})" for words, names in owners.items())


def strongest(gains: Mapping[_Place, Mapping[str, Estimate | None]]) -> _Place:
    """Return where the largest difference is that can be told; where none can, the last place."""

    def difference(place: _Place) -> float:
        told = (gain for gain in gains[place].values() if gain is not None and is_told(gain))
        return max((abs(math.log(gain.median)) for gain in told), default=0.0)

    return max(reversed(list(gains)), key=difference)
