# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of parts of a whole: what the time of a heap, and what the packets, went to."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure import search
from spead_tutorial.measure.analysis import OTHER, PARTS, Kind, Thread, split_times
from spead_tutorial.measure.records import OURS, Received, Recording, Series, joined
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.bars import (
    PartLook,
    draw_parts,
    label_group,
    label_height,
    part_legend,
    prepare,
)
from spead_tutorial.results.plots.render import Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import Sheet
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.units import number, percent, size, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["lost", "where"]

#: What the kernel does for a message, as its caller.
_KERNEL = ("copy", "system call", "buffers", "stack")
_SIDES = (0.78, 0.3)
#: Inches: from bar to bar, of a bar, after a group, and of a letter in a bar.
_PITCH, _BAR, _GAP, _LETTER = 0.25, 0.21, 0.1, 0.076
_IDLE = "not running"
#: Parts of one kind share a colour.
_LOOKS: Mapping[str, PartLook] = {
    "fill": ("preparing", ""),
    "program": ("python", ""),
    "queue": ("spead2", ""),
    "packetizing": ("spead2", "////"),
    "completion": ("spead2", "----"),
    "copy": ("sending", ""),
    "system call": ("c", "////"),
    "buffers": ("c", "----"),
    "stack": ("c", ""),
    "lock": ("limit", ""),
    "wake-up": ("limit", "////"),
    "looking": ("limit", "----"),
    OTHER: ("limit", "xxxx"),
    _IDLE: None,
}

Panel = Mapping[Kind, Sequence[Thread]]


def where(recording: Recording, theme: Theme) -> Drawn:
    """Draw the time from heap to heap of each thread, split into parts."""
    found = split_times(recording)
    kinds = {kind: found[kind] for kind in sorted(found, key=_place)}
    sizes = list(dict.fromkeys(kind.heap_size for kind in kinds))
    panels = [{k: kinds[k] for k in kinds if k.heap_size == n} for n in sizes]
    heights = [sum(_height(one, theme) for one in panel.values()) for panel in panels]
    shares = [max(map(_kernel_share, threads)) for threads in kinds.values()]
    ends = dict.fromkeys(percent(share) for share in (min(shares), max(shares)))
    there = {part for threads in kinds.values() for one in threads for part in one.parts}
    shown = [*(part for part in PARTS if part in there), _IDLE]
    sheet = Sheet(
        theme,
        f"The kernel's work: {' to '.join(ends)} of a heap's time",
        [(0.34 + 0.34 * bool(row), height) for row, height in enumerate(heights)],
        facts.caption(recording, "medians of {rounds} rounds"),
        subtitle=f"Where the time goes; the kernel's: {', '.join(_KERNEL)}",
        legend=part_legend({part: _LOOKS[part] for part in shown}, theme),
        columns=3,
    )
    for row, (n, panel) in enumerate(zip(sizes, panels, strict=True)):
        axis = sheet.axes(row, *_SIDES)
        _draw_panel(axis, heights[row], panel, theme)
        axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
        axis.set_xlabel("nanoseconds for each heap" * (row == len(panels) - 1))
    return sheet.drawn("Bars: what each thread does in the time from one heap to the next.")


def _kernel_share(thread: Thread) -> float:
    there = [thread.parts[part].median for part in _KERNEL if part in thread.parts]
    return sum(there) / thread.elapsed.median


def _place(kind: Kind) -> tuple[int, int, int]:
    """Return where a kind is: by size and by chapter, each in Python first."""
    return kind.heap_size, find_chapter(kind.program).number, MEASURED.index(kind.language)


def _height(threads: Sequence[Thread], theme: Theme) -> float:
    return label_height(theme) + _PITCH * len(threads) + _GAP


def _draw_panel(axis: "Axes", inches: float, panel: Panel, theme: Theme) -> None:
    most = max(thread.busy_ns + thread.idle_ns for kind in panel for thread in panel[kind])
    prepare(axis, inches, most, room=1.01, marks=5)
    y, names = 0.0, {}
    for kind, threads in panel.items():
        chapter = find_chapter(kind.program)
        title = f"{chapter.number}  {chapter.title}, {NAMES[kind.language]}"
        elapsed = f"{thousands(float(f'{threads[0].elapsed.median:.3g}'))} ns"
        label_group(axis, y, title, elapsed, theme)
        for index, thread in enumerate(threads):
            at = y + label_height(theme) + (index + 0.5) * _PITCH
            _draw_thread(axis, at, kind, thread, most, theme)
            names[at] = _name(thread)
        y += _height(threads, theme)
    axis.set_yticks(list(names), list(names.values()))


def _name(thread: Thread) -> str:
    return "program" if thread.own else "stream"


def _draw_thread(
    axis: "Axes", y: float, kind: Kind, thread: Thread, most: float, theme: Theme
) -> None:
    per_inch, left = most / (theme.width - sum(_SIDES)), 0.0
    name = f"Chapter {find_chapter(kind.program).number}, {NAMES[kind.language]}, {_name(thread)}"
    for part, estimate in thread.parts.items():
        if width := estimate.median:  # of nothing there is no bar that one could be at
            line = Line(f"{name}: {part}", kind.language, unit="ns")
            mark(axis, left + width / 2, y, line, kind.heap_size, estimate)
        left += width
    idle = percent(thread.idle_ns / thread.elapsed.median)
    say(axis, f"{name}: {_IDLE}", f"{size(kind.heap_size)} {idle}")

    def written(part: str, width: float) -> str:
        is_seen = part != _IDLE and width / per_inch > _LETTER * len(part) + 0.06
        return part if is_seen else ""

    parts = {part: one.median for part, one in thread.parts.items()} | {_IDLE: thread.idle_ns}
    draw_parts(axis, y, _BAR, parts, _LOOKS, theme, written, rims=True)


# ---------------------------------------------------------------------------------------
# What became of the packets

_SERIES = Series(OURS, "python", "receive_lost")
_NOTHING = "nothing in the way"
#: What is in the words for a bottleneck, along the way of a packet.
_MARKS = (_NOTHING, "lost", "buffer", "ring", "")
_FAILED = "failed: not all is accounted for"
#: What a packet can have become.
_GOT = "in heaps that the program got"
_ON_THE_WAY, _IN_SOCKET = "lost on the way", "dropped by the socket"
_BY_RING, _IN_PIECES = "in heaps that the full ring dropped", "received, of heaps not whole"
_FATES = {
    _GOT: ("python", ""),
    _IN_PIECES: ("limit", "////"),
    _BY_RING: ("spead2", "...."),
    _IN_SOCKET: ("c", ""),
    _ON_THE_WAY: ("sending", "----"),
}
_LEFT, _RIGHT = 0.14, 0.24
#: Inches: of a bar, and from bar to bar; and how much of a letter.
_FATE_BAR, _FATE_PITCH, _FATE_LETTER = 0.22, 0.3, 0.09


def lost(recording: Recording, theme: Theme) -> Drawn:
    """Draw what became of the packets that were sent into each bottleneck."""
    recording = search.settled(recording)  # which it may have, of the same rounds
    cases = _cases(recording)
    labels = [label_height(theme, _counters(point)) for point in cases.values()]
    height = sum(label + _FATE_PITCH for label in labels)
    sizes = {(one.heap_size, one.heaps) for point in cases.values() for one in point.samples}
    heaps = " and ".join(f"{heaps} heaps of {size(n)}" for n, heaps in sorted(sizes))
    sheet = Sheet(
        theme,
        _title(cases.values()),
        [(0.1, height)],
        facts.caption(recording, "means of {rounds} rounds"),
        subtitle=f"What became of the packets of {heaps}",
        legend=part_legend(_FATES, theme),
    )
    axis = sheet.axes(0, _LEFT, _RIGHT)
    axis.set(xlim=(0, 1), ylim=(height, 0), yticks=[])
    axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axis.set_xlabel("% of the packets that were sent")
    letter = _FATE_LETTER / (theme.width - _LEFT - _RIGHT)

    def written(_: str, share: float) -> str:
        words = _percent(share)
        return words if share > letter * (len(words) + 1) else ""

    y = 0.0
    for label, (words, point) in zip(labels, cases.items(), strict=True):
        counters, shares, middle = _counters(point), _shares(point), y + label + _FATE_BAR / 2
        label_group(axis, y, words, counters, theme)
        if not shares:
            axis.text(0.01, middle, _FAILED, va="center_baseline")
        draw_parts(axis, middle, _FATE_BAR, shares, _FATES, theme, written)
        found = [f"{_percent(share)} {what}" for what, share in shares.items() if share]
        say(axis, words, ", ".join(filter(None, [*found, counters])) if found else _FAILED)
        y += label + _FATE_PITCH
    return sheet.drawn("Bars: what became of the packets that were sent, as shares of them.")


def _cases(recording: Recording) -> Mapping[str, facts.Point]:
    """Return each bottleneck along the way of a packet, by what it is called."""
    found = {
        frozenset(series.words): (series.words, point)
        for series, sizes in facts.points(recording.samples).items()
        if series.program == _SERIES.program
        for point in sizes.values()
    }
    facts.require({_SERIES: found} if found else {}, [_SERIES], "receive-lost")
    common = frozenset.intersection(*found)
    named = {
        joined(*(word for word in words if word not in common)) or _NOTHING: point
        for words, point in found.values()
    }
    return {words: named[words] for words in sorted(named, key=_order)}


def _order(words: str) -> tuple[int, str]:
    """Sort along the way of a packet: lost on it, in the socket, at the ring."""
    return next(i for i, mark in enumerate(_MARKS) if mark in words), words


def _received(point: facts.Point) -> list[Received]:
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


def _shares(point: facts.Point) -> Mapping[str, float]:
    """Return what share of the packets became what: means, as those of a bar have to be 1."""
    if point.failed:
        return {}
    parts = [(_parts(one), one.packets or 1) for one in _received(point)]
    return {words: statistics.fmean(some[words] / n for some, n in parts) for words in _FATES}


def _title(cases: Iterable[facts.Point]) -> str:
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


def _counters(point: facts.Point) -> str:
    """Say how often the ring was full, and for how long."""
    waits = statistics.median(one.ring_waits or 0 for one in _received(point))
    longest = max(one.longest_ring_wait_ns or 0 for one in _received(point)) / 1e6
    return f"ring full {waits:.0f} times, up to {number(longest)} ms" if waits else ""
