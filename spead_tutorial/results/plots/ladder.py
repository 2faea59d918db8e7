# SPDX-License-Identifier: BSD-3-Clause
"""Ladders: a mark for each rate on a logarithmic scale, and beside it what that step gained."""

import dataclasses
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import (
    BESIDE_LADDER,
    LADDER,
    LANGUAGES,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.render import Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, count_down, write
from spead_tutorial.results.plots.theme import MARKERS, NAMES, Theme
from spead_tutorial.results.units import number, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Step", "draw_steps", "ladder", "step_title"]

#: Whose a mark is.
_WHO = {**NAMES, "spead2": "spead2", "limit": "bare system calls"}
_LANE, _APART = 0.18, 0.04
_ROOM, _LOWER_ROOM = 0.45, 0.75
_LABELS, _NARROW_LABELS, _LABEL_COLUMNS, _NARROW_LABEL_COLUMNS = 2.03, 1.64, 26, 18
_MARGIN, _GAP = 0.12, 0.12
_NAME_COLUMNS, _MOST_BESIDE = 24, 2
#: Inches that a power of ten needs to have its number.
_DECADE = 0.27
#: Inches on the right of a panel for what it says of each mark, without its rate and with it.
_WORDS, _MORE_WORDS = 1.3, 2.2


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A chapter's program in its languages, or something beside them."""

    title: str  # what is written before it
    note: str
    points: Mapping[str, facts.Point]  # by what gives a mark its colour
    # how many times as fast each is as in the step before, where it follows one
    gains: Mapping[str, Estimate | None] = dataclasses.field(default_factory=dict)


def draw_steps(
    theme: Theme,
    title: str,
    subtitle: str,
    foot: str,
    panels: Mapping[str, Sequence[Step]],
    label: str,
    is_bound: Callable[[facts.Point], bool] = lambda point: False,
) -> Sheet:
    """Draw a panel of marks for each of several settings, by its name, all on one scale."""
    from matplotlib.lines import Line2D

    all_steps = list(panels.values())
    roles = {role for steps in all_steps for step in steps for role in step.points}
    languages = [language for language in LANGUAGES if language in roles]
    inches = _LANE * max(2, len(languages)) + _APART  # two lines of words at least
    stacked = theme.is_narrow or len(panels) > _MOST_BESIDE
    rows = [(_ROOM, inches * len(_labels(all_steps)))]
    if stacked:
        rows = [(_LOWER_ROOM if n else _ROOM, inches * len(one)) for n, one in enumerate(all_steps)]
    marks = {name: _marker(role, theme) for role, name in _WHO.items() if role in roles}
    legend = [Line2D([], [], label=name, linewidth=2, **mark) for name, mark in marks.items()]
    sheet = Sheet(theme, title, rows, foot, subtitle=subtitle, legend=legend, columns=4)
    left = _NARROW_LABELS if theme.is_narrow else _LABELS
    count = 1 if stacked else len(panels)
    width = (theme.width - left - _MARGIN - _GAP * (count - 1)) / count
    for n, (name, steps) in enumerate(panels.items()):
        places = _labels([steps] if stacked else all_steps)
        start = left + (0 if stacked else n * (width + _GAP))
        axis = sheet.axes(n if stacked else 0, start, theme.width - start - width)
        with_rate = not theme.is_narrow and count == 1
        words = _MORE_WORDS if with_rate else _WORDS
        _scale(axis, all_steps, width - words, width, inches * len(places))
        shown = "\n".join(textwrap.wrap(name, _NAME_COLUMNS)) if count > 1 else name
        shift = ((_MARGIN - left) * 72 if theme.is_narrow else 0, 6)
        write(axis, shown, (0, 1), shift, "axes fraction", fontsize=11)
        if stacked or not n:
            _write_labels(axis, places, inches, left, theme)
        for step in steps:
            said = {role: _said(step, role, is_bound, with_rate) for role in step.points}
            _draw_step(axis, places.index(_label(step)) * inches, languages, step, said, theme)
            for role, point in step.points.items():
                if is_bound(point):
                    at = size(point.samples[0].heap_size)
                    say(axis, _line(step, role).name, f"{at} is a lower bound")
        axis.set_xlabel(label)
    return sheet


def _label(step: Step) -> tuple[str, str]:
    return step.title, step.note


def _labels(panels: Sequence[Sequence[Step]]) -> list[tuple[str, str]]:
    """Return the lines that panels beside each other have: those of the longest first."""
    longest_first = sorted(panels, key=len, reverse=True)
    return list(dict.fromkeys(_label(step) for steps in longest_first for step in steps))


def _scale(
    axis: "Axes", panels: Sequence[Sequence[Step]], inches: float, width: float, height: float
) -> None:
    """Give a panel its scales: inches downwards, and tens in so many of its inches."""
    estimates = [
        one.estimate() for steps in panels for step in steps for one in step.points.values()
    ]
    ends = [end for end in facts.ends(estimates) if end > 0]
    low, high = (min(ends) * 0.7, max(ends)) if ends else (1.0, 10.0)
    axis.set_xscale("log")
    axis.set_xlim(low, low * (high / low) ** (width / inches))
    count_down(axis, height)
    tens = [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    crowded = inches < _DECADE * math.log10(high / low)
    axis.set_xticks(tens[:: 1 + crowded])
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda x, _: number(x / 1e3))


def _write_labels(
    axis: "Axes", labels: Sequence[tuple[str, str]], inches: float, left: float, theme: Theme
) -> None:
    """Name the steps on the left of a panel: two lines of words at most."""
    columns = _NARROW_LABEL_COLUMNS if theme.is_narrow else _LABEL_COLUMNS
    for row, (title, note) in enumerate(labels):
        lines = [(line, theme.text, 10) for line in textwrap.wrap(" ".join(title.split()), columns)]
        lines += [(line, theme.faint, FAINT) for line in [note] if note]
        for n, (line, colour, letters) in enumerate(lines[:2]):
            look: dict[str, Any] = {"va": "center", "fontsize": letters, "color": colour}
            place, shift = (0, row * inches + (n + 0.65) * _LANE), ((_MARGIN - left) * 72, 0)
            write(axis, line, place, shift, axis.get_yaxis_transform(), **look)


def _said(step: Step, role: str, is_bound: Callable[[facts.Point], bool], with_rate: bool) -> str:
    """Return what stands beside a mark: what was gained, and its rate where there is room."""
    estimate, one = step.points[role].estimate(), step.gains.get(role)
    if estimate is None:
        return "failed: no rate"
    words = [] if one is None else [facts.told(one)]
    least = "at least " * is_bound(step.points[role])
    words.append(least + f"{number(estimate.median / 1e3)} GB/s" if with_rate else least.strip())
    return ", ".join(filter(None, words))


def _draw_step(
    axis: "Axes",
    y: float,
    languages: Sequence[str],
    step: Step,
    said: Mapping[str, str],
    theme: Theme,
) -> None:
    lanes = {role: y + (n + 0.65) * _LANE for n, role in enumerate(languages)}
    middle = y + (0.15 + max(2, len(languages)) / 2) * _LANE
    ends = {
        role: _draw_point(axis, lanes.get(role, middle), point, _line(step, role), theme)
        for role, point in step.points.items()
    }
    for role, one in step.gains.items():
        if one is not None:
            at = size(step.points[role].samples[0].heap_size)
            gained = f"{_line(step, role).name}, gain over the step before"
            say(axis, gained, f"{at} {facts.told(one)}")
    if len(said) > 1 and set(said.values()) == {facts.NO_DIFFERENCE}:
        said, ends = {"": facts.NO_DIFFERENCE}, {"": max(ends.values())}
    for role, words in said.items():
        colour = theme.faint if words == facts.NO_DIFFERENCE else theme.text
        look: dict[str, Any] = {"va": "center_baseline", "fontsize": FAINT, "color": colour}
        write(axis, words, (ends[role], lanes.get(role, middle)), (7, 0), **look)


def _line(step: Step, role: str) -> Line:
    """Return what the points of a mark have in common with those of other sizes."""
    who, row = _WHO[role], " ".join(f"{step.title} {step.note}".split())
    key = step.points[role].key
    return Line(f"{row}, {who}" if role in NAMES else row, role, who, row, key)


def _draw_point(axis: "Axes", y: float, point: facts.Point, line: Line, theme: Theme) -> float:
    """Draw a point with its interval, or a cross where it failed; return where that ends."""
    estimate = point.estimate()
    if estimate is None:
        say(axis, line.name, f"{size(point.samples[0].heap_size)} failed")
        left, _ = axis.get_xlim()
        axis.plot([left], [y], marker="x", markersize=6, color=theme.text, clip_on=False)
        return left
    role, heap_size = line.role, point.samples[0].heap_size
    mark(axis, estimate.median, y, line, heap_size, estimate)
    colour = theme.colours[role]
    axis.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2)
    axis.plot([estimate.median], [y], zorder=3, **_marker(role, theme))
    return estimate.high


def _marker(role: str, theme: Theme) -> dict[str, Any]:
    colour = theme.colours[role]
    return {"color": colour, "marker": MARKERS[role], "markersize": 6}


# ---------------------------------------------------------------------------------------
# The chapters, and what else there is to compare

_ASIDE = {rung.program for rung in BESIDE_LADDER}
_PEER, _BARE = "spead2-source", "ceiling"


@dataclasses.dataclass(frozen=True, slots=True)
class _Rung(Step):
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
    sheet = draw_steps(
        theme,
        _title(panels),
        ". ".join([gains, *_alike(panels)]),
        facts.caption(recording, "median of {rounds} rounds, line: {spread}"),
        {f"Heaps of {size(n)}": rungs for n, rungs in panels.items()},
        "payload sent, GB/s",
    )
    return sheet.drawn("Dots: the rate of each chapter's program in MB/s, by the size of heaps.")


def _chain(rungs: Sequence[_Rung]) -> list[_Rung]:
    return [rung for rung in rungs if rung.is_chained]


def _with_gains(rungs: Sequence[_Rung]) -> list[_Rung]:
    """Add what each gained on the one before."""
    before = {id(after): rung.points for rung, after in pairwise(_chain(rungs))}
    return [
        dataclasses.replace(one, gains=facts.gain_each(before.get(id(one), {}), one.points))
        for one in rungs
    ]


def _title(panels: _Panels) -> str:
    """Say for each size how many times as fast the last chapter is as where the first ends."""
    said = []
    for heap_size, rungs in panels.items():
        by_number = {rung.chapter.number: rung for rung in _chain(rungs) if rung.chapter}
        if len(by_number) > 1:
            first, last = min(by_number), max(by_number)
            gains = facts.gain_each(by_number[first].points, by_number[last].points)
            chapters = f"from the end of chapter {first} to {last}"
            said.append(f"{size(heap_size)} heaps, {chapters}: {facts.gained(gains)}")
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
    # A warm-up is not counted, but where it failed something is wrong.
    there = (one for one in recording.samples if not one.warm_up or one.failure is not None)
    ours = [one for one in there if one.implementation == OURS and not one.variant]
    if not ours:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    sizes = sorted({sample.heap_size for sample in ours}, reverse=True)
    found = facts.points(recording.samples)
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
            {name: facts.Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
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


def _beside(found: Mapping[Series, Mapping[int, facts.Point]], heap_size: int) -> list[_Rung]:
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
