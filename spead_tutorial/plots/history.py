# SPDX-License-Identifier: BSD-3-Clause
"""Rates over the revisions of the source, with what changed: a panel for each machine."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from spead_tutorial import stats
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.curves import SIDES, curve_legend, rate_panel
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import FAINT, Sheet
from spead_tutorial.plots.theme import Look, Theme, looks
from spead_tutorial.records import Recording, Series
from spead_tutorial.units import times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["History", "HistoryLine", "HistoryPanel"]

_SHOWN = "median of {rounds} rounds at the newest revision, dots: samples, band: {spread}"
_FIRST_ROOM, _ROOM, _HEIGHT = 0.5, 1.0, 2.4
_MOST_LABELS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryLine:
    """A series over the revisions of a panel."""

    series: Series  # which: it decides on the colour
    name: str  # what it is called; no two of a picture share it, but on different machines
    # the samples of each revision, in payload bytes/s; empty where it has none
    rates: tuple[tuple[float, ...], ...]
    # at which of the revisions its rate changed, counted from 0, and how many times as fast it
    # became
    changes: tuple[tuple[int, float], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HistoryPanel:
    """What one machine measured."""

    name: str  # the experiment and the machine
    # what its revisions are called, in the order in which they are drawn
    revisions: tuple[str, ...]
    lines: tuple[HistoryLine, ...]  # with rates for each of the revisions


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """A picture of rates over revisions; call it with the newest recording to draw it."""

    title: str  # of the picture
    # one for each machine: what different machines measured is never joined
    panels: tuple[HistoryPanel, ...]

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        series = {line.name: line.series for panel in self.panels for line in panel.lines}
        by_name = dict(zip(series, looks(list(series.values()), theme), strict=True))
        rows = [(_ROOM if row else _FIRST_ROOM, _HEIGHT) for row in range(len(self.panels))]
        legend = curve_legend(list(by_name.items()), theme)
        foot = caption(recording, _SHOWN)
        columns = 1 if max(map(len, series)) > 34 else 2
        sheet = Sheet(theme, self.title, rows, foot, legend=legend, columns=columns)
        for row, panel in enumerate(self.panels):
            axis = sheet.axes(row, *SIDES)
            _draw_panel(axis, panel, by_name, theme)
            axis.annotate(
                panel.name, (0, 1), (0, 22), xycoords="axes fraction",
                textcoords="offset points", va="bottom", weight="bold",
            )  # fmt: skip
        return sheet.figure, self.title, self._in_words(foot)

    def _in_words(self, foot: str) -> str:
        sentences = ["Curves: rates in MB/s over revisions, a panel for each machine."]
        for panel in self.panels:
            first, last = panel.revisions[0], panel.revisions[-1]
            sentences.append(f"{panel.name}, {len(panel.revisions)} revisions, {first} to {last}:")
            sentences += [f"{line.name}: {_line_in_words(line, panel)}." for line in panel.lines]
        return " ".join([*sentences, *foot.split()])


def _line_in_words(line: HistoryLine, panel: HistoryPanel) -> str:
    middles = [f"{stats.median(rates).median / 1e6:.0f}" for rates in line.rates if rates]
    at = [f"{times(ratio)} at {panel.revisions[index]}" for index, ratio in line.changes]
    return f"{middles[0]} to {middles[-1]}, {'changed: ' + ', '.join(at) if at else 'no change'}"


def _draw_panel(axis: "Axes", panel: HistoryPanel, by_name: dict[str, Look], theme: Theme) -> None:
    highest = max(rate for line in panel.lines for rates in line.rates for rate in rates)
    rate_panel(axis, theme, highest * 1.08 / 1e6)  # with room for what a change is called
    n = len(panel.revisions)
    axis.set_xlim(-0.5, n - 0.5)
    marks = range(0, n, -(-n // _MOST_LABELS))
    axis.set_xticks(list(marks), [panel.revisions[index] for index in marks], fontsize=FAINT)
    axis.set_xticks(range(n), minor=True)
    axis.grid()
    axis.set_axisbelow(True)
    axis.set_xlabel("revision, in the order of measuring")
    for line in panel.lines:
        _draw_line(axis, line, by_name[line.name], theme)


def _draw_line(axis: "Axes", line: HistoryLine, look: Look, theme: Theme) -> None:
    places = range(len(line.rates))
    estimates = [stats.median(rates) if rates else None for rates in line.rates]
    for place, rates in zip(places, line.rates, strict=True):
        dots: dict[str, Any] = {"marker": look.marker, "markersize": 3, "markeredgewidth": 0}
        values = [rate / 1e6 for rate in rates]
        axis.plot([place] * len(rates), values, linestyle="", color=look.colour, alpha=0.35, **dots)
    low, middle, high = (
        [math.nan if one is None else getattr(one, name) / 1e6 for one in estimates]
        for name in ("low", "median", "high")
    )
    axis.fill_between(places, low, high, color=look.colour, alpha=0.2, linewidth=0)
    axis.plot(places, middle, zorder=3, **look.line(theme))
    for place, ratio in line.changes:
        ring: dict[str, Any] = {
            "markersize": 13,
            "markeredgewidth": 2,
            "markeredgecolor": theme.text,
        }
        axis.plot([place], [middle[place]], "o", markerfacecolor="none", zorder=4, **ring)
        axis.annotate(
            times(ratio), (place, middle[place]), (0, 10), textcoords="offset points",
            ha="center", va="bottom", weight="bold", zorder=5,
            bbox={"facecolor": theme.background, "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )  # fmt: skip
