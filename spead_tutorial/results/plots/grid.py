# SPDX-License-Identifier: BSD-3-Clause
"""Bars in rows, which are ways to send, and in columns, which are sizes of heaps.

On a narrow picture the columns are below each other.
"""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spead_tutorial.results.plots import bars
from spead_tutorial.results.plots.marks import Line
from spead_tutorial.results.plots.points import Point, highest
from spead_tutorial.results.plots.sheet import FAINT, Sheet, panels, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.units import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Grid", "Lane", "Lanes"]

_SIDE, _GAP, _ROOM_ABOVE, _LOWER_ROOM = 0.2, 0.22, 0.42, 0.95
_PAD = bars.GROUP - bars.LABEL - 2 * bars.PITCH
#: Beside the longest bar is room for its number.
_ROOM = 1.48
_FEW_MARKS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Lane:
    """Bars of one kind, one in each column."""

    name: str  # what they are, in the description, and beside them where there is room
    role: str  # what gives them their colour
    points: Mapping[int, Point]  # by size of heaps


@dataclasses.dataclass(frozen=True, slots=True)
class Lanes:
    """Bars that stand together, with a title, and a remark behind it."""

    title: str  # written above them
    note: str
    lanes: tuple[Lane, ...]  # from top to bottom

    @property
    def name(self) -> str:
        """What is written above it."""
        return ", ".join(filter(None, (self.title, self.note)))

    def label_height(self, theme: Theme) -> float:
        """Inches of what is written above it."""
        return bars.label_height(theme, self.note)

    def height(self, theme: Theme) -> float:
        """Inches."""
        return self.label_height(theme) + len(self.lanes) * bars.PITCH + _PAD


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """What such a picture shows."""

    rows: tuple[Lanes, ...]  # from top to bottom
    names: float = 0.0  # inches of room on the left for the names of lanes
    line: Lane | None = None  # each column has an upright line where this one's bar ends

    def height(self, theme: Theme) -> float:
        """Inches of all rows."""
        return sum(row.height(theme) for row in self.rows)

    def sheet_rows(self, theme: Theme) -> list[tuple[float, float]]:
        """Return what a sheet has to have room for."""
        count = len(self.sizes) if theme.is_narrow else 1
        return [(_LOWER_ROOM if n else _ROOM_ABOVE, self.height(theme)) for n in range(count)]

    @property
    def sizes(self) -> list[int]:
        """Those of all columns."""
        return sorted({x for row in self.rows for lane in row.lanes for x in lane.points})

    def draw(self, sheet: Sheet) -> None:
        """Draw all columns on a sheet."""
        lanes = [lane for row in self.rows for lane in row.lanes]
        most = highest(point for lane in lanes for point in lane.points.values())
        count, theme = len(self.sizes), sheet.theme
        places = panels(theme, count, (_SIDE + self.names, _SIDE), _GAP)
        for number, (n, place) in enumerate(zip(self.sizes, places, strict=True)):
            axis = sheet.axes(place.row, *place.sides)
            label = "payload sent in MB/s" * (theme.is_narrow or number == count // 2)
            bars.prepare(axis, self.height(theme), most, _ROOM, _FEW_MARKS, label)
            axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
            axis.set_zorder(not number)  # the titles of rows are wider than the first column
            self._draw_column(axis, n, theme, first=place.is_first)

    def _draw_column(self, axis: "Axes", n: int, theme: Theme, first: bool) -> None:
        y = 0.0
        for row in self.rows:
            if first:
                words = (row.title, row.note) if theme.is_narrow else (row.name, "")
                bars.label_group(axis, y, *words, theme)
            for number, lane in enumerate(row.lanes):
                middle = y + row.label_height(theme) + (number + 0.5) * bars.PITCH
                if n in lane.points:
                    point = lane.points[n]
                    line = _marked(row, lane, point)
                    bars.draw_bar(axis, middle, point, lane.role, theme, line=line)
                if first and self.names:
                    _name(axis, middle, lane.name)
            y += row.height(theme)
        if self.line is not None and n in self.line.points:
            _draw_line(axis, self.line.points[n], theme)


def _marked(row: Lanes, lane: Lane, point: Point) -> Line:
    """Return what a page is told of a bar: languages share a row, but loops do not."""
    name = ", ".join(filter(None, (row.name, lane.name)))
    place = row.name if lane.role in NAMES else name
    return Line(name, lane.role, lane.name or row.title, place, point.key)


def _name(axis: "Axes", y: float, words: str) -> None:
    """Name a lane on the left of its bar."""
    style: dict[str, Any] = {"ha": "right", "va": "center_baseline", "fontsize": FAINT}
    write(axis, words, (0, y), (-6, 0), axis.get_yaxis_transform(), **style)


def _draw_line(axis: "Axes", point: Point, theme: Theme) -> None:
    estimate = point.estimate()
    if estimate is not None:
        axis.axvline(
            estimate.median, color=theme.text, linewidth=1, linestyle=(0, (4, 2)), zorder=2
        )
