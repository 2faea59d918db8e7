# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a heap goes: what each thread does between one heap and the next."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.analysis.split import OTHER, PARTS, Kind, Thread, split_times
from spead_tutorial.catalogue import MEASURED, find_chapter
from spead_tutorial.plots.bars import label_group, label_height
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import FAINT, Sheet
from spead_tutorial.plots.spots import Line, mark
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import Recording
from spead_tutorial.units import number, percent, size, thousands

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["where"]

_SUBTITLE = "Where the time goes; the kernel's: {kernel}"
#: What the kernel does for a message, as its caller.
_KERNEL = ("copy", "system call", "buffers", "stack")
_SHOWN = "medians of {rounds} rounds"
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
    rows = [(0.34, sum(_height(one, theme) for one in panel.values())) for panel in panels]
    rows = [(above + 0.34 * bool(row), height) for row, (above, height) in enumerate(rows)]
    foot = caption(recording, _SHOWN)
    subtitle = _SUBTITLE.format(kernel=", ".join(_KERNEL))
    legend = _legend(kinds, theme)
    sheet = Sheet(theme, _finding(kinds), rows, foot, subtitle=subtitle, legend=legend, columns=3)
    for row, panel in enumerate(panels):
        axis = sheet.axes(row, *_SIDES)
        _draw_panel(axis, rows[row][1], panel, theme)
        axis.set_title(f"Heaps of {size(sizes[row])}", loc="left", fontsize=11)
    axis.set_xlabel("nanoseconds for each heap")
    return sheet.figure, sheet.title, _in_words(recording, kinds)


def _finding(kinds: Mapping[Kind, Sequence[Thread]]) -> str:
    """Say how much of the time of a heap the kernel's work takes, of the thread that sends."""
    shares = [max(map(_kernel_share, threads)) for threads in kinds.values()]
    ends = dict.fromkeys(percent(share) for share in (min(shares), max(shares)))
    return f"The kernel's work: {' to '.join(ends)} of a heap's time"


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
    axis.set_ylim(inches, 0)
    axis.set_xlim(0, most * 1.01)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.locator_params(axis="x", nbins=5)
    y, ticks = 0.0, []
    for kind, threads in panel.items():
        chapter = find_chapter(kind.program)
        title = f"{chapter.number}  {chapter.title}, {NAMES[kind.language]}"
        label_group(axis, y, title, f"{_rounded(threads[0].elapsed.median)} ns", theme)
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
    left, chapter = 0.0, find_chapter(kind.program).number
    name = f"Chapter {chapter}, {NAMES[kind.language]}, {_name(thread)}"
    per_inch = most / (theme.width - sum(_SIDES))
    for part, estimate in thread.parts.items():
        width = estimate.median
        line = Line(f"{name}: {part}", kind.language, unit="ns")
        if width:  # of nothing there is no bar that one could be at
            mark(axis, left + width / 2, y, line, kind.heap_size, estimate)
        axis.barh(y, width, _BAR, left, linewidth=0, **_look(part, theme))
        axis.plot([left] * 2, [y - _BAR / 2, y + _BAR / 2], color=theme.background, linewidth=0.8)
        if width / per_inch > _LETTER * len(part) + 0.06:
            box = {"facecolor": _look(part, theme)["facecolor"], "edgecolor": "none", "pad": 0.8}
            at = (left + width / 2, y)
            axis.text(*at, part, ha="center", va="center_baseline", fontsize=FAINT,
                      color=theme.background, bbox=box)  # fmt: skip
        left += width
    axis.barh(y, thread.idle_ns, _BAR, left, **_outline(theme))


def _look(part: str, theme: Theme) -> dict[str, Any]:
    colour, hatch = _LOOKS[part]
    return {"facecolor": theme.colours[colour], "hatch": hatch, "edgecolor": theme.background}


def _outline(theme: Theme) -> dict[str, Any]:
    return {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}


def _legend(kinds: Mapping[Kind, Sequence[Thread]], theme: Theme) -> list["Artist"]:
    from matplotlib.patches import Patch

    found = {part for threads in kinds.values() for thread in threads for part in thread.parts}
    parts = [part for part in PARTS if part in found]
    looks = [Patch(linewidth=0, label=part, **_look(part, theme)) for part in parts]
    return [*looks, Patch(label=_IDLE, **_outline(theme))]


def _rounded(ns: float) -> str:
    return thousands(float(f"{ns:.3g}"))


def _in_words(recording: Recording, kinds: Mapping[Kind, Sequence[Thread]]) -> str:
    sentences = ["Bars: what each thread does in the time from one heap to the next."]
    for kind in _in_order(kinds):
        chapter = find_chapter(kind.program)
        sentences.append(
            f"Heaps of {size(kind.heap_size)}, chapter {chapter.number} in {NAMES[kind.language]},"
            f" {_rounded(kinds[kind][0].elapsed.median)} ns a heap."
        )
        sentences += [f"{_name(one).capitalize()}: {_listed(one)}." for one in kinds[kind]]
    return " ".join([*sentences, " ".join(caption(recording, _SHOWN).split())])


def _listed(thread: Thread) -> str:
    listed = [f"{part} {number(one.median)} ns" for part, one in thread.parts.items()]
    return ", ".join([*listed, f"{_IDLE} {percent(thread.idle_ns / thread.elapsed.median)}"])
