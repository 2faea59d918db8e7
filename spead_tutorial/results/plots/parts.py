# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a whole: bars, one after the other, each with its name where that has room."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.picture import Axes, Line, Mark, Panel, Said
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
    said: str = ""  # instead of parts, or for its words
    # points of a page: of what, where on the bar, and how much
    marks: Sequence[tuple[Line, float, float, Estimate]] = ()
    end: str = ""  # what stands behind it


@dataclasses.dataclass(frozen=True, slots=True)
class Parts(Panel):
    """A panel of bars of the same parts."""

    label: str
    rows: Sequence[Row]
    fills: Mapping[str, Fill]
    text: Callable[[str, float], str]  # what is written of a part
    names: float = 0.0  # inches of the names of bars on the left; without any, they are above
    most: float = 1.0
    scaled: float = 100.0

    @property
    def sides(self) -> tuple[float, float]:
        return self.names + 0.14, 0.24

    @property
    def height(self) -> float:
        return (_PITCH + (0 if self.names else _NAME)) * len(self.rows)

    def said(self) -> Iterator[Said]:
        for y, row in self._places():
            for line, at, x, estimate in row.marks:
                yield Mark(line, at, estimate, x, y)
            if row.said:
                yield row.name, row.said

    def _places(self) -> Iterator[tuple[float, Row]]:
        inches = self.height / len(self.rows)
        for n, row in enumerate(self.rows):
            yield (n + 1) * inches - _PITCH / 2, row

    def _room(self, share: float) -> float:
        """Return how many letters a part has room for."""
        return share * (WIDTH - sum(self.sides)) / self.most / LETTER

    def named(self) -> dict[str, int]:
        """Return in which row the name of a part stands: where it is longest, if it has room."""
        lengths = {part: [row.shares.get(part, 0.0) for row in self.rows] for part in self.fills}
        return {
            part: some.index(max(some))
            for part, some in lengths.items()
            if self._room(max(some)) > len(part) + 1
        }

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scale, the bars, and what is in them."""
        named, beside = self.named(), {y: row.name for y, row in self._places() if self.names}
        count_down(axis, self.height, beside)
        axis.set(xlim=(0, self.most), xlabel=self.label)
        axis.xaxis.set_major_formatter(lambda x, _: f"{self.scaled * x:g}")
        axis.tick_params(axis="y", labelsize=11)
        for n, (y, row) in enumerate(self._places()):
            if not self.names:
                self._name(axis, y, row, theme)
            if not row.shares:
                axis.text(0.01, y, row.said, va="center_baseline")
            left = 0.0
            for part, share in row.shares.items():
                axis.barh(y, share, _BAR, left, linewidth=0.8, **_look(self.fills[part], theme))
                self._write(axis, (left + share / 2, y), part, share, named.get(part) == n, theme)
                left += share
            write(axis, row.end, (left, y), (5, 0), va="center_baseline")

    def _name(self, axis: Axes, y: float, row: Row, theme: Theme) -> None:
        """Write above a bar what it is."""
        box = {"facecolor": theme.background, "edgecolor": "none", "pad": 1.0}
        above, within = y - (_PITCH + _NAME) / 2 + 0.02, axis.get_yaxis_transform()
        axis.text(0, above, row.name, transform=within, va="center", bbox=box, zorder=4)

    def _write(
        self,
        axis: Axes,
        middle: tuple[float, float],
        part: str,
        share: float,
        is_named: bool,
        theme: Theme,
    ) -> None:
        """Write into a part as much as it has room for."""
        value, fill = self.text(part, share), self.fills[part]
        for words in [f"{part} {value}".strip(), part] if is_named else [value]:
            if words and len(words) < self._room(share):
                colour = theme.text if fill is None or fill[1] else theme.background
                style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": FAINT}
                axis.text(*middle, words, color=colour, **style)
                return


def _look(fill: Fill, theme: Theme) -> dict[str, Any]:
    if fill is None:
        return {"facecolor": "none", "edgecolor": theme.faint}
    return {"facecolor": theme.filled(*fill), "edgecolor": theme.background}


def legend(panels: Sequence[Parts]) -> dict[str, tuple[str, bool]]:
    """Return what has its name in no panel, and how it is filled."""
    there = {
        part
        for panel in panels
        for row in panel.rows
        for part, share in row.shares.items()
        if share > 0
    }
    missing = there.difference(*(panel.named() for panel in panels))
    return {part: fill for part, fill in panels[0].fills.items() if fill and part in missing}
