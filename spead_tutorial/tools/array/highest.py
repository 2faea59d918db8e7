# SPDX-License-Identifier: BSD-3-Clause
"""The highest rate of each sender at which every packet arrives: a search by corner turns."""

import dataclasses
import math
import operator
import sys
from collections.abc import Callable

import msgspec

from spead_tutorial.measure.corner_turn import Asked, Measured
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.search import Criterion, Tried, next_of
from spead_tutorial.results.account import Account

#: So many runs in a row lose nothing at the rate that is found, of which the median says whether
#: senders kept it; and the lowest rate with a loss is at most so many times as high.
_RUNS, _NARROW = 3, 2 ** (1 / 8)
#: A search ends at this share of the rate at which it began, whatever is lost there.
_LOWEST = 1e-2
_OFFERED = operator.attrgetter("offered")


@dataclasses.dataclass(slots=True)
class Search:
    """The tries of a search, in MB/s, in their order."""

    tried: list[Tried] = dataclasses.field(default_factory=list)
    is_over: bool = False  # or it was cut short

    @property
    def lossy(self) -> float:
        """The lowest rate at which a packet was missing."""
        return min((one.asked for one in self.tried if one.lost), default=math.inf)

    @property
    def held(self) -> float | None:
        """The highest rate below it, at which no run lost anything."""
        rates = (one.asked for one in self.tried if one.asked < self.lossy)
        return max(rates, default=None)

    @property
    def answer(self) -> str:
        """What was found, in one line."""
        lossy = f"at {self.lossy:.4g} MB/s packets are missing"
        if self.held is None:
            return f"All that was tried is too fast: {lossy}." if self.tried else "None was tried."
        runs = sorted((one for one in self.tried if one.asked == self.held), key=_OFFERED)
        middle = runs[(len(runs) - 1) // 2]
        arrives = "All arrives" if self.is_over else "So far, all arrives"
        if middle.fell_short:
            return f"{arrives} at {middle.offered:.4g} MB/s of each sender, which send no faster."
        more = lossy if self.lossy < math.inf else "no more was tried"
        return f"{arrives} at {self.held:.4g} MB/s of each sender; {more}."

    def as_dict(self) -> dict[str, object]:
        """Say it for JSON."""
        return {"answer": self.answer, "tried": [dataclasses.asdict(one) for one in self.tried]}


def search(measure: Callable[[Asked], Measured], asked: Asked) -> tuple[Search, Measured]:
    """Try rates, beginning with the one that is asked for; Ctrl-C ends it with the best so far."""
    found, criterion = Search(), Criterion(_RUNS, 0, _NARROW, _LOWEST * asked.rate)
    last: dict[float, Measured] = {}  # of each rate
    interrupted, failures = False, list[str]()
    while (rate := next_of(found.tried, asked.rate, criterion)) is not None:
        try:
            measured = measure(msgspec.structs.replace(asked, rate=rate))
        except (KeyboardInterrupt, ProgramError) as error:
            if not last:
                raise
            failures = [str(error)] if isinstance(error, ProgramError) else []
            interrupted = not failures
            break
        account = Account(measured)
        interrupted, failures = measured.interrupted, account.failures
        if interrupted or failures:
            break
        print(f"spead-tutorial: {account.verdict}", file=sys.stderr, flush=True)
        found.tried.append(Tried(rate, account.offered, not account.is_whole))
        last[rate] = measured
    else:
        found.is_over = True
    best = measured if found.held is None else last[found.held]
    if best is last.get(best.asked.rate):  # it went well, and what ended the search came later
        best.interrupted, best.trouble = interrupted, failures
    return found, best
