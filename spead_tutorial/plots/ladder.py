# SPDX-License-Identifier: BSD-3-Clause
"""The ladder: the rate of every chapter in both languages, and what else there is to compare."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.catalogue import BESIDE_LADDER, LADDER, LANGUAGES, Chapter, find_chapter
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained
from spead_tutorial.plots.points import Point, gain, highest, points
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, rate_axis
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.units import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RATE", "ladder", "step_title"]

_ASIDE = {rung.program for rung in BESIDE_LADDER}
#: What an axis of rates is called.
RATE = "payload sent in MB/s (10⁶ bytes a second)"
_PEER, _BARE = "spead2-source", "ceiling"
_SUBTITLE = "The rate of every chapter's program, in Python and in C"
_SIDES = (0.2, 0.2)
_ROOM, _FIRST_ROOM = 0.62, 0.66


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """A group of bars: a chapter's program in its languages, or one bar of something beside."""

    title: str
    change: str
    points: dict[str, Point]  # by what gives a bar its colour
    chapter: Chapter | None = None

    @property
    def height(self) -> float:
        """Inches."""
        return bars.GROUP - (len(LANGUAGES) - 1) * bars.PITCH * (not self.points.keys() & NAMES)


def ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of every chapter in both languages, a panel for each size of heaps.

    Below them, where the recording has them: spead2's best chapter, and bare system calls.

    Parameters
    ----------
    recording : Recording
        A tour's, or one of the sweep ``ladder``.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    panels = _panels(recording)
    heights = [sum(step.height for step in steps) for _, steps in panels]
    rows = [(_ROOM if row else _FIRST_ROOM, height) for row, height in enumerate(heights)]
    title, foot, legend = _finding(*panels[0]), caption(recording), bars.language_legend(theme)
    sheet = Sheet(theme, title, rows, foot, subtitle=_SUBTITLE, legend=legend)
    most = highest(point for _, steps in panels for step in steps for point in step.points.values())
    for row, (heap_size, steps) in enumerate(panels):
        axis = sheet.axes(row, *_SIDES)
        bars.prepare(axis, heights[row], most)
        y = 0.0
        for step in steps:
            _draw_step(axis, y, step, theme)
            y += step.height
        axis.set_title(f"Heaps of {size(heap_size)}", loc="left", fontsize=11)
        rate_axis(axis, theme, "top" if not row else None)
    axis.set_xlabel(RATE)
    return sheet.figure, sheet.title, _in_words(recording, panels)


def _finding(heap_size: int, steps: Sequence[_Step]) -> str:
    """Say how many times as fast the last chapter is as where the first of them ends.

    Only those count that can send to the same place, which chapter 2 cannot, and that go on from
    the one before: those beside the ladder do not.
    """
    by_number: dict[int, _Step] = {}
    for step in steps:
        chapter = step.chapter
        if chapter is not None and chapter.takes_destination and chapter.name not in _ASIDE:
            by_number[chapter.number] = step
    if len(by_number) < 2:
        return f"{size(heap_size)} heaps: nothing to compare"
    first, last = by_number[min(by_number)], by_number[max(by_number)]
    gains = {
        NAMES[language]: gain(first.points.get(language), point)
        for language, point in last.points.items()
    }
    number, name = first.title.split(maxsplit=1)
    name = f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"
    steps_up = f"from chapter {number}, {name}, to {max(by_number)}"
    return f"{size(heap_size)} heaps, {steps_up}: {gained(gains)}"


def _panels(recording: Recording) -> list[tuple[int, list[_Step]]]:
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
        (x, [*_steps([one for one in ours if one.heap_size == x]), *_beside(found, x)])
        for x in sizes
    ]


def _steps(samples: Sequence[Sample]) -> list[_Step]:
    """Return the steps of a panel: chapter by chapter, random samples before the others."""
    by_step: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_step.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    steps = {
        (_place(chapter), program, not with_random): _Step(
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


def _beside(found: Mapping[Series, Mapping[int, Point]], heap_size: int) -> list[_Step]:
    """Return what the chapters are to be compared with: the peer at its best, and bare loops."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    steps = []
    if peers:
        best = max(peers, key=lambda series: _median(there[series]))
        number = find_chapter(best.program).number
        note = f"its best chapter, {number}, in Python"
        steps.append(_Step("spead2, built from its source", note, {"spead2": there[best]}))
    for series, point in there.items():
        if series.implementation == _BARE:
            steps.append(_Step("bare system calls", series.variant, {"limit": point}))
    return steps


def _median(point: Point) -> float:
    estimate = point.estimate()
    return 0.0 if estimate is None else estimate.median


def _draw_step(axis: "Axes", y: float, step: _Step, theme: Theme) -> None:
    bars.label_group(axis, y, step.title, step.change, theme)
    lanes = bars.lanes(y)
    for index, (role, point) in enumerate(step.points.items()):
        lane = lanes.get(role, y + bars.LABEL + (index + 0.5) * bars.PITCH)
        bars.draw_bar(axis, lane, point, role, theme)


def step_title(chapter: Chapter, with_random: bool) -> str:
    """Return the number and title of a chapter, and whether it was told to send random samples."""
    told = ", random" if with_random and "r" in chapter.accepted else ""
    return f"{chapter.number}  {chapter.title}{told}"


def _in_words(recording: Recording, panels: Sequence[tuple[int, Sequence[_Step]]]) -> str:
    sentences = ["Bars: the rate of each chapter's program, in Python and in C, in MB/s."]
    for heap_size, steps in panels:
        sentences.append(f"Heaps of {size(heap_size)}:")
        for step in steps:
            values = [
                f"{NAMES.get(role, '')} {_value(point)}".strip()
                for role, point in step.points.items()
            ]
            chapter = "chapter " if step.points.keys() & NAMES else f"{step.change}: "
            sentences.append(f"{chapter}{' '.join(step.title.split())}: {', '.join(values)};")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _value(point: Point) -> str:
    estimate = point.estimate()
    return "failed" if estimate is None else f"{estimate.median:.0f}"
