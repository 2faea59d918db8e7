# SPDX-License-Identifier: BSD-3-Clause
"""Ladders: a bar for each rate, step by step, and in it what that step gained."""

import dataclasses
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from spead_tutorial.chapters.catalogue import (
    BESIDE_LADDER,
    LADDER,
    LANGUAGES,
    Chapter,
    find_chapter,
)
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.render import Axes, Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, count_down, write
from spead_tutorial.results.plots.theme import MARKERS, NAMES, WIDTH, Theme
from spead_tutorial.results.units import size

#: Whose a bar is.
_WHO = {**NAMES, "spead2": "spead2", "limit": "bare system calls"}
#: Inches: from bar to bar, of a bar, between steps, and above the panels.
_LANE, _BAR, _APART, _ROOM, _LOWER_ROOM = 0.17, 0.15, 0.05, 0.35, 0.8
#: Inches of the names of steps, and how many letters a line of them has.
_NAMES, _COLUMNS = 2.0, 26
_MARGIN, _GAP, _BESIDE, _LETTER = 0.12, 0.2, 2, 0.075
#: Where there is little room.
_ALIKE = "no difference"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A chapter's program in its languages, or something that is only there to compare."""

    title: str  # what is written before it
    note: str
    points: Mapping[str, facts.Point]  # by what gives a bar its colour
    # how many times as fast each is as in the step before, where it follows one
    gains: Mapping[str, Estimate | None] = dataclasses.field(default_factory=dict)


def draw_steps(
    theme: Theme,
    words: tuple[str, str],
    foot: str,
    panels: Mapping[str, Sequence[Step]],
    label: str,
    is_bound: Callable[[facts.Point], bool] = lambda point: False,
) -> Sheet:
    """Draw a panel of bars for each setting, by its name, all on one scale, below two titles."""
    roles = {role for steps in panels.values() for step in steps for role in step.points}
    languages = [language for language in LANGUAGES if language in roles]
    inches = _LANE * max(2, len(languages)) + _APART  # two lines of words at least
    beside = min(_BESIDE, len(panels))
    named = list(panels.items())
    lines = [named[first : first + beside] for first in range(0, len(named), beside)]
    places = [_places([steps for _, steps in line]) for line in lines]
    rows = [(_LOWER_ROOM if n else _ROOM, inches * len(names)) for n, names in enumerate(places)]
    sheet = Sheet(theme, words[0], rows, foot, subtitle=words[1])
    width = (WIDTH - _NAMES - _MARGIN - _GAP * (beside - 1)) / beside
    points = [
        point for steps in panels.values() for step in steps for point in step.points.values()
    ]
    most = max(facts.ends(point.estimate() for point in points), default=0) or 1e4
    for n, (name, steps) in enumerate(named):
        row, column = divmod(n, beside)
        start = _NAMES + column * (width + _GAP)
        axis = sheet.axes(row, start, WIDTH - start - width)
        axis.set_xlim(0, most * 1.03)
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1e3:g}")
        axis.set_xlabel(label)
        count_down(axis, inches * len(places[row]))
        write(axis, name, (0, 1), (0, 6), "axes fraction", fontsize=11)
        if not column:
            _name_steps(axis, places[row], inches, theme)
        unnamed = dict(NAMES)  # a language is named at its first bar
        for step in steps:
            y = places[row].index((step.title, step.note)) * inches + _LANE / 2
            lanes = {role: y + place * _LANE for place, role in enumerate(languages)}
            said = {role: unnamed.pop(role, "") for role in step.points}
            middle = y + _LANE * (max(2, len(languages)) - 1) / 2
            _draw_step(axis, step, lanes, middle, said, is_bound, theme)
    return sheet


def _places(panels: Sequence[Sequence[Step]]) -> list[tuple[str, str]]:
    """Return the names that panels in a line share: those of the longest first."""
    longest_first = sorted(panels, key=len, reverse=True)
    return list(dict.fromkeys((step.title, step.note) for steps in longest_first for step in steps))


def _name_steps(axis: Axes, names: Sequence[tuple[str, str]], inches: float, theme: Theme) -> None:
    """Write on the left what the steps are: two lines of words at most."""
    for row, (title, note) in enumerate(names):
        folded = textwrap.wrap(" ".join(title.split()), _COLUMNS)
        lines = [(line, theme.text, 10) for line in folded]
        lines += [(line, theme.faint, FAINT) for line in [note] if note]
        for n, (line, colour, letters) in enumerate(lines[:2]):
            look: dict[str, Any] = {"va": "center", "fontsize": letters, "color": colour}
            place, shift = (0, row * inches + (n + 0.5) * _LANE), ((_MARGIN - _NAMES) * 72, 0)
            write(axis, line, place, shift, axis.get_yaxis_transform(), **look)


def _draw_step(
    axis: Axes,
    step: Step,
    lanes: Mapping[str, float],
    middle: float,
    said: Mapping[str, str],
    is_bound: Callable[[facts.Point], bool],
    theme: Theme,
) -> None:
    """Draw the bars of a step at their lanes, or in the middle, and in them what is said."""
    told: dict[str, tuple[float, float, float, str]] = {}
    for role, point in step.points.items():
        y, estimate, line = lanes.get(role, middle), point.estimate(), _line(step, role)
        gain, at = step.gains.get(role), size(point.samples[0].heap_size)
        words = [said[role], facts.told(gain).removesuffix(" found") if gain is not None else ""]
        if estimate is None:
            say(axis, line.name, f"{at} failed")
            axis.plot([0], [y], marker="x", markersize=6, color=theme.text, clip_on=False)
            words.append("failed: no rate")
        else:
            _draw_bar(axis, y, estimate, line, point, theme)
        if is_bound(point):
            say(axis, line.name, f"{at} is a lower bound")
            words.append("\N{GREATER-THAN OR EQUAL TO}")
        ends = (0.0, 0.0) if estimate is None else (estimate.low, estimate.high)
        told[role] = (y, *ends, ", ".join(filter(None, words)))
    for role, gain in step.gains.items():
        if gain is not None:
            at, name = size(step.points[role].samples[0].heap_size), _line(step, role).name
            say(axis, f"{name}, gain over the step before", f"{at} {facts.told(gain)}")
    if len(told) > 1 and {words for *_, words in told.values()} == {_ALIKE}:
        low = min(words[1] for words in told.values())
        high = max(words[2] for words in told.values())
        told = {"": (middle, low, high, _ALIKE.replace(" ", "\n"))}
    for y, low, high, one_said in told.values():
        _write(axis, y, low, high, one_said, theme)


def _write(axis: Axes, y: float, low: float, high: float, words: str, theme: Theme) -> None:
    """Write behind the end of a bar, or within it, or over what has to be covered for it."""
    right = axis.get_xlim()[1]
    inches = axis.get_position().width * WIDTH / right
    needed = _LETTER * max(map(len, words.splitlines()), default=0) + _MARGIN
    look: dict[str, Any] = {"va": "center_baseline", "color": theme.text, "zorder": 4}
    if (right - high) * inches > needed:
        end, shift, look["ha"] = high, 6, "left"
    elif low * inches > needed:
        end, shift, look["ha"] = low, -6, "right"
    else:
        look["bbox"] = {"facecolor": theme.background, "alpha": 0.8, "pad": 0.5, "linewidth": 0}
        is_low = right - high > 1.2 * low  # there is less of it behind than before
        end, shift, look["ha"] = (right, 0, "right") if is_low else (0, 3, "left")
    write(axis, words, (end, y), (shift, 0), fontsize=FAINT, **look)


def _line(step: Step, role: str) -> Line:
    """Return what the points of a bar have in common with those of other sizes."""
    who, row = _WHO[role], " ".join(f"{step.title} {step.note}".split())
    return Line(f"{row}, {who}" if role in NAMES else row, role, step.points[role].key)


def _draw_bar(
    axis: Axes, y: float, estimate: Estimate, line: Line, point: facts.Point, theme: Theme
) -> None:
    """Draw a pale bar that ends in its median and interval."""
    colour = theme.colours[line.role]
    axis.barh(y, estimate.median, _BAR, color=theme.pale(line.role), linewidth=0)
    mark(axis, estimate.median, y, line, point.samples[0].heap_size, estimate)
    axis.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2)
    axis.plot([estimate.median], [y], zorder=3, color=colour, marker=MARKERS[line.role])


# ---- The chapters, and what else there is to compare ----

_TAUGHT = [rung.program for rung in LADDER]
_ASIDE = {rung.program for rung in BESIDE_LADDER}
#: Before it, samples are random: that is what those programs spend their time on.
_FIRST = "tut_4_send_constant"
_PEER = "spead2-source"


@dataclasses.dataclass(frozen=True, slots=True)
class _Rung(Step):
    """A chapter's program in its languages, or something to compare, at a size of heaps."""

    chapter: Chapter | None = None

    @property
    def is_chained(self) -> bool:
        """Whether it is a step up: to the same place as the others, and on from one before."""
        chapter = self.chapter
        return chapter is not None and chapter.takes_destination and chapter.name not in _ASIDE


def ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw what every chapter gained in each language, a panel for each size of heaps."""
    # A warm-up is not counted, but where it failed something is wrong.
    there = (
        sample for sample in recording.samples if not sample.warm_up or sample.failure is not None
    )
    ours = [sample for sample in there if sample.implementation == OURS and not sample.variant]
    if not ours:
        raise ValueError("the recording has no sample of the chapters: spead-tutorial tour")
    found = facts.points(recording.samples)
    panels = {
        x: [*_rungs([sample for sample in ours if sample.heap_size == x]), *_beside(found, x)]
        for x in sorted({sample.heap_size for sample in ours}, reverse=True)
    }
    sheet = draw_steps(
        theme,
        (_title(panels), "At each bar: how many times as fast as the step before"),
        facts.caption(recording, "median of {rounds} rounds, line: {spread}"),
        {f"Heaps of {size(n)}": rungs for n, rungs in panels.items()},
        "payload sent, GB/s",
    )
    return sheet.drawn("Bars: the rate of each chapter's program in MB/s, by the size of heaps.")


def _title(panels: Mapping[int, Sequence[_Rung]]) -> str:
    """Say of the largest heaps how many times as fast the last chapter is as the first."""
    heap_size, rungs = next(iter(panels.items()))
    by_number = {rung.chapter.number: rung for rung in rungs if rung.is_chained and rung.chapter}
    if len(by_number) < 2:
        return "The chapters' rates"
    first, last = min(by_number), max(by_number)
    gains = facts.gain_each(by_number[first].points, by_number[last].points)
    return f"{size(heap_size)} heaps, chapter {first} to {last}: {facts.gained(gains)}"


def _rungs(samples: Sequence[Sample]) -> list[_Rung]:
    """Return the rungs of a panel, chapter by chapter, from constant samples on."""
    by_step: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_step.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    rungs = {
        (_place(chapter), program, not with_random): _Rung(
            f"{chapter.number}  {chapter.title}"
            + ", random" * (with_random and "r" in chapter.accepted),
            "",
            {name: facts.Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
            chapter=chapter,
        )
        for (program, with_random), languages in by_step.items()
        for chapter in (find_chapter(program),)
    }
    first = _place(find_chapter(_FIRST))
    constant = [place for place in rungs if place[0] >= first and place[2]]
    some = [rungs[place] for place in sorted(constant or rungs)]
    before = {
        id(after): before.points for before, after in pairwise(r for r in some if r.is_chained)
    }
    return [
        dataclasses.replace(rung, gains=facts.gain_each(before.get(id(rung), {}), rung.points))
        for rung in some
    ]


def _place(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    return chapter.number, _TAUGHT.index(chapter.name) if chapter.name in _TAUGHT else -1


def _beside(found: Mapping[Series, Mapping[int, facts.Point]], heap_size: int) -> list[_Rung]:
    """Return what the chapters are to be compared with: the peer at its best, and the best loop."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    best = {
        series.language: there[series]
        for series in sorted(peers, key=lambda series: there[series].median)
    }
    rungs = [
        _Rung(f"spead2 in {NAMES[language]}", "its best chapter", {"spead2": point})
        for language, point in best.items()
    ]
    bare = {series: point for series, point in there.items() if facts.is_bare(series)}
    if bare:
        series = max(bare, key=lambda series: bare[series].median)
        rungs.append(_Rung("bare system calls", series.variant, {"limit": bare[series]}))
    return rungs
