# SPDX-License-Identifier: BSD-3-Clause
"""The points of a picture as data: what a page says of each, and where in the picture it is."""

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from spead_tutorial.stats import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PACKET", "PERCENT", "RATE", "TIMES", "Line", "mark", "spots", "together"]

_MARK = "spot "
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
    unit: str = "MB/s"  # of its values
    over: str = ""  # what it is over: `PACKET`, `RATE`, or by default the size of heaps


def mark(axis: "Axes", x: float, y: float, line: Line, size: float, estimate: Estimate) -> None:
    """Note a point at data coordinates of a panel, without drawing anything."""
    from matplotlib.lines import Line2D

    ends = (round(float(end), 3) for end in (estimate.median, estimate.low, estimate.high))
    facts = [dataclasses.asdict(line), [size, *ends, estimate.n]]
    where: dict[str, Any] = {
        "transform": axis.transData,
        "visible": False,
        "gid": _MARK + json.dumps(facts),
    }
    axis.figure.add_artist(Line2D([x], [y], **where))


def spots(figure: "Figure") -> list[tuple[dict[str, Any], list[float]]]:
    """Return what was marked: its line, and size, median, ends, rounds, and parts of the picture.

    The last two are how far it is from the left and from the top.
    """
    found = []
    for one in figure.findobj(lambda artist: (artist.get_gid() or "").startswith(_MARK)):
        line, values = json.loads((one.get_gid() or "").removeprefix(_MARK))
        ((x, y),) = one.get_transform().transform(one.get_xydata())  # type: ignore[attr-defined]
        place = [x / figure.bbox.width, 1 - y / figure.bbox.height]
        found.append((line, [*values, *(round(float(part), 4) for part in place)]))
    return found


def together(*pictures: list[tuple[dict[str, Any], list[float]]]) -> str:
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
