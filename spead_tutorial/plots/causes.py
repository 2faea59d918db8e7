# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8: why new memory is slow, one cause at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.catalogue import LANGUAGES
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.memory import AFTER, BEFORE, SWEEP
from spead_tutorial.plots.points import Point, Value, faults, highest, points, rate, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, name_panel
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Series
from spead_tutorial.units import number, size, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["causes"]

_TITLE = "Why new memory is slow"
_MIB = 1 << 20
#: Sizes of heaps to show where the recording has no variants.
_SIZES = (_MIB, 16 * _MIB, 64 * _MIB)
#: Inches: from one group of bars to the next, and the sides of both columns.
_GROUP = 0.5
_RATE, _FAULTS = (1.45, 2.1), (4.55, 0.2)

Found = Mapping[Series, Mapping[int, Point]]
#: What a group of bars is of: a program, and its variant.
Kind = tuple[str, str]


def causes(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates and page faults of each way to get memory, a panel for each size of heaps.

    Parameters
    ----------
    recording : Recording
        Of the sweep ``tut-8``.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    points_by_series = _found(recording)
    panels = [(n, _kinds(points_by_series, n)) for n in _sizes(points_by_series)]
    rows = [(0.66 if row else 0.4, _GROUP * len(kinds)) for row, (_, kinds) in enumerate(panels)]
    legend = bars.language_legend(theme)
    sheet = Sheet(theme, _TITLE, rows, caption(recording), legend=legend)
    most = highest(
        points_by_series[series][n]
        for n, _ in panels
        for series in points_by_series
        if n in points_by_series[series]
    )
    for row, (n, kinds) in enumerate(panels):
        faulted = highest((sizes[n] for sizes in points_by_series.values() if n in sizes), faults)
        for sides, value, end, text in (
            (_RATE, rate, most, thousands),
            (_FAULTS, faults, faulted, number),
        ):
            axis = sheet.axes(row, *sides)
            bars.prepare(axis, rows[row][1], end, room=1.35)
            axis.locator_params(axis="x", nbins=4 if value is rate else 2)
            axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
            for index, kind in enumerate(kinds):
                _draw_kind(axis, index * _GROUP, n, kind, points_by_series, theme, value, text)
            if value is rate:
                _name_kinds(axis, kinds)
                name_panel(axis, f"Heaps of {size(n)}")
            if row == len(panels) - 1:
                axis.set_xlabel("MB/s" if value is rate else "page faults a heap")
    return sheet.figure, _TITLE, _in_words(recording, points_by_series, panels)


def _found(recording: Recording) -> Found:
    """Return the series that are of memory; `ValueError` where there are none."""
    points_by_series = {
        series: sizes
        for series, sizes in points(recording).items()
        if series.implementation == OURS and series.program in (BEFORE, AFTER)
    }
    wanted = [Series(OURS, language, BEFORE) for language in LANGUAGES]
    require(points_by_series, points_by_series or wanted, SWEEP)
    return points_by_series


def _sizes(points_by_series: Found) -> list[int]:
    """Return the sizes of heaps that have variants; without any, a few of those there are."""
    with_variants = {
        n for series, sizes in points_by_series.items() if series.variant for n in sizes
    }
    all_sizes = {n for sizes in points_by_series.values() for n in sizes}
    return sorted(with_variants or all_sizes & set(_SIZES) or all_sizes)


def _kinds(points_by_series: Found, n: int) -> list[Kind]:
    """Return the groups of bars at a size: new memory, its variants, and memory used again."""
    kinds = {
        (series.program, series.variant) for series, sizes in points_by_series.items() if n in sizes
    }
    return sorted(kinds, key=lambda kind: (kind[0] == AFTER, kind[1]))


def _draw_kind(
    axis: "Axes",
    y: float,
    n: int,
    kind: Kind,
    points_by_series: Found,
    theme: Theme,
    value: Value,
    text: Callable[[float], str],
) -> None:
    lanes = bars.lanes(y, label=0.05)
    for language in LANGUAGES:
        point = points_by_series.get(Series(OURS, language, *kind), {}).get(n)
        if point is not None:
            bars.draw_bar(axis, lanes[language], point, language, theme, value, text)


def _name_kinds(axis: "Axes", kinds: Sequence[Kind]) -> None:
    axis.set_yticks(
        [(index + 0.5) * _GROUP for index in range(len(kinds))], [_name(*kind) for kind in kinds]
    )
    axis.tick_params(axis="y", length=0)


def _name(program: str, variant: str) -> str:
    if program == AFTER:
        return "used again" + f", {variant}" * bool(variant)
    return variant or "new memory"


def _in_words(
    recording: Recording, points_by_series: Found, panels: Sequence[tuple[int, list[Kind]]]
) -> str:
    sentences = ["Bars: the rate in MB/s, and page faults for a heap, of each way to get memory."]
    for n, kinds in panels:
        sentences.append(f"Heaps of {size(n)}:")
        for kind in kinds:
            values = [
                f"{NAMES[language]} {_value(point)}"
                for language in LANGUAGES
                if (point := points_by_series.get(Series(OURS, language, *kind), {}).get(n))
                is not None
            ]
            sentences.append(f"{_name(*kind)}: {', '.join(values)};")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _value(point: Point) -> str:
    rates, counts = point.estimate(), point.estimate(faults)
    if rates is None:
        return "failed"
    return f"{rates.median:.0f}" + (f" with {number(counts.median)} faults" if counts else "")
