# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: when the program prepares each heap, and when the network thread sends it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spead_tutorial.plots import times
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import FAINT, Sheet
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import Recording, Timeline
from spead_tutorial.stats import median
from spead_tutorial.timeline import Interval, preparing, sending, shares, waiting
from spead_tutorial.units import number, percent, size

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["fill", "patch", "timeline"]

_TITLE = "Who works when: program and network thread"
_SHOWN = "times of one run each, bars: heaps from its middle"
_HEAPS = 7
_SIDES = (0.86, 0.2)
#: Inches: the room above a block and its height; in it, its rows of bars, and how high they are.
_ROOM, _HEIGHT = 0.78, 1.1
_PROGRAM, _NETWORK, _BAR = 0.36, 0.88, 0.26
#: When the network thread has nothing to do for so large a part of what is shown, it says so.
_LONG = 0.1


def timeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw a block for each timeline: a few heaps from the middle of its run.

    Parameters
    ----------
    recording : Recording
        Of the sweep ``tut-5``.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    blocks = times.timelines(recording)
    rows = [(_ROOM, _HEIGHT)] * len(blocks)
    legend = [
        patch(theme, "preparing"),
        patch(theme, "waiting"),
        patch(theme, "sending"),
    ]
    foot = caption(recording, _SHOWN)
    sheet = Sheet(theme, _TITLE, rows, foot, legend=legend, columns=3)
    for row, run in enumerate(blocks):
        axis = sheet.axes(row, *_SIDES)
        _draw_block(axis, run, theme)
        _name_block(axis, run, theme)
    axis.set_xlabel("time in ms since the first of these heaps was begun")
    return sheet.figure, _TITLE, _in_words(recording, blocks)


def _window(run: Timeline) -> tuple[range, Interval]:
    """Return which heaps are shown, and from when to when."""
    n = len(run.prepare_ns)
    first = max(0, n - _HEAPS) // 2
    heaps = range(first, min(n, first + _HEAPS))
    ends = max(max(run.resumed_ns[heap], run.last_packet_ns[heap]) for heap in heaps)
    return heaps, (run.prepare_ns[first], ends)


def _draw_block(axis: "Axes", run: Timeline, theme: Theme) -> None:
    _, (begin, end) = _window(run)
    axis.set_xlim(0, (end - begin) / 1e6 or 1.0)
    axis.set_ylim(_HEIGHT, 0)
    axis.set_yticks([_PROGRAM, _NETWORK], ["program", "network\nthread"])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    shown = [
        (_PROGRAM, "preparing", preparing(run)),
        (_NETWORK, "sending", sending(run)),
    ]
    for y, role, intervals in shown:
        for heap, interval in enumerate(intervals):
            if _overlap(interval, (begin, end)):
                _draw_heap(axis, y, _ms(interval, begin), heap, role, theme)
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
    """Return how a bar of time is filled: those of work have a colour.

    Parameters
    ----------
    theme : Theme
        Colours.
    role : str
        ``"preparing"``, ``"sending"``, ``"waiting"`` or ``"rest"``.
    pale : bool
        Whether it is every other heap's.
    """
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


def _draw_heap(
    axis: "Axes", y: float, ends: tuple[float, float], heap: int, role: str, theme: Theme
) -> None:
    """Draw the bar of a heap, and its number above it where that is in the picture."""
    _bar(axis, y, ends, theme, role, pale=heap % 2 == 1)
    low, high = axis.get_xlim()
    middle = (max(ends[0], low) + min(ends[1], high)) / 2
    if low <= middle <= high:
        axis.text(middle, y - _BAR / 2 - 0.04, f"{heap}", ha="center", va="bottom", fontsize=FAINT)


def _say_asleep(axis: "Axes", sent: Sequence[tuple[float, float]], theme: Theme) -> None:
    """Write into the longest gap between two heaps that the network thread has nothing to do."""
    low, high = axis.get_xlim()
    inside = sorted(ends for ends in sent if ends[1] > low and ends[0] < high)
    gaps = [(after[0] - before[1], before[1]) for before, after in pairwise(inside)]
    longest, begin = max(gaps, default=(0.0, 0.0))
    if longest >= _LONG * (high - low):
        middle = begin + longest / 2
        axis.text(
            middle, _NETWORK, "asleep", ha="center", va="center", style="italic", fontsize=FAINT
        )


def _name_block(axis: "Axes", run: Timeline, theme: Theme) -> None:
    """Say above a block what it is of, and how much of the time its threads were busy."""
    above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    left = -72 * (_SIDES[0] - 0.12)
    axis.annotate(_name(run), (0, 1), (left, 21), va="bottom", fontsize=11, **above)
    axis.annotate(_busy(run), (0, 1), (left, 6), va="bottom", fontsize=FAINT, **above)


def _name(run: Timeline) -> str:
    return f"{times.title(run)} ({NAMES[run.language]}, heaps of {size(run.heap_size)})"


def _busy(run: Timeline) -> str:
    portions = shares(run)
    return (
        f"{times.counted(run)}: network thread busy {percent(portions.sending)} of the time,"
        f" program preparing {percent(portions.preparing)}"
    )


def _in_words(recording: Recording, blocks: Sequence[Timeline]) -> str:
    sentences = [
        "A block for each program; in it, bars in time: when the program prepares each heap and"
        " when it waits, and when the network thread sends each heap."
    ]
    for run in blocks:
        heaps, (begin, end) = _window(run)
        sentences.append(
            f"{' '.join(_name(run).split())}: heaps {heaps[0]} to {heaps[-1]} of"
            f" {len(run.prepare_ns)}, {number((end - begin) / 1e6)} ms; {_busy(run)},"
            f" waiting {percent(shares(run).waiting)}; median of a heap:"
            f" {_milliseconds(preparing(run))} ms to prepare,"
            f" {_milliseconds(sending(run))} ms to send."
        )
    return " ".join([*sentences, " ".join(caption(recording, _SHOWN).split())])


def _milliseconds(intervals: Sequence[Interval]) -> str:
    return number(median([(end - begin) / 1e6 for begin, end in intervals]).median)
