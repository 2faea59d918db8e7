# SPDX-License-Identifier: BSD-3-Clause
"""Bars of ways to send: chapter 6's destinations, chapter 8's memory, chapter 5's overlapping."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from spead_tutorial.chapters.catalogue import NAMES
from spead_tutorial.measure.records import Recording, Series, joined
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.picture import TIMES, Line, Picture
from spead_tutorial.results.units import number, size

SENT = "payload sent in MB/s"
#: By language.
_Points: TypeAlias = Mapping[str, facts.Point]


def _largest(recording: Recording) -> Mapping[Series, facts.Point]:
    """Return the points of the largest heaps."""
    found = facts.points(recording.samples)
    return {series: points[max(points)] for series, points in found.items()}


# ---- Chapter 6: loopback with and without a listener against the lab's device ----

_PROGRAM = "tut_6_send_pktsize"
#: Variants, and what they are called; the one without a name sends to the lab's device.
_SITUATIONS = {
    "no listener": "loopback, nobody listens",
    "slow listener": "loopback, a slow listener",
    "listener": "loopback, a listener as fast as it can",
    "": "the lab's device",
}


def loopback(recording: Recording) -> Picture:
    """Show chapter 6's rate in each situation."""
    largest = _largest(recording)
    found = {variant: facts.by_language(largest, _PROGRAM, variant) for variant in _SITUATIONS}
    points = [point for its in found.values() for point in its.values()]
    facts.require(points, "tut-6-loopback", _PROGRAM)
    groups = [bars.group(_SITUATIONS[variant], "", its) for variant, its in found.items() if its]
    gains = facts.gain_each(found[""], found["listener"])
    said = facts.told(gains)
    most = bars.room(facts.highest(points), 4.2, 14)
    return Picture(
        f"Loopback with a fast listener, compared with the lab, is {said}"
        if said
        else "Loopback is compared with the lab",
        "Chapter 6: one program, sent to several places",
        [[bars.Bars("", SENT, groups, most, names=2.4)]],
        "Bars: the rate in MB/s.",
        facts.caption(recording),
    )


# ---- Chapter 8: why new memory is slow, one cause at a time ----

_BEFORE, _AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"
_AGAIN = _AFTER, ""
#: Every way to get memory, from top to bottom: what it is called, and a remark.
_MEMORY = {
    (_BEFORE, ""): ("new memory", "the program as it is"),
    (_BEFORE, "small pages"): ("small pages", "nobody asks for others"),
    (_BEFORE, "huge pages"): ("huge pages", "asked for everywhere"),
    (_BEFORE, "memory kept"): ("memory kept", "the allocator returns none"),
    _AGAIN: ("used again", "two buffers in turn"),
}


def causes(recording: Recording) -> Picture:
    """Show rates and page faults of each way to get memory, for the largest heaps."""
    known = facts.points(recording.samples)
    found: dict[int, dict[tuple[str, str], dict[str, facts.Point]]] = {}
    for way in _MEMORY:
        for language, points in facts.by_language(known, *way).items():
            for n, point in points.items():
                found.setdefault(n, {}).setdefault(way, {})[language] = point
    facts.require(found, "tut-8", _BEFORE)
    with_variants = [n for n, ways in found.items() if any(variant for _, variant in ways)]
    large = max(with_variants or found)
    ways = found[large]
    said = facts.told(facts.gain_each(ways.get((_BEFORE, ""), {}), ways.get(_AGAIN, {})))
    every = [point for some in ways.values() for point in some.values()]

    def panel(name: str, label: str, letters: int, *value: Any, **more: Any) -> bars.Bars:
        groups = [bars.group(*_MEMORY[way], ways[way], *value) for way in _MEMORY if way in ways]
        most = bars.room(facts.highest(every, *value[:1]), 2.1, letters)
        return bars.Bars(name, label, groups, most, **more)

    faults = "page faults a heap"
    rates = panel("Rate", SENT, 13)
    count = panel("Page faults", faults, 14, facts.faults, faults, text=number, is_first=False)
    return Picture(
        f"Memory used again makes {size(large)} heaps {said or 'not measurably faster'}",
        f"Chapter 8, other ways to get memory for heaps of {size(large)}",
        [[rates, count]],
        "Bars: the rate in MB/s, and page faults for a heap, of each way to get memory.",
        facts.caption(recording),
    )


# ---- Chapter 5: what overlapping gains over sending in turns, with each kind of samples ----

_OVERLAPPED = "tut_5_send_pipeline"
#: Where its samples are of a kind: the program that sends in turns, and the other one's variant.
_KINDS = {
    "Random samples": ("tut_4_send_perf", "random"),
    "Constant samples": ("tut_4_send_constant", ""),
}
#: What variants of a record are called; those of a link have its name.
_CALLED = {"": "free threads", "pinned": "a core each", "one core": "one core for both"}
#: What the title is of, if it was measured: there is the most to gain.
_TOLD = "Constant samples", _CALLED[""]


def pipeline(recording: Recording) -> Picture:
    """Show how many times as fast overlapping is: a panel for a kind of samples."""
    pairs = _pairs(recording)
    gains = {place: facts.gain_each(*pair) for place, pair in pairs.items()}
    kind, where = next(reversed(gains)) if _TOLD not in gains else _TOLD
    rows = dict.fromkeys(row for _, row in pairs)
    ends = facts.ends(gain for some in gains.values() for gain in some.values()) or [1.0]
    label, most = "times as fast as in turns", bars.room(max(ends), 2.3, 10)
    panels: list[bars.Bars] = []
    for one in dict.fromkeys(of for of, _ in pairs):
        groups = []
        for row in rows:
            _, after = pairs.get((one, row), ({}, {}))
            its = [
                bars.Bar(
                    Line(f"{one}, {row}, {NAMES[language]}, gain", language, unit=TIMES),
                    point.samples[0].heap_size,
                    gains[one, row][language],
                )
                for language, point in after.items()
            ]
            groups.append(bars.Group(row, "", its))
        first = not panels
        panels.append(
            bars.Bars(
                one, label, groups, most, "{:.2f}".format, names=1.65, is_first=first, even=1.0
            )
        )
    said = facts.told(gains[kind, where])
    finding = f"Overlapping makes {kind.lower()} on {where}"
    return Picture(
        f"{finding} {said}" if said else f"Overlapping makes {facts.NO_DIFFERENCE}",
        "Chapter 5: how many times as fast as in turns",
        [panels],
        "Bars: how many times as fast overlapping is as sending in turns.",
        facts.caption(recording),
    )


def _pairs(recording: Recording) -> Mapping[tuple[str, str], tuple[_Points, _Points]]:
    """Return what was in turns and overlapped, by kind and variant: by language, largest heaps."""
    largest = _largest(recording)
    variants, found = {series.variant for series in largest}, {}
    for kind, (program, variant) in _KINDS.items():
        for where in sorted(variants, key=lambda one: (one.startswith("link"), one)):
            before = facts.by_language(largest, program, where)
            after = facts.by_language(largest, _OVERLAPPED, joined(variant, where))
            both = [language for language in before if language in after]
            if both:
                row = kind, _CALLED.get(where, where)
                found[row] = before, {language: after[language] for language in both}
    facts.require(found, "tut-5", _OVERLAPPED)
    return found
