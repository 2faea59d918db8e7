# SPDX-License-Identifier: BSD-3-Clause
"""Tables for terminals, of rows of cells."""

from collections.abc import Callable, Collection, Sequence

from spead_tutorial.stats import Estimate

__all__ = ["cells", "lines"]

_GAP = "  "


def cells(estimate: Estimate, write: Callable[[float], str]) -> tuple[str, str]:
    """Write a median, and the ends of its interval or range."""
    return write(estimate.median), f"{write(estimate.low)}\N{EN DASH}{write(estimate.high)}"


def lines(rows: Sequence[Sequence[str]], words: Collection[int] = ()) -> list[str]:
    """Align the columns of a table, of which the first row has the titles.

    Numbers go to the right, and columns of words to the left. The last cell of a row that has fewer
    than the first one has room to the end of the line.
    """
    n = len(rows[0])
    columns = [[row[i] for row in rows if i < len(row) - (len(row) < n)] for i in range(n)]
    widths = [max(map(len, column)) for column in columns]
    sides = ["<" if i in words else ">" for i in range(n)]

    def line(row: Sequence[str]) -> str:
        whole = [f"{cell:{sides[i]}{widths[i]}}" for i, cell in enumerate(row) if i < n]
        if len(row) < n:
            whole[-1] = row[-1]
        return _GAP.join(whole).rstrip()

    return [line(row) for row in rows]
