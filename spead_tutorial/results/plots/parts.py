# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a whole: bars, one after the other, each with its name where that has room."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.picture import Axes, Line, Mark, Said
from spead_tutorial.results.plots.sheet import LETTER, count_down, write
from spead_tutorial.results.plots.theme import FAINT, WIDTH, Theme

#: The colour of a part, and whether it is pale: those beside each other differ without colours.
#: A part without a colour is but an outline.
Fill: TypeAlias = tuple[str, bool] | None
_PITCH, _BAR, _NAME = 0.29, 0.25, 0.24


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A bar."""

    name: str
    shares: Mapping[str, float]
    note: str = ""
    said: str = ""  # instead of parts, or for its words
    # points of a page: of what, where on the bar, and how much
    marks: Sequence[tuple[Line, float, float, Estimate]] = ()
    end: str = ""  # what stands behind it


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """A panel of bars of the same parts."""

    name: str
    label: str
    rows: Sequence[Row]
    fills: Mapping[str, Fill]
    text: Callable[[str, float], str]  # what is written of a part
    width: float  # inches of the panel
    names: float = 0.0  # inches of the names of bars on the left; without any, they are above
    most: float = 1.0
    scaled: float = 100.0

    @property
    def sides(self) -> tuple[float, float]:
        """Room for names."""
        return self.names + 0.14, 0.24

    @property
    def below(self) -> float:
        """Room for the scale."""
        return 0.55

    @property
    def height(self) -> float:
        """Room for each bar."""
        return (_PITCH + (0 if self.names else _NAME)) * len(self.rows)

    def said(self) -> Iterator[Said]:
        """Return its points, and what is said of its bars."""
        for y, row in self._places():
            for line, at, x, estimate in row.marks:
                yield Mark(line, at, estimate, x, y)
            if row.said:
                yield row.name, row.said

    def _places(self) -> Iterator[tuple[float, Row]]:
        inches = self.height / len(self.rows)
        for n, row in enumerate(self.rows):
            yield (n + 1) * inches - _PITCH / 2, row

    @property
    def unnamed(self) -> dict[str, tuple[str, bool]]:
        """The parts whose names have no room, with their colours, for a legend."""
        there = {part for row in self.rows for part, share in row.shares.items() if share > 0}
        named = {part for part, _ in self._named()}
        return {
            part: fill
            for part, fill in self.fills.items()
            if part in there - named and fill is not None
        }

    def _named(self) -> Iterator[tuple[str, int]]:
        """Return in which row the name of a part stands: where it is longest, if it has room."""
        for part in self.fills:
            lengths = [row.shares.get(part, 0.0) for row in self.rows]
            longest = max(lengths, default=0.0)
            if longest * self.width / self.most > LETTER * (len(part) + 1):
                yield part, lengths.index(longest)

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scale, the bars, and what is in them."""
        named = dict(self._named())
        names = {y: row.name for y, row in self._places()} if self.names else None
        count_down(axis, self.height, names)
        axis.set(xlim=(0, self.most), xlabel=self.label)
        axis.xaxis.set_major_formatter(lambda x, _: f"{self.scaled * x:g}")
        axis.tick_params(axis="y", labelsize=11)
        for n, (y, row) in enumerate(self._places()):
            if not self.names:
                place = axis.get_yaxis_transform()
                style: dict[str, Any] = {"va": "center", "clip_on": False}
                above = y - (_PITCH + _NAME) / 2 + 0.02
                box = {"facecolor": theme.background, "edgecolor": "none", "pad": 1.0}
                axis.text(0, above, row.name, transform=place, bbox=box, zorder=4, **style)
                more: dict[str, Any] = {
                    "fontsize": FAINT,
                    "color": theme.faint,
                    "zorder": 4,
                    **style,
                }
                axis.text(1, above, row.note, ha="right", bbox=box, transform=place, **more)
            if not row.shares:
                axis.text(0.01, y, row.said, va="center_baseline")
            left = 0.0
            for part, width in row.shares.items():
                self._draw(axis, (left, y), part, width, named.get(part) == n, theme)
                left += width
            write(axis, row.end, (left, y), (5, 0), va="center_baseline")

    def _draw(
        self,
        axis: Axes,
        at: tuple[float, float],
        part: str,
        share: float,
        named: bool,
        theme: Theme,
    ) -> None:
        left, y = at
        style = _style(self.fills[part], theme)
        axis.barh(y, share, _BAR, left, **style)
        value, room = self.text(part, share), share * self.width / self.most
        words = next(
            (
                words
                for words in ([f"{part} {value}".strip(), part] if named else [value])
                if LETTER * len(words) < room
            ),
            "",
        )
        fill = self.fills[part]
        dark = fill is not None and not fill[1]
        colour = theme.background if dark else theme.text
        if words:
            centre: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": FAINT}
            axis.text(left + share / 2, y, words, color=colour, **centre)


def _style(fill: Fill, theme: Theme) -> dict[str, Any]:
    """Return how a part is filled; a thread that does nothing is but an outline."""
    if fill is None:
        return {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}
    return {"facecolor": theme.filled(*fill), "edgecolor": theme.background, "linewidth": 0.8}


def legend(panels: Sequence[Parts]) -> dict[str, tuple[str, bool]]:
    """Return what has its name in no panel, and how it is filled."""
    missing = [panel.unnamed for panel in panels]
    named = {part for panel in panels for part, _ in panel._named()}
    return {part: fill for one in missing for part, fill in one.items() if part not in named}


#: The width of one of so many panels in a row, with so many inches of names for each.
def panel_width(count: int, names: float) -> float:
    """Return the inches of each of some panels beside each other."""
    return (WIDTH - 0.3 * (count - 1)) / count - names - 0.38
