# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what was observed in rounds: a row for all lines that are alike."""

from collections.abc import Callable, Sequence
from typing import Any

from spead_tutorial.measure.records import Taken
from spead_tutorial.measure.stats import median, spread
from spead_tutorial.results.tables import Column, Table, estimate

#: All lines of one thing: a row.
_Group = Sequence[Any]


def medians(
    names: tuple[str, str], value: Callable[[Any], float], digits: int = 1
) -> tuple[Column[_Group], Column[_Group]]:
    """Return two columns: of medians over the rounds, and of their intervals or ranges."""
    write = f"{{:.{digits}f}}".format
    return estimate(names, lambda group: median(list(map(value, group))), write)


def grouped(
    taken: Sequence[Taken],
    alike: Callable[[Any], Any],
    names: Sequence[tuple[str, Callable[[Any], str]]],
    values: Callable[[str], Sequence[Column[_Group]]],
) -> str:
    """Write lines as a table, those below each other that are alike; one that failed says why."""
    groups: dict[Any, list[Any]] = {}
    for one in sorted(taken, key=alike):
        groups.setdefault(alike(one), []).append(one)
    rows = list(groups.values())
    ends = spread(len(group) for group in rows if _failure(group) is None)
    columns = [_column(*name) for name in names]
    return str(Table(columns, [Column("n", len), *values(ends)], rows, _failure))


def _column(name: str, write: Callable[[Any], str]) -> Column[_Group]:
    return Column(name, lambda group: write(group[0]), is_words=not name.startswith("MB/s"))


def _failure(group: _Group) -> str | None:
    return next((f"failed: {one.failure}" for one in group if one.failure is not None), None)
