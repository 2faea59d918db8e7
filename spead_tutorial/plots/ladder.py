# SPDX-License-Identifier: BSD-3-Clause
"""The ladder: what every chapter gained in each language, and what else there is to compare."""

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from spead_tutorial.catalogue import BESIDE_LADDER, LADDER, LANGUAGES, Chapter, find_chapter
from spead_tutorial.plots import dots
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained
from spead_tutorial.plots.points import Point, gain, points
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.plots.verdict import whole
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.stats import Estimate, is_told
from spead_tutorial.units import size

__all__ = ["ladder", "step_title"]

_ASIDE = {rung.program for rung in BESIDE_LADDER}
_SCALE = "payload sent, GB/s"
_SHOWN = "median of {rounds} rounds, line: {spread}"
_PEER, _BARE = "spead2-source", "ceiling"
_FROM_SOURCE = "spead2 from source"
_SUBTITLE = "Beside each dot: how many times as fast as the step before"


@dataclasses.dataclass(frozen=True, slots=True)
class _Rung:
    """A chapter's program in its languages, or something beside them, at a size of heaps."""

    title: str
    change: str
    points: dict[str, Point]  # by what gives a dot its colour
    chapter: Chapter | None = None
    note: str = ""

    @property
    def is_chained(self) -> bool:
        """Whether it is a step up: to the same place as the others, and on from one before."""
        chapter = self.chapter
        return chapter is not None and chapter.takes_destination and chapter.name not in _ASIDE


_Panels = Sequence[tuple[int, Sequence[_Rung]]]


def ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw what every chapter gained in each language, a panel for each size of heaps.

    Below them, where the recording has them: spead2's best chapter, and bare system calls.
    """
    panels = _panels(recording)
    steps = [_steps(rungs) for _, rungs in panels]
    sheet = Sheet(
        theme,
        _finding(panels),
        dots.panel_rows(steps, theme),
        caption(recording, _SHOWN),
        subtitle=". ".join([_SUBTITLE, *_alike(panels)]),
        legend=dots.dot_legend(steps, theme),
        columns=4,
    )
    titles = [f"Heaps of {size(heap_size)}" for heap_size, _ in panels]
    dots.draw_panels(sheet, steps, titles, _SCALE)
    return sheet.figure, sheet.title, _in_words(recording, panels)


def _chain(rungs: Sequence[_Rung]) -> list[_Rung]:
    return [rung for rung in rungs if rung.is_chained]


def _gains(before: _Rung, after: _Rung) -> dict[str, Estimate | None]:
    return {role: gain(before.points.get(role), point) for role, point in after.points.items()}


def _steps(rungs: Sequence[_Rung]) -> list[dots.Step]:
    """Add what each gained on the one before."""
    before = {id(after): rung for rung, after in pairwise(_chain(rungs))}
    return [
        dots.Step(
            rung.title,
            rung.note,
            rung.points,
            _gains(before[id(rung)], rung) if id(rung) in before else {},
        )
        for rung in rungs
    ]


def _finding(panels: _Panels) -> str:
    """Say for each size how many times as fast the last chapter is as where the first ends."""
    said: list[str] = []
    for heap_size, rungs in panels:
        heaps = whole(size(heap_size))
        by_number = {rung.chapter.number: rung for rung in _chain(rungs) if rung.chapter}
        if len(by_number) < 2:
            said += [] if said else [f"{heaps} heaps: nothing to compare"]
            continue
        start, end = by_number[min(by_number)], by_number[max(by_number)]
        number, name = start.title.split(maxsplit=1)
        if not said:
            quoted = f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"
            heaps, number = f"{heaps} heaps", f"chapter {number}, {quoted},"
        gains = {NAMES[role]: one for role, one in _gains(start, end).items()}
        said.append(f"{heaps}, from {number} to {max(by_number)}: {gained(gains)}")
    return "; ".join(said)


def _alike(panels: _Panels) -> list[str]:
    """Say for each size of heaps which steps, one after the other, gain nothing."""
    said: list[str] = []
    for heap_size, rungs in panels:
        runs = [
            [after for _, after in run]
            for alike, run in groupby(pairwise(_chain(rungs)), lambda pair: _are_alike(*pair))
            if alike
        ]
        longest = max(runs, key=len, default=[])
        if len(longest) > 1:
            first, last = (one.title.split()[0] for one in (longest[0], longest[-1]))
            said.append(f"No difference found in steps {first} to {last} at {size(heap_size)}")
    return said


def _are_alike(before: _Rung, after: _Rung) -> bool:
    """Return whether no language tells one from the other."""
    gains = [one for one in _gains(before, after).values() if one is not None]
    return bool(gains) and not any(map(is_told, gains))


def _panels(recording: Recording) -> list[tuple[int, list[_Rung]]]:
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
    return [
        (x, [*_rungs([one for one in ours if one.heap_size == x]), *_beside(found, x)])
        for x in sizes
    ]


def _rungs(samples: Sequence[Sample]) -> list[_Rung]:
    """Return the rungs of a panel: chapter by chapter, random samples before the others."""
    by_step: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_step.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    steps = {
        (_place(chapter), program, not with_random): _Rung(
            step_title(chapter, with_random),
            chapter.change,
            {name: Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
            chapter,
        )
        for (program, with_random), languages in by_step.items()
        for chapter in (find_chapter(program),)
    }
    return [steps[place] for place in sorted(steps)]


def _place(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    taught = [rung.program for rung in LADDER]
    return chapter.number, taught.index(chapter.name) if chapter.name in taught else -1


def _beside(found: Mapping[Series, Mapping[int, Point]], heap_size: int) -> list[_Rung]:
    """Return what the chapters are to be compared with: the peer at its best, and bare loops."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    steps = []
    if peers:
        best = max(peers, key=lambda series: _median(there[series]))
        number = find_chapter(best.program).number
        words = f"its best chapter, {number}, in Python"
        steps.append(_Rung(_FROM_SOURCE, words, {"spead2": there[best]}, note="its best chapter"))
    for series, point in there.items():
        if series.implementation == _BARE:
            note = series.variant
            steps.append(_Rung("bare system calls", note, {"limit": point}, note=note))
    return steps


def _median(point: Point) -> float:
    estimate = point.estimate()
    return 0.0 if estimate is None else estimate.median


def step_title(chapter: Chapter, with_random: bool) -> str:
    """Return the number and title of a chapter, and whether it was told to send random samples."""
    told = ", random" if with_random and "r" in chapter.accepted else ""
    return f"{chapter.number}  {chapter.title}{told}"


def _in_words(recording: Recording, panels: Sequence[tuple[int, Sequence[_Rung]]]) -> str:
    there = {role for _, steps in panels for step in steps for role in step.points}
    *others, last = (name for role, name in NAMES.items() if role in there)
    languages = " and ".join(filter(None, (", ".join(others), last)))
    sentences = [f"Dots: the rate of each chapter's program, in {languages}, in MB/s."]
    for heap_size, steps in panels:
        sentences.append(f"Heaps of {size(heap_size)}:")
        for step in steps:
            values = [
                f"{NAMES.get(role, '')} {_value(point)}".strip()
                for role, point in step.points.items()
            ]
            chapter = "chapter " if step.points.keys() & NAMES else f"{step.change}: "
            sentences.append(f"{chapter}{' '.join(step.title.split())}: {', '.join(values)};")
        gains = [
            f"{' '.join(step.title.split())} {gained(by_name)}"
            for step in _steps(steps)
            if (by_name := {NAMES[role]: one for role, one in step.gains.items()})
        ]
        if gains:
            sentences.append(f"Times as fast as the step before: {'; '.join(gains)}.")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _value(point: Point) -> str:
    estimate = point.estimate()
    return "failed" if estimate is None else f"{estimate.median:.0f}"
