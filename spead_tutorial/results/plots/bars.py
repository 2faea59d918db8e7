# SPDX-License-Identifier: BSD-3-Clause
"""Bars of medians with their intervals, in groups."""

import dataclasses
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from spead_tutorial.chapters.catalogue import NAMES
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.picture import SPEED, Axes, Line, Mark, Panel, Said
from spead_tutorial.results.plots.sheet import LETTER, count_down, marked, write
from spead_tutorial.results.plots.theme import FAINT, Theme
from spead_tutorial.results.units import size, thousands

#: Inches: from bar to bar, of one, between groups, and of a line of a group's name.
_PITCH, _BAR, _APART, _LINE = 0.185, 0.155, 0.08, 0.175


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A value, or what is said where there is none."""

    line: Line
    at: float
    estimate: Estimate | None  # None where a sample failed, or nothing is known
    said: str = "failed: no rate"  # instead of a value
    least: str = ""  # what stands before a value that is but a lower bound


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """A name, a note below it, and bars."""

    name: str
    note: str
    bars: Sequence[Bar]
    lanes: int = 0  # as many bars have room, if it has fewer

    @property
    def title(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.name, self.note


def group(
    name: str,
    note: str,
    points: Mapping[str, facts.Point],
    value: facts.Value = facts.rate,
    unit: str = SPEED,
    *,
    is_bound: Callable[[facts.Point], bool] = lambda point: False,
) -> Group:
    """Return a bar for each point, by what gives it its colour, such as a language."""
    bars = []
    for role, point in points.items():
        words = ", ".join(filter(None, (name, note, NAMES.get(role))))
        line = Line(words, role, point.key if value is facts.rate else (), unit)
        said = "failed: no rate" if point.failed else "not known"
        least = "\N{GREATER-THAN OR EQUAL TO} " * is_bound(point)
        at = point.samples[0].heap_size
        bars.append(Bar(line, at, point.estimate(value), said, least))
    return Group(name, note, bars)


@dataclasses.dataclass(frozen=True, slots=True)
class Bars(Panel):
    """A panel of groups of bars."""

    label: str  # of the scale
    groups: Sequence[Group]
    most: float  # of the scale
    text: Callable[[float], str] = thousands  # writes a value
    scaled: float = 1.0  # by what values are divided on the scale
    names: float = 2.1  # inches of the names of groups
    is_first: bool = True  # of several with the same groups: it has their names
    even: float = 0.0  # at which value bars are as long as what they are compared with

    @property
    def sides(self) -> tuple[float, float]:
        return (self.names + 0.12) * self.is_first, 0.15

    @property
    def height(self) -> float:
        return sum(map(self._inches, self.groups))

    def _folded(self, group: Group) -> list[str]:
        return textwrap.wrap(group.name, max(8, round(self.names / LETTER)))

    def _inches(self, group: Group) -> float:
        lanes, lines = max(len(group.bars), group.lanes), len(self._folded(group))
        return max(_PITCH * lanes, _LINE * (lines + bool(group.note))) + _APART

    def said(self) -> Iterator[Said]:
        for y, one in self._places():
            if one.estimate is not None:
                yield Mark(one.line, one.at, one.estimate, one.estimate.median, y)
                if one.least:
                    yield one.line.name, f"{size(one.at)} is a lower bound"
            else:
                yield one.line.name, f"{size(one.at)} {one.said.partition(':')[0]}"

    def _middles(self) -> Iterator[tuple[float, Group]]:
        """Return where the middle of each group is."""
        top = 0.0
        for one in self.groups:
            top += self._inches(one)
            yield top - self._inches(one) / 2, one

    def _places(self) -> Iterator[tuple[float, Bar]]:
        for middle, group in self._middles():
            first = middle - _PITCH * (len(group.bars) - 1) / 2
            yield from ((first + n * _PITCH, one) for n, one in enumerate(group.bars))

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scale, the names, and the bars with their values."""
        count_down(axis, self.height)
        axis.set(xlim=(0, self.most or 1), xlabel=self.label)
        axis.locator_params(axis="x", nbins=5 if self.even else 4)
        ticks = [x for x in axis.get_xticks() if 0 <= x <= 0.96 * (self.most or 1)]
        axis.set_xticks(ticks)  # a number at the very end would be cut off
        axis.xaxis.set_major_formatter(lambda x, _: marked(x / self.scaled))
        axis.axvline(self.even, color=theme.faint, linewidth=1.2)
        for middle, group in self._middles() if self.is_first else ():
            self._name(axis, middle, group, theme)
        roles = {one.line.role for group in self.groups for one in group.bars} & {*NAMES}
        # A language is named at its first bar; of one there is nothing to be told apart.
        unnamed = {role: NAMES[role] for role in roles if len(roles) > 1}
        for y, one in self._places():
            place, shift, said, style = (0.0, y), 8.0, one.said, {}
            if one.estimate is None:
                axis.plot(*place, marker="x", color=theme.text, clip_on=False)
            else:
                self._draw(axis, y, one, one.estimate, theme)
                place, shift, style = (one.estimate.high, y), 6.0, {"fontsize": FAINT}
                said = one.least + self.text(one.estimate.median)
            words = ", ".join(filter(None, (unnamed.pop(one.line.role, ""), said)))
            write(axis, words, place, (shift, 0), va="center_baseline", **style)

    def _name(self, axis: Axes, middle: float, group: Group, theme: Theme) -> None:
        """Write on the left what a group is, line by line, and its note."""
        lines = [*self._folded(group), group.note]
        first = middle - (len(lines) - 1 - (not group.note)) / 2 * _LINE
        for n, line in enumerate(lines):
            style = {"color": theme.faint, "fontsize": FAINT} if n == len(lines) - 1 else {}
            place, shift = (0, first + n * _LINE), (-72 * self.names, 0)
            write(axis, line, place, shift, axis.get_yaxis_transform(), va="center", **style)

    def _draw(self, axis: Axes, y: float, one: Bar, estimate: Estimate, theme: Theme) -> None:
        ends = [estimate.low, estimate.high]
        axis.barh(y, estimate.median, _BAR, color=theme.colours[one.line.role])
        axis.plot(ends, [y, y], color=theme.background, linewidth=4, zorder=2.5)
        axis.plot(ends, [y, y], color=theme.text, linewidth=2, zorder=3)


def room(most: float, inches: float, letters: int) -> float:
    """Return the end of a scale that has room for words behind a bar of the highest value."""
    return most / max(0.3, 1 - (LETTER * letters + 0.1) / inches)
