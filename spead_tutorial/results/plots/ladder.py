# SPDX-License-Identifier: BSD-3-Clause
"""Ladders: the rate of each chapter's program, step by step, and what there is to compare."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from spead_tutorial.chapters.catalogue import (
    BESIDE_LADDER,
    LADDER,
    LANGUAGES,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.picture import Panel, Picture
from spead_tutorial.results.plots.theme import NAMES
from spead_tutorial.results.units import size

#: Panels in a row, and inches of one beside another.
_BESIDE, _NAMES, _WIDE = 2, 2.2, 2.1
_VALUE = len("Python, \N{GREATER-THAN OR EQUAL TO} 12.3")


@dataclasses.dataclass(frozen=True, slots=True)
class Rung:
    """A chapter's program in its languages, or something that is only there to compare."""

    title: str
    note: str
    points: Mapping[str, facts.Point]  # by what gives a bar its colour
    chapter: Chapter | None = None

    @property
    def is_chained(self) -> bool:
        """Whether it is a step up: to the same place as the others, and on from one before."""
        chapter = self.chapter
        return chapter is not None and chapter.takes_destination and chapter.name not in _ASIDE


def rows_of(
    panels: Mapping[str, Sequence[Rung]],
    label: str,
    is_bound: Callable[[facts.Point], bool] = lambda point: False,
) -> list[list[Panel]]:
    """Return panels of bars, all on one scale; those beside each other have the same steps."""
    estimates = [
        point.estimate()
        for rungs in panels.values()
        for one in rungs
        for point in one.points.values()
    ]
    most = bars.room(max(facts.ends(estimates), default=0) or 1e4, _WIDE, _VALUE - 6)
    named, rows = list(panels.items()), []
    for first in range(0, len(named), _BESIDE):
        row = named[first : first + _BESIDE]
        longest = sorted((rungs for _, rungs in row), key=len, reverse=True)
        titles: dict[tuple[str, str], int] = {}
        for one in (one for rungs in longest for one in rungs):
            name_and_note = one.title, one.note
            titles[name_and_note] = max(titles.get(name_and_note, 0), len(one.points))
        there: list[Panel] = []
        for name, rungs in row:
            by_title = {(one.title, one.note): one for one in rungs}
            groups = [
                _group(*title, by_title.get(title), lanes, is_bound)
                for title, lanes in titles.items()
            ]
            show: Callable[[float], str] = _gigabytes
            there.append(bars.Bars(name, label, groups, most, show, 1e3, _NAMES, not there))
        rows.append(there)
    return rows


def _gigabytes(megabytes: float) -> str:
    return f"{megabytes / 1e3:.1f}" if megabytes >= 950 else f"{megabytes / 1e3:.2g}"


def _group(
    title: str, note: str, rung: Rung | None, lanes: int, is_bound: Callable[[facts.Point], bool]
) -> bars.Group:
    """Return the bars of a step; where it was not measured, there is none."""
    name = " ".join(f"{title} {note}".split())
    found = [
        bars.bar(
            f"{name}, {NAMES[role]}" if role in NAMES else name,
            role,
            point,
            least="\N{GREATER-THAN OR EQUAL TO} " * is_bound(point),
        )
        for role, point in (rung.points if rung is not None else {}).items()
    ]
    return bars.Group(title, note, found, lanes)


# ---- The chapters, and what else there is to compare ----

_TAUGHT = [rung.program for rung in LADDER]
_ASIDE = {rung.program for rung in BESIDE_LADDER}
#: Before it, samples are random: that is what those programs spend their time on.
_FIRST = "tut_4_send_constant"
_PEER = "spead2-source"


def ladder(recording: Recording) -> Picture:
    """Show the rate of every chapter in each language, a panel for each size of heaps."""
    # A warm-up is not counted, but where it failed something is wrong.
    there = (
        sample for sample in recording.samples if not sample.warm_up or sample.failure is not None
    )
    ours = [sample for sample in there if sample.implementation == OURS and not sample.variant]
    if not ours:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    found = facts.points(recording.samples)
    panels = {
        x: [
            *_rungs([sample for sample in ours if sample.heap_size == x]),
            *_best_of_others(found, x),
        ]
        for x in sorted({sample.heap_size for sample in ours}, reverse=True)
    }
    return Picture(
        _title(panels),
        "",
        rows_of(
            {f"Heaps of {size(n)}": rungs for n, rungs in panels.items()}, "payload sent, GB/s"
        ),
        "Bars: the rate of each chapter's program in MB/s, by the size of heaps.",
        facts.caption(recording),
    )


def _title(panels: Mapping[int, Sequence[Rung]]) -> str:
    """Say of the largest heaps how many times as fast the last chapter is as the first."""
    heap_size, rungs = next(iter(panels.items()))
    by_number = {rung.chapter.number: rung for rung in rungs if rung.is_chained and rung.chapter}
    if len(by_number) < 2:
        return "The chapters send at these rates"
    first, last = min(by_number), max(by_number)
    gains = facts.gain_each(by_number[first].points, by_number[last].points)
    chapters = f"Chapters {first} to {last} make {size(heap_size)} heaps"
    return f"{chapters} {facts.told(facts.in_languages(gains)) or 'not measurably faster'}"


def _rungs(samples: Sequence[Sample]) -> list[Rung]:
    """Return the rungs of a panel, chapter by chapter, from constant samples on."""
    by_program: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_program.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    rungs = {
        (_taught_order(chapter), program, not with_random): Rung(
            f"{chapter.number} {chapter.title}"
            + ", random" * (with_random and "r" in chapter.accepted),
            "",
            {name: facts.Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
            chapter,
        )
        for (program, with_random), languages in by_program.items()
        for chapter in (find_chapter(program),)
    }
    first = _taught_order(find_chapter(_FIRST))
    constant = [place for place in rungs if place[0] >= first and place[2]]
    return [rungs[place] for place in sorted(constant or rungs)]


def _taught_order(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    return chapter.number, _TAUGHT.index(chapter.name) if chapter.name in _TAUGHT else -1


def _best_of_others(
    found: Mapping[Series, Mapping[int, facts.Point]], heap_size: int
) -> list[Rung]:
    """Return what the chapters are to be compared with: the peer at its best, and the best loop."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    best = {
        series.language: there[series]
        for series in sorted(peers, key=lambda series: there[series].median)
    }
    rungs = [
        Rung(f"spead2 in {NAMES[language]}", "its best chapter", {"spead2": point})
        for language, point in best.items()
    ]
    bare = {series: point for series, point in there.items() if facts.is_bare(series)}
    if bare:
        series = max(bare, key=lambda series: bare[series].median)
        rungs.append(Rung("bare system calls", series.variant, {"limit": bare[series]}))
    return rungs
