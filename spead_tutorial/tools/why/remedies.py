# SPDX-License-Identifier: BSD-3-Clause
"""What a remedy gains, tried with the bare loop on this machine. No I/O, no clock."""

import dataclasses


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
