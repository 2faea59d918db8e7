# SPDX-License-Identifier: BSD-3-Clause
"""Curves: medians and their intervals over sizes, each line with its name at its end."""

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.facts import Point, Value, rate
from spead_tutorial.results.plots.picture import SPEED, Axes, Line, Mark, Panel, Said, where_on_x
from spead_tutorial.results.plots.sheet import LETTER, spread, write
from spead_tutorial.results.plots.theme import FAINT, MARKERS, WIDTH, Theme
from spead_tutorial.results.units import size, thousands

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
    ticks = {float(n): _named(2**n) for n in powers[:: -(-len(powers) // _MOST_TICKS)]}
    return Scale(name, math.log2, ticks, (low - 0.3, high + 0.15))


def steps(found: Iterable[float], name: str) -> Scale:
    """Return an axis on which what there is stands in equal steps."""
    order = sorted(set(found))
    crowded = len(order) > _MOST_TICKS  # then every other one is lower
    ticks = {float(n): "\n" * (n % 2 * crowded) + f"{x:g}" for n, x in enumerate(order)}
    return Scale(name, lambda x: float(order.index(x)), ticks, (-0.4, len(order) - 0.8))


def _named(n: float) -> str:
    return size(n) if n >= 1024 else f"{n / 1024:g} KiB"


@dataclasses.dataclass(frozen=True, slots=True)
class Curve:
    """A line: its values, and what is written at its end."""

    line: Line
    label: str
    estimates: Mapping[float, Estimate | None]  # None where a sample failed
    failed: Mapping[float, str] = dataclasses.field(default_factory=dict)  # which, in words
    is_before: bool = False  # what another is compared with: hollow, and broken


def curve(
    name: str,
    label: str,
    role: str,
    points: Mapping[int, Point] | Mapping[float, Point],
    *,
    value: Value = rate,
    over: str = "",
    unit: str = SPEED,
    is_before: bool = False,
) -> Curve:
    """Return the curve of a series."""
    key = () if over else next(iter(points.values())).key
    estimates = {x: point.estimate(value) for x, point in points.items()}
    failed = {
        x: f"failed ({point.failed} of {len(point.samples)})"
        for x, point in points.items()
        if point.failed
    }
    return Curve(Line(name, role, key, unit, over), label, estimates, failed, is_before)


@dataclasses.dataclass(frozen=True, slots=True)
class Curves(Panel):
    """A panel of at most three lines."""

    curves: Sequence[Curve]
    scale: Scale
    most: float  # the highest value of the axis
    height: float = 1.8
    least: float = 0.0
    is_last: bool = True  # whether the scale has its names
    uprights: Mapping[float, str] = dataclasses.field(default_factory=dict)  # what begins where
    written: float = 0.78  # at which share of the height that is

    @property
    def sides(self) -> tuple[float, float]:
        longest = max(len(line) for one in self.curves for line in _lines(one.label))
        return _LEFT, 0.3 + LETTER * longest

    @property
    def below(self) -> float:
        return 0.55 if self.is_last else 0.05

    def said(self) -> Iterator[Said]:
        for one in self.curves:
            for at, estimate in one.estimates.items():
                if estimate is not None:
                    x = self.scale.place(at)
                    yield Mark(one.line, at, estimate, x, estimate.median)
                if at in one.failed:
                    yield one.line.name, f"{where_on_x(one.line.over, at)} {one.failed[at]}"

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scales, the lines with what is compared behind, and their names."""
        axis.set(xlim=self.scale.ends, ylim=(self.least, self.most * 1.05 or 1))
        for below in (False, True):
            ticks = {
                x: name for x, name in self.scale.ticks.items() if name.startswith("\n") == below
            }
            names = [name.strip() for name in ticks.values()]
            axis.set_xticks(list(ticks), names, minor=below)
        axis.tick_params(axis="x", which="minor", pad=16, length=0, labelsize=FAINT)
        axis.tick_params(axis="x", labelbottom=self.is_last)
        axis.set_xlabel(self.scale.name if self.is_last else "")
        axis.yaxis.set_major_formatter(lambda y, _: thousands(y) if y == round(y) else f"{y:g}")
        axis.locator_params(axis="y", nbins=5)
        axis.grid()
        axis.set_axisbelow(True)
        for x, words in self.uprights.items():
            axis.axvline(x, color=theme.faint, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
            place, within = (x, self.written), axis.get_xaxis_transform()
            write(axis, words, place, (4, -3), within, va="top", fontsize=FAINT, color=theme.faint)
        for one in reversed(self.curves):
            self._draw(axis, one, theme)
        self._name(axis, theme)

    def _draw(self, axis: Axes, one: Curve, theme: Theme) -> None:
        colour, place = theme.colours[one.line.role], self.scale.place
        xs = [place(at) for at in one.estimates]
        nothing = Estimate(math.nan, math.nan, math.nan, 0)
        known = [estimate or nothing for estimate in one.estimates.values()]
        low, middle, high = (
            [getattr(estimate, end) for estimate in known] for end in ("low", "median", "high")
        )
        axis.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
        axis.plot(xs, middle, zorder=3, **_look(one, theme))
        for at in one.failed:
            cross: dict[str, Any] = {"marker": "x", "markersize": 7, "markeredgewidth": 2}
            axis.plot([place(at)], [self.least], color=colour, clip_on=False, **cross)
            write(axis, "failed", (place(at), self.least), (0, 6), rotation=90, ha="center")

    def _name(self, axis: Axes, theme: Theme) -> None:
        """Write the names at the ends of lines: on the right, or where a line ends before."""
        left, right = self.scale.ends
        inch = (right - left) / (WIDTH - sum(self.sides))
        high = (self.most * 1.05 - self.least) / self.height
        outside = []
        for one in self.curves:
            known = [(at, found.median) for at, found in one.estimates.items() if found is not None]
            at, y = known[-1] if known else (max(one.estimates), self.least)
            x, label = self.scale.place(at), _lines(one.label)
            if x + inch * (LETTER * max(map(len, label)) + 0.15) < right:
                self._write(axis, one, x + 0.1 * inch, y, theme)
            else:
                outside.append((one, x, y, _LEADING / 72 * high * len(label)))
        wanted = [(y, room) for _, _, y, room in outside]
        places = spread(wanted, self.least - 0.1 * high, self.most * 1.05 + 0.1 * high)
        corner = right + inch / 6
        for (one, x, y, _), place in zip(outside, places, strict=True):
            style: dict[str, Any] = {"linewidth": 0.8, "clip_on": False, "zorder": 2}
            axis.plot([x, corner], [y, place], color=theme.colours[one.line.role], **style)
            self._write(axis, one, corner, place, theme)

    def _write(self, axis: Axes, one: Curve, x: float, y: float, theme: Theme) -> None:
        style: dict[str, Any] = {"va": "center", "linespacing": 1.1}
        words, colour = "\n".join(_lines(one.label)), theme.colours[one.line.role]
        write(axis, words, (x, y), (3, 0), color=colour, **style)


def in_steps(
    name: str, lines: Sequence[Curve], scale: str, height: float = 1.8, *, least: float
) -> Curves:
    """Return a panel of lines over what stands in equal steps, up to a value of at least that."""
    known = [found for one in lines for found in one.estimates.values() if found is not None]
    axis = steps((at for one in lines for at in one.estimates), scale)
    return Curves(name, lines, axis, max([least, *(one.high for one in known)]), height)


def _lines(label: str) -> list[str]:
    return textwrap.wrap(label, _COLUMNS) or [""]


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
