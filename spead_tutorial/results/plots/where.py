# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a heap goes: what each thread does between one heap and the next."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.analysis import OTHER, PARTS, Kind, Thread, split_times
from spead_tutorial.measure.records import Recording
from spead_tutorial.results.plots.bars import (
    draw_parts,
    label_group,
    label_height,
    part_legend,
    prepare,
)
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import Line, mark, say
from spead_tutorial.results.plots.sheet import Drawn, Sheet
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.units import percent, size, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["where"]

_SUBTITLE = "Where the time goes; the kernel's: {kernel}"
#: What the kernel does for a message, as its caller.
_KERNEL = ("copy", "system call", "buffers", "stack")
_SIDES = (0.78, 0.3)
#: Inches: from bar to bar, of a bar, after a group, and of a letter in a bar.
_PITCH, _BAR, _GAP, _LETTER = 0.25, 0.21, 0.1, 0.076
#: The colour of a part, as the theme has it, and its hatch: parts of one kind share a colour.
_LOOKS = {
    "fill": ("preparing", ""),
    "program": ("python", ""),
    "queue": ("spead2", ""),
    "packetizing": ("spead2", "////"),
    "completion": ("spead2", "----"),
    "copy": ("sending", ""),
    "system call": ("c", "////"),
    "buffers": ("c", "----"),
    "stack": ("c", ""),
    "lock": ("limit", ""),
    "wake-up": ("limit", "////"),
    "looking": ("limit", "----"),
    OTHER: ("limit", "xxxx"),
}
_IDLE = "not running"

Panel = Mapping[Kind, Sequence[Thread]]


def where(recording: Recording, theme: Theme) -> Drawn:
    """Draw the time from heap to heap of each thread, split into parts."""
    kinds = split_times(recording)
    sizes = sorted({kind.heap_size for kind in kinds})
    panels = [{k: kinds[k] for k in _in_order(kinds) if k.heap_size == n} for n in sizes]
    heights = [sum(_height(one, theme) for one in panel.values()) for panel in panels]
    shares = [max(map(_kernel_share, threads)) for threads in kinds.values()]
    ends = dict.fromkeys(percent(share) for share in (min(shares), max(shares)))
    sheet = Sheet(
        theme,
        f"The kernel's work: {' to '.join(ends)} of a heap's time",
        [(0.34 + 0.34 * bool(row), height) for row, height in enumerate(heights)],
        caption(recording, "medians of {rounds} rounds"),
        subtitle=f"Where the time goes; the kernel's: {', '.join(_KERNEL)}",
        legend=_legend(kinds, theme),
        columns=3,
    )
    for row, (n, panel) in enumerate(zip(sizes, panels, strict=True)):
        axis = sheet.axes(row, *_SIDES)
        _draw_panel(axis, heights[row], panel, theme)
        axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
        axis.set_xlabel("nanoseconds for each heap" * (row == len(panels) - 1))
    return sheet.drawn("Bars: what each thread does in the time from one heap to the next.")


def _kernel_share(thread: Thread) -> float:
    there = [thread.parts[part].median for part in _KERNEL if part in thread.parts]
    return sum(there) / thread.elapsed.median


def _in_order(kinds: Mapping[Kind, Sequence[Thread]]) -> list[Kind]:
    """Return kinds by size and by chapter, each in Python first."""
    return sorted(
        kinds,
        key=lambda kind: (
            kind.heap_size,
            find_chapter(kind.program).number,
            MEASURED.index(kind.language),
        ),
    )


def _height(threads: Sequence[Thread], theme: Theme) -> float:
    return label_height(theme, "ns") + _PITCH * len(threads) + _GAP


def _draw_panel(axis: "Axes", inches: float, panel: Panel, theme: Theme) -> None:
    most = max(thread.busy_ns + thread.idle_ns for kind in panel for thread in panel[kind])
    prepare(axis, inches, most, room=1.01, marks=5)
    y, ticks = 0.0, []
    for kind, threads in panel.items():
        chapter = find_chapter(kind.program)
        title = f"{chapter.number}  {chapter.title}, {NAMES[kind.language]}"
        elapsed = f"{thousands(float(f'{threads[0].elapsed.median:.3g}'))} ns"
        label_group(axis, y, title, elapsed, theme)
        for index, thread in enumerate(threads):
            at = y + label_height(theme, "ns") + (index + 0.5) * _PITCH
            _draw_thread(axis, at, kind, thread, most, theme)
            ticks.append((at, _name(thread)))
        y += _height(threads, theme)
    axis.set_yticks([at for at, _ in ticks], [name for _, name in ticks])
    axis.tick_params(axis="y", length=0)


def _name(thread: Thread) -> str:
    return "program" if thread.own else "stream"


def _draw_thread(
    axis: "Axes", y: float, kind: Kind, thread: Thread, most: float, theme: Theme
) -> None:
    per_inch, left = most / (theme.width - sum(_SIDES)), 0.0
    name = f"Chapter {find_chapter(kind.program).number}, {NAMES[kind.language]}, {_name(thread)}"
    for part, estimate in thread.parts.items():
        if width := estimate.median:  # of nothing there is no bar that one could be at
            line = Line(f"{name}: {part}", kind.language, unit="ns")
            mark(axis, left + width / 2, y, line, kind.heap_size, estimate)
        left += width
    say(axis, f"{name}: {_IDLE}", f"{size(kind.heap_size)} {_idle(thread)}")

    def written(part: str, width: float) -> str:
        return part if width / per_inch > _LETTER * len(part) + 0.06 else ""

    parts = {part: one.median for part, one in thread.parts.items()}
    draw_parts(axis, y, _BAR, parts, _LOOKS, theme, written, rims=True)
    axis.barh(y, thread.idle_ns, _BAR, left, **_outline(theme))


def _idle(thread: Thread) -> str:
    return percent(thread.idle_ns / thread.elapsed.median)


def _outline(theme: Theme) -> dict[str, Any]:
    return {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}


def _legend(kinds: Mapping[Kind, Sequence[Thread]], theme: Theme) -> list[Any]:
    from matplotlib.patches import Patch

    found = {part for threads in kinds.values() for thread in threads for part in thread.parts}
    looks = {part: _LOOKS[part] for part in PARTS if part in found}
    return [*part_legend(looks, theme), Patch(label=_IDLE, **_outline(theme))]
