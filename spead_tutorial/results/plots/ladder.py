# SPDX-License-Identifier: BSD-3-Clause
"""The ladder: what every chapter gained in each language, and what else there is to compare."""

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from spead_tutorial.chapters.catalogue import (
    BESIDE_LADDER,
    LADDER,
    LANGUAGES,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import steps
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.points import Point, gain, points
from spead_tutorial.results.plots.sheet import Drawn
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import gained
from spead_tutorial.results.units import size

__all__ = ["ladder", "step_title"]

_ASIDE = {rung.program for rung in BESIDE_LADDER}
_PEER, _BARE = "spead2-source", "ceiling"


@dataclasses.dataclass(frozen=True, slots=True)
class _Rung(steps.Step):
    """A chapter's program in its languages, or something beside them, at a size of heaps."""

    chapter: Chapter | None = None

    @property
    def is_chained(self) -> bool:
        """Whether it is a step up: to the same place as the others, and on from one before."""
        chapter = self.chapter
        return chapter is not None and chapter.takes_destination and chapter.name not in _ASIDE


#: By size of heaps, the largest first.
_Panels = Mapping[int, Sequence[_Rung]]


def ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw what every chapter gained in each language, a panel for each size of heaps.

    Below them, where the recording has them: spead2's best chapter, and bare system calls.
    """
    panels = _panels(recording)
    gains = "Beside each dot: how many times as fast as the step before"
    sheet = steps.draw_steps(
        theme,
        _title(panels),
        ". ".join([gains, *_alike(panels)]),
        caption(recording, "median of {rounds} rounds, line: {spread}"),
        {f"Heaps of {size(n)}": rungs for n, rungs in panels.items()},
        "payload sent, GB/s",
    )
    return sheet.drawn("Dots: the rate of each chapter's program in MB/s, by the size of heaps.")


def _chain(rungs: Sequence[_Rung]) -> list[_Rung]:
    return [rung for rung in rungs if rung.is_chained]


def _gains(before: _Rung, after: _Rung) -> dict[str, Estimate | None]:
    return {role: gain(before.points.get(role), point) for role, point in after.points.items()}


def _with_gains(rungs: Sequence[_Rung]) -> list[_Rung]:
    """Add what each gained on the one before."""
    before = {id(after): rung for rung, after in pairwise(_chain(rungs))}
    return [
        dataclasses.replace(one, gains=_gains(before[id(one)], one)) if id(one) in before else one
        for one in rungs
    ]


def _title(panels: _Panels) -> str:
    """Say for each size how many times as fast the last chapter is as where the first ends."""
    said = []
    for heap_size, rungs in panels.items():
        by_number = {rung.chapter.number: rung for rung in _chain(rungs) if rung.chapter}
        if len(by_number) > 1:
            first, last = min(by_number), max(by_number)
            gains = _gains(by_number[first], by_number[last])
            words = gained({NAMES[role]: one for role, one in gains.items()})
            said.append(
                f"{size(heap_size)} heaps, from the end of chapter {first} to {last}: {words}"
            )
    return "; ".join(said) or "The chapters' rates"


def _alike(panels: _Panels) -> list[str]:
    """Say for each size of heaps which steps, one after the other, gain nothing."""
    said: list[str] = []
    for heap_size, rungs in panels.items():
        runs = [list(run) for alike, run in groupby(_chain(rungs), _gains_nothing) if alike]
        longest = max(runs, key=len, default=[])
        if len(longest) > 1:
            first, last = (one.title.split()[0] for one in (longest[0], longest[-1]))
            said.append(f"No difference found in steps {first} to {last} at {size(heap_size)}")
    return said


def _gains_nothing(rung: _Rung) -> bool:
    """Return whether no language tells it from the step before."""
    gains = [one for one in rung.gains.values() if one is not None]
    return bool(gains) and not any(map(differs, gains))


def _panels(recording: Recording) -> _Panels:
    """Sort a recording's samples into steps, and those into panels, largest heaps first."""
    ours = [
        sample
        for sample in recording.samples
        # A warm-up is not counted, but where it failed something is wrong.
        if sample.implementation == OURS
        and not sample.variant
        and not (sample.warm_up and sample.failure is None)
    ]
    if not ours:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    sizes = sorted({sample.heap_size for sample in ours}, reverse=True)
    found = points(recording)
    return {
        x: [*_with_gains(_rungs([one for one in ours if one.heap_size == x])), *_beside(found, x)]
        for x in sizes
    }


def _rungs(samples: Sequence[Sample]) -> list[_Rung]:
    """Return the rungs of a panel: chapter by chapter, random samples before the others."""
    by_step: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_step.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    rungs = {
        (_place(chapter), program, not with_random): _Rung(
            step_title(chapter, with_random),
            "",
            {name: Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
            chapter=chapter,
        )
        for (program, with_random), languages in by_step.items()
        for chapter in (find_chapter(program),)
    }
    return [rungs[place] for place in sorted(rungs)]


def _place(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    taught = [rung.program for rung in LADDER]
    return chapter.number, taught.index(chapter.name) if chapter.name in taught else -1


def _beside(found: Mapping[Series, Mapping[int, Point]], heap_size: int) -> list[_Rung]:
    """Return what the chapters are to be compared with: the peer at its best, and bare loops."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    rungs = []
    if peers:
        best = max((there[series] for series in peers), key=lambda point: point.median)
        rungs.append(_Rung("spead2 from source", "its best chapter", {"spead2": best}))
    for series, point in there.items():
        if series.implementation == _BARE:
            rungs.append(_Rung("bare system calls", series.variant, {"limit": point}))
    return rungs


def step_title(chapter: Chapter, with_random: bool) -> str:
    """Return the number and title of a chapter, and whether it was told to send random samples."""
    samples = ", random" if with_random and "r" in chapter.accepted else ""
    return f"{chapter.number}  {chapter.title}{samples}"
