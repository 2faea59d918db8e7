# SPDX-License-Identifier: BSD-3-Clause
"""What a picture shows, as data: a page has its points from here, and everybody its words.

What is drawn is marked where it is drawn. Nothing else says a picture in words.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.units import bytes_text, number, size, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "PACKET",
    "PERCENT",
    "RATE",
    "TIMES",
    "Line",
    "in_words",
    "joined",
    "mark",
    "points_of",
    "say",
    "where_on_x",
]

_POINT, _WORDS = "point ", "words "
_SPEED = "MB/s"
#: The units of a gain, and of a share of the packets, whose points are of runs, not of rounds.
TIMES, PERCENT = "times", "% of packets lost"
#: What a line is over, where that is not the size of heaps.
PACKET, RATE = "packet", "rate"


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """What the points of a line have in common."""

    name: str  # what a page calls it
    role: str  # what gives it its colour
    group: str = ""  # with what else it is chosen; its name by default
    row: str = ""  # in which row of a ladder it is
    # the implementation, language, program and variant of its samples; empty for a gain
    key: tuple[str, ...] = ()
    unit: str = _SPEED  # of its values
    over: str = ""  # what it is over: `PACKET`, `RATE`, or by default the size of heaps


def mark(axis: "Axes", x: float, y: float, line: Line, size: float, estimate: Estimate) -> None:
    """Note a point at data coordinates of a panel, without drawing anything."""
    ends = (float(f"{end:.9g}") for end in (estimate.median, estimate.low, estimate.high))
    _note(axis, _POINT, [dataclasses.asdict(line), [size, *ends, estimate.n]], x, y)


def say(axis: "Axes", name: str, words: str) -> None:
    """Note something that a panel shows of a line, and that is no point."""
    _note(axis, _WORDS, [name, words])


def _note(axis: "Axes", kind: str, facts: list[Any], x: float = 0.0, y: float = 0.0) -> None:
    from matplotlib.lines import Line2D

    where: Any = {"transform": axis.transData, "visible": False, "gid": kind + json.dumps(facts)}
    axis.figure.add_artist(Line2D([x], [y], **where))


def _noted(figure: "Figure", *kinds: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield what was noted, and the artist that lies where it was noted."""
    for artist in figure.findobj(lambda one: (one.get_gid() or "").startswith(kinds)):
        first, second = json.loads((artist.get_gid() or "").partition(" ")[2])
        yield first, second, artist


def points_of(figure: "Figure") -> list[tuple[dict[str, Any], list[float]]]:
    """Return what was marked: its line, and size, median, ends, rounds, and parts of the picture.

    The last two are how far it is from the left and from the top.
    """
    found = []
    for line, values, artist in _noted(figure, _POINT):
        ((x, y),) = artist.get_transform().transform(artist.get_xydata())
        place = [x / figure.bbox.width, 1 - y / figure.bbox.height]
        found.append((line, [*values, *(round(float(part), 4) for part in place)]))
    return found


def joined(*pictures: list[tuple[dict[str, Any], list[float]]]) -> str:
    """Return JSON of what the forms of one picture have marked: the same points, elsewhere.

    It has ``lines``, and ``points``: of each the index of its line, size, median, the ends of its
    interval, rounds, and how far from the left and from the top it is, form by form.
    """
    lines: list[dict[str, Any]] = []
    points = []
    for same in zip(*pictures, strict=True):
        line, values = same[0]
        if line not in lines:
            lines.append(line)
        elsewhere = [part for _, other in same[1:] for part in other[-2:]]
        points.append([lines.index(line), *values, *elsewhere])
    rows = ",\n".join(json.dumps(point, separators=(",", ":")) for point in points)
    names = ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    return f'{{"lines": [\n{names}\n],\n"points": [\n{rows}\n]}}\n'


def in_words(figure: "Figure", last_first: bool) -> str:
    """Return a sentence for each line, with all its values, in the order in which they are drawn.

    What was drawn last is on top, and may come first; gains are behind the rates.
    """
    said: dict[tuple[bool, str], dict[str, None]] = {}
    for line, what, _ in _noted(figure, _POINT, _WORDS):
        if isinstance(line, str):
            name, words = (False, line), what
        else:
            name = line["unit"] == TIMES, _heading(line)
            words = f"{where_on_x(line, what[0])} {_value(line, *what[1:4])}"
        said.setdefault(name, {})[words] = None
    names = list(reversed(said)) if last_first else list(said)
    names.sort(key=lambda name: name[0])
    return " ".join(f"{name[1]}: {', '.join(said[name])}." for name in names)


def _heading(line: Mapping[str, Any]) -> str:
    unit = line["unit"]
    return str(line["name"] if unit in (_SPEED, TIMES) else f"{line['name']}, {unit}")


def where_on_x(line: Mapping[str, Any], x: float) -> str:
    """Say what a point is at: the size of a heap, or of a packet, or a rate."""
    if line["over"] == RATE:
        return f"at {number(x)} MB/s"
    return bytes_text(x) if line["over"] == PACKET else size(x)


def _value(line: Mapping[str, Any], median: float, low: float, high: float) -> str:
    if line["unit"] == TIMES:
        return f"{times(median)} ({low:.2f} to {high:.2f})"
    return f"{median:.0f}" if line["unit"] == _SPEED else number(median)
