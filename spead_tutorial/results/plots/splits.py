# SPDX-License-Identifier: BSD-3-Clause
"""What the time of a heap goes to, and what becomes of packets and heaps."""

import statistics
from collections.abc import Mapping, Sequence

from spead_tutorial.chapters.catalogue import MEASURED, NAMES, find_chapter
from spead_tutorial.measure.analysis import OTHER, Kind, Thread, split_times
from spead_tutorial.measure.records import Received, Recording, Sample, joined
from spead_tutorial.results.plots import curves, facts, parts
from spead_tutorial.results.plots.parts import Fill, Parts, Row
from spead_tutorial.results.plots.picture import WORK, Line, Picture
from spead_tutorial.results.units import number, percent, size

#: The work of a heap: its parts, and how they are drawn.
_GROUPS: Mapping[str, tuple[tuple[str, ...], Fill]] = {
    "samples": (("fill",), ("preparing", False)),
    "program": (("program", "queue", "packetizing", "completion"), ("python", True)),
    "kernel": (("copy", "system call", "buffers", "stack"), ("c", False)),
    "locks": (("lock", "wake-up", "looking", OTHER), ("limit", True)),
    "idle": ((), None),
}
_FILLS = {name: fill for name, (_, fill) in _GROUPS.items()}
_KERNEL, _IDLE = "kernel", "idle"
_NAMES = 1.75


def where(recording: Recording) -> Picture:
    """Show what part of the time from heap to heap each thread spends on which kind of work."""
    found = split_times(recording)
    rows: dict[int, list[Row]] = {}
    for kind in sorted(found, key=_order):
        for place, thread in enumerate(found[kind]):
            rows.setdefault(kind.heap_size, []).append(_row(kind, thread, first=not place))
    kernel = [max(_work(thread)[_KERNEL] for thread in some) for some in found.values()]
    ends = dict.fromkeys(percent(share) for share in (min(kernel), max(kernel)))
    label = "% of the time from one heap to the next"
    panels = [
        Parts(f"Heaps of {size(n)}", label, bars, _FILLS, _written, _NAMES)
        for n, bars in rows.items()
    ]
    return Picture(
        f"The kernel's work takes {' to '.join(ends)} of a heap's time",
        "What each thread does from one heap to the next",
        [[panel] for panel in panels],
        "Bars: what each thread does in the time from one heap to the next.",
        facts.caption(recording, "medians of {rounds} rounds"),
        parts.legend(panels),
    )


def _written(part: str, share: float) -> str:
    return percent(share) if part == _KERNEL else ""


def _work(thread: Thread) -> dict[str, float]:
    """Return what part of the time from heap to heap each kind of work takes."""
    elapsed, known = thread.elapsed.median, thread.parts
    shares = {
        name: sum(known[part].median for part in some if part in known) / elapsed
        for name, (some, _) in _GROUPS.items()
    }
    return shares | {_IDLE: thread.idle_ns / elapsed}


def _order(kind: Kind) -> tuple[int, int, int]:
    """Return where a program is: by its heaps, then by its chapter, each in Python first."""
    return kind.heap_size, find_chapter(kind.program).number, MEASURED.index(kind.language)


def _row(kind: Kind, thread: Thread, *, first: bool) -> Row:
    chapter = f"Chapter {find_chapter(kind.program).number}, {NAMES[kind.language]}"
    name, left, marks = f"{chapter}, {'program' if thread.own else 'stream'}", 0.0, []
    for part, estimate in thread.parts.items():  # those of a kind stand together
        width = estimate.median / thread.elapsed.median
        if width:  # of nothing there is no bar that one could be at
            line = Line(f"{name}: {part}", kind.language, unit="ns")
            marks.append((line, kind.heap_size, left + width / 2, estimate))
        left += width
    shares = _work(thread)
    said = f"{size(kind.heap_size)} {percent(shares[_IDLE])} {_IDLE}"
    return Row(chapter if first else "its stream", shares, said=said, marks=marks)


# ---- What became of the packets ----

_PROGRAM = "receive_lost"
_NOTHING = "nothing in the way"
#: What is in the words for a bottleneck, along the way of a packet.
_MARKS = (_NOTHING, "lost", "buffer", "ring")
_FAILED = "failed: not all is accounted for"
#: What a packet can have become.
_GOT = "in whole heaps"
_ON_THE_WAY, _IN_SOCKET = "lost on the way", "dropped by the socket"
_BY_RING, _IN_PIECES = "dropped by the ring", "in heaps not whole"
_FATES: Mapping[str, Fill] = {
    _GOT: ("python", False),
    _IN_PIECES: ("limit", True),
    _BY_RING: ("spead2", False),
    _IN_SOCKET: ("c", False),
    _ON_THE_WAY: ("sending", False),
}
_WITHOUT, _WITH, _WORK = "no thread", "a thread", " ms a heap"
_MISSING = "% of packets lost, or of heaps not whole"


def lost(recording: Recording) -> Picture:
    """Show what became of the packets that were sent into each bottleneck."""
    cases = _cases(recording)
    rows = []
    for words, point in cases.items():
        shares = _shares(point)
        found = [f"{_percent(share)} {what}" for what, share in shares.items() if share]
        rows.append(Row(words, shares, ", ".join(found) or _FAILED))
    label = "% of the packets that were sent"
    panel = Parts("", label, rows, _FATES, lambda _, share: _percent(share))
    return Picture(
        _title(cases),
        f"What became of the packets of {_heaps(cases)}",
        [[panel]],
        "Bars: what became of the packets that were sent, as shares of them.",
        facts.caption(recording, "means of {rounds} rounds"),
        parts.legend([panel]),
    )


def hot(recording: Recording) -> Picture:
    """Show what share of packets is lost by how long a heap is worked on, with a thread or none."""
    cases = _cases(recording)
    found: dict[str, dict[int, facts.Point]] = {_WITHOUT: {}, _WITH: {}}
    for words, point in cases.items():
        time, is_worked_on, rest = words.partition(_WORK)
        if is_worked_on:
            found[_WITHOUT if _WITHOUT in rest else _WITH][int(time)] = point
    facts.require(any(found.values()), "tut-17", _PROGRAM)
    lines = [
        curves.Curve(
            Line(name, "python", unit=_MISSING, over=WORK),
            dict(sorted(points.items())),
            _missing,
            is_before=name == _WITH,
        )
        for name, points in found.items()
        if points
    ]
    bad = [
        time
        for time, point in found[_WITHOUT].items()
        if (share := point.estimate(_missing)) is not None and share.low > 0
    ]
    scale = curves.steps({x for points in found.values() for x in points}, "ms of work on a heap")
    most = max([1.0, *(facts.highest(points.values(), _missing) for points in found.values())])
    return Picture(
        f"Without a thread, packets are lost from {min(bad)} ms of work a heap on"
        if bad
        else "Without a thread, no packets are lost",
        f"Chapter 17: what does not arrive in whole heaps, of {_heaps(cases)}",
        [[curves.Curves(_MISSING, lines, scale, most)]],
        "Lines: the share of packets that did not arrive in whole heaps.",
        facts.caption(recording, curves.SHOWN),
    )


def _missing(sample: Sample) -> float | None:
    """Return what share of the packets did not arrive in whole heaps, in %."""
    if not isinstance(sample, Received) or sample.failure is not None:
        return None
    return 100 * (1 - _parts(sample)[_GOT] / (sample.packets or 1))


def _heaps(cases: Mapping[str, facts.Point]) -> str:
    sample = next(iter(cases.values())).samples[0]
    return f"{sample.heaps} heaps of {size(sample.heap_size)}"


def _cases(recording: Recording) -> Mapping[str, facts.Point]:
    """Return each bottleneck along the way of a packet, by what it is called."""
    found = {
        frozenset(series.words): (series.words, point)
        for series, sizes in facts.points(recording.samples).items()
        if series.program == _PROGRAM
        for point in sizes.values()
    }
    facts.require(found, "receive-lost", _PROGRAM)
    common = frozenset.intersection(*found)
    named = {
        joined(*(word for word in words if word not in common)) or _NOTHING: point
        for words, point in found.values()
    }
    order = sorted(named, key=lambda words: ([mark not in words for mark in _MARKS], words))
    return {words: named[words] for words in order}


def _received(point: facts.Point) -> Sequence[Received]:
    return [sample for sample in point.samples if isinstance(sample, Received)]


def _parts(sample: Received) -> Mapping[str, int]:
    """Return how many packets of a sample became what: their sum is what was sent."""
    missing = {
        _IN_PIECES: sample.incomplete_packets or 0,
        _BY_RING: sample.ring_dropped_packets or 0,
        _IN_SOCKET: sample.received_dropped or 0,
        _ON_THE_WAY: sample.lost_packets or 0,
    }
    return {_GOT: (sample.packets or 0) - sum(missing.values())} | missing


def _shares(point: facts.Point) -> Mapping[str, float]:
    """Return what share of the packets became what: means, as those of a bar have to be 1."""
    if point.failed:
        return {}
    parts = [(_parts(sample), sample.packets or 1) for sample in _received(point)]
    return {words: statistics.fmean(some[words] / n for some, n in parts) for words in _FATES}


def _title(cases: Mapping[str, facts.Point]) -> str:
    """Say what packets that are lost on the way alone cost."""
    for point in cases.values():
        shares, samples = _shares(point), _received(point)
        if shares.get(_ON_THE_WAY) and not shares[_IN_SOCKET]:
            heaps = statistics.fmean(1 - (one.received_heaps or 0) / one.heaps for one in samples)
            lost = _percent(shares[_ON_THE_WAY])
            return f"Losing {lost} of packets costs {_percent(heaps)} of heaps"
    return "Where packets are lost depends on what is in their way"


def _percent(share: float) -> str:
    return f"{number(100 * share)} %"


# ---- What became of the heaps of senders, of which one is slow ----

_CORNER_TURN = "tut_19_recv_corner_turn"
_MODES = {"": "lossless", "lossy": "lossy"}
#: Whose heaps there are, and what counts those that were received and sent.
_WHOSE = {
    "Fast senders": ("received_heaps", "heaps"),
    "The slow one": ("slow_received_heaps", "slow_heaps"),
}
_CAME, _MISSED = "received", "lost"
_HEAPS: Mapping[str, Fill] = {_CAME: ("python", False), _MISSED: ("c", True)}


def one_slow(recording: Recording) -> Picture:
    """Show what part of the heaps of fast senders is received, and of those of a slow one."""
    found = {series: its[max(its)] for series, its in facts.points(recording.samples).items()}
    modes = {mode: facts.by_language(found, _CORNER_TURN, word) for word, mode in _MODES.items()}
    there = [point for points in modes.values() for point in points.values()]
    facts.require(there, "tut-19", _CORNER_TURN)
    panels, costs = [], []
    for mode, points in modes.items():
        rows = [_heaps_of(whose, mode, *one) for whose in _WHOSE for one in points.items()]
        if rows:
            name, label = f"{mode.capitalize()} groups", "% of the heaps that were sent"
            panels.append(Parts(name, label, rows, _HEAPS, lambda _, share: percent(share), 1.9))
        lost = [percent(row.shares[_MISSED]) for row in rows[: len(points)] if row.shares]
        if lost:  # by the fast ones, which are first
            costs.append(f"{' or '.join(dict.fromkeys(lost))} in {mode} groups")
    fast, slow = (getattr(there[0].samples[0], sent) for _, sent in _WHOSE.values())
    return Picture(
        f"Of the others' heaps, a slow sender costs {', '.join(costs) or 'nobody knows what'}",
        f"Chapter 19: {fast} heaps of fast senders, in the same time {slow} of a slow one",
        [[panel] for panel in panels],
        "Bars: what part of the heaps was received.",
        facts.caption(recording, "medians of {rounds} rounds"),
        parts.legend(panels),
    )


def _heaps_of(whose: str, mode: str, language: str, point: facts.Point) -> Row:
    got, sent = _WHOSE[whose]
    name, n = f"{whose}, {NAMES[language]}", point.samples[0].heap_size
    line = Line(f"{name}, {mode}", language, unit="% of heaps received")
    found = point.estimate(
        lambda one: None if one.failure else 100 * getattr(one, got) / getattr(one, sent)
    )
    if found is None:
        return Row(name, {}, "failed")
    share = found.median / 100
    return Row(name, {_CAME: share, _MISSED: 1 - share}, marks=[(line, n, share / 2, found)])
