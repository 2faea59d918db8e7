# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8: new memory for every heap against two buffers in turn, and why it is slow."""

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import bars, curves, facts
from spead_tutorial.results.plots.render import TIMES, Axes, Drawn, Line, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, name_panel
from spead_tutorial.results.plots.theme import NAMES, Theme, line_styles, role_of
from spead_tutorial.results.units import number, size, times

#: Programs, and the sweep that runs them.
_BEFORE, _AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
_SWEEP = "tut-8"
# Those after are the strong ones, so they come first.
_LINES = {
    Series(OURS, language, program): f"{NAMES[language]}, {what}"
    for program, what in ((_AFTER, "used again"), (_BEFORE, "new memory"))
    for language in MEASURED
}
_ROWS = ((0.46, 2.7), (0.38, 1.9), (0.38, 1.2))
_MOST_LABELS = 8
#: What is less is drawn here: a logarithmic scale has no nought.
_FEWEST_FAULTS = 0.01


def memory(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates, page faults and gains against the size of heaps, with the machine's caches."""
    known = facts.points(recording.samples)
    facts.require(known, _LINES, _SWEEP)
    style = {
        series: style for series, style in line_styles(_LINES, theme).items() if series in known
    }
    gains = {
        series: by_size
        for series in style
        if series.program == _AFTER
        and (by_size := facts.gains(known.get(_before(series), {}), known[series]))
    }
    slots = facts.over_sizes({series.language: by_size for series, by_size in gains.items()})
    sheet = Sheet(
        theme,
        facts.fill("Memory used again: {most}", slots),
        _ROWS if gains else _ROWS[:2],
        facts.caption(recording, curves.SHOWN),
        subtitle="New memory for every heap, and memory used again",
        legend=curves.curve_legend(_LINES, style, theme),
    )
    axes = [sheet.axes(row, *curves.SIDES) for row in range(2 + bool(gains))]
    _scale(axes, sorted({x for series in style for x in known[series]}), recording, theme)
    for series, lines in ((series, known[series]) for series in style):
        line = Line(_LINES[series], role_of(series), key=next(iter(lines.values())).key)
        curves.draw_curve(axes[0], lines, style[series], theme, line=line)
        curves.draw_curve(axes[1], lines, style[series], theme, _drawn_faults)
        for x, point in lines.items():
            if (count := point.estimate(facts.faults)) is not None:
                words = f"{size(x)} {number(count.median)}"
                say(axes[1], f"{line.name}, page faults a heap", words)
    axes[1].set_ylim(_FEWEST_FAULTS / 1.7, max(1.0, axes[1].get_ylim()[1]))
    for axis in axes[:2]:
        curves.draw_failures(axis, known, style)
    if gains:
        drawn = [
            (by_size, style[series], Line(f"{_LINES[series]}, gain", role_of(series), unit=TIMES))
            for series, by_size in gains.items()
        ]
        curves.gain_panel(axes[2], drawn, theme, "gain: times as fast as with new memory")
    return sheet.drawn("Lines: the rate in MB/s against the size of a heap.")


def _before(series: Series) -> Series:
    return dataclasses.replace(series, program=_BEFORE)


def _scale(axes: Sequence[Axes], sizes: Sequence[int], recording: Recording, theme: Theme) -> None:
    """Give the panels their scales, and draw the machine's caches in all of them."""
    for axis in axes:
        name = curves.SIZE if axis is axes[-1] else None
        curves.size_axis(axis, sizes, name, _MOST_LABELS)
        for cache, n_bytes in _caches(recording, sizes).items():
            words = f"{cache} {size(n_bytes)}" if axis is axes[0] else ""
            curves.name_line(axis, n_bytes, words, theme)
            say(axis, "Caches of the machine", f"{cache} {size(n_bytes)}")
    curves.rate_panel(axes[0], theme, facts.top(recording), lines=True)
    axes[1].set_yscale("log")
    axes[1].yaxis.set_major_formatter(lambda x, _: number(x))
    axes[1].yaxis.set_minor_formatter(lambda x, _: "")
    name_panel(axes[1], f"page faults a heap (lowest mark: {_FEWEST_FAULTS:g} or fewer)")


def _drawn_faults(sample: Sample) -> float | None:
    n = facts.faults(sample)
    return None if n is None else max(n, _FEWEST_FAULTS)


def _caches(recording: Recording, sizes: Sequence[int]) -> Mapping[str, int]:
    """Return the machine's second and third caches that are as large as a heap of the picture."""
    machines = [header.machine.get("caches_bytes") or {} for header in recording.headers]
    if any(machine != machines[0] for machine in machines):
        return {}  # of several machines, none's are those of the lines
    caches = {name: machines[0].get(name, 0) for name in ("L2", "L3")}
    return {name: n for name, n in caches.items() if sizes[0] <= n <= sizes[-1]}


# ---- Why new memory is slow, one cause at a time ----

#: What a group of bars is of: a program, and its variant.
Source: TypeAlias = tuple[str, str]
#: The ways to get memory at a size of heaps; of each the points by language, or the gains.
Ways: TypeAlias = Mapping[Source, Mapping[str, facts.Point]]
Gains: TypeAlias = Mapping[Source, Mapping[str, Estimate | None]]

_TITLE = "{size} heaps: memory kept {kept}; used again {again}"
_NEW, _KEPT, _AGAIN = (_BEFORE, ""), (_BEFORE, "memory kept"), (_AFTER, "")
#: Every way to get memory, from top to bottom: what it is called, and a remark.
_WAYS = {
    _NEW: ("new memory", "the program as it is"),
    (_BEFORE, "small pages"): ("small pages", "nobody asks for others"),
    (_BEFORE, "huge pages"): ("huge pages", "asked for everywhere"),
    _KEPT: ("memory kept", "the allocator returns none"),
    _AGAIN: ("used again", "two buffers in turn"),
}
#: Inches: the sides of both columns of bars, and the middle of the gains, from the right.
_RATE, _FAULTS, _GAIN = (0.2, 3.15), (3.5, 1.2), 0.6


def causes(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates, page faults and gains of each way to get memory, where most was gained."""
    found = _found(recording)
    gains = {n: _gains(ways) for n, ways in found.items()}
    large = facts.strongest({n: some.get(_AGAIN, {}) for n, some in gains.items()})
    height = bars.GROUP * len(found[large])
    slots = {
        name: facts.gained(by_language)
        for name, source in (("kept", _KEPT), ("again", _AGAIN))
        if (by_language := gains[large].get(source))
    }
    sheet = Sheet(
        theme,
        facts.fill(_TITLE, slots | {"size": size(large)}),
        [(0.62, height)],
        facts.caption(recording),
        subtitle="Why new memory is slow: other ways to get it, and what they gain",
        legend=bars.language_legend(theme),
    )
    _draw_bars(sheet, found[large], gains[large], large, height)
    return sheet.drawn(
        "Bars: the rate in MB/s, and page faults for a heap, of each way to get memory; and how"
        " many times as fast as new memory it is."
    )


def _found(recording: Recording) -> Mapping[int, Ways]:
    """Return the sizes that have variants; without any, all that there are."""
    known = facts.points(recording.samples)
    found: dict[int, dict[Source, dict[str, facts.Point]]] = {}
    for source in _WAYS:
        for language in MEASURED:
            for n, point in known.get(Series(OURS, language, *source), {}).items():
                found.setdefault(n, {}).setdefault(source, {})[language] = point
    if not found:
        facts.require({}, [Series(OURS, "python", _BEFORE)], _SWEEP)
    with_variants = {n for n, ways in found.items() if any(variant for _, variant in ways)}
    return {n: found[n] for n in sorted(with_variants or found)}


def _gains(ways: Ways) -> Gains:
    """Return how many times as fast each language became over new memory, in each other way."""
    new = ways.get(_NEW, {})
    return {source: facts.gain_each(new, some) for source, some in ways.items() if source != _NEW}


def _draw_bars(sheet: Sheet, ways: Ways, gains: Gains, n: int, height: float) -> None:
    """Draw rates and page faults, and write the gains beside them."""
    theme = sheet.theme
    there = [point for some in ways.values() for point in some.values()]
    rates, counts = sheet.axes(0, *_RATE), sheet.axes(0, *_FAULTS)
    right = _FAULTS[1] - _GAIN
    bars.prepare(rates, height, facts.highest(there), 1.25, 4)
    most = facts.highest(there, facts.faults)
    bars.prepare(counts, height, most, 1.35, 2, "page faults a heap")
    rates.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
    bars.write_beside(counts, -0.26, "times as fast\nas new memory", right)
    brackets = False
    for index, (source, some) in enumerate(ways.items()):
        y, name = index * bars.GROUP, _WAYS[source][0]
        bars.label_group(rates, y, *_WAYS[source], theme)
        for language, point in some.items():
            lane = bars.lanes(y)[language]
            line = bars.line_of(name, language, point)
            bars.draw_bar(rates, lane, point, language, theme, line)
            line = Line(line.name, language, unit="page faults a heap")
            bars.draw_bar(counts, lane, point, language, theme, line, facts.faults, number)
            if (gain := gains.get(source, {}).get(language)) is not None:
                words = times(gain.median) if differs(gain) else f"({times(gain.median)})"
                bars.write_beside(counts, lane, words, right)
                say(counts, f"{line.name}, gain", f"{size(n)} {words}")
                brackets = brackets or not differs(gain)
    if brackets:
        note = "\n".join(["in brackets:", *textwrap.wrap(facts.NO_DIFFERENCE, 14)])
        below = height + 0.36  # the numbers of the scale
        bars.write_beside(counts, below, note, right, fontsize=FAINT, color=theme.faint)
