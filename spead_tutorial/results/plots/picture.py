# SPDX-License-Identifier: BSD-3-Clause
"""A picture as data: panels of points, from which its marks, its words and its values come."""

import abc
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots.theme import Theme
from spead_tutorial.results.units import bytes_text, number, size, times

# Matplotlib is imported when something is drawn; here is what types call its classes.
if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any

SPEED = "MB/s"
#: The unit of a gain.
TIMES = "times"
#: What a line is over, where that is not the size of heaps.
PACKET, WORK = "packet", "work"


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """What the points of a line have in common."""

    name: str  # what a page calls it
    role: str  # what gives it its colour
    # the implementation, language, program and variant of its samples; empty for a gain
    key: tuple[str, ...] = ()
    unit: str = SPEED  # of its values
    over: str = ""  # what it is over: `PACKET`, `WORK`, or by default the size of heaps


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """A point: what it is of, what it came to, and where it is drawn, in units of its panel."""

    line: Line
    at: float
    estimate: Estimate
    x: float
    y: float


#: A point, or whose something else is, and what that says.
Said: TypeAlias = Mark | tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Panel(abc.ABC):
    """One of the kinds."""

    name: str  # what stands above it

    @property
    @abc.abstractmethod
    def height(self) -> float:
        """Inches of what is drawn."""

    @property
    @abc.abstractmethod
    def sides(self) -> tuple[float, float]:
        """Inches that it needs on its left and on its right, for words."""

    @property
    def below(self) -> float:
        """Inches that it needs below, for the names of a scale."""
        return 0.55

    @abc.abstractmethod
    def said(self) -> Iterator[Said]:
        """Return its points, and what else it says, in the order of the words."""

    @abc.abstractmethod
    def draw(self, axis: Axes, theme: Theme) -> None:
        """Draw it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """A title, rows of panels, and where the numbers come from."""

    title: str  # a sentence that says what was found
    subtitle: str
    rows: Sequence[Sequence[Panel]]
    what: str  # the first sentence of its words
    caption: str
    # what has no room for its name in any place where it is drawn, its colour, and whether pale
    legend: Mapping[str, tuple[str, bool]] = dataclasses.field(default_factory=dict)
    across: str = ""  # what is written across it

    @property
    def name(self) -> str:
        """What it is called where it cannot be seen."""
        title = f"{self.title}. {self.subtitle}" if self.subtitle else self.title
        return title.replace("\N{THIN SPACE}", "")

    @property
    def words(self) -> str:
        """What it shows, with values, and of what."""
        said = as_sentences(one for row in self.rows for panel in row for one in panel.said())
        across = f"{self.across.capitalize()}." if self.across else ""
        parts = (self.what, said, " ".join(self.caption.split()), across)
        return " ".join(filter(None, parts)).replace("\N{THIN SPACE}", "")  # it is for the eye

    def points(self, figure: Figure) -> list[tuple[Line, list[float]]]:
        """Return of each point its line; size, median, ends, rounds; parts from left and top."""
        panels = [panel for row in self.rows for panel in row]
        found = []
        for panel, axis in zip(panels, figure.axes, strict=True):
            for one in panel.said():
                if isinstance(one, Mark):
                    x, y = axis.transData.transform((one.x, one.y))
                    place = [x / figure.bbox.width, 1 - y / figure.bbox.height]
                    ends = (one.estimate.median, one.estimate.low, one.estimate.high)
                    values = [one.at, *(float(f"{end:.9g}") for end in ends), one.estimate.n]
                    found.append((one.line, [*values, *(round(float(x), 4) for x in place)]))
        return found


def as_json(points: list[tuple[Line, list[float]]]) -> str:
    """Return JSON of the points of a picture.

    It has ``lines``, and ``points``: of each the index of its line, size, median, the ends of its
    interval, rounds, and how far from the left and from the top it is.
    """
    lines = list(dict.fromkeys(line for line, _ in points))
    rows = ",\n".join(
        json.dumps([lines.index(line), *values], separators=(",", ":")) for line, values in points
    )
    names = ",\n".join(json.dumps(dataclasses.asdict(line), ensure_ascii=False) for line in lines)
    return f'{{"lines": [\n{names}\n],\n"points": [\n{rows}\n]}}\n'


def as_sentences(said: Iterable[Said]) -> str:
    """Return a sentence for each line."""
    found: dict[str, dict[str, None]] = {}
    for one in said:
        if isinstance(one, Mark):
            line, unit = one.line, one.line.unit
            name = line.name if unit in (SPEED, TIMES) else f"{line.name}, {unit}"
            words = f"{where_on_x(line.over, one.at)} {_value(unit, one.estimate)}"
        else:
            name, words = one
        found.setdefault(name, {})[words] = None
    return " ".join(f"{name}: {', '.join(words)}." for name, words in found.items())


def where_on_x(over: str, x: float) -> str:
    """Say what a point is at: the size of a heap, or of a packet, or a time."""
    if over == WORK:
        return f"{x:g} ms a heap"
    return bytes_text(x) if over == PACKET else size(x)


def _value(unit: str, estimate: Estimate) -> str:
    if unit == TIMES:
        return f"{times(estimate.median)} ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.median:.0f}" if unit == SPEED else number(estimate.median)
