# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8: new memory for every heap against two buffers in turn, over the size of heaps."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.catalogue import MEASURED
from spead_tutorial.plots import curves
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained, strongest
from spead_tutorial.plots.points import Point, faults, gains, points, require, top
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, name_panel
from spead_tutorial.plots.spots import TIMES, Line
from spead_tutorial.plots.theme import NAMES, Theme, looks, role_of
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.stats import Estimate
from spead_tutorial.units import number, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AFTER", "BEFORE", "SWEEP", "memory"]

#: Programs, and the sweep that runs them.
BEFORE, AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
SWEEP = "tut-8"
_SUBTITLE = "New memory for every heap, and memory used again"
_WORDS = {BEFORE: "new memory", AFTER: "used again"}
_GAIN = "gain: times as fast as with new memory"
_ROWS = ((0.46, 2.7), (0.38, 1.9), (0.38, 1.2))
_MOST_LABELS = 8
#: What is less is drawn here: a logarithmic scale has no nought.
_FEWEST_FAULTS = 0.01

Found = Mapping[Series, Mapping[int, Point]]
Gains = Mapping[Series, Mapping[int, Estimate | None]]

# Those after are the strong ones, so they come first.
_SERIES = tuple(
    Series(OURS, language, program) for program in (AFTER, BEFORE) for language in MEASURED
)


def memory(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates, page faults and gains against the size of heaps, with the machine's caches."""
    points_by_series = points(recording)
    require(points_by_series, _SERIES, SWEEP)
    points_by_series = {
        series: points_by_series[series] for series in _SERIES if series in points_by_series
    }
    all_looks = dict(zip(_SERIES, looks(_SERIES, theme), strict=True))
    look = {series: all_looks[series] for series in points_by_series}
    gains_by_series = _gains(points_by_series)
    rows = _ROWS if gains_by_series else _ROWS[:2]
    legend = curves.curve_legend(
        [(_label(series), look[series]) for series in points_by_series], theme
    )
    foot = caption(recording, curves.SHOWN)
    sheet = Sheet(theme, _finding(gains_by_series), rows, foot, subtitle=_SUBTITLE, legend=legend)
    axes = [sheet.axes(row, *curves.SIDES) for row in range(len(rows))]
    sizes = sorted({x for sizes in points_by_series.values() for x in sizes})
    _scale(axes, sizes, recording, theme)
    for series, lines in points_by_series.items():
        line = Line(_label(series), role_of(series), key=next(iter(lines.values())).key)
        curves.draw_curve(axes[0], lines, look[series], theme, line=line)
        curves.draw_curve(axes[1], lines, look[series], theme, _drawn_faults)
    axes[1].set_ylim(_FEWEST_FAULTS / 1.7, max(1.0, axes[1].get_ylim()[1]))
    for axis in axes[:2]:
        curves.draw_failures(axis, curves.failures(points_by_series, look))
    if gains_by_series:
        lines_of_gains = [
            (known, look[series], Line(f"{_label(series)}, gain", role_of(series), unit=TIMES))
            for series, known in gains_by_series.items()
        ]
        curves.gain_panel(axes[2], lines_of_gains, theme, _GAIN)
    return (
        sheet.figure,
        sheet.title,
        _in_words(recording, points_by_series, gains_by_series, _caches(recording, sizes)),
    )


def _gains(points_by_series: Found) -> Gains:
    pairs = {
        series: dataclasses.replace(series, program=BEFORE)
        for series in points_by_series
        if series.program == AFTER
    }
    found = {
        series: gains(points_by_series.get(before, {}), points_by_series[series])
        for series, before in pairs.items()
    }
    return {series: known for series, known in found.items() if known}


def _finding(gains_by_series: Gains) -> str:
    """Say what was gained with heaps of the size that it is most at."""
    by_size: dict[int, dict[str, Estimate | None]] = {}
    for series, by_its_size in gains_by_series.items():
        for n, one in by_its_size.items():
            by_size.setdefault(n, {})[NAMES[series.language]] = one
    if not by_size:
        return "One kind of memory: nothing to compare"
    n = strongest(dict(sorted(by_size.items())))
    return f"Memory used again, heaps of {size(n)}: {gained(by_size[n])}"


def _label(series: Series) -> str:
    return f"{NAMES[series.language]}, {_WORDS[series.program]}"


def _scale(
    axes: Sequence["Axes"], sizes: Sequence[int], recording: Recording, theme: Theme
) -> None:
    """Give the panels their scales, and draw the machine's caches in all of them."""
    for axis in axes:
        name = curves.size_label("heap_size") if axis is axes[-1] else None
        curves.size_axis(axis, sizes, name, _MOST_LABELS // (2 if theme.is_narrow else 1))
        for cache, n_bytes in _caches(recording, sizes).items():
            words = f"{cache} {size(n_bytes)}" if axis is axes[0] else ""
            curves.name_line(axis, n_bytes, words, theme)
    curves.rate_panel(axes[0], theme, top(recording), lines=True)
    axes[1].set_yscale("log")
    axes[1].yaxis.set_major_formatter(lambda x, _: number(x))
    axes[1].yaxis.set_minor_formatter(lambda x, _: "")
    lowest = "" if theme.is_narrow else f" (lowest mark: {_FEWEST_FAULTS:g} or fewer)"
    name_panel(axes[1], f"page faults a heap{lowest}")


def _drawn_faults(sample: Sample) -> float | None:
    n = faults(sample)
    return None if n is None else max(n, _FEWEST_FAULTS)


def _caches(recording: Recording, sizes: Sequence[int]) -> dict[str, int]:
    """Return the machine's second and third caches that are as large as a heap of the picture."""
    machines = [header.machine.get("caches_bytes") or {} for header in recording.headers]
    if any(machine != machines[0] for machine in machines):
        return {}  # of several machines, none's are those of the lines
    caches = {name: machines[0].get(name, 0) for name in ("L2", "L3")}
    return {name: n for name, n in caches.items() if sizes[0] <= n <= sizes[-1]}


def _in_words(
    recording: Recording,
    points_by_series: Found,
    gains_by_series: Gains,
    caches: Mapping[str, int],
) -> str:
    sentences = ["Lines: the rate in MB/s, and page faults for a heap, against the size of a heap."]
    sentences += [f"The machine's {name} is {size(n)}." for name, n in caches.items()]
    for series, lines in points_by_series.items():
        values = [f"{size(x)} {curves.in_words(point)}" for x, point in lines.items()]
        sentences.append(f"{_label(series)}: {', '.join(values)}.")
        counts = {x: point.estimate(faults) for x, point in lines.items()}
        values = [f"{size(x)} {number(n.median)}" for x, n in counts.items() if n is not None]
        if values:
            sentences.append(f"Page faults of {_label(series)}: {', '.join(values)}.")
    for series, ratios in gains_by_series.items():
        words = curves.gains_in_words(ratios, size)
        sentences.append(f"Gain of {NAMES[series.language]}: {words}.")
    return " ".join([*sentences, " ".join(caption(recording, curves.SHOWN).split())])
