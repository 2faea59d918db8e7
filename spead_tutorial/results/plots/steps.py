# SPDX-License-Identifier: BSD-3-Clause
"""Ladders: a mark for each rate on a logarithmic scale, and beside it what that step gained."""

import dataclasses
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import LANGUAGES
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots.marks import Line, mark, say
from spead_tutorial.results.plots.points import Point
from spead_tutorial.results.plots.sheet import FAINT, Sheet, write
from spead_tutorial.results.plots.theme import MARKERS, NAMES, Theme
from spead_tutorial.results.plots.titles import NO_DIFFERENCE
from spead_tutorial.results.units import number, size, times

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["Step", "draw_steps"]

#: Whose a mark is.
_WHO = {**NAMES, "spead2": "spead2", "limit": "bare system calls"}
_LANE, _APART = 0.18, 0.04
_ROOM, _LOWER_ROOM = 0.45, 0.75
_LABELS, _NARROW_LABELS, _LABEL_COLUMNS, _NARROW_LABEL_COLUMNS = 2.03, 1.64, 26, 18
_MARGIN, _GAP = 0.12, 0.12
_NAME_COLUMNS, _MOST_BESIDE = 24, 2
#: Inches that a power of ten needs to have its number.
_DECADE = 0.27
#: Inches on the right of a panel for what it says of each mark, without its rate and with it.
_WORDS, _MORE_WORDS = 1.3, 2.2


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A chapter's program in its languages, or something beside them."""

    title: str  # what is written before it
    note: str
    points: Mapping[str, Point]  # by what gives a mark its colour
    # how many times as fast each is as in the step before; empty where it follows none
    gains: Mapping[str, Estimate | None] = dataclasses.field(default_factory=dict)


def draw_steps(
    theme: Theme,
    title: str,
    subtitle: str,
    foot: str,
    panels: Mapping[str, Sequence[Step]],
    label: str,
    is_bound: Callable[[Point], bool] = lambda point: False,
) -> Sheet:
    """Draw a panel of marks for each of several settings, by its name, all on one scale."""
    all_steps = list(panels.values())
    languages = _languages(all_steps)
    inches = _LANE * max(2, len(languages)) + _APART  # two lines of words at least
    stacked = theme.is_narrow or len(panels) > _MOST_BESIDE
    rows = [(_ROOM, inches * len(_labels(all_steps)))]
    if stacked:
        rows = [(_LOWER_ROOM if n else _ROOM, inches * len(one)) for n, one in enumerate(all_steps)]
    legend = _legend(all_steps, theme)
    sheet = Sheet(theme, title, rows, foot, subtitle=subtitle, legend=legend, columns=4)
    left = _NARROW_LABELS if theme.is_narrow else _LABELS
    count = 1 if stacked else len(panels)
    width = (theme.width - left - _MARGIN - _GAP * (count - 1)) / count
    for n, (name, steps) in enumerate(panels.items()):
        places = _labels([steps] if stacked else all_steps)
        start = left + (0 if stacked else n * (width + _GAP))
        axis = sheet.axes(n if stacked else 0, start, theme.width - start - width)
        with_rate = not theme.is_narrow and count == 1
        words = _MORE_WORDS if with_rate else _WORDS
        _scale(axis, all_steps, width - words, width, inches * len(places))
        shown = "\n".join(textwrap.wrap(name, _NAME_COLUMNS)) if count > 1 else name
        shift = ((_MARGIN - left) * 72 if theme.is_narrow else 0, 6)
        write(axis, shown, (0, 1), shift, "axes fraction", fontsize=11)
        if stacked or not n:
            _write_labels(axis, places, inches, left, theme)
        for step in steps:
            said = {role: _said(step, role, is_bound, with_rate) for role in step.points}
            _draw_step(axis, places.index(_label(step)) * inches, languages, step, said, theme)
            for role, point in step.points.items():
                if is_bound(point):
                    at = size(point.samples[0].heap_size)
                    say(axis, _line(step, role).name, f"{at} is a lower bound")
        axis.set_xlabel(label)
    return sheet


def _legend(panels: Sequence[Sequence[Step]], theme: Theme) -> list["Artist"]:
    """Return what says which marks are whose."""
    from matplotlib.lines import Line2D

    there = {role for steps in panels for step in steps for role in step.points}
    return [
        Line2D([], [], label=name, linewidth=2, **_marker(role, theme))
        for role, name in _WHO.items()
        if role in there
    ]


def _languages(panels: Sequence[Sequence[Step]]) -> list[str]:
    """Return the languages that have marks, each a lane of every step."""
    there = {role for steps in panels for step in steps for role in step.points}
    return [language for language in LANGUAGES if language in there]


def _label(step: Step) -> tuple[str, str]:
    return step.title, step.note


def _labels(panels: Sequence[Sequence[Step]]) -> list[tuple[str, str]]:
    """Return the lines that panels beside each other have: those of the longest first."""
    longest_first = sorted(panels, key=len, reverse=True)
    return list(dict.fromkeys(_label(step) for steps in longest_first for step in steps))


def _scale(
    axis: "Axes", panels: Sequence[Sequence[Step]], inches: float, width: float, height: float
) -> None:
    """Give a panel its scales: inches downwards, and tens in so many of its inches."""
    estimates = [
        one.estimate() for steps in panels for step in steps for one in step.points.values()
    ]
    ends = [x for one in estimates if one is not None for x in (one.low, one.high) if x > 0]
    low, high = (min(ends) * 0.7, max(ends)) if ends else (1.0, 10.0)
    axis.set_xscale("log")
    axis.set_xlim(low, low * (high / low) ** (width / inches))
    axis.set_ylim(height, 0)
    axis.set_yticks([])
    tens = [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    crowded = inches < _DECADE * math.log10(high / low)
    axis.set_xticks(tens[:: 1 + crowded])
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda x, _: number(x / 1e3))
    axis.grid(axis="x")
    axis.set_axisbelow(True)


def _write_labels(
    axis: "Axes", labels: Sequence[tuple[str, str]], inches: float, left: float, theme: Theme
) -> None:
    """Name the steps on the left of a panel: two lines of words at most."""
    columns = _NARROW_LABEL_COLUMNS if theme.is_narrow else _LABEL_COLUMNS
    for row, (title, note) in enumerate(labels):
        lines = [(line, theme.text, 10) for line in textwrap.wrap(" ".join(title.split()), columns)]
        lines += [(line, theme.faint, FAINT) for line in [note] if note]
        for n, (line, colour, points) in enumerate(lines[:2]):
            look: dict[str, Any] = {"va": "center", "fontsize": points, "color": colour}
            place, shift = (0, row * inches + (n + 0.65) * _LANE), ((_MARGIN - left) * 72, 0)
            write(axis, line, place, shift, axis.get_yaxis_transform(), **look)


def _said(step: Step, role: str, is_bound: Callable[[Point], bool], with_rate: bool) -> str:
    """Return what stands beside a mark: what was gained, and its rate where there is room."""
    point, gain = step.points[role], step.gains.get(role)
    estimate = point.estimate()
    if estimate is None:
        return "failed: no rate"
    words = [] if gain is None else [times(gain.median) if differs(gain) else NO_DIFFERENCE]
    least = "at least " * is_bound(point)
    words.append(least + f"{number(estimate.median / 1e3)} GB/s" if with_rate else least.strip())
    return ", ".join(filter(None, words))


def _draw_step(
    axis: "Axes",
    y: float,
    languages: Sequence[str],
    step: Step,
    said: Mapping[str, str],
    theme: Theme,
) -> None:
    lanes = {role: y + (n + 0.65) * _LANE for n, role in enumerate(languages)}
    middle = y + (0.15 + max(2, len(languages)) / 2) * _LANE
    ends = {
        role: _draw_point(axis, lanes.get(role, middle), point, _line(step, role), theme)
        for role, point in step.points.items()
    }
    for role, gain in step.gains.items():
        if gain is not None:
            at = size(step.points[role].samples[0].heap_size)
            words = times(gain.median) if differs(gain) else NO_DIFFERENCE
            say(axis, f"{_line(step, role).name}, gain over the step before", f"{at} {words}")
    if len(said) > 1 and set(said.values()) == {NO_DIFFERENCE}:
        said, ends = {"": NO_DIFFERENCE}, {"": max(ends.values())}
    for role, words in said.items():
        colour = theme.faint if words == NO_DIFFERENCE else theme.text
        look: dict[str, Any] = {"va": "center_baseline", "fontsize": FAINT, "color": colour}
        write(axis, words, (ends[role], lanes.get(role, middle)), (7, 0), **look)


def _line(step: Step, role: str) -> Line:
    """Return what the points of a mark have in common with those of other sizes."""
    who, row = _WHO[role], " ".join(f"{step.title} {step.note}".split())
    key = step.points[role].key
    return Line(f"{row}, {who}" if role in NAMES else row, role, who, row, key)


def _draw_point(axis: "Axes", y: float, point: Point, line: Line, theme: Theme) -> float:
    """Draw a point with its interval, or a cross where it failed; return where that ends."""
    estimate = point.estimate()
    if estimate is None:
        say(axis, line.name, f"{size(point.samples[0].heap_size)} failed")
        left, _ = axis.get_xlim()
        axis.plot([left], [y], marker="x", markersize=6, color=theme.text, clip_on=False)
        return left
    role, heap_size = line.role, point.samples[0].heap_size
    mark(axis, estimate.median, y, line, heap_size, estimate)
    colour = theme.colours[role]
    axis.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2)
    axis.plot([estimate.median], [y], zorder=3, **_marker(role, theme))
    return estimate.high


def _marker(role: str, theme: Theme) -> dict[str, Any]:
    colour = theme.colours[role]
    return {"color": colour, "marker": MARKERS[role], "markersize": 6}
