# SPDX-License-Identifier: BSD-3-Clause
"""Draws a flame graph: functions as wide as their share of the looks, on those that called them."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Self

from bench.stacks import Frame, Look
from spead_tutorial.plots import Theme
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.render import Drawn
from spead_tutorial.records import Recording
from spead_tutorial.units import percent, thousands

__all__ = ["Box", "draw_flame", "grown"]

#: Inches: of the picture, of a line, of a letter; and the share of all that a box has at least.
_WIDTH, _LINE, _LETTER, _LEAST = 14.0, 0.2, 0.075, 0.001
_COLOURS = {"kernel": "c", "ours": "spead2", "thread": "limit", "else": "python"}
_LEGEND = "orange: the kernel, purple: this package, blue: all else"


@dataclasses.dataclass(slots=True)
class Box:
    """A function with one way to it: how often it was seen, and what it called."""

    kind: str
    looks: int = 0
    called: dict[str, Self] = dataclasses.field(default_factory=dict)

    def boxes(self, left: int = 0, depth: int = -1) -> Iterator[tuple[str, "Box", int, int]]:
        """Yield names, boxes, left ends in looks, and depths of all that it called."""
        for name, box in sorted(self.called.items()):
            yield name, box, left, depth + 1
            yield from box.boxes(left, depth + 1)
            left += box.looks


def grown(looks: Iterable[Look]) -> Box:
    """Put stacks together, of the program's own thread and of all others."""
    root = Box("thread")
    for look in looks:
        thread = "program" if look.thread == look.process else "stream"
        names = [(frame.name, _kind(frame)) for frame in reversed(look.frames)]
        box = root
        box.looks += 1
        for name, kind in [(thread, "thread"), *names]:
            if name != "[unknown]":
                box = box.called.setdefault(name, Box(kind))
                box.looks += 1
    return root


def _kind(frame: Frame) -> str:
    if frame.of_kernel:
        return "kernel"
    return "ours" if "/spead_tutorial/_core." in frame.file or "/tut_" in frame.file else "else"


def draw_flame(root: Box, title: str, recording: Recording, theme: Theme) -> Drawn:
    """Draw what `grown` made, for `spead_tutorial.plots.render`."""
    from matplotlib.figure import Figure

    wide = [box for box in root.boxes() if box[1].looks >= _LEAST * root.looks]
    height = _LINE * (1 + max(depth for *_, depth in wide)) + 1.1
    figure = Figure(figsize=(_WIDTH, height))
    axis = figure.add_axes((0.01, 0.6 / height, 0.98, 1 - 1.1 / height))
    axis.set(xlim=(0, root.looks), ylim=(0, (height - 1.1) / _LINE))
    axis.set_axis_off()
    for name, box, left, depth in wide:
        colour = theme.colours[_COLOURS[box.kind]]
        axis.barh(depth, box.looks, 0.94, left, align="edge", color=colour,
                  edgecolor=theme.background, linewidth=0.5)  # fmt: skip
        letters = int((box.looks / root.looks * 0.98 * _WIDTH - 0.06) / _LETTER)
        if letters >= 3:
            words = name if len(name) <= letters else f"{name[: letters - 1]}…"
            axis.text(left + box.looks / 2, depth + 0.45, words, ha="center", va="center",
                      fontsize=8, color=theme.background)  # fmt: skip
    figure.text(0.01, 1 - 0.1 / height, title, fontsize=13, weight="bold", va="top")
    foot = caption(recording, f"{root.looks} looks · {_LEGEND}").replace("\n", " ")
    figure.text(0.01, 0.15 / height, foot, fontsize=8, color=theme.faint)
    return figure, title, _in_words(root, title)


def _in_words(root: Box, title: str) -> str:
    """Say in which functions themselves most of the time was spent."""
    own = Counter[str]()
    for name, box, _, _ in root.boxes():
        own[name] += box.looks - sum(one.looks for one in box.called.values())
    most = ", ".join(f"{name} {percent(n / root.looks)}" for name, n in own.most_common(20))
    return f"{title}, {thousands(root.looks)} looks. Most often in: {most}."
