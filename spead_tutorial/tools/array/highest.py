# SPDX-License-Identifier: BSD-3-Clause
"""The highest rate of each sender at which every packet arrives: a search by corner turns."""

import dataclasses
import operator
import sys
from collections.abc import Callable

import msgspec

from spead_tutorial.measure.search import Criterion, Tried, next_of
from spead_tutorial.tools.array.account import Account, number
from spead_tutorial.tools.array.measured import Asked, Measured

#: A search ends at this share of the rate at which it began, whatever is lost there.
_LOWEST = 1e-2
#: The lowest rate with a loss is at most so many times as high as the one that is found.
_NARROW = 2 ** (1 / 8)
_ASKED = operator.attrgetter("asked")


@dataclasses.dataclass(slots=True)
class Search:
    """The tries of a search, in MB/s, and the best of them."""

    tried: list[Tried] = dataclasses.field(default_factory=list)
    best: Measured | None = None  #: At the highest rate without a loss; where there is none, any.

    @property
    def answer(self) -> str:
        """What was found, in one line."""
        whole = max((one for one in self.tried if not one.lost), key=_ASKED, default=None)
        lossy = min((one for one in self.tried if one.lost), key=_ASKED, default=None)
        missing = f"at {lossy.asked:.4g} MB/s packets are missing" if lossy else "no more was tried"
        if whole is None:
            return f"All that was tried is too fast: {missing}." if lossy else "Nothing was tried."
        if whole.fell_short:
            return f"All arrives at {whole.offered:.4g} MB/s of each sender, which send no faster."
        return f"All arrives at {whole.asked:.4g} MB/s of each sender; {missing}."

    def as_dict(self) -> dict[str, object]:
        """Say it for JSON."""
        return {"answer": self.answer, "tried": [dataclasses.asdict(one) for one in self.tried]}

    def add(self, measured: Measured) -> bool:
        """Add a try; return whether the search goes on, as it was not cut short."""
        account = Account(measured)
        is_over = measured.interrupted or bool(account.failures)
        if not is_over:
            print(f"spead-tutorial: {account.verdict}", file=sys.stderr, flush=True)
            asked = measured.asked.rate
            self.tried.append(Tried(asked, _offered(measured), not account.is_whole))
        if self.best is None or not Account(self.best).is_whole:
            self.best = measured
        elif is_over:
            self.best.trouble += account.failures
            self.best.interrupted |= measured.interrupted
        elif account.is_whole:  # rates without a loss only grow
            self.best = measured
        return not is_over


def search(measure: Callable[[Asked], Measured], asked: Asked) -> tuple[Search, Measured]:
    """Try rates, beginning with the one that is asked for; Ctrl-C ends it with the best so far."""
    found, criterion = Search(), Criterion(1, 0, _NARROW, _LOWEST * asked.rate)
    while (rate := next_of(found.tried, asked.rate, criterion)) is not None:
        try:
            measured = measure(msgspec.structs.replace(asked, rate=rate))
        except KeyboardInterrupt:
            if found.best is None:
                raise
            found.best.interrupted = True
            break
        if not found.add(measured):
            break
    assert found.best is not None
    return found, found.best


def _offered(measured: Measured) -> float:
    """Return the MB/s that the slowest sender has sent."""
    return min(
        number(one, "spead_bytes") / max(1, number(one, "elapsed_ns")) * 1e3
        for one in measured.senders
    )
