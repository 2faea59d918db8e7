# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8: why new memory is slow, one cause at a time."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import bars
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import TIMES, Line, say
from spead_tutorial.results.plots.memory import AFTER, BEFORE, SWEEP
from spead_tutorial.results.plots.points import Point, faults, gain, highest, points, require
from spead_tutorial.results.plots.sheet import FAINT, Drawn, Sheet, panels, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import NO_DIFFERENCE, fill, gained, strongest
from spead_tutorial.results.units import number, size, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["causes"]

#: What a group of bars is of: a program, and its variant.
Kind: TypeAlias = tuple[str, str]
Found: TypeAlias = Mapping[Series, Mapping[int, Point]]

_TITLE = "{size} heaps: memory kept {kept}; used again {again}"
_NEW, _KEPT, _AGAIN = (BEFORE, ""), (BEFORE, "memory kept"), (AFTER, "")
#: Every way to get memory, from top to bottom: what it is called, and a remark.
_WAYS = {
    _NEW: ("new memory", "the program as it is"),
    (BEFORE, "small pages"): ("small pages", "nobody asks for others"),
    (BEFORE, "huge pages"): ("huge pages", "asked for everywhere"),
    _KEPT: ("memory kept", "the allocator returns none"),
    _AGAIN: ("used again", "two buffers in turn"),
}
_MIB = 1 << 20
#: Sizes of heaps to show where the recording has no variants.
_SIZES = (_MIB, 16 * _MIB, 64 * _MIB)
#: Inches: the sides of both columns of bars, and the middle of the gains, from the right.
_RATE, _FAULTS, _GAIN = (0.2, 3.15), (3.5, 1.2), 0.6
#: The same where the faults are below the rates, and room above them.
_NARROW, _FAULTS_ROOM = (0.2, 1.15), 0.9
#: Inches of the small panels: what is left of them, and between two; a row, and its two dots.
_LEFT, _RIGHT, _BETWEEN, _ROW, _APART = 1.2, 0.25, 0.3, 0.3, 0.11
#: How many of them are beside each other where there is room.
_COLUMNS = 2


def causes(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates, page faults and gains of each way to get memory, where most was gained.

    Of the other sizes of heaps, there are the gains alone.
    """
    found = _found(recording)
    sizes = _sizes(found)
    large = strongest({n: _gains(found, n, _AGAIN) for n in sizes})
    others = [n for n in sizes if n != large and _other_ways(found, n)]
    height = bars.group_height(theme, "remarks") * len(_kinds(found, large))
    rows = [(0.62, height)] + [(_FAULTS_ROOM, height)] * theme.is_narrow
    lines = -(-len(others) // _columns(theme))
    slots = {
        name: gained({NAMES[language]: one for language, one in gains.items()})
        for name, kind in (("kept", _KEPT), ("again", _AGAIN))
        if (gains := _gains(found, large, kind))
    }
    sheet = Sheet(
        theme,
        fill(_TITLE, slots | {"size": size(large)}),
        rows + [(1.12, _ROW * len(_other_ways(found, *others)))] * lines,
        caption(recording),
        subtitle="Why new memory is slow: other ways to get it, and what they gain",
        legend=bars.language_legend(theme),
    )
    _draw_bars(sheet, found, large, height)
    _draw_others(sheet, found, others, large)
    return sheet.drawn(
        "Bars: the rate in MB/s, and page faults for a heap, of each way to get memory; and how"
        " many times as fast as new memory it is."
    )


def _found(recording: Recording) -> Found:
    """Return the series that are of memory; `ValueError` where there are none."""
    found = {
        series: sizes
        for series, sizes in points(recording).items()
        if series.implementation == OURS and series.program in (BEFORE, AFTER)
    }
    wanted = [Series(OURS, language, BEFORE) for language in MEASURED]
    require(found, found or wanted, SWEEP)
    return found


def _sizes(found: Found) -> list[int]:
    """Return the sizes of heaps that have variants; without any, a few of those there are."""
    with_variants = {n for series, sizes in found.items() if series.variant for n in sizes}
    all_sizes = {n for sizes in found.values() for n in sizes}
    return sorted(with_variants or all_sizes & set(_SIZES) or all_sizes)


def _kinds(found: Found, *sizes: int) -> list[Kind]:
    """Return the ways to get memory that there are at some sizes."""
    there = {
        (series.program, series.variant)
        for series, known in found.items()
        if not known.keys().isdisjoint(sizes)
    }
    return [kind for kind in _WAYS if kind in there]


def _other_ways(found: Found, *sizes: int) -> list[Kind]:
    return [kind for kind in _kinds(found, *sizes) if kind != _NEW]


def _at(found: Found, n: int, kind: Kind) -> dict[str, Point]:
    """Return the point of each language that has one."""
    by_language = {
        language: found.get(Series(OURS, language, *kind), {}).get(n) for language in MEASURED
    }
    return {language: point for language, point in by_language.items() if point is not None}


def _gains(found: Found, n: int, kind: Kind) -> Mapping[str, Estimate | None]:
    """Return how many times as fast each language became over new memory."""
    new, other = _at(found, n, _NEW), _at(found, n, kind)
    return {language: gain(new.get(language), other[language]) for language in other}


# ---------------------------------------------------------------------------------------
# The size at which most was gained


def _draw_bars(sheet: Sheet, found: Found, n: int, height: float) -> None:
    """Draw rates and page faults, and write the gains beside them."""
    theme = sheet.theme
    there = [sizes[n] for sizes in found.values() if n in sizes]
    sides, below = (_NARROW, 1) if theme.is_narrow else (_FAULTS, 0)
    rates = sheet.axes(0, *(_NARROW if theme.is_narrow else _RATE))
    counts = sheet.axes(below, *sides)
    written, right = rates if theme.is_narrow else counts, sides[1] - _GAIN
    bars.prepare(rates, height, highest(there), 1.25, 4)
    bars.prepare(counts, height, highest(there, faults), 1.35, 2, "page faults a heap")
    rates.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
    bars.write_beside(written, -0.26, "times as fast\nas new memory", right)
    brackets = False
    for index, kind in enumerate(_kinds(found, n)):
        y = index * bars.group_height(theme, "remarks")
        for axis in (rates, counts) if theme.is_narrow else (rates,):
            bars.label_group(axis, y, *_WAYS[kind], theme)
        gains, name = _gains(found, n, kind), _WAYS[kind][0]
        for language, point in _at(found, n, kind).items():
            lane = bars.lanes(y, bars.label_height(theme, "remarks"))[language]
            line = Line(f"{name}, {NAMES[language]}", language, NAMES[language], name, point.key)
            bars.draw_bar(rates, lane, point, language, theme, line=line)
            line = Line(line.name, language, unit="page faults a heap")
            bars.draw_bar(counts, lane, point, language, theme, faults, number, line=line)
            if kind != _NEW and (one := gains[language]) is not None:
                words = times(one.median) if differs(one) else f"({times(one.median)})"
                bars.write_beside(written, lane, words, right)
                say(written, f"{line.name}, gain", f"{size(n)} {words}")
                brackets = brackets or not differs(one)
    if brackets:
        folded = textwrap.wrap(NO_DIFFERENCE, 14) if theme.is_narrow else [NO_DIFFERENCE]
        note = "\n".join(["in brackets:", *folded])
        bars.write_beside(written, height + 0.36, note, right, fontsize=FAINT, color=theme.faint)


# ---------------------------------------------------------------------------------------
# The other sizes


def _columns(theme: Theme) -> int:
    return 1 if theme.is_narrow else _COLUMNS


def _draw_others(sheet: Sheet, found: Found, sizes: Sequence[int], large: int) -> None:
    """Draw the gains at the other sizes, on a scale that has room for those at the large one."""
    kinds, theme = _other_ways(found, *sizes), sheet.theme
    ends = [
        end
        for n in (*sizes, large)
        for kind in kinds
        for one in _gains(found, n, kind).values()
        if one is not None
        for end in (one.low, one.high)
    ]
    most = _columns(theme)
    places = panels(theme, min(len(sizes), most) or 1, (_LEFT, _RIGHT), _BETWEEN)
    for place, n in enumerate(sizes):
        row, column = divmod(place, most)
        axis = sheet.axes(1 + theme.is_narrow + row, *places[column].sides)
        names = ["" if column else _WAYS[kind][0] for kind in kinds]
        axis.set_yticks([(index + 0.5) * _ROW for index in range(len(kinds))], names)
        axis.tick_params(axis="y", length=0)
        label = "times as fast as new memory"
        bars.prepare_gains(axis, _ROW * len(kinds), ends, theme, label)
        _draw_gains(axis, found, n, kinds, theme)


def _draw_gains(axis: "Axes", found: Found, n: int, kinds: Sequence[Kind], theme: Theme) -> None:
    """Draw a mark with its interval for each gain, and say above how many differences there are."""
    known = []
    for row, kind in enumerate(kinds):
        for language, one in _gains(found, n, kind).items():
            if one is not None:
                y = (row + 0.5) * _ROW + _APART * (MEASURED.index(language) - 0.5)
                line = Line(f"{_WAYS[kind][0]}, {NAMES[language]}, gain", language, unit=TIMES)
                bars.draw_gain(axis, y, one, language, theme, line, n)
                known.append(one)
    different = sum(map(differs, known))
    nothing = NO_DIFFERENCE if known else "not known"
    words = f"{different} of {len(known)} differences told" if different else nothing
    for line_above, raised, letters in ((f"Heaps of {size(n)}", 20, 11), (words, 6, FAINT)):
        write(axis, line_above, (0, 1), (0, raised), "axes fraction", va="bottom", fontsize=letters)
