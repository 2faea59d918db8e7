# SPDX-License-Identifier: BSD-3-Clause
"""The ladder: the rate of every chapter in both languages."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spead_tutorial.catalogue import LADDER, LANGUAGES, Chapter, find_chapter
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.points import Point, highest
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, rate_axis
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Sample
from spead_tutorial.units import size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RATE", "ladder", "step_title"]

#: What an axis of rates is called.
RATE = "payload sent in MB/s (10⁶ bytes a second)"
_TITLE = "What each chapter gained"
_SIDES = (0.2, 0.2)
_ROOM, _FIRST_ROOM = 0.62, 0.66


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """A chapter's program, with random samples or with a fill, in its languages."""

    chapter: Chapter
    random: bool
    points: dict[str, Point]


def ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of every chapter in both languages, a panel for each size of heaps.

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
    heights = [bars.GROUP * len(steps) for _, steps in panels]
    rows = [(_ROOM if row else _FIRST_ROOM, height) for row, height in enumerate(heights)]
    sheet = Sheet(theme, _TITLE, rows, caption(recording), legend=bars.language_legend(theme))
    most = highest(point for _, steps in panels for step in steps for point in step.points.values())
    for row, (heap_size, steps) in enumerate(panels):
        axis = sheet.axes(row, *_SIDES)
        bars.prepare(axis, heights[row], most)
        for index, step in enumerate(steps):
            _draw_step(axis, index * bars.GROUP, step, theme)
        axis.set_title(f"Heaps of {size(heap_size)}", loc="left", fontsize=11)
        rate_axis(axis, theme, "top" if not row else None)
    axis.set_xlabel(RATE)
    return sheet.figure, _TITLE, _in_words(recording, panels)


def _panels(recording: Recording) -> list[tuple[int, list[_Step]]]:
    """Sort a recording's samples into steps, and those into panels, largest heaps first."""
    panels: dict[int, dict[tuple[str, bool], dict[str, list[Sample]]]] = {}
    for sample in recording.samples:
        # A warm-up is not counted, but where it failed something is wrong.
        if (
            sample.implementation != OURS
            or sample.variant
            or (sample.warm_up and sample.failure is None)
        ):
            continue
        steps = panels.setdefault(sample.heap_size, {})
        languages = steps.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    if not panels:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    return [(heap_size, _steps(panels[heap_size])) for heap_size in sorted(panels, reverse=True)]


def _steps(samples_by_step: dict[tuple[str, bool], dict[str, list[Sample]]]) -> list[_Step]:
    """Return the steps of a panel: chapter by chapter, random samples before the fill."""
    steps = [
        _Step(
            find_chapter(program),
            with_random,
            {name: Point(tuple(samples)) for name, samples in sorted(languages.items())},
        )
        for (program, with_random), languages in samples_by_step.items()
    ]
    return sorted(steps, key=lambda step: (_place(step.chapter), not step.random))


def _place(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    taught = [rung.program for rung in LADDER]
    return chapter.number, taught.index(chapter.name) if chapter.name in taught else -1


def _draw_step(axis: "Axes", y: float, step: _Step, theme: Theme) -> None:
    title = step_title(step.chapter, step.random)
    bars.label_group(axis, y, title, step.chapter.change, theme)
    lanes = bars.lanes(y)
    for language, point in step.points.items():
        bars.draw_bar(axis, lanes[language], point, language, theme)


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
                f"{NAMES[language]} {_value(step.points[language])}"
                for language in LANGUAGES
                if language in step.points
            ]
            label = " ".join(step_title(step.chapter, step.random).split())
            sentences.append(f"chapter {label}: {', '.join(values)};")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _value(point: Point) -> str:
    estimate = point.estimate()
    return "failed" if estimate is None else f"{estimate.median:.0f}"
