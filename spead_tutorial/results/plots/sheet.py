# SPDX-License-Identifier: BSD-3-Clause
"""Where things are on a picture, in inches: all are of one width, and grow downwards."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from spead_tutorial.results.plots.picture import Axes, Figure, Panel, Picture
from spead_tutorial.results.plots.theme import FAINT, WIDTH, Theme
from spead_tutorial.results.units import thousands

_MARGIN, _GAP = 0.12, 0.3
#: Inches of a line of the title, of the subtitle, of the legend and of the foot.
_TITLE, _SUBTITLE, _LEGEND, _LINE = 0.27, 0.22, 0.28, 0.17
#: Inches above a row of panels, of which their names have a part.
_ABOVE, _UNNAMED = 0.42, 0.14
#: Letters in a line, and inches of one.
_TITLE_COLUMNS, _SUBTITLE_COLUMNS, _FOOT_COLUMNS = 54, 74, 84
LETTER = 0.092

#: Between the parts of a foot.
_DOT = " \N{MIDDLE DOT} "
_KEPT = "\N{NO-BREAK SPACE}"


def lay_out(picture: Picture, theme: Theme) -> Figure:
    """Draw a picture: its title, its panels, and its foot."""
    import matplotlib.figure

    lines = _folded(picture.title, _TITLE_COLUMNS)
    below_title = _folded(picture.subtitle, _SUBTITLE_COLUMNS)
    top = _MARGIN + _TITLE * len(lines) + _SUBTITLE * len(below_title)
    legend_at, top = top + 0.08, top + _LEGEND * bool(picture.legend)
    tops = []
    for row in picture.rows:
        top += _ABOVE if any(panel.name for panel in row) else _UNNAMED
        tops.append(top)
        top += max(panel.height + panel.below for panel in row)
    foot = _folded_parts(picture.caption.partition("\n\n")[0], _FOOT_COLUMNS)
    height = round(top + _LINE * len(foot) + 1.5 * _MARGIN, 2)  # whole pixels
    figure: Figure = matplotlib.figure.Figure(figsize=(WIDTH, height))
    for row, at in zip(picture.rows, tops, strict=True):
        for panel, (left, width) in zip(row, _places(row), strict=True):
            bottom = 1 - (at + panel.height) / height
            place = (left / WIDTH, bottom, width / WIDTH, panel.height / height)
            axis = figure.add_axes(place)
            panel.draw(axis, theme)
            write(axis, panel.name, (0, 1), (0, 6), "axes fraction", va="bottom", weight="bold")

    def text(x: float, y: float, words: str, **more: Any) -> Any:
        return figure.text(x / WIDTH, 1 - y / height, words, linespacing=1.25, **more)

    faint: dict[str, Any] = {"color": theme.faint}
    text(_MARGIN, _MARGIN, "\n".join(lines), fontsize=14, weight="bold", va="top")
    text(_MARGIN, _MARGIN + _TITLE * len(lines), "\n".join(below_title), va="top", **faint)
    text(_MARGIN, height - _MARGIN / 2, "\n".join(foot), fontsize=FAINT, va="bottom", **faint)
    x = _MARGIN
    for name, fill in picture.legend.items():
        text(x, legend_at, "\N{BLACK SQUARE}", va="top", color=theme.filled(*fill))
        text(x + 0.17, legend_at, name, va="top")
        x += 0.42 + LETTER * len(name)
    if picture.across:
        look: dict[str, Any] = {"fontsize": 26, "alpha": 0.25, "rotation": 25}
        figure.text(0.5, 0.5, picture.across, ha="center", va="center", **look)
    return figure


def _places(row: Sequence[Panel]) -> list[tuple[float, float]]:
    """Return where panels are that share a row: inches from the left, and width."""
    sides = [panel.sides for panel in row]
    room = WIDTH - sum(map(sum, sides)) - _GAP * (len(row) - 1)
    width, at, places = room / len(row), 0.0, []
    for left, right in sides:
        places.append((at + left, width))
        at += left + width + right + _GAP
    return places


def _folded(title: str, columns: int) -> list[str]:
    """Fold a title: units stay beside what is before them, "≥" beside what follows."""
    kept = re.sub(r" (?=[KMG]iB\b|[MG]B/s|%|ms\b)|(?<=\u2265) ", _KEPT, title)
    return [line.replace(_KEPT, " ") for line in textwrap.wrap(kept, columns)]


def _folded_parts(foot: str, columns: int) -> list[str]:
    """Fold a foot: each of its parts stays whole where a line has room for it."""
    parts = [" ".join(part.split()) for part in f"{foot} ".removesuffix(_DOT).split(_DOT)]
    kept = [part.replace(" ", _KEPT) if len(part) < columns - 1 else part for part in parts]
    return _folded(f"{_KEPT}{_DOT.strip()} ".join(kept), columns)


def write(
    axis: Axes,
    words: str,
    place: tuple[float, float],
    shift: tuple[float, float],
    within: Any = "data",
    **more: Any,
) -> None:
    """Write some points away from a place that is within what matplotlib calls coordinates."""
    if words:
        where: dict[str, Any] = {"xycoords": within, "textcoords": "offset points"}
        axis.annotate(words, place, shift, annotation_clip=False, **where, **more)


def marked(value: float) -> str:
    """Write a value at the mark of a scale."""
    return thousands(value) if value == round(value) else f"{value:g}"


def count_down(axis: Axes, inches: float, names: Mapping[float, str] | None = None) -> None:
    """Make y count inches down a panel, with names at some of them; x has upright lines."""
    axis.set_ylim(inches, 0)
    axis.set_yticks(list(names or {}), list((names or {}).values()))
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x")
    axis.set_axisbelow(True)


def spread(wanted: Sequence[tuple[float, float]], low: float, high: float) -> list[float]:
    """Return where words can stand that are wanted at some places, and as high as that."""
    order = sorted(range(len(wanted)), key=lambda n: wanted[n][0])
    rooms = [wanted[n][1] for n in order]
    places = [wanted[n][0] for n in order]
    both = _pushed(places, rooms, -math.inf), _pushed_down(places, rooms, math.inf)
    middle = [(up + down) / 2 for up, down in zip(*both, strict=True)]
    inside = _pushed(_pushed_down(middle, rooms, high), rooms, low)
    return [inside[order.index(n)] for n in range(len(wanted))]


def _pushed(places: Sequence[float], rooms: Sequence[float], end: float) -> list[float]:
    """Return places from below upwards, pushed up where there is no room above the last."""
    found = []
    for place, room in zip(places, rooms, strict=True):
        found.append(max(place, end + room / 2))
        end = found[-1] + room / 2
    return found


def _pushed_down(places: Sequence[float], rooms: Sequence[float], end: float) -> list[float]:
    mirrored = _pushed([-place for place in places[::-1]], rooms[::-1], -end)
    return [-place for place in mirrored[::-1]]
