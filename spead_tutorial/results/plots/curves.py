# SPDX-License-Identifier: BSD-3-Clause
"""Curves: medians and their intervals over sizes, each line with its name at its end."""

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.facts import Point, Value, rate
from spead_tutorial.results.plots.picture import Axes, Line, Mark, Panel, Said, where_on_x
from spead_tutorial.results.plots.sheet import LETTER, marked, spread, write
from spead_tutorial.results.plots.theme import FAINT, MARKERS, WIDTH, Theme
from spead_tutorial.results.units import size

#: What a caption says of the points.
SHOWN = "median of {rounds} rounds, band: {spread}"
#: Letters in a line of a name, points from line to line, and the room on the left in inches.
_COLUMNS, _LEADING, _LEFT = 18, 15, 0.82
_MOST_TICKS = 6


@dataclasses.dataclass(frozen=True, slots=True)
class Scale:
    """An axis: where on it something is, its marks, and its ends."""

    name: str
    place: Callable[[float], float]
    ticks: Mapping[float, str]  # by where they are
    ends: tuple[float, float]


def sizes(found: Iterable[float], name: str = "size of a heap") -> Scale:
    """Return a logarithmic axis with marks at powers of two."""
    known = list(found)
    low, high = math.log2(min(known)), math.log2(max(known))
    powers = range(math.ceil(low - 0.1), math.floor(high + 0.1) + 1) or [round(low)]
    ticks = {float(n): size(2**n) for n in powers[:: -(-len(powers) // _MOST_TICKS)]}
    return Scale(name, math.log2, ticks, (low - 0.3, high + 0.15))


def steps(found: Iterable[int], name: str) -> Scale:
    """Return an axis on which what there is stands in equal steps."""
    order = sorted(set(found))
    crowded = len(order) > _MOST_TICKS  # then every other one is lower
    ticks = {float(n): "\n" * (n % 2 * crowded) + f"{x}" for n, x in enumerate(order)}
    return Scale(name, lambda x: float(order.index(int(x))), ticks, (-0.4, len(order) - 0.8))


@dataclasses.dataclass(frozen=True, slots=True)
class Curve:
    """A line: the points of a series, and what is written at its end."""

    line: Line
    points: Mapping[int, Point]
    value: Value = rate
    label: str = ""  # its name, where there is none
    is_before: bool = False  # what another is compared with: hollow, and broken

    @property
    def folded(self) -> list[str]:
        """The lines of its label."""
        return textwrap.wrap(self.label or self.line.name, _COLUMNS)

    @property
    def estimates(self) -> dict[int, Estimate | None]:
        """Its values; None where a sample failed."""
        return {x: point.estimate(self.value) for x, point in self.points.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Curves(Panel):
    """A panel of at most three lines."""

    curves: Sequence[Curve]
    scale: Scale
    most: float  # the highest value of the axis
    height: float = 1.8
    is_last: bool = True  # whether the scale has its names
    uprights: Mapping[float, str] = dataclasses.field(default_factory=dict)  # what begins where

    @property
    def sides(self) -> tuple[float, float]:
        longest = max(len(line) for one in self.curves for line in one.folded)
        return _LEFT, 0.3 + LETTER * longest

    @property
    def below(self) -> float:
        return 0.55 if self.is_last else 0.05

    @property
    def _top(self) -> float:
        return self.most * (1.25 if self.uprights else 1.05) or 1  # with room for words

    def said(self) -> Iterator[Said]:
        for one in self.curves:
            for at, estimate in one.estimates.items():
                if estimate is not None:
                    yield Mark(one.line, at, estimate, self.scale.place(at), estimate.median)
                if failed := one.points[at].failed:
                    of = f"failed ({failed} of {len(one.points[at].samples)})"
                    yield one.line.name, f"{where_on_x(one.line.over, at)} {of}"

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scales, the lines with what is compared behind, and their names."""
        axis.set(xlim=self.scale.ends, ylim=(0, self._top))
        axis.set_xticks(list(self.scale.ticks), list(self.scale.ticks.values()))
        axis.tick_params(axis="x", labelbottom=self.is_last)
        axis.set_xlabel(self.scale.name if self.is_last else "")
        axis.yaxis.set_major_formatter(lambda y, _: marked(y))
        axis.locator_params(axis="y", nbins=5)
        axis.grid()
        axis.set_axisbelow(True)
        for x, words in self.uprights.items():
            axis.axvline(x, color=theme.faint, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
            place, within = (x, 0.98), axis.get_xaxis_transform()
            write(axis, words, place, (4, -3), within, va="top", fontsize=FAINT, color=theme.faint)
        for one in reversed(self.curves):
            self._draw(axis, one, theme)
        self._name(axis, theme)

    def _draw(self, axis: Axes, one: Curve, theme: Theme) -> None:
        look, nothing = _look(one, theme), Estimate(math.nan, math.nan, math.nan, 0)
        xs = [self.scale.place(at) for at in one.estimates]
        known = [estimate or nothing for estimate in one.estimates.values()]
        band = [estimate.low for estimate in known], [estimate.high for estimate in known]
        axis.fill_between(xs, *band, color=look["color"], alpha=0.18, linewidth=0)
        axis.plot(xs, [estimate.median for estimate in known], zorder=3, **look)
        for at in (at for at, point in one.points.items() if point.failed):
            cross: dict[str, Any] = {"marker": "x", "markersize": 7, "markeredgewidth": 2}
            place = self.scale.place(at), 0.0
            axis.plot(*place, color=look["color"], clip_on=False, **cross)
            write(axis, "failed", place, (0, 6), rotation=90, ha="center")

    def _name(self, axis: Axes, theme: Theme) -> None:
        """Write names on the right, each with a line to its own."""
        right, inch = self.scale.ends[1], self._top / self.height
        wanted, starts = [], []
        for one in self.curves:
            known = [(at, found.median) for at, found in one.estimates.items() if found is not None]
            at, y = known[-1] if known else (max(one.estimates), 0.0)
            starts.append((self.scale.place(at), y))
            wanted.append((y, _LEADING / 72 * inch * len(one.folded)))
        corner = right + (right - self.scale.ends[0]) / (WIDTH - sum(self.sides)) / 6
        places = spread(wanted, -0.1 * inch, self._top + 0.1 * inch)
        for one, (x, y), place in zip(self.curves, starts, places, strict=True):
            colour, style = theme.colours[one.line.role], {"va": "center", "linespacing": 1.1}
            axis.plot([x, corner], [y, place], color=colour, linewidth=0.8, clip_on=False, zorder=2)
            write(axis, "\n".join(one.folded), (corner, place), (3, 0), color=colour, **style)


def _look(one: Curve, theme: Theme) -> dict[str, Any]:
    """Return how a line is drawn: also without colours, what was before and the limit differ."""
    role, colour = one.line.role, theme.colours[one.line.role]
    dashes = (0.0, (1.0, 1.4)) if role == "limit" else (0.0, (4.0, 2.0) if one.is_before else ())
    return {
        "color": colour,
        "linestyle": dashes,
        "linewidth": 1.6 if one.is_before or role == "limit" else 2.4,
        "marker": MARKERS[role],
        "markersize": 5.5 if role != "limit" else 4.0,
        "markeredgewidth": 1.3,
        "markeredgecolor": colour,
        "markerfacecolor": theme.background if one.is_before else colour,
    }
