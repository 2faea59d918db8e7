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
class Rung:
    """A chapter's program in its languages, or something that is only there to compare."""

    title: str  # what is written before it
    note: str
    points: Mapping[str, facts.Point]  # by what gives a bar its colour
    # how many times as fast each is as in the step before, where it follows one
    gains: Mapping[str, Estimate | None] = dataclasses.field(default_factory=dict)


def draw_rungs(
    theme: Theme,
    words: tuple[str, str],
    foot: str,
    panels: Mapping[str, Sequence[Rung]],
    label: str,
    is_bound: Callable[[facts.Point], bool] = lambda point: False,
) -> Sheet:
    """Draw a panel of bars for each setting, by its name, all on one scale, below two titles."""
    roles = {role for rungs in panels.values() for rung in rungs for role in rung.points}
    languages = [language for language in LANGUAGES if language in roles]
    inches = _LANE * max(2, len(languages)) + _APART  # two lines of words at least
    beside = min(_BESIDE, len(panels))
    named = list(panels.items())
    lines = [named[first : first + beside] for first in range(0, len(named), beside)]
    names = [_shared_names([rungs for _, rungs in line]) for line in lines]
    rows = [(_LOWER_ROOM if n else _ROOM, inches * len(some)) for n, some in enumerate(names)]
    sheet = Sheet(theme, words[0], rows, foot, subtitle=words[1])
    width = (WIDTH - _NAMES - _MARGIN - _GAP * (beside - 1)) / beside
    points = [
        point for rungs in panels.values() for rung in rungs for point in rung.points.values()
    ]
    most = max(facts.ends(point.estimate() for point in points), default=0) or 1e4
    for n, (name, rungs) in enumerate(named):
        row, column = divmod(n, beside)
        start = _NAMES + column * (width + _GAP)
        axis = sheet.axes(row, start, WIDTH - start - width)
        axis.set_xlim(0, most * 1.03)
        axis.locator_params(axis="x", nbins=4)
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1e3:g}")
        axis.set_xlabel(label)
        count_down(axis, inches * len(names[row]))
        write(axis, name, (0, 1), (0, 6), "axes fraction", fontsize=11)
        if not column:
            _name_rungs(axis, names[row], inches, theme)
        unnamed = dict(NAMES)  # a language is named at its first bar
        for rung in rungs:
            y = names[row].index((rung.title, rung.note)) * inches + _LANE / 2
            lanes = {role: y + place * _LANE for place, role in enumerate(languages)}
            said = {role: unnamed.pop(role, "") for role in rung.points}
            middle = y + _LANE * (max(2, len(languages)) - 1) / 2
            _draw_rung(axis, rung, lanes, middle, said, is_bound, theme)
    return sheet


def _shared_names(panels: Sequence[Sequence[Rung]]) -> list[tuple[str, str]]:
    """Return the names that panels in a line share: those of the longest first."""
    longest_first = sorted(panels, key=len, reverse=True)
    return list(dict.fromkeys((rung.title, rung.note) for rungs in longest_first for rung in rungs))


def _name_rungs(axis: Axes, names: Sequence[tuple[str, str]], inches: float, theme: Theme) -> None:
    """Write on the left what the steps are: two lines of words at most."""
    for row, (title, note) in enumerate(names):
        folded = textwrap.wrap(" ".join(title.split()), _COLUMNS)
        lines = [(line, theme.text, 10) for line in folded]
        lines += [(line, theme.faint, FAINT) for line in [note] if note]
        for n, (line, colour, letters) in enumerate(lines[:2]):
            style: dict[str, Any] = {"va": "center", "fontsize": letters, "color": colour}
            place, shift = (0, row * inches + (n + 0.5) * _LANE), ((_MARGIN - _NAMES) * 72, 0)
            write(axis, line, place, shift, axis.get_yaxis_transform(), **style)


def _draw_rung(
    axis: Axes,
    rung: Rung,
    lanes: Mapping[str, float],
    middle: float,
    said: Mapping[str, str],
    is_bound: Callable[[facts.Point], bool],
    theme: Theme,
) -> None:
    """Draw the bars of a step at their lanes, or in the middle, and in them what is said."""
    labels: dict[str, tuple[float, float, float, str]] = {}
    for role, point in rung.points.items():
        y, estimate, line = lanes.get(role, middle), point.estimate(), _line(rung, role)
        gain, at = rung.gains.get(role), size(point.samples[0].heap_size)
        gained = "" if gain is None else facts.gain_text(gain).removesuffix(" found")
        words = [said[role], gained]
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
        labels[role] = (y, *ends, ", ".join(filter(None, words)))
    for role, gain in rung.gains.items():
        if gain is not None:
            at, name = size(rung.points[role].samples[0].heap_size), _line(rung, role).name
            say(axis, f"{name}, gain over the step before", f"{at} {facts.gain_text(gain)}")
    if len(labels) > 1 and {words for *_, words in labels.values()} == {_ALIKE}:
        low = min(low for _, low, _, _ in labels.values())
        high = max(high for _, _, high, _ in labels.values())
        labels = {"": (middle, low, high, _ALIKE.replace(" ", "\n"))}
    for y, low, high, text in labels.values():
        _write(axis, y, low, high, text, theme)


def _write(axis: Axes, y: float, low: float, high: float, words: str, theme: Theme) -> None:
    """Write behind the end of a bar, or within it, or over what has to be covered for it."""
    right = axis.get_xlim()[1]
    inches = axis.get_position().width * WIDTH / right
    needed = _LETTER * max(map(len, words.splitlines()), default=0) + _MARGIN
    style: dict[str, Any] = {"va": "center_baseline", "color": theme.text, "zorder": 4}
    if (right - high) * inches > needed:
        end, shift, style["ha"] = high, 6, "left"
    elif low * inches > needed:
        end, shift, style["ha"] = low, -6, "right"
    else:
        style["bbox"] = {"facecolor": theme.background, "alpha": 0.8, "pad": 0.5, "linewidth": 0}
        is_low = right - high > 1.2 * low  # there is less of it behind than before
        end, shift, style["ha"] = (right, 0, "right") if is_low else (0, 3, "left")
    write(axis, words, (end, y), (shift, 0), fontsize=FAINT, **style)


def _line(rung: Rung, role: str) -> Line:
    """Return what the points of a bar have in common with those of other sizes."""
    who, row = _WHO[role], " ".join(f"{rung.title} {rung.note}".split())
    return Line(f"{row}, {who}" if role in NAMES else row, role, rung.points[role].key)


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
class _Compared(Rung):
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
        x: [
            *_rungs([sample for sample in ours if sample.heap_size == x]),
            *_best_of_others(found, x),
        ]
        for x in sorted({sample.heap_size for sample in ours}, reverse=True)
    }
    sheet = draw_rungs(
        theme,
        (_title(panels), "At each bar: how many times as fast as the step before"),
        facts.caption(recording, "median of {rounds} rounds, line: {spread}"),
        {f"Heaps of {size(n)}": rungs for n, rungs in panels.items()},
        "payload sent, GB/s",
    )
    return sheet.drawn("Bars: the rate of each chapter's program in MB/s, by the size of heaps.")


def _title(panels: Mapping[int, Sequence[_Compared]]) -> str:
    """Say of the largest heaps how many times as fast the last chapter is as the first."""
    heap_size, rungs = next(iter(panels.items()))
    by_number = {rung.chapter.number: rung for rung in rungs if rung.is_chained and rung.chapter}
    if len(by_number) < 2:
        return "The chapters' rates"
    first, last = min(by_number), max(by_number)
    gains = facts.gain_each(by_number[first].points, by_number[last].points)
    return f"{size(heap_size)} heaps, chapter {first} to {last}: {facts.gained(gains)}"


def _rungs(samples: Sequence[Sample]) -> list[_Compared]:
    """Return the rungs of a panel, chapter by chapter, from constant samples on."""
    by_program: dict[tuple[str, bool], dict[str, list[Sample]]] = {}
    for sample in samples:
        languages = by_program.setdefault((sample.program, sample.random), {})
        languages.setdefault(sample.language, []).append(sample)
    rungs = {
        (_taught_order(chapter), program, not with_random): _Compared(
            f"{chapter.number}  {chapter.title}"
            + ", random" * (with_random and "r" in chapter.accepted),
            "",
            {name: facts.Point(tuple(languages[name])) for name in LANGUAGES if name in languages},
            chapter=chapter,
        )
        for (program, with_random), languages in by_program.items()
        for chapter in (find_chapter(program),)
    }
    first = _taught_order(find_chapter(_FIRST))
    constant = [place for place in rungs if place[0] >= first and place[2]]
    some = [rungs[place] for place in sorted(constant or rungs)]
    before = {
        id(after): before.points for before, after in pairwise(r for r in some if r.is_chained)
    }
    return [
        dataclasses.replace(rung, gains=facts.gain_each(before.get(id(rung), {}), rung.points))
        for rung in some
    ]


def _taught_order(chapter: Chapter) -> tuple[int, int]:
    """Return where a program is: by its chapter's number, and those of a chapter as taught."""
    return chapter.number, _TAUGHT.index(chapter.name) if chapter.name in _TAUGHT else -1


def _best_of_others(
    found: Mapping[Series, Mapping[int, facts.Point]], heap_size: int
) -> list[_Compared]:
    """Return what the chapters are to be compared with: the peer at its best, and the best loop."""
    there = {series: known[heap_size] for series, known in found.items() if heap_size in known}
    peers = [series for series in there if series.implementation == _PEER]
    best = {
        series.language: there[series]
        for series in sorted(peers, key=lambda series: there[series].median)
    }
    rungs = [
        _Compared(f"spead2 in {NAMES[language]}", "its best chapter", {"spead2": point})
        for language, point in best.items()
    ]
    bare = {series: point for series, point in there.items() if facts.is_bare(series)}
    if bare:
        series = max(bare, key=lambda series: bare[series].median)
        rungs.append(_Compared("bare system calls", series.variant, {"limit": bare[series]}))
    return rungs
