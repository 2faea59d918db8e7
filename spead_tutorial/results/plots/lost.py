# SPDX-License-Identifier: BSD-3-Clause
"""Where packets are lost: a bar for each bottleneck, of all that was sent."""

import statistics
from collections.abc import Iterable, Mapping

from spead_tutorial.measure.records import OURS, Received, Recording, Series, joined
from spead_tutorial.results.plots.bars import draw_parts, label_group, label_height, part_legend
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import say
from spead_tutorial.results.plots.points import Point, points, require
from spead_tutorial.results.plots.sheet import Drawn, Sheet
from spead_tutorial.results.plots.theme import Theme
from spead_tutorial.results.units import number, size

__all__ = ["lost"]

_PROGRAM = "receive_lost"
_SERIES = Series(OURS, "python", _PROGRAM)
_NOTHING = "nothing in the way"
#: What is in the words for a bottleneck, along the way of a packet.
_MARKS = (_NOTHING, "lost", "buffer", "ring", "")
_FAILED = "failed: not all is accounted for"
#: What a packet can have become: what the picture calls it, the theme's colour, and a hatch.
_GOT = "in heaps that the program got"
_ON_THE_WAY, _IN_SOCKET = "lost on the way", "dropped by the socket"
_BY_RING, _IN_PIECES = "in heaps that the full ring dropped", "received, of heaps not whole"
_LOOKS = {
    _GOT: ("python", ""),
    _IN_PIECES: ("limit", "////"),
    _BY_RING: ("spead2", "...."),
    _IN_SOCKET: ("c", ""),
    _ON_THE_WAY: ("sending", "----"),
}
_LEFT, _RIGHT = 0.14, 0.24
#: Inches: of a bar, and from bar to bar; and how much of a letter.
_BAR, _PITCH, _LETTER = 0.22, 0.3, 0.09


def lost(recording: Recording, theme: Theme) -> Drawn:
    """Draw what became of the packets that were sent into each bottleneck."""
    cases = _cases(recording)
    labels = [label_height(theme, _counters(point)) for point in cases.values()]
    height = sum(label + _PITCH for label in labels)
    sheet = Sheet(
        theme,
        _title(cases.values()),
        [(0.1, height)],
        caption(recording, "means of {rounds} rounds"),
        subtitle=f"What became of the packets of {_heaps(cases)}",
        legend=part_legend(_LOOKS, theme),
    )
    axis = sheet.axes(0, _LEFT, _RIGHT)
    axis.set_ylim(height, 0)
    axis.set_xlim(0, 1)
    axis.set_yticks([])
    axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axis.set_xlabel("% of the packets that were sent")
    letter = _LETTER / (theme.width - _LEFT - _RIGHT)

    def written(_: str, share: float) -> str:
        words = _percent(share)
        return words if share > letter * (len(words) + 1) else ""

    y = 0.0
    for label, (words, point) in zip(labels, cases.items(), strict=True):
        counters, shares = _counters(point), _shares(point)
        label_group(axis, y, words, counters, theme)
        if not shares:
            axis.text(0.01, y + label + _BAR / 2, _FAILED, va="center_baseline")
        draw_parts(axis, y + label + _BAR / 2, _BAR, shares, _LOOKS, theme, written)
        found = [f"{_percent(share)} {what}" for what, share in shares.items() if share]
        say(axis, words, ", ".join(filter(None, [*found, counters])) if found else _FAILED)
        y += label + _PITCH
    return sheet.drawn("Bars: what became of the packets that were sent, as shares of them.")


def _cases(recording: Recording) -> Mapping[str, Point]:
    """Return each bottleneck along the way of a packet, by what it is called."""
    found = {
        frozenset(series.words): (series.words, point)
        for series, sizes in points(recording).items()
        if series.program == _PROGRAM
        for point in sizes.values()
    }
    require({_SERIES: found} if found else {}, [_SERIES], "receive-lost")
    common = frozenset.intersection(*found)
    named = {
        joined(*(word for word in words if word not in common)) or _NOTHING: point
        for words, point in found.values()
    }
    return {words: named[words] for words in sorted(named, key=_order)}


def _order(words: str) -> tuple[int, str]:
    """Sort along the way of a packet: lost on it, in the socket, at the ring."""
    return next(i for i, mark in enumerate(_MARKS) if mark in words), words


def _received(point: Point) -> list[Received]:
    return [one for one in point.samples if isinstance(one, Received)]


def _parts(one: Received) -> Mapping[str, int]:
    """Return how many packets of a sample became what: their sum is what was sent."""
    parts = {
        _IN_PIECES: one.incomplete_packets,
        _BY_RING: one.ring_dropped_packets,
        _IN_SOCKET: one.received_dropped,
        _ON_THE_WAY: one.lost_packets,
    }
    known = {words: packets for words, packets in parts.items() if packets is not None}
    return {_GOT: (one.packets or 0) - sum(known.values())} | known


def _shares(point: Point) -> Mapping[str, float]:
    """Return what share of the packets became what: means, as those of a bar have to be 1."""
    if point.failed:
        return {}
    parts = [(_parts(one), one.packets or 1) for one in _received(point)]
    return {words: statistics.fmean(some[words] / n for some, n in parts) for words in _LOOKS}


def _title(cases: Iterable[Point]) -> str:
    """Say what packets that are lost on the way cost."""
    for point in cases:
        shares = _shares(point)
        if shares.get(_ON_THE_WAY) and not shares[_IN_SOCKET]:
            heaps = statistics.fmean(
                1 - (one.received_heaps or 0) / one.heaps for one in _received(point)
            )
            lost_packets = _percent(shares[_ON_THE_WAY])
            return f"{lost_packets} of the packets lost: {_percent(heaps)} of the heaps"
    return "What becomes of packets"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


def _heaps(cases: Mapping[str, Point]) -> str:
    sizes = {(one.heap_size, one.heaps) for point in cases.values() for one in point.samples}
    return " and ".join(f"{heaps} heaps of {size(n)}" for n, heaps in sorted(sizes))


def _counters(point: Point) -> str:
    """Say how often the ring was full, and for how long."""
    waits = statistics.median(one.ring_waits or 0 for one in _received(point))
    longest = max(one.longest_ring_wait_ns or 0 for one in _received(point)) / 1e6
    return f"ring full {waits:.0f} times, up to {number(longest)} ms" if waits else ""
