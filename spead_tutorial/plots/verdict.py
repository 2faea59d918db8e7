# SPDX-License-Identifier: BSD-3-Clause
"""What gains over many sizes come to, in so few words that a title has room for them."""

import math
from collections.abc import Callable, Mapping

from spead_tutorial.plots.finding import NOT_TOLD, gained
from spead_tutorial.stats import Estimate, is_told
from spead_tutorial.units import percent, times

__all__ = ["gains_over_sizes", "shares_over_sizes", "whole"]

#: Of so many comparisons a few look like a difference by chance: less than this is none.
_LEAST = 0.05

#: By whose they are, such as ``"Python"``, and then by size; None where one is not known.
Gains = Mapping[str, Mapping[int, Estimate | None]]
Known = dict[str, dict[int, Estimate]]


def gains_over_sizes(gains: Gains, write: Callable[[int], str]) -> str:
    """Say what is the largest gain or loss, at which size, and where there is none."""
    known = _known(gains)
    sizes = _sizes(known)
    told = {
        name: {x: gain for x, gain in by_size.items() if _counts(gain)}
        for name, by_size in known.items()
    }
    if not sizes or not _sizes(told):
        return NOT_TOLD if sizes else ""
    if told == known and len(sizes) > 1 and all(_at(told, x, lower=False) for x in sizes):
        return ", ".join(f"{_ends(by_size)} ({name})" for name, by_size in told.items())
    most = max(_sizes(told), key=lambda x: _distance(told, x))
    return f"{_say(told, most, write)}{_rest(told, sizes, most, write)}"


def whole(words: str) -> str:
    """Write what is not to be torn apart where a title is folded."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _rest(told: Known, sizes: list[int], most: int, write: Callable[[int], str]) -> str:
    """Say what is at the sizes that are not the one with the most: the contrary, and nothing."""
    if len(sizes) > 1 and _sizes(told) == [most]:
        return f", {NOT_TOLD} at other sizes"
    is_loss = _at(told, most, lower=True)
    contrary = [x for x in _sizes(told) if x != most and _has(told, x, lower=not is_loss)]
    beyond = [x for x in sizes if x > _sizes(told)[-1]]
    words = ""
    if contrary:
        words = f", {_say(told, max(contrary, key=lambda x: _distance(told, x)), write)}"
    return words + (f", {NOT_TOLD} from {write(beyond[0])} on" if beyond else "")


def shares_over_sizes(shares: Gains, what: str, write: Callable[[int], str]) -> str:
    """Say what share of something is reached at the size where it is the least."""
    known = _known(shares)
    if not _sizes(known):
        return ""
    least = min(_sizes(known), key=lambda x: min(_medians(known, x)))
    at = {name: by_size[least] for name, by_size in known.items() if least in by_size}
    words = ", ".join(f"{percent(share.median)} ({name})" for name, share in at.items())
    return f"{words} of {what} at {write(least)}"


def _known(gains: Gains) -> Known:
    found = {
        name: {x: gain for x, gain in by_size.items() if gain is not None}
        for name, by_size in gains.items()
    }
    return {name: by_size for name, by_size in found.items() if by_size}


def _sizes(known: Known) -> list[int]:
    return sorted({x for by_size in known.values() for x in by_size})


def _medians(known: Known, x: int) -> list[float]:
    return [by_size[x].median for by_size in known.values() if x in by_size]


def _counts(gain: Estimate) -> bool:
    return is_told(gain) and abs(gain.median - 1) >= _LEAST


def _distance(told: Known, x: int) -> float:
    return max(abs(math.log(median)) for median in _medians(told, x))


def _at(told: Known, x: int, lower: bool) -> bool:
    """Whether all that is told of a size is a loss, or a gain."""
    return all((median < 1) == lower for median in _medians(told, x))


def _has(told: Known, x: int, lower: bool) -> bool:
    """Whether anything that is told of a size is a loss, or a gain."""
    return any((median < 1) == lower for median in _medians(told, x))


def _ends(by_size: Mapping[int, Estimate]) -> str:
    medians = [gain.median for gain in by_size.values()]
    return f"{times(min(medians))} to {times(max(medians))}"


def _say(told: Known, x: int, write: Callable[[int], str]) -> str:
    at = {name: by_size[x] for name, by_size in told.items() if x in by_size}
    return f"{gained(at)} at {write(x)}"
