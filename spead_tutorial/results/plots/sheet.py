# SPDX-License-Identifier: BSD-3-Clause
"""Where things are on a picture, in inches: all are of one width, and grow downwards."""

import dataclasses
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from spead_tutorial.results.plots.render import Artist, Axes, Drawn, Figure, in_words
from spead_tutorial.results.plots.theme import WIDTH, Theme

#: Size in points of what is not the most important.
FAINT = 9
_MARGIN = 0.12
_TITLE, _SUBTITLE, _LEGEND, _LINE = 0.26, 0.2, 0.23, 0.155
_GAP = 0.06
#: Letters in a line.
_TITLE_COLUMNS, _SUBTITLE_COLUMNS, _FOOT_COLUMNS = 50, 68, 84

#: Between the parts of a foot.
_DOT = " \N{MIDDLE DOT} "

#: Inches of room above a row of panels, and their height.
Span = tuple[float, float]


class Sheet:
    """A figure with a title, a subtitle, a legend, rows of panels and a caption."""

    def __init__(
        self,
        theme: Theme,
        title: str,
        rows: Sequence[Span],
        foot: str,
        *,
        subtitle: str = "",
        legend: Sequence[Artist] = (),
        columns: int = 2,
        below: float = 0.55,
        beside: tuple[str, str] = ("", ""),  # title and subtitle of what has the same frame
    ) -> None:
        import matplotlib.figure

        self.theme = theme
        self.title = ". ".join(filter(None, (title, subtitle)))
        self._caption = " ".join(foot.split())
        heads = [
            (_folded(heading, _TITLE_COLUMNS), textwrap.wrap(below, _SUBTITLE_COLUMNS))
            for heading, below in ((title, subtitle), beside)
        ]
        lines, below_title = heads[0]
        foot = _shown(foot, _FOOT_COLUMNS)
        subheading = _MARGIN + _TITLE * len(lines)
        heading = max(
            _MARGIN + _TITLE * len(folded) + _SUBTITLE * len(below) + _GAP * bool(below)
            for folded, below in heads
        )
        top = heading + _LEGEND * -(-len(legend) // columns)
        foot_height = _LINE * (foot.count("\n") + 1) + _MARGIN
        self.height = round(top + sum(map(sum, rows)) + below + foot_height, 2)  # whole pixels
        self.figure: Figure = matplotlib.figure.Figure(figsize=(WIDTH, self.height))
        self._tops: list[Span] = []
        for above, height in rows:
            self._tops.append((top + above, height))
            top += above + height
        self.text(_MARGIN, _MARGIN, "\n".join(lines), fontsize=13, weight="bold", va="top")
        self.text(_MARGIN, subheading, "\n".join(below_title), color=theme.faint, va="top")
        bottom = self.height - _MARGIN / 2
        self.text(_MARGIN, bottom, foot, fontsize=FAINT, color=theme.faint, va="bottom")
        if legend:
            self.legend(legend, _MARGIN, heading, columns)

    def drawn(self, what: str, last_first: bool = False) -> Drawn:
        """Return the figure, its title, and its words: what it shows, with values, and of what."""
        words = (what, in_words(self.figure, last_first), self._caption)
        return self.figure, self.title, " ".join(filter(None, words))

    def axes(self, row: int, left: float, right: float) -> Axes:
        """Add a panel to a row: `left` and `right` are inches from the picture's sides."""
        top, height = self._tops[row]
        bottom = 1 - (top + height) / self.height
        width = (WIDTH - left - right) / WIDTH
        return self.figure.add_axes((left / WIDTH, bottom, width, height / self.height))

    def text(self, x: float, y: float, text: str, **more: Any) -> None:
        """Write at inches from the left and from the top."""
        self.figure.text(x / WIDTH, 1 - y / self.height, text, linespacing=1.25, **more)

    def legend(self, handles: Sequence[Artist], x: float, y: float, columns: int) -> None:
        """Say what is what, from a point on, in inches from the left and from the top."""
        self.figure.legend(
            handles=_by_lines(handles, columns),
            loc="upper left",
            bbox_to_anchor=(x / WIDTH, 1 - y / self.height),
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            borderpad=0.1,
            handlelength=3.2,
            columnspacing=1.4,
            labelspacing=0.35,
        )


def _folded(title: str, columns: int) -> list[str]:
    """Fold a title: brackets and units stay beside what is before them, "≥" beside what follows."""
    kept = re.sub(r" (?=\(|[KMG]iB\b|%)|(?<=\u2265) ", "\N{NO-BREAK SPACE}", title)
    lines = textwrap.wrap(kept, columns)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _shown(foot: str, columns: int) -> str:
    """Fold what a picture shows of its foot: each part whole where a line has room for it."""
    lines = [""]
    for part in " ".join(foot.partition("\n\n")[0].split()).removesuffix(_DOT.rstrip()).split(_DOT):
        if lines[-1] and len(lines[-1] + _DOT + part) > columns:
            lines[-1] += _DOT.rstrip()
            lines.append("")
        lines[-1] += (_DOT if lines[-1] else "") + part.strip()
        while len(lines[-1]) > columns and " " in lines[-1][:columns]:
            end = lines[-1].rindex(" ", 0, columns)
            lines[-1:] = [lines[-1][:end], lines[-1][end + 1 :]]
    return "\n".join(lines)


def _by_lines(handles: Sequence[Artist], columns: int) -> list[Artist]:
    """Put what is meant line by line in the order in which matplotlib fills its columns."""
    n_lines = -(-len(handles) // columns)
    full = len(handles) - columns * (n_lines - 1)
    # The first columns have a line more than the last ones.
    places = [
        line * columns + column
        for column in range(columns)
        for line in range(n_lines if column < full else n_lines - 1)
    ]
    return [handles[place] for place in places]


@dataclasses.dataclass(frozen=True, slots=True)
class Slot:
    """Where one of several panels is."""

    sides: tuple[float, float]  # inches from the picture's sides
    is_first: bool  # whether the numbers of the scales are beside it
    is_last: bool  # whether the numbers of a second scale are beside it


def panels(count: int, sides: tuple[float, float], gap: float) -> list[Slot]:
    """Return where panels are that share a row."""
    left, right = sides
    width = (WIDTH - left - right - gap * (count - 1)) / count
    starts = [left + n * (width + gap) for n in range(count)]
    return [
        Slot((start, WIDTH - start - width), not n, n == count - 1)
        for n, start in enumerate(starts)
    ]


def write(
    axis: Axes,
    words: str,
    place: tuple[float, float],
    shift: tuple[float, float],
    within: Any = "data",
    **more: Any,
) -> None:
    """Write some points away from a place that is within what matplotlib calls coordinates."""
    axis.annotate(words, place, shift, xycoords=within, textcoords="offset points", **more)


def count_down(axis: Axes, inches: float, names: Mapping[float, str] | None = None) -> None:
    """Make y count inches down a panel, with names at some of them; x has upright lines."""
    axis.set_ylim(inches, 0)
    axis.set_yticks(list(names or {}), list((names or {}).values()))
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x")
    axis.set_axisbelow(True)


def name_panel(axis: Axes, name: str, raised: float = 0.0) -> None:
    """Say above a panel what it shows, raised by some points."""
    write(axis, name, (0, 1), (0.0, 7.0 + raised), "axes fraction", va="bottom")
