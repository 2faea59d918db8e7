# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: the rate over the size of packets, those that travel whole and those in fragments."""

from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.render import PACKET, Drawn, Line
from spead_tutorial.results.plots.sheet import FAINT, Sheet
from spead_tutorial.results.plots.theme import NAMES, Theme, line_styles, role_of

_CHAPTER = find_chapter("6")
_OURS = {Series(OURS, language, _CHAPTER.name): NAMES[language] for language in MEASURED}
_ALL = _OURS | {Series("ceiling", "c", "ceiling", "two threads"): "bare calls: two threads"}
#: The packets before this chapter, and its own: the title holds them against each other.
_SMALL, _LARGE = find_chapter("5").packet_size, _CHAPTER.packet_size
#: Bytes of headers that the MTU counts; and what the size of a packet is a multiple of.
_IP_AND_UDP, _UNIT = 28, 8
_ROOM, _HEIGHT = 0.46, 2.6

_Found = Mapping[Series, Mapping[int, facts.Point]]


def packet_sizes(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate over the size of packets, with a line where the MTU parts them."""
    found = _found(recording)
    style, sizes = (
        line_styles(found, theme),
        sorted({x for points in found.values() for x in points}),
    )
    positions = {x: float(place) for place, x in enumerate(sizes)}
    mtu = _mtu(recording)
    cut = [x for x in sizes if mtu is not None and x > mtu - _IP_AND_UDP]
    title, subtitle = _words(found, cut[0] if cut else None)
    sheet = Sheet(
        theme,
        title,
        [(_ROOM, _HEIGHT)],
        facts.caption(recording, curves.SHOWN),
        subtitle=subtitle,
        legend=curves.curve_legend(_ALL, style, theme),
        columns=3,
    )
    axis = sheet.axes(0, *curves.SIDES)
    curves.rate_panel(axis, theme, facts.top(recording), lines=True)
    axis.set_xlim(-0.5, len(sizes) - 0.5)
    axis.set_xticks([*positions.values()], [f"{x}" for x in sizes], fontsize=FAINT)
    axis.set_xlabel("size of a packet in bytes, in equal steps")
    axis.grid()
    axis.set_axisbelow(True)
    if cut and cut != sizes:
        curves.name_line(axis, positions[cut[0]] - 0.5, f"MTU {mtu}", theme)
        middle = (positions[cut[0]] + positions[cut[-1]]) / 2
        within = axis.get_xaxis_transform()
        axis.text(middle, 0.7, "in\nfragments", ha="center", fontsize=FAINT, transform=within)
    for series, points in found.items():
        line = Line(_ALL[series], role_of(series), over=PACKET)
        curves.draw_curve(axis, points, style[series], theme, line=line, positions=positions)
    curves.draw_failures(axis, found, style, positions)
    return sheet.drawn("Lines: the rate in MB/s against the size of a packet.")


def _found(recording: Recording) -> _Found:
    """Return the series by the sizes that are sent: where one asks for others, they are cut."""
    by_series = facts.points(recording.samples, "packet_size")
    facts.require(by_series, _OURS, "tut-6")
    return {
        series: {x - x % _UNIT: point for x, point in by_series[series].items()}
        for series in _ALL
        if series in by_series
    }


def _mtu(recording: Recording) -> int | None:
    """Return the MTU of all machines, where it is known and one."""
    first, *others = {header.lab.get("mtu") for header in recording.headers}
    return first if isinstance(first, int) and not others else None


def _words(found: _Found, cut: int | None) -> tuple[str, str]:
    """Say what larger packets gain, and what those lose that do not travel whole."""

    def gained_from(before: int, after: int) -> dict[str, Estimate | None]:
        return {
            name: facts.gain(found[series].get(before), found[series].get(after))
            for series, name in _OURS.items()
            if series in found
        }

    gains = gained_from(_SMALL, _LARGE)
    if not any(gains.values()):
        return "Packets of several sizes", "The rate against their size"
    title = f"{_LARGE}-byte packets: {facts.gained(gains)}"
    subtitle = f"Compared with packets of {_SMALL} bytes"
    if cut is None:
        return title, subtitle
    title += f"; fragments {facts.gained(gained_from(_LARGE, cut))}"
    return title, f"{subtitle}, and fragments with {_LARGE}"
