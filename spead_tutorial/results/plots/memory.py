# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8: new memory for every heap against two buffers in turn, over the size of heaps."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.results.plots import curves
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import TIMES, Line, say
from spead_tutorial.results.plots.points import faults, gains, points, require, top
from spead_tutorial.results.plots.sheet import Drawn, Sheet, name_panel
from spead_tutorial.results.plots.theme import NAMES, Theme, looks, role_of
from spead_tutorial.results.plots.titles import fill, over_sizes
from spead_tutorial.results.units import number, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AFTER", "BEFORE", "SWEEP", "memory"]

#: Programs, and the sweep that runs them.
BEFORE, AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
SWEEP = "tut-8"
# Those after are the strong ones, so they come first.
_LINES = {
    Series(OURS, language, program): f"{NAMES[language]}, {what}"
    for program, what in ((AFTER, "used again"), (BEFORE, "new memory"))
    for language in MEASURED
}
_ROWS = ((0.46, 2.7), (0.38, 1.9), (0.38, 1.2))
_MOST_LABELS = 8
#: What is less is drawn here: a logarithmic scale has no nought.
_FEWEST_FAULTS = 0.01


def memory(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates, page faults and gains against the size of heaps, with the machine's caches."""
    known = points(recording)
    require(known, _LINES, SWEEP)
    found = {series: known[series] for series in _LINES if series in known}
    all_looks = dict(zip(_LINES, looks(list(_LINES), theme), strict=True))
    look = {series: all_looks[series] for series in found}
    gained = {
        series: one
        for series in found
        if series.program == AFTER and (one := gains(found.get(_before(series), {}), found[series]))
    }
    slots = over_sizes({NAMES[series.language]: one for series, one in gained.items()})
    sheet = Sheet(
        theme,
        fill("Memory used again: {most}", slots),
        _ROWS if gained else _ROWS[:2],
        caption(recording, curves.SHOWN),
        subtitle="New memory for every heap, and memory used again",
        legend=curves.curve_legend([(_LINES[series], look[series]) for series in found], theme),
    )
    axes = [sheet.axes(row, *curves.SIDES) for row in range(2 + bool(gained))]
    _scale(axes, sorted({x for sizes in found.values() for x in sizes}), recording, theme)
    for series, lines in found.items():
        line = Line(_LINES[series], role_of(series), key=next(iter(lines.values())).key)
        curves.draw_curve(axes[0], lines, look[series], theme, line=line)
        curves.draw_curve(axes[1], lines, look[series], theme, _drawn_faults)
        for x, point in lines.items():
            if (count := point.estimate(faults)) is not None:
                words = f"{size(x)} {number(count.median)}"
                say(axes[1], f"{line.name}, page faults a heap", words)
    axes[1].set_ylim(_FEWEST_FAULTS / 1.7, max(1.0, axes[1].get_ylim()[1]))
    for axis in axes[:2]:
        curves.draw_failures(axis, found, look)
    if gained:
        lines_of_gains = [
            (one, look[series], Line(f"{_LINES[series]}, gain", role_of(series), unit=TIMES))
            for series, one in gained.items()
        ]
        curves.gain_panel(axes[2], lines_of_gains, theme, "gain: times as fast as with new memory")
    return sheet.drawn("Lines: the rate in MB/s against the size of a heap.")


def _before(series: Series) -> Series:
    return dataclasses.replace(series, program=BEFORE)


def _scale(
    axes: Sequence["Axes"], sizes: Sequence[int], recording: Recording, theme: Theme
) -> None:
    """Give the panels their scales, and draw the machine's caches in all of them."""
    for axis in axes:
        name = curves.SIZE if axis is axes[-1] else None
        curves.size_axis(axis, sizes, name, _MOST_LABELS // (2 if theme.is_narrow else 1))
        for cache, n_bytes in _caches(recording, sizes).items():
            words = f"{cache} {size(n_bytes)}" if axis is axes[0] else ""
            curves.name_line(axis, n_bytes, words, theme)
            say(axis, "Caches of the machine", f"{cache} {size(n_bytes)}")
    curves.rate_panel(axes[0], theme, top(recording), lines=True)
    axes[1].set_yscale("log")
    axes[1].yaxis.set_major_formatter(lambda x, _: number(x))
    axes[1].yaxis.set_minor_formatter(lambda x, _: "")
    lowest = "" if theme.is_narrow else f" (lowest mark: {_FEWEST_FAULTS:g} or fewer)"
    name_panel(axes[1], f"page faults a heap{lowest}")


def _drawn_faults(sample: Sample) -> float | None:
    n = faults(sample)
    return None if n is None else max(n, _FEWEST_FAULTS)


def _caches(recording: Recording, sizes: Sequence[int]) -> Mapping[str, int]:
    """Return the machine's second and third caches that are as large as a heap of the picture."""
    machines = [header.machine.get("caches_bytes") or {} for header in recording.headers]
    if any(machine != machines[0] for machine in machines):
        return {}  # of several machines, none's are those of the lines
    caches = {name: machines[0].get(name, 0) for name in ("L2", "L3")}
    return {name: n for name, n in caches.items() if sizes[0] <= n <= sizes[-1]}
