# SPDX-License-Identifier: BSD-3-Clause
"""Ladders: the rate of each chapter's program, step by step, and what there is to compare."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from spead_tutorial.chapters.catalogue import (
    BESIDE_LADDER,
    CHAINED,
    LADDER,
    LANGUAGES,
    MEASURED,
    NAMES,
    RECEIVERS,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure import search
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import differs
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.picture import Panel, Picture
from spead_tutorial.results.units import size

#: Panels in a row, inches of names and of one beside another, and letters behind a bar.
_BESIDE, _NAMES, _WIDE, _VALUE = 2, 2.2, 2.1, 8


def _rows(panels: Mapping[str, Sequence[bars.Group]], label: str) -> list[list[Panel]]:
    """Return panels of bars, all on one scale; those beside each other have the same groups."""
    there = [bar.estimate for groups in panels.values() for one in groups for bar in one.bars]
    most = bars.room(max(facts.ends(there), default=0) or 1e4, _WIDE, _VALUE)
    named, rows = list(panels.items()), []
    for first in range(0, len(named), _BESIDE):
        beside = named[first : first + _BESIDE]
        lanes: dict[tuple[str, str], int] = {}
        for groups in sorted((groups for _, groups in beside), key=len, reverse=True):
            for one in groups:
                lanes[one.title] = max(lanes.get(one.title, 0), len(one.bars))
        row: list[Panel] = []
        for name, groups in beside:
            own = {one.title: one.bars for one in groups}
            same = [bars.Group(*title, own.get(title, ()), n) for title, n in lanes.items()]
            row.append(bars.Bars(name, label, same, most, _gigabytes, 1e3, _NAMES, not row))
        rows.append(row)
    return rows


def _gigabytes(megabytes: float) -> str:
    return f"{megabytes / 1e3:.1f}" if megabytes >= 950 else f"{megabytes / 1e3:.2g}"


# ---- The chapters that send, and what else there is to compare ----

_TAUGHT = [rung.program for rung in LADDER]
_ASIDE = {rung.program for rung in BESIDE_LADDER}
#: Before it, samples are random: that is what those programs spend their time on.
_FIRST = "tut_4_send_constant"
_PEER = "spead2-source"
#: What each program came to with random samples or without, by language.
_Steps: TypeAlias = Mapping[tuple[Chapter, bool], Mapping[str, facts.Point]]


def ladder(recording: Recording) -> Picture:
    """Show the rate of every chapter in each language, a panel for each size of heaps."""
    # A warm-up is not counted, but where it failed something is wrong.
    ours = [
        sample
        for sample in recording.samples
        if sample.implementation == OURS and not sample.variant
        if not sample.warm_up or sample.failure is not None
    ]
    if not ours:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    steps = {
        n: _steps(sample for sample in ours if sample.heap_size == n)
        for n in sorted({sample.heap_size for sample in ours}, reverse=True)
    }
    found = facts.points(recording.samples)
    panels = {
        f"Heaps of {size(n)}": [
            *(bars.group(_name(*step), "", points) for step, points in its.items()),
            *_best_of_others({series: its[n] for series, its in found.items() if n in its}),
        ]
        for n, its in steps.items()
    }
    return Picture(
        _title(*next(iter(steps.items()))),
        "",
        _rows(panels, "payload sent, GB/s"),
        "Bars: the rate of each chapter's program in MB/s, by the size of heaps.",
        facts.caption(recording),
    )


def _steps(samples: Iterable[Sample]) -> _Steps:
    """Return what programs came to, chapter by chapter, from constant samples on."""
    found: dict[tuple[Chapter, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = found.setdefault((find_chapter(sample.program), sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    first = _taught_order(find_chapter(_FIRST))
    constant = [step for step in found if _taught_order(step[0]) >= first and not step[1]]
    return {
        step: {one: facts.Point(tuple(found[step][one])) for one in LANGUAGES if one in found[step]}
        for step in sorted(constant or found, key=lambda step: (_taught_order(step[0]), -step[1]))
    }


def _taught_order(chapter: Chapter) -> tuple[int, int, str]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    taught = _TAUGHT.index(chapter.name) if chapter.name in _TAUGHT else -1
    return chapter.number, taught, chapter.name


def _name(chapter: Chapter, is_random: bool) -> str:
    random = ", random" * (is_random and "r" in chapter.accepted)
    return f"{chapter.number} {chapter.title}{random}"


def _title(heap_size: int, steps: _Steps) -> str:
    """Say how many times as fast the last chapter is as the first, of those that are steps up."""
    chained = {
        chapter.number: points  # they send to the same place, and go on from one before
        for (chapter, _), points in steps.items()
        if chapter.takes_destination and chapter.name not in _ASIDE
    }
    if len(chained) < 2:
        return "The chapters send at these rates"
    first, last = min(chained), max(chained)
    said = facts.told(facts.gain_each(chained[first], chained[last]))
    chapters = f"Chapters {first} to {last} make {size(heap_size)} heaps"
    return f"{chapters} {said or 'not measurably faster'}"


def _best_of_others(there: Mapping[Series, facts.Point]) -> list[bars.Group]:
    """Return what the chapters are to be compared with: the peer at its best, and the best loop."""
    order = sorted(there, key=lambda series: there[series].median)
    best = {series.language: there[series] for series in order if series.implementation == _PEER}
    loops = [series for series in order if series.implementation == "ceiling"]
    groups = [
        bars.group(f"spead2 in {NAMES[language]}", "its best chapter", {"spead2": point})
        for language, point in best.items()
    ]
    for series in loops[-1:]:
        groups.append(bars.group("bare system calls", series.variant, {"limit": there[series]}))
    return groups


# ---- The highest rate without loss of every chapter that receives ----

_HOW = "receive"
#: What stands below the chapters, as far as it was measured: title, remark, series by their colour.
_OTHERS = (
    ("memory used again", "computes nothing", {x: Series(OURS, x, _HOW) for x in MEASURED}),
    ("spead2 in C++", "computes nothing", {"spead2": Series(_PEER, "c", _HOW)}),
    ("spead2 in Python", "computes nothing", {"spead2": Series(_PEER, "python", _HOW)}),
    ("bare system calls", "a copy into place", {"limit": Series("ceiling", "c", _HOW)}),
)
#: Of so many pairs of sizes, those with the most receivers.
_MOST_PANELS = 2

_Points: TypeAlias = Mapping[Series, facts.Point]


def receivers_ladder(recording: Recording) -> Picture:
    """Show the highest rate without loss, chapter by chapter, a panel for a pair of sizes."""
    settled = search.settled(recording)
    found = _by_sizes(settled)
    programs = [receiver.name for receiver in CHAINED]
    there = [facts.by_language(points, name) for points in found.values() for name in programs]
    facts.require(any(there), "receive-lossless", *programs)
    panels = {
        f"{size(heap)}, packets of {packet}": groups
        for (heap, packet), points in list(found.items())[:_MOST_PANELS]
        if (groups := _receivers(points))
    }
    return Picture(
        _gained(next(iter(found.values()))),
        "\N{GREATER-THAN OR EQUAL TO}: at least, for the sender could do no more"
        if any(_is_bound(point) for points in found.values() for point in points.values())
        else "The highest rates at which nothing is lost",
        _rows(panels, "without loss, GB/s"),
        "Bars: the highest payload rate at which a receiver loses nothing, in MB/s.",
        facts.caption(settled, "median of {rounds} rounds, a search in each, line: {spread}"),
    )


def _by_sizes(recording: Recording) -> dict[tuple[int, int], _Points]:
    """Sort the runs of searches that count: by sizes, those with most first, and by series."""
    samples: dict[tuple[int, int], dict[Series, list[Sample]]] = {}
    for sample in recording.samples:
        if not sample.warm_up and search.is_search(sample):
            sizes = sample.heap_size, sample.packet_size
            samples.setdefault(sizes, {}).setdefault(sample.series, []).append(sample)
    order = sorted(samples, key=lambda sizes: (-len(samples[sizes]), -sizes[0], -sizes[1]))
    return {
        sizes: {series: facts.Point(tuple(some)) for series, some in samples[sizes].items()}
        for sizes in order
    }


def _is_bound(point: facts.Point) -> bool:
    """Return whether the rate that was found is but a lower bound."""
    return search.is_bound(point.samples)


def _receivers(points: _Points) -> list[bars.Group]:
    """Return the chapters, and what is beside them."""
    chapters = [
        (f"{one.number} {one.title}", "", facts.by_language(points, one.name)) for one in RECEIVERS
    ]
    others = [
        (title, note, {role: points[one] for role, one in series.items() if one in points})
        for title, note, series in _OTHERS
    ]
    return [bars.group(*one, is_bound=_is_bound) for one in (*chapters, *others) if one[-1]]


def _gained(points: _Points) -> str:
    """Say how many times as high the rate of the last chapter is as that of the first."""
    found = {one.number: facts.by_language(points, one.name) for one in RECEIVERS}
    there = [number for number, languages in found.items() if languages]
    first, last = there[0], there[-1]
    gains = facts.gain_each(found[first], found[last])
    if first == last or not any(gain is not None and differs(gain) for gain in gains.values()):
        return "Receivers lose nothing up to these rates"
    # A search is exact to a step, which is about 9 %: two digits are all that it knows.
    least = "at least " * any(map(_is_bound, found[last].values()))
    said = facts.told(gains)
    return f"Chapters {first} to {last} make receiving without loss {least}{said}"
