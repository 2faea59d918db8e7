# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: the rate over the size of packets: those that travel whole, and those in fragments."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import PACKET, Line
from spead_tutorial.results.plots.points import Point, gain, points, require, top
from spead_tutorial.results.plots.sheet import FAINT, Drawn, Sheet, name_panel, rate_axis
from spead_tutorial.results.plots.theme import NAMES, Theme, looks, role_of
from spead_tutorial.results.plots.titles import gained
from spead_tutorial.results.units import thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["packet_sizes"]

#: The lines of the picture, over the size of packets.
Found: TypeAlias = Mapping[Series, Mapping[int, Point]]
#: The names of the panels, and the sizes in each.
Panels: TypeAlias = Mapping[str, Sequence[int]]

_CHAPTER = find_chapter("6")
_OURS = {Series(OURS, language, _CHAPTER.name): NAMES[language] for language in MEASURED}
_ALL = {
    **_OURS,
    Series(
        "ceiling", "c", "ceiling", "two threads"
    ): "bare system calls: two threads, fill and copy",
}
#: The packets before this chapter, and its own: the title holds them against each other.
_SMALL, _LARGE = find_chapter("5").packet_size, _CHAPTER.packet_size
#: Bytes of headers that the MTU counts; and what the size of a packet is a multiple of.
_IP_AND_UDP, _UNIT = 28, 8
_ANY, _WHOLE, _CUT = "", "Sent whole (MTU {mtu})", "In fragments"
#: Inches of the panels: their height, the room above them, between two, and of a line of sizes.
_HEIGHT, _ROOM, _BETWEEN, _LOWER = 3.3, 0.66, 0.22, 0.16
#: The same of a panel below another.
_LOWER_HEIGHT, _LOWER_ROOM = 2.7, 1.5
#: Points: how long the mark of a size is.
_TICK = 3.5
#: Along x, in thousandths of an octave: the least between two sizes, and beside all of them.
_OCTAVE, _LEAST, _NARROW_LEAST, _MARGIN = 1000, 310, 450, 350


def packet_sizes(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate over the size of packets, a panel on each side of the MTU."""
    found = _found(recording)
    look = dict(zip(found, looks(list(found), theme), strict=True))
    panels = _panels(recording, found)
    rows = [(_ROOM, _HEIGHT)] + [(_LOWER_ROOM, _LOWER_HEIGHT)] * (len(panels) - 1) * theme.is_narrow
    sheet = Sheet(
        theme,
        _title(found, panels.get(_CUT)),
        rows,
        caption(recording, curves.SHOWN),
        subtitle="The rate against the size of packets",
        legend=curves.curve_legend([(_ALL[series], look[series]) for series in found], theme),
        below=0.95,
    )
    for axis, (name, sizes) in zip(_axes(sheet, panels), panels.items(), strict=True):
        axis.set_ylim(0, top(recording) * 1.06)
        _scale(axis, sizes, theme)
        axis.set_title(name, loc="left", fontsize=11, weight="bold", pad=24)
        places = _places(sizes, theme)
        shown = {
            series: {x: point for x, point in points.items() if x in places}
            for series, points in found.items()
        }
        for series, of_sizes in shown.items():
            line = Line(_ALL[series], role_of(series), over=PACKET)
            curves.draw_curve(axis, of_sizes, look[series], theme, line=line, places=places)
        curves.draw_failures(axis, shown, look, places)
    return sheet.drawn("Lines: the rate in MB/s against the size of a packet.")


def _found(recording: Recording) -> Found:
    """Return the series by the sizes that are sent: where one asks for others, they are cut."""
    by_series = points(recording, "packet_size")
    require(by_series, _OURS, "tut-6")
    return {
        series: {x - x % _UNIT: point for x, point in by_series[series].items()}
        for series in _ALL
        if series in by_series
    }


def _panels(recording: Recording, found: Found) -> Panels:
    """Part the sizes where the MTU does; where it is not known, they are all in one panel."""
    sizes = sorted({x for by_size in found.values() for x in by_size})
    mtus = {header.lab.get("mtu") for header in recording.headers}
    mtu = mtus.pop()
    if mtus or not isinstance(mtu, int):
        return {_ANY: sizes}
    panels = {
        _WHOLE.format(mtu=mtu): [x for x in sizes if x <= mtu - _IP_AND_UDP],
        _CUT: [x for x in sizes if x > mtu - _IP_AND_UDP],
    }
    return {name: sizes for name, sizes in panels.items() if sizes}


def _title(found: Found, cut: Sequence[int] | None) -> str:
    """Say what larger packets gain, and what those lose that do not travel whole."""

    def gained_from(before: int, after: int) -> dict[str, Estimate | None]:
        return {
            name: gain(found[series].get(before), found[series].get(after))
            for series, name in _OURS.items()
            if series in found
        }

    gains = gained_from(_SMALL, _LARGE)
    if not any(gains.values()):
        return "Packets of several sizes"
    fragments = f"; in fragments {gained(gained_from(_LARGE, cut[0]))}" if cut else ""
    return f"Packets of {_LARGE}, not {_SMALL} bytes: {gained(gains)}{fragments}"


# ---------------------------------------------------------------------------------------
# The scale


def _least(theme: Theme) -> int:
    return _NARROW_LEAST if theme.is_narrow else _LEAST


def _steps(sizes: Sequence[int], theme: Theme) -> list[int]:
    """Return how far the sizes are from each other: never less than their marks are wide."""
    octaves = (round(_OCTAVE * math.log2(after / before)) for before, after in pairwise(sizes))
    return [max(_least(theme), step) for step in octaves]


def _places(sizes: Sequence[int], theme: Theme) -> dict[int, int]:
    """Return where along x each size is."""
    return dict(zip(sizes, accumulate(_steps(sizes, theme), initial=0), strict=True))


def _axes(sheet: Sheet, panels: Panels) -> list["Axes"]:
    """Add the panels: beside each other, as wide as their sizes are apart, or below each other."""
    left, right = curves.SIDES
    theme, whole = sheet.theme, sheet.theme.width - left - right
    widths = [max(_places(sizes, theme).values()) + 2 * _MARGIN for sizes in panels.values()]
    inches = (whole - _BETWEEN * (len(widths) - 1)) / sum(widths)
    axes: list[Axes] = []
    for number, width in enumerate(widths):
        if theme.is_narrow:
            axis = sheet.axes(number, left, right)
        else:
            axis = sheet.axes(0, left, theme.width - left - width * inches)
            left += width * inches + _BETWEEN
        axis.yaxis.set_major_formatter(lambda y, _: thousands(y))
        axis.tick_params(axis="y", labelleft=theme.is_narrow or not axes)
        axes.append(axis)
    for axis in axes if theme.is_narrow else axes[:1]:
        name_panel(axis, curves.RATE)
    for axis in axes if theme.is_narrow else axes[-1:]:
        rate_axis(axis, theme, "right")
    named = [(axis, _apart(some, theme)) for axis, some in zip(axes, panels.values(), strict=True)]
    if not theme.is_narrow:
        apart = " and ".join(filter(None, (words for _, words in named)))
        named = [(axes[widths.index(max(widths))], apart)]
    for axis, apart in named:
        note = f"\n(logarithmic; {apart} drawn apart)" if apart else " (logarithmic)"
        axis.set_xlabel(f"size of a packet in bytes{note}")
    return axes


def _scale(axis: "Axes", sizes: Sequence[int], theme: Theme) -> None:
    """Mark each size, every other one a line lower, so that they do not touch."""
    places = _places(sizes, theme)
    axis.set_xlim(-_MARGIN, max(places.values()) + _MARGIN)
    for odd in (False, True):
        some = list(places.items())[odd::2]
        axis.set_xticks([x for _, x in some], [f"{n}" for n, _ in some], minor=odd, fontsize=FAINT)
    axis.tick_params(axis="x", which="both", length=_TICK, width=0.8, pad=_TICK)
    axis.tick_params(axis="x", which="minor", pad=_TICK + 72 * _LOWER)
    axis.grid(which="both")
    axis.set_axisbelow(True)


def _apart(sizes: Sequence[int], theme: Theme) -> str:
    """Say which sizes are not where a logarithmic scale has them."""
    pairs = zip(pairwise(sizes), _steps(sizes, theme), strict=True)
    close = [size for pair, step in pairs if step == _least(theme) for size in pair]
    return f"{close[0]} to {close[-1]}" if close else ""
