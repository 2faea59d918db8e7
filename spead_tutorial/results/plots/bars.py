# SPDX-License-Identifier: BSD-3-Clause
"""Bars of medians with their intervals, in groups; and marks of gains on a scale of factors."""

import dataclasses
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.picture import SPEED, Axes, Line, Mark, Panel, Said
from spead_tutorial.results.plots.sheet import LETTER, count_down, write
from spead_tutorial.results.plots.theme import FAINT, MARKERS, NAMES, Theme
from spead_tutorial.results.units import size, thousands

#: Inches: from bar to bar, of one, between groups, and of a line of a group's name.
_PITCH, _BAR, _APART, _LINE = 0.185, 0.155, 0.08, 0.175
#: Where the axis of a gain may have its marks.
_GAINS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A value, or what is said where there is none."""

    line: Line
    at: float
    estimate: Estimate | None  # None where a sample failed, or nothing is known
    said: str = "failed: no rate"  # instead of a value
    least: str = ""  # what stands before a value that is but a lower bound
    is_pale: bool = False  # one of many, of which another is spoken of


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
    is_pale: bool = False,
) -> Group:
    """Return a bar for each point, by what gives it its colour, such as a language."""
    bars = []
    for role, point in points.items():
        words = ", ".join(filter(None, (name, note, NAMES.get(role))))
        line = Line(words, role, point.key if value is facts.rate else (), unit)
        said = "failed: no rate" if point.failed else "not known"
        least = "\N{GREATER-THAN OR EQUAL TO} " * is_bound(point)
        at = point.samples[0].heap_size
        bars.append(Bar(line, at, point.estimate(value), said, least, is_pale))
    return Group(name, note, bars)


@dataclasses.dataclass(frozen=True, slots=True)
class Bars(Panel):
    """A panel of groups of bars; gains are marks at both sides of 1."""

    label: str  # of the scale
    groups: Sequence[Group]
    most: float  # of the scale
    text: Callable[[float], str] = thousands  # writes a value
    scaled: float = 1.0  # by what values are divided on the scale
    names: float = 2.1  # inches of the names of groups
    is_first: bool = True  # of several with the same groups: it has their names
    is_gain: bool = False
    least: float = 0.0

    @property
    def sides(self) -> tuple[float, float]:
        return (self.names + 0.12) * self.is_first, 0.15

    @property
    def height(self) -> float:
        return sum(map(self._inches, self.groups))

    def _lines(self, group: Group) -> list[str]:
        folded = textwrap.wrap(group.name, max(8, round(self.names / LETTER)))
        return folded + [group.note] * bool(group.note)

    def _inches(self, group: Group) -> float:
        lanes = max(len(group.bars), group.lanes)
        return max(_PITCH * lanes, _LINE * len(self._lines(group))) + _APART

    def said(self) -> Iterator[Said]:
        for y, one in self._places():
            if one.estimate is not None:
                yield Mark(one.line, one.at, one.estimate, one.estimate.median, y)
                if one.least:
                    yield one.line.name, f"{size(one.at)} is a lower bound"
            else:
                yield one.line.name, f"{size(one.at)} {one.said.partition(':')[0]}"

    def _places(self) -> Iterator[tuple[float, Bar]]:
        top = 0.0
        for group in self.groups:
            inches = self._inches(group)
            first = top + (inches - _PITCH * len(group.bars)) / 2
            yield from ((first + (n + 0.5) * _PITCH, one) for n, one in enumerate(group.bars))
            top += inches

    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw the scale, the names, and the bars with their values."""
        count_down(axis, self.height)
        self._scale(axis, theme)
        if self.is_first:
            self._name(axis, theme)
        unnamed = dict(NAMES)  # a language is named at its first bar
        for y, one in self._places():
            # Of one language there is nothing to be told apart.
            language = unnamed.pop(one.line.role, "") if self._has_languages else ""
            if one.estimate is None:
                axis.plot([self.least], [y], marker="x", color=theme.text, clip_on=False)
                words = ", ".join(filter(None, (language, one.said)))
                write(axis, words, (self.least, y), (8, 0), va="center_baseline")
                continue
            self._draw(axis, y, one, one.estimate, theme)
            value = one.least + self.text(one.estimate.median)
            words = ", ".join(filter(None, (language, value)))
            colour = theme.text if self._is_told(one.estimate) else theme.faint
            end = (one.estimate.high, y)
            write(axis, words, end, (6, 0), va="center_baseline", color=colour, fontsize=FAINT)

    @property
    def _has_languages(self) -> bool:
        return len({one.line.role for group in self.groups for one in group.bars} & {*NAMES}) > 1

    def _is_told(self, estimate: Estimate) -> bool:
        return not self.is_gain or differs(estimate)

    def _scale(self, axis: Axes, theme: Theme) -> None:
        if self.is_gain:
            axis.set_xscale("log")
            axis.set_xlim(self.least, self.most)
            axis.set_xticks([x for x in _GAINS if self.least <= x <= self.most])
            axis.set_xticks([], minor=True)
            axis.axvline(1, color=theme.text, linewidth=1.2)
        else:
            axis.set_xlim(0, self.most or 1)
            axis.locator_params(axis="x", nbins=4)
            axis.axvline(0, color=theme.faint, linewidth=1.2)
        axis.xaxis.set_major_formatter(
            lambda x, _: f"{x / self.scaled:g}" if self.scaled > 1 or self.is_gain else thousands(x)
        )
        axis.set_xlabel(self.label)

    def _name(self, axis: Axes, theme: Theme) -> None:
        """Write on the left what the groups are."""
        top = 0.0
        for group in self.groups:
            inches, lines = self._inches(group), self._lines(group)
            for n, line in enumerate(lines):
                is_note = bool(group.note) and n == len(lines) - 1
                style = {"color": theme.faint, "fontsize": FAINT} if is_note else {}
                y = top + inches / 2 + (n - (len(lines) - 1) / 2) * _LINE
                place, shift = (0, y), (-72 * self.names, 0)
                write(axis, line, place, shift, axis.get_yaxis_transform(), va="center", **style)
            top += inches

    def _draw(self, axis: Axes, y: float, one: Bar, estimate: Estimate, theme: Theme) -> None:
        role = one.line.role
        colour, ends = theme.colours[role], [estimate.low, estimate.high]
        if not self.is_gain:
            axis.barh(y, estimate.median, _BAR, color=theme.pale(role) if one.is_pale else colour)
            axis.plot(ends, [y, y], color=theme.background, linewidth=4, zorder=2.5)
            colour = theme.text
        axis.plot(ends, [y, y], color=colour, linewidth=2, zorder=3)
        if self.is_gain:
            axis.plot([estimate.median], [y], color=colour, marker=MARKERS[role], markersize=7)


def room(most: float, inches: float, letters: int) -> float:
    """Return the end of a scale that has room for words behind a bar of the highest value."""
    return most / max(0.3, 1 - (LETTER * letters + 0.1) / inches)
