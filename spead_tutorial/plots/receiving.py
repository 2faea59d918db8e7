# SPDX-License-Identifier: BSD-3-Clause
"""Receivers: rate and CPU time over the size of heaps, beside spead2's and the bare loop."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spead_tutorial.plots import curves
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.points import Point, gains, highest, points, rate, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, beside, name_panel
from spead_tutorial.plots.spots import Line
from spead_tutorial.plots.theme import Look, Theme, looks, role_of
from spead_tutorial.plots.verdict import gains_over_sizes, whole
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.units import bytes_text, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["cpu_s_per_gb", "receiving"]

#: The socket is filled while the receiver is stopped: what is timed is the receiver alone.
_VARIANT = "in turns"
_PROGRAM = "receive"
_OURS = Series(OURS, "c", _PROGRAM, _VARIANT)
_PEER = Series("spead2-source", "c", _PROGRAM, _VARIANT)
_LINES = {
    _OURS: "C",
    Series(OURS, "python", _PROGRAM, _VARIANT): "Python",
    _PEER: "spead2 from source, C++",
    Series("spead2-source", "python", _PROGRAM, _VARIANT): "spead2 from source, Python",
    Series("ceiling", "c", _PROGRAM, _VARIANT): "bare calls, and a copy into place",
}
_SUBTITLE = "Receivers that empty a full socket: payload received, and CPU time"
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
    foot = caption(recording, curves.SHOWN)
    sheet = Sheet(
        theme,
        f"C beside spead2's C++: {_finding(found)}",
        [
            row
            for first in [_ROOM] + [_LOWER_ROOM] * (len(found) - 1) * theme.is_narrow
            for row in ((first, _HEIGHT), (_CPU_ROOM, _CPU_HEIGHT))
        ],
        foot,
        subtitle=_SUBTITLE,
        legend=curves.curve_legend([(_LINES[one], look[one]) for one in shown], theme),
    )
    for number, (packet_size, lines) in enumerate(found.items()):
        _draw(sheet, number, packet_size, found, {one: look[one] for one in shown if one in lines})
    return sheet.figure, sheet.title, _in_words(found, foot)


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


def _finding(found: Found) -> str:
    """Say how many times as fast ours is as the peer, for packets of each size."""
    known = {
        f"packets of {bytes_text(packet_size)}": gains(lines.get(_PEER, {}), lines.get(_OURS, {}))
        for packet_size, lines in found.items()
    }
    return gains_over_sizes(known, lambda x: whole(size(x))) or "not compared"


def _draw(
    sheet: Sheet, number: int, packet_size: int, found: Found, look: Mapping[Series, Look]
) -> None:
    """Draw the panels of a size of packets: rates, and CPU times below them."""
    lines, theme = found[packet_size], sheet.theme
    line, *sides = beside(theme, len(found), curves.SIDES, _GAP)[number]
    first = theme.is_narrow or not number
    last = theme.is_narrow or number == len(found) - 1
    every = [point for some in found.values() for line in some.values() for point in line.values()]
    sizes = sorted({x for some in found.values() for line in some.values() for x in line})
    title = f"packets of {bytes_text(packet_size)}"
    rates, times = (sheet.axes(2 * line + row, *sides) for row in (0, 1))
    curves.size_axis(rates, sizes, None, _MOST_LABELS)
    name = f"{title}: MB/s" if first else title
    curves.rate_panel(rates, theme, highest(every, rate), name=name, first=first, last=last)
    curves.size_axis(times, sizes, curves.size_label("heap_size"), _MOST_LABELS)
    times.set_ylim(0, highest(every, cpu_s_per_gb) * 1.06 or 1)
    times.tick_params(axis="y", labelleft=first)
    name_panel(times, _CPU if first else "")
    _curves(rates, times, lines, look, theme)


def _curves(
    rates: "Axes",
    times: "Axes",
    lines: Mapping[Series, Mapping[int, Point]],
    look: Mapping[Series, Look],
    theme: Theme,
) -> None:
    for series in reversed(list(look)):
        point = next(iter(lines[series].values()))
        name = f"{_LINES[series]}, packets of {bytes_text(point.samples[0].packet_size)}"
        line = Line(name, role_of(series), key=point.key)
        curves.draw_curve(rates, lines[series], look[series], theme, line=line)
        line = Line(name, role_of(series), unit="CPU seconds per GB")
        curves.draw_curve(times, lines[series], look[series], theme, cpu_s_per_gb, line)
    curves.draw_failures(rates, curves.failures(lines, look))


def _in_words(found: Found, foot: str) -> str:
    sentences = ["Lines: the rate in MB/s, and CPU seconds per GB, against the size of a heap."]
    for packet_size, lines in found.items():
        for series, label in _LINES.items():
            said = [
                f"{size(x)} {curves.in_words(point)}"
                + (f" ({cpu.median:.3f})" if (cpu := point.estimate(cpu_s_per_gb)) else "")
                for x, point in lines.get(series, {}).items()
            ]
            if said:
                sentences.append(
                    f"Packets of {bytes_text(packet_size)}, {label}: {', '.join(said)}."
                )
    return " ".join([*sentences, " ".join(foot.split())])
