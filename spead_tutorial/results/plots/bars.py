# SPDX-License-Identifier: BSD-3-Clause
"""Bars: of medians, with all samples and the interval on them, and of parts of a whole.

Their panels count inches down.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.results.plots.facts import Point, Value, rate
from spead_tutorial.results.plots.render import Artist, Axes, Line, mark, say
from spead_tutorial.results.plots.sheet import FAINT, count_down, write
from spead_tutorial.results.plots.theme import HATCHES, MARKERS, NAMES, Theme
from spead_tutorial.results.units import size, thousands

#: Inches: from one group of bars to the next, of the label above it, from bar to bar.
GROUP, LABEL, _PITCH = 0.68, 0.22, 0.2
#: The colour of a part of a whole, as the theme has it, and its hatch.
PartStyle: TypeAlias = tuple[str, str] | None
_BAR = 0.175


def prepare(
    axis: Axes,
    inches: float,
    most: float,
    room: float,
    marks: int,
    label: str = "payload sent in MB/s",
) -> None:
    """Give a panel its scales: inches downwards, and from 0 to `most` with room for numbers."""
    count_down(axis, inches)
    axis.set_xlim(0, most * room or 1.0)
    axis.locator_params(axis="x", nbins=marks)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.set_xlabel(label)


def lanes(group: float) -> dict[str, float]:
    """Return where the bar of each language is, in a group that begins at `group` inches."""
    top = group + LABEL
    return {language: top + (index + 0.5) * _PITCH for index, language in enumerate(MEASURED)}


def label_group(axis: Axes, y: float, title: str, note: str, theme: Theme) -> None:
    """Name a group of bars above it: its title on the left, a remark on the right."""
    # Grid lines must not run through the letters.
    box = {"facecolor": theme.background, "edgecolor": "none", "pad": 1.0}
    where: dict[str, Any] = {
        "transform": axis.get_yaxis_transform(),
        "va": "center",
        "bbox": box,
        "zorder": 4,
    }
    axis.text(0.008, y + LABEL / 2, title, **where)
    axis.text(1, y + LABEL / 2, note, ha="right", fontsize=FAINT, color=theme.faint, **where)


def line_of(row: str, language: str, point: Point) -> Line:
    """Return what a page is told of a language's bar in a row."""
    return Line(f"{row}, {NAMES[language]}", language, point.key)


def draw_bar(
    axis: Axes,
    y: float,
    point: Point,
    language: str,
    theme: Theme,
    line: Line,
    value: Value = rate,
    text: Callable[[float], str] = thousands,
    pale: bool = False,
) -> None:
    """Draw the bar of a point with its samples, its interval and its value."""
    estimate = point.estimate(value)
    if estimate is None:
        cross: dict[str, Any] = {"marker": "x", "markersize": 6, "markeredgewidth": 1.8}
        axis.plot([0], [y], color=theme.text, clip_on=False, **cross)
        _write(axis, 0, y, "failed: no rate" if point.failed else "not known")
        if point.failed:
            say(axis, line.name, f"{size(point.samples[0].heap_size)} failed")
        return
    axis.barh(y, estimate.median, _BAR, **_filled(theme, language, pale))
    mark(axis, estimate.median, y, line, point.samples[0].heap_size, estimate)
    values = list(point.values(value).values())
    # With a rim of the background's colour: to be seen on a bar and next to it.
    stroke: dict[str, Any] = {"color": theme.text, "zorder": 3}
    rim: dict[str, Any] = {"color": theme.background, "zorder": 2.5}
    ends = [estimate.low, estimate.high]
    axis.plot(ends, [y, y], linewidth=3, **rim)
    axis.plot(ends, [y, y], linewidth=1.2, **stroke)
    glyph: dict[str, Any] = {"linestyle": "", "marker": MARKERS[language], "markeredgewidth": 0}
    axis.plot(values, [y] * len(values), markersize=4.8, **glyph, **rim)
    axis.plot(values, [y] * len(values), markersize=3.2, **glyph, **stroke)
    _write(axis, max(estimate.high, *values), y, text(estimate.median))


def _write(axis: Axes, x: float, y: float, words: str) -> None:
    write(axis, words, (x, y), (6, 0), va="center_baseline", zorder=4)


def write_beside(axis: Axes, y: float, words: str, inches: float, **more: Any) -> None:
    """Write in a column next to a panel: its middle is some inches from the panel's right end."""
    place: dict[str, Any] = {"annotation_clip": False, "ha": "center", "va": "center"}
    within = axis.get_yaxis_transform()
    write(axis, words, (1, y), (72 * inches, 0), within, **place, **more)


def draw_parts(
    axis: Axes,
    y: float,
    height: float,
    parts: Mapping[str, float],
    line_styles: Mapping[str, PartStyle],
    theme: Theme,
    written: Callable[[str, float], str],
    rims: bool = False,
) -> None:
    """Draw the parts of a whole as one bar; into each is `written` what there is room for."""
    left = 0.0
    for part, width in parts.items():
        style = part_style(line_styles[part], theme)
        axis.barh(y, width, height, left, **style)
        if rims and line_styles[part]:
            ends = [y - height / 2, y + height / 2]
            axis.plot([left] * 2, ends, color=theme.background, linewidth=0.8)
        if words := written(part, width):
            box = {"facecolor": style["facecolor"], "edgecolor": "none", "pad": 0.8}
            middle: dict[str, Any] = {"ha": "center", "va": "center_baseline", "bbox": box}
            colour = theme.background
            axis.text(left + width / 2, y, words, fontsize=FAINT, color=colour, **middle)
        left += width


def part_style(style: PartStyle, theme: Theme) -> dict[str, Any]:
    """Return how a part is filled; a thread that does nothing is but an outline."""
    if style is None:
        return {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}
    colour, hatch = style
    filled = {"facecolor": theme.colours[colour], "hatch": hatch, "edgecolor": theme.background}
    return {**filled, "linewidth": 0}


def part_legend(line_styles: Mapping[str, PartStyle], theme: Theme) -> list[Artist]:
    """Return what says which part is which."""
    from matplotlib.patches import Patch

    return [Patch(label=part, **part_style(style, theme)) for part, style in line_styles.items()]


def language_legend(theme: Theme) -> list[Artist]:
    """Return what says which bars are of which language."""
    from matplotlib.patches import Patch

    return [
        Patch(label=NAMES[language], **_filled(theme, language, pale=False))
        for language in MEASURED
    ]


def _filled(theme: Theme, language: str, pale: bool) -> dict[str, Any]:
    """Return how a bar is filled: a pale one is what the one below it is compared with."""
    colour = theme.pale(language) if pale else theme.colours[language]
    more = {"edgecolor": theme.background, "linewidth": 0}
    return {"facecolor": colour, "hatch": HATCHES[language], **more}
