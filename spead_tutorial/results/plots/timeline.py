# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the program prepares each heap, and when the network thread sends it."""

import textwrap
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.analysis import (
    Interval,
    first_steady,
    preparing,
    sending,
    shares,
    waiting,
)
from spead_tutorial.measure.records import Recording, Timeline
from spead_tutorial.measure.stats import median
from spead_tutorial.results.plots import scales
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import say
from spead_tutorial.results.plots.sheet import FAINT, Drawn, Sheet, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.units import number, percent, size

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = [
    "IN_TURNS",
    "OVERLAPPED",
    "counted",
    "fill",
    "patch",
    "timeline",
    "timelines",
    "title",
    "way",
]

#: The two ways to send.
IN_TURNS, OVERLAPPED = "in turns", "overlapped"

_HEAPS = 7
_SIDES = (0.86, 0.2)
#: Inches: the room above a block and its height; in it, its rows of bars, and how high they are.
_ROOM, _HEIGHT = 0.56, 1.1
_PROGRAM, _NETWORK, _BAR = 0.36, 0.88, 0.26
#: Inches from the number of a heap to that of the next, at least; and of what is said of a gap.
_NUMBER, _WORD = 0.18, 0.46
#: Inches: the room above the band that heads blocks of one scale, and where their mark is.
_BAND_ROOM, _MARK = 0.42, 0.27
#: What is said of a block is in lines of so many letters where it is narrow; inches of a line.
_COLUMNS, _LINE = 46, 0.16
#: When the network thread has nothing to do for so large a part of what is shown, it says so.
_LONG = 0.1

#: Runs that are drawn to one scale: the same samples, sent to the same place.
Group: TypeAlias = Sequence[Timeline]


def timeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw a block for each timeline: a few heaps from the middle of its run.

    Those of the same samples have one scale, with a band above them that says which.
    """
    groups = _groups(recording)
    runs = [run for group in groups for run in group]
    spans = [_span(group) for group in groups]
    rows = []
    for place, group in enumerate(groups):
        rows.append((_BAND_ROOM if place else 0.2, scales.band_height(theme)))
        rows += [(_ROOM + _LINE * theme.is_narrow, _HEIGHT)] * len(group)
    shown = " or ".join(dict.fromkeys(map(counted, runs)))
    kinds = dict.fromkeys(f"{NAMES[run.language]}, heaps of {size(run.heap_size)}" for run in runs)
    sheet = Sheet(
        theme,
        _title(groups),
        rows,
        caption(recording, f"times of one run each, bars: heaps from its middle, shares: {shown}"),
        subtitle=f"Who works when: program and network thread ({' or '.join(kinds)})",
        legend=[patch(theme, role) for role in ("preparing", "waiting", "sending")],
        columns=3,
    )
    row = 0
    for group, span in zip(groups, spans, strict=True):
        scales.draw_band(sheet, row, samples(group[0]), span, max(spans))
        for run in group:
            row += 1
            axis = sheet.axes(row, *_SIDES)
            _draw_block(axis, run, span, theme)
            _name_block(axis, run, theme)
            _say_block(axis, run, span)
            scales.draw_mark(axis, scales.mark(spans), _MARK + _LINE * theme.is_narrow, theme)
            if run is not group[-1]:
                axis.tick_params(axis="x", labelbottom=False)
        row += 1
    since = "" if theme.is_narrow else " since the first of these heaps was begun"
    axis.set_xlabel(f"time in ms{since}")
    return sheet.drawn(
        "A block for each program; in it, bars in time: when the program prepares each heap and"
        " when it waits, and when the network thread sends each heap. Blocks of the same samples"
        " have one scale."
    )


def timelines(recording: Recording) -> list[Timeline]:
    """Return a recording's timelines: random samples before constant, in turns before overlapped.

    Those with a limit to the rate come last.
    """
    runs = [run for run in recording.timelines if run.prepare_ns]
    if not runs:
        raise ValueError("the recording has no timeline: python -m bench run tut-5")
    return sorted(
        runs,
        key=lambda run: (
            run.variant,
            not run.random,
            find_chapter(run.program).number,
            run.language != "python",
        ),
    )


def counted(one: Timeline) -> str:
    """Return which heaps of a timeline its shares are of."""
    return f"heaps {first_steady(one)} to {len(one.prepare_ns) - 1}"


def samples(one: Timeline) -> str:
    """Return which samples a timeline is of, and where they were sent to."""
    kind = "Random samples" if one.random else "Constant samples"
    return f"{kind}, {one.variant}" if one.variant else kind


def way(one: Timeline) -> str:
    """Return whether it was in turns or overlapped."""
    return OVERLAPPED if find_chapter(one.program).number == 5 else IN_TURNS


def title(one: Timeline) -> str:
    """Return what a timeline is of."""
    kind = "Random samples" if one.random else "Constant samples"
    return ", ".join(filter(None, (kind, way(one), one.variant)))


def _groups(recording: Recording) -> list[Group]:
    """Sort the runs into those of one scale."""
    runs = timelines(recording)
    return [list(group) for _, group in groupby(runs, key=lambda run: (run.variant, run.random))]


def _span(group: Group) -> int:
    """Return for how many ns each run of a group is shown: none of them ends before."""
    shown, left = [], []
    for run in group:
        heaps = _first_heaps(run)
        begin = run.prepare_ns[heaps[0]]
        shown.append(max(_end(run, heap) for heap in heaps) - begin)
        left.append(max(_end(run, heap) for heap in range(heaps[0], len(run.prepare_ns))) - begin)
    return min(max(shown), *left) or 1


def _first_heaps(run: Timeline) -> range:
    """Return a few heaps from the middle of a run."""
    n = len(run.prepare_ns)
    first = max(0, n - _HEAPS) // 2
    return range(first, min(n, first + _HEAPS))


def _end(run: Timeline, heap: int) -> int:
    return max(run.resumed_ns[heap], run.last_packet_ns[heap])


def _window(run: Timeline, span: int) -> tuple[range, Interval]:
    """Return the heaps that are begun within what is shown, and from when to when that is."""
    first = _first_heaps(run)[0]
    begin = run.prepare_ns[first]
    n = sum(begin <= time < begin + span for time in run.prepare_ns[first:])
    return range(first, first + n), (begin, begin + span)


def _title(groups: Sequence[Group]) -> str:
    """Say how busy the network thread is, where overlapping changed that most."""
    busy = [{way(run): shares(run).sending for run in group} for group in groups]
    changes = [abs(ways[OVERLAPPED] - ways[IN_TURNS]) if len(ways) > 1 else 0.0 for ways in busy]
    place = changes.index(max(changes))
    words = ", ".join(f"{percent(share)} {how}" for how, share in busy[place].items())
    return f"{samples(groups[place][0])}: network thread busy {words}"


def _draw_block(axis: "Axes", run: Timeline, span: int, theme: Theme) -> None:
    _, (begin, end) = _window(run, span)
    axis.set_xlim(0, span / 1e6)
    axis.set_ylim(_HEIGHT, 0)
    axis.set_yticks([_PROGRAM, _NETWORK], ["program", "network\nthread"])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    shown = [
        (_PROGRAM, "preparing", preparing(run)),
        (_NETWORK, "sending", sending(run)),
    ]
    apart = _NUMBER * span / 1e6 / (theme.width - sum(_SIDES))
    for y, role, intervals in shown:
        last = -apart
        for heap, interval in enumerate(intervals):
            if _overlap(interval, (begin, end)):
                ends = _ms(interval, begin)
                _bar(axis, y, ends, theme, role, pale=heap % 2 == 1)
                middle = (max(ends[0], 0) + min(ends[1], span / 1e6)) / 2
                if middle - last >= apart:
                    _write_number(axis, middle, y, heap)
                    last = middle
    for interval in waiting(run):
        if _overlap(interval, (begin, end)):
            _bar(axis, _PROGRAM, _ms(interval, begin), theme, "waiting")
    _say_asleep(axis, [_ms(interval, begin) for interval in shown[1][2]], theme)


def _overlap(interval: Interval, window: Interval) -> bool:
    return interval[0] < window[1] and window[0] < interval[1]


def _ms(interval: Interval, begin: int) -> tuple[float, float]:
    return (interval[0] - begin) / 1e6, (interval[1] - begin) / 1e6


def _bar(
    axis: "Axes", y: float, ends: tuple[float, float], theme: Theme, role: str, pale: bool = False
) -> None:
    left, right = ends
    axis.barh(y, right - left, _BAR, left, **fill(theme, role, pale))


def fill(theme: Theme, role: str, pale: bool = False) -> dict[str, Any]:
    """Return how a bar of time is filled: those of work have a colour."""
    if role not in theme.colours:
        hatch = "/////" if role == "waiting" else ""
        return {"facecolor": "none", "edgecolor": theme.faint, "hatch": hatch, "linewidth": 0.8}
    colour = theme.colours[role]
    return {
        "facecolor": theme.pale(role) if pale else colour,
        "edgecolor": colour,
        "linewidth": 1,
    }


def patch(theme: Theme, role: str) -> "Artist":
    """Return what a legend shows of such a bar."""
    from matplotlib.patches import Patch

    return Patch(label=role, **fill(theme, role))


def _write_number(axis: "Axes", x: float, y: float, heap: int) -> None:
    """Write the number of a heap above its bar."""
    axis.text(x, y - _BAR / 2 - 0.04, f"{heap}", ha="center", va="bottom", fontsize=FAINT)


def _say_asleep(axis: "Axes", sent: Sequence[tuple[float, float]], theme: Theme) -> None:
    """Write into the longest gap between two heaps that the network thread has nothing to do."""
    low, high = axis.get_xlim()
    inside = sorted(ends for ends in sent if ends[1] > low and ends[0] < high)
    gaps = [(after[0] - before[1], before[1]) for before, after in pairwise(inside)]
    longest, begin = max(gaps, default=(0.0, 0.0))
    inches = longest / (high - low) * (theme.width - sum(_SIDES))
    if longest >= _LONG * (high - low) and inches >= _WORD:
        middle = begin + longest / 2
        axis.text(
            middle, _NETWORK, "asleep", ha="center", va="center", style="italic", fontsize=FAINT
        )


def _name_block(axis: "Axes", run: Timeline, theme: Theme) -> None:
    """Say above a block what it is of, and how much of the time its threads were busy."""
    left = -72 * (_SIDES[0] - 0.12)
    raised = 15 + 72 * _LINE * theme.is_narrow
    words = "\n".join(textwrap.wrap(_busy(run), _COLUMNS)) if theme.is_narrow else _busy(run)
    for one, y, points in ((way(run).capitalize(), raised, 11), (words, 2, FAINT)):
        write(axis, one, (0, 1), (left, y), "axes fraction", va="bottom", fontsize=points)


def _busy(run: Timeline) -> str:
    portions = shares(run)
    return (
        f"network thread busy {percent(portions.sending)} of the time,"
        f" program preparing {percent(portions.preparing)}"
    )


def _say_block(axis: "Axes", run: Timeline, span: int) -> None:
    heaps, _ = _window(run, span)
    n = len(run.prepare_ns)
    shown = f"heaps {heaps[0]} to {heaps[-1]} of {n}, {number(span / 1e6)} ms"
    busy = f"{_busy(run)}, waiting {percent(shares(run).waiting)}"
    middle = f"{_milliseconds(preparing(run))} ms to prepare, {_milliseconds(sending(run))} ms"
    say(axis, title(run), f"{shown}; {busy}; median of a heap: {middle} to send")


def _milliseconds(intervals: Sequence[Interval]) -> str:
    return number(median([(end - begin) / 1e6 for begin, end in intervals]).median)
