# SPDX-License-Identifier: BSD-3-Clause
"""Tables, as rows and columns: rich writes them in terminals, pandas in notebooks, jinja2 in pages.

A file or a pipe gets what a terminal of any width would: no line is wrapped, and nothing styled.
"""

import dataclasses
import io
import itertools
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spead_tutorial._shown import shown
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.units import number

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType
    from rich.table import Table as RichTable

#: What stands where a value is not known.
NOTHING = "—"
_GAP = 2
_UNLIMITED = 10_000  # columns of what is no terminal
_WORD = 25  # a word that is longer may be broken where there is no room
_TITLE = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands where a title goes, which columns would break

_Row = TypeVar("_Row")


@dataclasses.dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    """A column: its name, what of a row stands in it, and how that is written."""

    name: str
    value: Callable[[_Row], Any]  # None where it is not known
    write: Callable[[Any], str] = str
    is_words: bool = False  # to the left, in several lines; numbers to the right, in one
    is_cut: bool = False  # too wide a table has it narrower, with words cut off
    is_spare: bool = False  # too wide a table is without it, first of all; the leftmost goes first

    def text(self, row: _Row) -> str:
        """Write what a row has."""
        value = self.value(row)
        return NOTHING if value is None else self.write(value)


#: The last column, of those that failed.
_WHY: Column[Any] = Column("", str, is_words=True)


def estimate(
    names: tuple[str, str],
    value: Callable[[_Row], Estimate | None],
    write: Callable[[float], str] = number,
) -> tuple[Column[_Row], Column[_Row]]:
    """Return two columns: of medians, and of the ends of their intervals or ranges."""
    middle, both = names
    return (
        Column(middle, value, lambda estimate: write(estimate.median)),
        Column(both, value, lambda estimate: ends(estimate, write)),
    )


def ends(estimate: Estimate, write: Callable[[float], str] = number) -> str:
    """Write the ends of an interval, or of a range."""
    return f"{write(estimate.low)}\N{EN DASH}{write(estimate.high)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Table(Generic[_Row]):
    """Rows with the same columns; one that failed has a reason instead of values."""

    names: Sequence[Column[_Row]]  # which row it is
    values: Sequence[Column[_Row]]  # what it came to
    rows: Sequence[_Row]
    failure: Callable[[_Row], str | None] = lambda row: None
    section: Callable[[_Row], str] = lambda row: ""  # the title over rows that have the same

    @property
    def sections(self) -> list[tuple[str, list[_Row]]]:
        """The rows below each title."""
        return [(title, list(its)) for title, its in itertools.groupby(self.rows, self.section)]

    def cells(self, row: _Row) -> list[str]:
        """Write a row: its names and values, and why it has none."""
        failure = self.failure(row)
        values = ["" if failure is not None else column.text(row) for column in self.values]
        return [*(column.text(row) for column in self.names), *values, failure or ""]

    def __str__(self) -> str:
        return self.text(_terminal())

    def text(self, width: int | None = None) -> str:
        """Write it for a terminal of `width` columns, or for a file; without columns of nothing."""
        from rich.table import Table as RichTable  # most commands write no table
        from rich.text import Text

        width = width or _UNLIMITED
        sections = [(title, [self.cells(row) for row in its]) for title, its in self.sections]
        drawn = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        columns = [*self.names, *self.values, _WHY]
        texts = [[cells[i] for _, its in sections for cells in its] for i in range(len(columns))]
        shown = [
            i for i in range(len(columns)) if i < len(self.names) or {*texts[i]} - {"", NOTHING}
        ]
        widest = [
            max(len(plain(text)) for text in (one.name, *its))
            for one, its in zip(columns, texts, strict=True)
        ]
        beyond = sum(_GAP + widest[i] for i in shown) - _GAP - width
        for spare in [i for i in shown if columns[i].is_spare]:
            if beyond > 0:
                shown.remove(spare)
                beyond -= _GAP + widest[spare]
        least = sum(_GAP + _add_column(drawn, columns[i], texts[i], beyond) for i in shown) - _GAP
        for title, its in sections:
            if title and drawn.row_count:
                drawn.add_row()
            if title:
                drawn.add_row(_TITLE)
            for cells in its:
                drawn.add_row(*(Text(plain(cells[i])) for i in shown))
        titles = (plain(title) for title, _ in sections if title)
        lines = rendered(drawn, width=max(width, least)).split("\n")
        return "\n".join(next(titles) if line == _TITLE else line for line in lines)

    def frame(self) -> "pandas.DataFrame":
        """Return the values as they are, for a notebook."""
        import pandas

        columns = [*self.names, *self.values]
        return pandas.DataFrame(
            {column.name: list(map(column.value, self.rows)) for column in columns}
        )


def _add_column(drawn: "RichTable", column: Column[Any], texts: Sequence[str], beyond: int) -> int:
    """Add a column to a table, `beyond` too wide; return how wide it has to be at least."""
    from rich.text import Text

    lines = [plain(text) for text in (column.name, *texts)]
    width = max(map(len, lines))
    if column.is_cut:
        width = max(width - max(beyond, 0), min(_WORD, width))
        drawn.add_column(Text(column.name), overflow="ellipsis", no_wrap=True, width=width)
        return width
    if column.is_words and (width > _WORD or any(" " in line for line in lines)):
        drawn.add_column(Text(column.name), overflow="fold")
        return min(_WORD, max(len(word) for line in lines for word in [*line.split(), ""]))
    drawn.add_column(Text(column.name), justify="left" if column.is_words else "right", width=width)
    return width


def rendered(*parts: "RenderableType", width: int) -> str:
    """Write what rich can show, below each other; in colours where a terminal is to show it."""
    from rich.console import Console

    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=_terminal() is not None)
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _terminal() -> int | None:
    """Return how many columns standard output has; None where it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def width_up_to(most: int) -> int:
    """Return how many columns a page has: a terminal's, but no more than `most`."""
    return min(most, _terminal() or most)


def filled(text: str) -> str:
    """Break a line between words where a terminal has no room for more."""
    width = _terminal()
    return text if width is None else textwrap.fill(text, width)


def plain(text: str) -> str:
    """Write any text for terminals: without thin spaces, which are for the eye."""
    return shown(text.replace("\N{THIN SPACE}", ""))
