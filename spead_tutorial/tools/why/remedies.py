# SPDX-License-Identifier: BSD-3-Clause
"""What remedies gain, alone and together, from bare loops that ran with them. No I/O, no clock."""

import dataclasses

from spead_tutorial.measure import stats

#: What can be changed of how a sender sends, in the words of the report.
FITTING, LARGER = "packets that fit", "larger packets"
SENDMMSG, OFFLOAD = "sendmmsg", "segmentation offload"
REUSED = "reused memory"
#: Those that mend what is found. Packets are cut for the offload: more of them alone cost more.
MENDS = {
    "fragments": (FITTING, OFFLOAD),
    "small-packets": (LARGER,),
    "call-per-packet": (SENDMMSG,),
    "no-segmentation-offload": (OFFLOAD,),
    "fresh-memory": (REUSED,),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """A bare loop with some remedies, in rounds with others."""

    remedies: tuple[str, ...]  # none for the one that is as the sender is
    rates: tuple[float, ...]  # bytes within UDP in a second, one for each round


@dataclasses.dataclass(frozen=True, slots=True)
class Gain:
    """How many times as fast a sender is with some remedies."""

    median: float
    low: float  # its interval over the rounds
    high: float
    remedies: tuple[str, ...]
    measured: bool  # by the bare loop, here and now; else it is the time that goes, of the account


def gain(tried: tuple[Tried, ...], remedies: tuple[str, ...]) -> Gain:
    """Return how many times as fast some remedies make the bare loop; they have to be tried."""
    before, after = _rates(tried, ()), _rates(tried, remedies)
    found = stats.gain(dict(enumerate(before)), dict(enumerate(after)))
    return Gain(found.median, found.low, found.high, remedies, measured=True)


def gains_of(kind: str, tried: tuple[Tried, ...]) -> tuple[Gain | None, tuple[Gain, ...]]:
    """Return what mending a finding gains, None if untried, and what with others, or they alone."""
    own = MENDS.get(kind, ())
    sets = [one.remedies for one in tried if one.remedies]
    if own not in sets:
        return None, ()
    others = [one for one in sets if set(one) > set(own) or (len(one) == 1 and one[0] not in own)]
    return gain(tried, own), tuple(gain(tried, one) for one in others)


def _rates(tried: tuple[Tried, ...], remedies: tuple[str, ...]) -> tuple[float, ...]:
    for one in tried:
        if set(one.remedies) == set(remedies):
            return one.rates
    raise ValueError(f"{' and '.join(remedies) or 'the loop as it is'} was not tried")
