# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of parts of a whole: what the time of a heap, and what the packets, went to."""

import statistics
from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure import search
from spead_tutorial.measure.analysis import OTHER, Kind, Thread, split_times
from spead_tutorial.measure.records import OURS, Received, Recording, Series, joined
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.bars import (
    LABEL,
    PartStyle,
    draw_parts,
    label_group,
    part_legend,
)
from spead_tutorial.results.plots.render import Axes, Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import Sheet, count_down, panels
from spead_tutorial.results.plots.theme import NAMES, WIDTH, Theme
from spead_tutorial.results.units import number, percent, size

#: The work of a heap: its parts, and how they are drawn.
_GROUPS: Mapping[str, tuple[tuple[str, ...], PartStyle]] = {
    "samples": (("fill",), ("preparing", "")),
    "program, stream": (("program", "queue", "packetizing", "completion"), ("python", "")),
    "kernel": (("copy", "system call", "buffers", "stack"), ("c", "")),
    "locks, waking": (("lock", "wake-up", "looking", OTHER), ("limit", "")),
    "not running": ((), None),
}
_STYLES = {name: style for name, (_, style) in _GROUPS.items()}
_KERNEL, _IDLE = "kernel", "not running"
#: Inches: beside the panels, between and above them; from bar to bar, of one, between programs.
_NAMES, _RIGHT, _BETWEEN = 1.65, 0.2, 0.25
_ABOVE, _PITCH, _BAR, _GAP = 0.36, 0.25, 0.21, 0.1
#: Inches of a letter in a bar.
_LETTER = 0.085


def where(recording: Recording, theme: Theme) -> Drawn:
    """Draw what part of the time from heap to heap each thread spends on which kind of work."""
    found = split_times(recording)
    sizes = sorted({kind.heap_size for kind in found})
    rows = sorted({(kind.program, kind.language) for kind in found}, key=_chapter_order)
    threads = {row: max(len(found.get(Kind(n, *row), ())) for n in sizes) for row in rows}
    height = sum(_PITCH * count + _GAP for count in threads.values())
    kernel = [max(_work(thread)[_KERNEL] for thread in some) for some in found.values()]
    ends = dict.fromkeys(percent(share) for share in (min(kernel), max(kernel)))
    sheet = Sheet(
        theme,
        f"The kernel's work: {' to '.join(ends)} of a heap's time",
        [(_ABOVE, height)],
        facts.caption(recording, "medians of {rounds} rounds"),
        subtitle="What each thread does in the time from one heap to the next",
        legend=part_legend(_STYLES, theme),
        columns=3,
    )
    for slot, n in zip(panels(len(sizes), (_NAMES, _RIGHT), _BETWEEN), sizes, strict=True):
        axis = sheet.axes(0, *slot.sides)
        axis.set(xlim=(0, 1), xlabel="% of the time")
        axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
        axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
        y, names = 0.0, {}
        for row, count in threads.items():
            names[y + count * _PITCH / 2] = _name(*row)
            for place, thread in enumerate(found.get(Kind(n, *row), ())):
                _draw_thread(axis, y + (place + 0.5) * _PITCH, Kind(n, *row), thread, theme)
            y += count * _PITCH + _GAP
        count_down(axis, height, names if slot.is_first else None)
    return sheet.drawn("Bars: what each thread does in the time from one heap to the next.")


def _work(thread: Thread) -> dict[str, float]:
    """Return what part of the time from heap to heap each kind of work takes."""
    elapsed, parts = thread.elapsed.median, thread.parts
    shares = {
        name: sum(parts[part].median for part in some if part in parts) / elapsed
        for name, (some, _) in _GROUPS.items()
    }
    return shares | {_IDLE: thread.idle_ns / elapsed}


def _chapter_order(row: tuple[str, str]) -> tuple[int, int]:
    """Return where a program is: by its chapter, each in Python first."""
    program, language = row
    return find_chapter(program).number, MEASURED.index(language)


def _name(program: str, language: str) -> str:
    return f"Chapter {find_chapter(program).number}, {NAMES[language]}"


def _draw_thread(axis: Axes, y: float, kind: Kind, thread: Thread, theme: Theme) -> None:
    shares, left = _work(thread), 0.0
    name = f"{_name(kind.program, kind.language)}, {'program' if thread.own else 'stream'}"
    for part, estimate in thread.parts.items():  # those of a kind stand together
        width = estimate.median / thread.elapsed.median
        if width:  # of nothing there is no bar that one could be at
            line = Line(f"{name}: {part}", kind.language, unit="ns")
            mark(axis, left + width / 2, y, line, kind.heap_size, estimate)
        left += width
    say(axis, f"{name}: {_IDLE}", f"{size(kind.heap_size)} {percent(shares[_IDLE])}")
    inches = axis.get_position().width * WIDTH

    def written(part: str, share: float) -> str:
        words = percent(share)
        return words if part == _KERNEL and share * inches > _LETTER * len(words) else ""

    draw_parts(axis, y, _BAR, shares, _STYLES, theme, written, rims=True)


# ---- What became of the packets ----

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
    _BY_RING: ("spead2", ""),
    _IN_SOCKET: ("c", ""),
    _ON_THE_WAY: ("sending", "----"),
}
_LEFT, _RIGHT = 0.14, 0.24
#: Inches: of a bar, and from bar to bar; and how much of a letter.
_FATE_BAR, _FATE_PITCH, _FATE_LETTER = 0.22, 0.27, 0.09


def lost(recording: Recording, theme: Theme) -> Drawn:
    """Draw what became of the packets that were sent into each bottleneck."""
    recording = search.settled(recording)  # which it may have, of the same rounds
    cases = _cases(recording)
    height = sum(LABEL + _FATE_PITCH for _ in cases)
    sizes = {
        (sample.heap_size, sample.heaps) for point in cases.values() for sample in point.samples
    }
    heaps = " and ".join(f"{heaps} heaps of {size(n)}" for n, heaps in sorted(sizes))
    sheet = Sheet(
        theme,
        _title(cases),
        [(0.1, height)],
        facts.caption(recording, "means of {rounds} rounds"),
        subtitle=f"What became of the packets of {heaps}",
        legend=part_legend(_FATES, theme),
    )
    axis = sheet.axes(0, _LEFT, _RIGHT)
    axis.set(xlim=(0, 1), ylim=(height, 0), yticks=[])
    axis.xaxis.set_major_formatter(lambda x, _: f"{100 * x:.0f}")
    axis.set_xlabel("% of the packets that were sent")
    letter = _FATE_LETTER / (WIDTH - _LEFT - _RIGHT)

    def written(_: str, share: float) -> str:
        words = _percent(share)
        return words if share > letter * (len(words) + 1) else ""

    y = 0.0
    for words, point in cases.items():
        counters, shares, middle = _counters(point), _shares(point), y + LABEL + _FATE_BAR / 2
        label_group(axis, y, words, counters, theme)
        if not shares:
            axis.text(0.01, middle, _FAILED, va="center_baseline")
        draw_parts(axis, middle, _FATE_BAR, shares, _FATES, theme, written)
        found = [f"{_percent(share)} {what}" for what, share in shares.items() if share]
        say(axis, words, ", ".join(filter(None, [*found, counters])) if found else _FAILED)
        y += LABEL + _FATE_PITCH
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
    return [sample for sample in point.samples if isinstance(sample, Received)]


def _parts(sample: Received) -> Mapping[str, int]:
    """Return how many packets of a sample became what: their sum is what was sent."""
    parts = {
        _IN_PIECES: sample.incomplete_packets,
        _BY_RING: sample.ring_dropped_packets,
        _IN_SOCKET: sample.received_dropped,
        _ON_THE_WAY: sample.lost_packets,
    }
    known = {words: packets for words, packets in parts.items() if packets is not None}
    return {_GOT: (sample.packets or 0) - sum(known.values())} | known


def _shares(point: facts.Point) -> Mapping[str, float]:
    """Return what share of the packets became what: means, as those of a bar have to be 1."""
    if point.failed:
        return {}
    parts = [(_parts(sample), sample.packets or 1) for sample in _received(point)]
    return {words: statistics.fmean(some[words] / n for some, n in parts) for words in _FATES}


def _title(cases: Mapping[str, facts.Point]) -> str:
    """Say what packets that are lost on the way cost, or where the most heaps are lost."""
    known = {words: shares for words, point in cases.items() if (shares := _shares(point))}
    if not known:
        return "What becomes of packets"
    heaps = {
        words: statistics.fmean(
            1 - (sample.received_heaps or 0) / sample.heaps for sample in _received(point)
        )
        for words, point in cases.items()
    }
    for words, shares in known.items():
        if shares[_ON_THE_WAY] and not shares[_IN_SOCKET]:
            lost = _percent(shares[_ON_THE_WAY])
            return f"{lost} of packets lost: {_percent(heaps[words])} of heaps"
    worst = max(known, key=lambda words: heaps[words])
    return f"{worst[0].upper()}{worst[1:]}: {_percent(heaps[worst])} of heaps lost"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


def _counters(point: facts.Point) -> str:
    """Say how often the ring was full, and for how long."""
    waits = statistics.median(sample.ring_waits or 0 for sample in _received(point))
    longest = max(sample.longest_ring_wait_ns or 0 for sample in _received(point)) / 1e6
    return f"ring full {waits:.0f} times, up to {number(longest)} ms" if waits else ""
