# SPDX-License-Identifier: BSD-3-Clause
"""Whether counts along the way of packets add up: what one point counted, and what the next did.

A point is a program, a device, a machine, a socket, a stream, or its heaps. What one of them counts
also has to be counted by the next one, but for what is known to be lost between them. It is the
same for heaps and for bytes.
"""

import dataclasses
from collections.abc import Iterable, Sequence

__all__ = ["Gap", "first_complaint", "some", "table"]


def some(count: int, what: str) -> str:
    """Write how many there are of something."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


@dataclasses.dataclass(frozen=True, slots=True)
class Gap:
    """What is between two points; it adds up where as much is missing as was lost there."""

    where: str
    came: int  # what the first point counted, and what was made on the way
    went_on: int  # what the second point counted
    # what is known to be lost between: not always one by one, as a message may hold many packets
    least_lost: int = 0
    most_lost: int = 0
    unit: str = "packet"
    surplus: str = ""  # what it may be if there is more than came
    shortage: str = ""  # and if there is less

    @property
    def difference(self) -> str | None:
        """What is missing, or too much; None where that is as much as was lost."""
        missing = self.came - self.went_on
        if self.least_lost <= missing <= self.most_lost:
            return None
        are = "is" if abs(missing) == 1 else "are"
        found, why = f"{missing} {are} missing", self.shortage
        if missing < 0:
            found, why = f"{-missing} {are} too many", self.surplus
        return f"of {some(self.came, self.unit)} {found} {self.where}{f': {why}' if why else ''}"

    @property
    def complaint(self) -> str | None:
        """What does not add up; None where it does."""
        difference = self.difference
        return None if difference is None else f"the account does not add up: {difference}"


def first_complaint(gaps: Iterable[Gap]) -> str | None:
    """Say what does not add up first along the way; None where everything does."""
    return next((gap.complaint for gap in gaps if gap.complaint is not None), None)


def table(groups: Sequence[tuple[str, Sequence[tuple[int, str]]]]) -> list[str]:
    """Write counts in rows, which begin with the name of a group where that begins."""
    width = max(len(str(count)) for _, rows in groups for count, _ in rows)
    names = max(len(name) for name, _ in groups)
    return [
        f"{name if i == 0 else '':{names}}  {count:{width}}  {what}".rstrip()
        for name, rows in groups
        for i, (count, what) in enumerate(rows)
    ]
