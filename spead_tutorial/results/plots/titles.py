# SPDX-License-Identifier: BSD-3-Clause
"""Titles: written by people, with slots for what a record says.

A slot is the size of a heap as it is written, such as ``{8 KiB}``, for what was gained there; or
``{most}``: the largest gain or loss that can be told, and where it is.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.units import size, times

__all__ = ["NO_DIFFERENCE", "fill", "gained", "over_sizes", "strongest"]

_Place = TypeVar("_Place")

NO_DIFFERENCE = "no difference found"
_NOT_KNOWN = "not known"


def gained(gains: Mapping[str, Estimate | None]) -> str:
    """Say how many times as fast something became, and whose gain that is."""
    owners: dict[str, list[str]] = {}
    for owner, gain in gains.items():
        if gain is not None:
            words = times(gain.median) if differs(gain) else NO_DIFFERENCE
            owners.setdefault(words, []).append(owner)
    if not owners:
        return _NOT_KNOWN
    if list(owners) == [NO_DIFFERENCE]:
        return NO_DIFFERENCE
    return ", ".join(f"{words} ({', '.join(names)})" for words, names in owners.items())


def strongest(gains: Mapping[_Place, Mapping[str, Estimate | None]]) -> _Place:
    """Return where the largest difference is that can be told; where none can, the last place."""

    def difference(place: _Place) -> float:
        known = (gain for gain in gains[place].values() if gain is not None and differs(gain))
        return max((abs(math.log(gain.median)) for gain in known), default=0.0)

    return max(reversed(list(gains)), key=difference)


def over_sizes(
    gains: Mapping[str, Mapping[int, Estimate | None]],
    write: Callable[[int], str] = size,
    words: Callable[[Mapping[str, Estimate | None]], str] | None = None,
) -> dict[str, str]:
    """Return what fills the slots of a title, of gains by whose they are and by size."""
    sizes = sorted({x for by_size in gains.values() for x in by_size})
    at = {x: {name: by_size.get(x) for name, by_size in gains.items()} for x in sizes}
    slots = {write(x): (words or gained)(at[x]) for x in sizes if any(at[x].values())}
    if slots:
        x = strongest(at)
        most = gained(at[x])
        slots["most"] = most if most == NO_DIFFERENCE else f"{most} at {write(x)}"
    return slots


def fill(title: str, slots: Mapping[str, str]) -> str:
    """Fill the slots of a title; where one is not known, only what is before the colon is left."""
    try:
        return title.format_map(slots)
    except KeyError:
        return title.partition(":")[0]
