# SPDX-License-Identifier: BSD-3-Clause
"""Curves over sizes: medians, all samples, intervals, gains, failures."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spead_tutorial.measure.records import Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.facts import Point, Value, ends, rate
from spead_tutorial.results.plots.render import Artist, Axes, Line, mark, say, where_on_x
from spead_tutorial.results.plots.sheet import FAINT, name_panel, write
from spead_tutorial.results.plots.theme import LineStyle, Theme, role_of
from spead_tutorial.results.units import gigabits, megabytes, size, thousands

#: What a panel of rates is called, what a caption says of its dots, and an axis of sizes;
#: and the room at the sides of a panel.
RATE = "payload sent, MB/s"
SHOWN = "median of {rounds} rounds, dots: samples, band: {spread}"
SIZE = "size of a heap"
SIDES = (0.68, 0.52)
_MOST_LABELS = 8
#: Where the axis of a gain may have its marks, finest first.
_GAINS = (
    (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6, 1.8, 2),
    (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4),
    (0.1, 0.2, 0.5, 1, 2, 5, 10, 20),
    (0.01, 0.1, 1, 10, 100, 1000),
)
_MOST_GAINS = 6
_SHORTEST = (0.8, 1.25)


def size_axis(
    axis: Axes, sizes: Sequence[int], name: str | None, most_labels: int = _MOST_LABELS
) -> None:
    """Make x logarithmic, with marks at powers of two; without a name they have no labels."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    axis.set_xscale("log", base=2)
    axis.set_xlim(2 ** (low - 0.35), 2 ** (high + 0.35))
    powers = range(math.ceil(low - 0.1), math.floor(high + 0.1) + 1) or [round(low)]
    step = -(-len(powers) // most_labels)
    axis.set_xticks([2.0**n for n in powers[::step]])
    axis.set_xticks([2.0**n for n in powers], minor=True)
    axis.xaxis.set_major_formatter(lambda x, _: _mark(x) if name else "")
    axis.xaxis.set_minor_formatter(lambda x, _: "")
    axis.grid()
    axis.set_axisbelow(True)
    if name:
        axis.set_xlabel(name)


def _mark(n: float) -> str:
    """Name a mark of an axis of sizes, where 0.5 KiB is next to 1 KiB."""
    return size(n) if n >= 1024 else f"{n / 1024:g} KiB"


def rate_panel(
    axis: Axes,
    theme: Theme,
    most: float,
    lines: bool = False,
    name: str = RATE,
    first: bool = True,
    last: bool = True,
) -> None:
    """Give a panel its scales of rates, to a little more than `most` MB/s, and room for `lines`."""
    axis.set_ylim(0, most * 1.06 or 1)  # where all failed, most is 0
    raised = 9.0 if lines else 0.0
    axis.yaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.tick_params(axis="y", labelleft=first)
    if last:
        second: Any = axis.secondary_yaxis("right", functions=(gigabits, megabytes))
        second.tick_params(labelsize=FAINT, colors=theme.faint, labelcolor=theme.faint)
        second.spines["right"].set(color=theme.grid, visible=True)
        faint: dict[str, Any] = {"fontsize": FAINT, "color": theme.faint, "va": "bottom"}
        write(axis, "Gb/s", (1, 1), (4.0, 7.0 + raised), "axes fraction", **faint)
    name_panel(axis, name, raised)


def draw_curve(
    axis: Axes,
    points: Mapping[int, Point],
    style: LineStyle,
    theme: Theme,
    value: Value = rate,
    line: Line | None = None,
    positions: Mapping[int, float] | None = None,
) -> None:
    """Draw a series, at `positions` on x or by size; without a median, it is broken."""
    positions = positions or {x: float(x) for x in points}
    for x, point in points.items():
        values = list(point.values(value).values())
        draw_dots(axis, [positions[x]] * len(values), values, style)
    estimates = {x: point.estimate(value) for x, point in points.items()}
    _draw_estimates(axis, estimates, style, theme, line, positions)
    for x, point in points.items():
        if line is not None and point.failed:
            at = where_on_x(dataclasses.asdict(line), x)
            say(axis, line.name, f"{at} failed ({point.failed} of {len(point.samples)})")


def draw_lines(
    axis: Axes,
    found: Mapping[Series, Mapping[int, Point]],
    names: Mapping[Series, str],
    line_styles: Mapping[Series, LineStyle],
    theme: Theme,
) -> None:
    """Draw lines over the size of heaps, what the picture is about on top, and what failed."""
    for series in reversed(list(line_styles)):
        key = next(iter(found[series].values())).key
        line = Line(names[series], role_of(series), key=key)
        draw_curve(axis, found[series], line_styles[series], theme, line=line)
    draw_failures(axis, found, line_styles)


def draw_dots(axis: Axes, xs: Sequence[float], ys: Sequence[float], style: LineStyle) -> None:
    """Draw a small pale mark for each sample."""
    pale: dict[str, Any] = {"color": style.colour, "markeredgewidth": 0, "alpha": 0.35}
    axis.plot(xs, ys, linestyle="", marker=style.marker, markersize=3, **pale)


def _draw_estimates(
    axis: Axes,
    estimates: Mapping[int, Estimate | None],
    style: LineStyle,
    theme: Theme,
    line: Line | None,
    positions: Mapping[int, float],
) -> None:
    """Draw a line of medians and a band of their intervals."""
    xs = [positions[x] for x in estimates]
    nothing = Estimate(math.nan, math.nan, math.nan, 0)
    known = [estimate or nothing for estimate in estimates.values()]
    low, middle, high = (
        [getattr(estimate, end) for estimate in known] for end in ("low", "median", "high")
    )
    axis.fill_between(xs, low, high, color=style.colour, alpha=0.2, linewidth=0)
    axis.plot(xs, middle, zorder=3, **style.line(theme))
    for x, estimate in estimates.items():
        if line is not None and estimate is not None:
            mark(axis, positions[x], estimate.median, line, x, estimate)


def draw_failures(
    axis: Axes,
    found: Mapping[Series, Mapping[int, Point]],
    line_styles: Mapping[Series, LineStyle],
    positions: Mapping[int, float] | None = None,
) -> None:
    """Draw a cross for each point of a line that failed, at the bottom of a panel, and say so."""
    from matplotlib.transforms import ScaledTranslation

    failed: dict[float, list[LineStyle]] = {}
    for series, style in line_styles.items():
        for n, point in found[series].items():
            if point.failed:
                failed.setdefault(positions[n] if positions else n, []).append(style)
    for x, crosses in failed.items():
        for level, style in enumerate(crosses):
            up = ScaledTranslation(0, (6 + 10 * level) / 72, axis.figure.dpi_scale_trans)
            cross: dict[str, Any] = {"marker": "x", "markersize": 7, "markeredgewidth": 2}
            within = axis.get_xaxis_transform() + up
            axis.plot([x], [0], transform=within, color=style.colour, zorder=5, **cross)
        above: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "bottom", "zorder": 5}
        shift = (0, 4 + 10 * len(crosses))
        write(axis, "failed", (x, 0), shift, axis.get_xaxis_transform(), **above)


def gain_panel(
    axis: Axes,
    gains: Sequence[tuple[Mapping[int, Estimate | None], LineStyle, Line | None]],
    theme: Theme,
    name: str,
    scaled: Iterable[Mapping[int, Estimate | None]] = (),
    most_marks: int = _MOST_GAINS,
) -> None:
    """Draw how many times as fast something became, on a scale with room for all of `scaled`."""
    known = [
        estimate
        for some in [*scaled, *(drawn for drawn, _, _ in gains)]
        for estimate in some.values()
    ]
    axis.set_yscale("log")
    scale_gains(axis.yaxis, ends(known), most_marks=most_marks)
    axis.axhline(1, color=theme.text, linewidth=1.2, zorder=2)
    for estimates, style, line in gains:
        _draw_estimates(axis, estimates, style, theme, line, {x: float(x) for x in estimates})
    name_panel(axis, name)


def scale_gains(
    along: Any, within: Sequence[float], margin: float = 1.08, most_marks: int = _MOST_GAINS
) -> None:
    """Give a logarithmic axis of gains ends and marks; never so short that noise looks large."""
    low, high = min([_SHORTEST[0], *within]) / margin, max([_SHORTEST[1], *within]) * margin
    for marks in _GAINS:
        inside = [x for x in marks if low <= x <= high]
        if marks[0] <= low * margin and high <= marks[-1] * margin and len(inside) <= most_marks:
            break
    along.axes.set(**{f"{along.axis_name}lim": (low, high)})
    along.set_ticks(inside)
    along.set_ticks([], minor=True)
    along.set_major_formatter(lambda x, _: f"\N{MULTIPLICATION SIGN}{x:g}")


def curve_legend(
    labels: Mapping[Series, str], line_styles: Mapping[Series, LineStyle], theme: Theme
) -> list[Artist]:
    """Return what says which line is which."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], label=labels[series], **style.line(theme))
        for series, style in line_styles.items()
    ]


def name_line(axis: Axes, x: float, words: str, theme: Theme) -> None:
    """Draw an upright line that is no data, and say at its top what it is."""
    axis.axvline(x, color=theme.faint, linewidth=1, linestyle=(0, (4, 2)), zorder=1)
    if words:
        above: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": FAINT}
        within = axis.get_xaxis_transform()
        write(axis, words, (x, 1), (0, 1), within, color=theme.faint, **above)
