# SPDX-License-Identifier: BSD-3-Clause
"""Receivers: rate and CPU time over the size of heaps, beside spead2's and the bare loop."""

from collections.abc import Mapping

from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.results.plots import curves
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import Line
from spead_tutorial.results.plots.points import Point, gains, highest, points, rate, require
from spead_tutorial.results.plots.sheet import Drawn, Sheet, Slot, name_panel, panels
from spead_tutorial.results.plots.theme import Look, Theme, looks, role_of
from spead_tutorial.results.plots.titles import fill, over_sizes
from spead_tutorial.results.units import bytes_text

__all__ = ["cpu_s_per_gb", "receiving"]

#: The socket is filled while the receiver is stopped: what is timed is the receiver alone.
_HOW = "receive", "in turns"
_OURS, _PEER = Series(OURS, "c", *_HOW), Series("spead2-source", "c", *_HOW)
_LINES = {
    _OURS: "C",
    Series(OURS, "python", *_HOW): "Python",
    _PEER: "spead2 from source, C++",
    Series("spead2-source", "python", *_HOW): "spead2 from source, Python",
    Series("ceiling", "c", *_HOW): "bare calls, and a copy into place",
}
_CPU = "CPU seconds per GB"
_GAP, _HEIGHT, _CPU_HEIGHT, _ROOM, _CPU_ROOM, _LOWER_ROOM = 0.3, 2.7, 1.6, 0.46, 0.38, 0.9
_MOST_LABELS = 3

#: By size of packets, of each line the points by size of heaps.
Found = Mapping[int, Mapping[Series, Mapping[int, Point]]]


def cpu_s_per_gb(one: Sample) -> float | None:
    """Return the CPU seconds of a sample for 10⁹ bytes of payload."""
    if one.failure is not None or not one.payload_bytes:
        return None
    if one.cpu_user_ns is None or one.cpu_system_ns is None:
        return None
    return (one.cpu_user_ns + one.cpu_system_ns) / one.payload_bytes


def receiving(recording: Recording, theme: Theme) -> Drawn:
    """Draw receivers' rates and CPU times over the size of heaps, for each size of packets."""
    found = _found(recording)
    shown = [one for one in _LINES if any(one in lines for lines in found.values())]
    require(dict.fromkeys(shown), [_OURS], "receive")
    look = dict(zip(shown, looks(shown, theme), strict=True))
    compared = {
        _packets(n): gains(lines.get(_PEER, {}), lines.get(_OURS, {})) for n, lines in found.items()
    }
    rooms = [_ROOM] + [_LOWER_ROOM] * (len(found) - 1) * theme.is_narrow
    sheet = Sheet(
        theme,
        fill("C beside spead2's C++: {most}", over_sizes(compared)),
        [row for room in rooms for row in ((room, _HEIGHT), (_CPU_ROOM, _CPU_HEIGHT))],
        caption(recording, curves.SHOWN),
        subtitle="Receivers that empty a full socket: payload received, and CPU time",
        legend=curves.curve_legend([(_LINES[one], look[one]) for one in shown], theme),
    )
    places = panels(theme, len(found), curves.SIDES, _GAP)
    for slot, (n, lines) in zip(places, found.items(), strict=True):
        _draw(sheet, slot, n, found, {one: look[one] for one in shown if one in lines})
    return sheet.drawn("Lines: the rate in MB/s against the size of a heap.", last_first=True)


def _found(recording: Recording) -> Found:
    """Return what the recording has of the lines, apart for each size of packets."""
    samples: dict[int, list[Sample]] = {}
    for sample in recording.samples:
        if sample.series in _LINES:
            samples.setdefault(sample.packet_size, []).append(sample)
    return {
        packet_size: points(Recording(recording.header, tuple(some)))
        for packet_size, some in sorted(samples.items())
    }


def _packets(n: int) -> str:
    return f"packets of {bytes_text(n)}"


def _draw(
    sheet: Sheet, slot: Slot, packet_size: int, found: Found, look: Mapping[Series, Look]
) -> None:
    """Draw the panels of a size of packets: rates, and CPU times below them."""
    lines, theme, title = found[packet_size], sheet.theme, _packets(packet_size)
    first = slot.is_first
    every = [point for some in found.values() for line in some.values() for point in line.values()]
    sizes = sorted({x for some in found.values() for line in some.values() for x in line})
    rates, times = (sheet.axes(2 * slot.row + below, *slot.sides) for below in (0, 1))
    curves.size_axis(rates, sizes, None, _MOST_LABELS)
    name = f"{title}: MB/s" if first else title
    curves.rate_panel(rates, theme, highest(every, rate), name=name, first=first, last=slot.is_last)
    curves.size_axis(times, sizes, curves.SIZE, _MOST_LABELS)
    times.set_ylim(0, highest(every, cpu_s_per_gb) * 1.06 or 1)
    times.tick_params(axis="y", labelleft=first)
    name_panel(times, _CPU if first else "")
    for series in reversed(list(look)):
        name = f"{_LINES[series]}, {title}"
        line = Line(name, role_of(series), key=next(iter(lines[series].values())).key)
        curves.draw_curve(rates, lines[series], look[series], theme, line=line)
        line = Line(name, role_of(series), unit=_CPU)
        curves.draw_curve(times, lines[series], look[series], theme, cpu_s_per_gb, line)
    curves.draw_failures(rates, lines, look)
