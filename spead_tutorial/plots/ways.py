# SPDX-License-Identifier: BSD-3-Clause
"""One program in several ways beside each other, a panel for each size of heaps."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.catalogue import LANGUAGES
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.points import Point, highest, points, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Series
from spead_tutorial.units import size, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ways"]

_SIDES = (0.2, 0.2)
_FIRST_ROOM, _ROOM = 0.4, 0.66
_BARE_GROUP = bars.GROUP - bars.PITCH

#: A group of bars: its title, a remark, and a point for what gives each bar its colour.
_Group = tuple[str, str, dict[str, Point]]


@dataclasses.dataclass(frozen=True, slots=True)
class Ways:
    """A picture of a program's variants: what it shows of a recording; call it to draw it.

    Parameters
    ----------
    title : str
        Of the picture.
    program : str
        Which.
    ways : tuple of (str, str, str)
        Its variants from top to bottom; what each is called, and a remark.
    bare : tuple of (str, str)
        Variants of the bare loops that stand below, and remarks.
    sweep : str
        Which sweep is to be run where a recording has none of them.
    """

    title: str
    program: str
    ways: tuple[tuple[str, str, str], ...]
    bare: tuple[tuple[str, str], ...]
    sweep: str

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        found = points(recording)
        wanted = [Series(OURS, language, self.program) for language in LANGUAGES]
        require(found, wanted, self.sweep)
        sizes = sorted({n for series in wanted for n in found.get(series, {})})
        panels = [(n, self._groups(found, n)) for n in sizes]
        heights = [sum(map(_height, groups)) for _, groups in panels]
        rows = [(_ROOM if row else _FIRST_ROOM, height) for row, height in enumerate(heights)]
        legend = bars.language_legend(theme)
        sheet = Sheet(theme, self.title, rows, caption(recording), legend=legend)
        most = highest(one for _, groups in panels for group in groups for one in group[2].values())
        for row, (n, groups) in enumerate(panels):
            axis = sheet.axes(row, *_SIDES)
            bars.prepare(axis, heights[row], most)
            axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
            axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
            _draw_groups(axis, groups, theme)
        axis.set_xlabel("payload sent in MB/s")
        return sheet.figure, self.title, _in_words(recording, panels)

    def _groups(self, found: Mapping[Series, Mapping[int, Point]], n: int) -> list[_Group]:
        groups: list[_Group] = [
            (title, note, self._languages(found, n, variant)) for variant, title, note in self.ways
        ]
        for variant, note in self.bare:
            point = found.get(Series("ceiling", "c", "ceiling", variant), {}).get(n)
            groups.append(("bare system calls", note, {"limit": point} if point else {}))
        return [group for group in groups if group[2]]

    def _languages(
        self, found: Mapping[Series, Mapping[int, Point]], n: int, variant: str
    ) -> dict[str, Point]:
        every = {
            language: found.get(Series(OURS, language, self.program, variant), {}).get(n)
            for language in LANGUAGES
        }
        return {language: point for language, point in every.items() if point is not None}


def _height(group: _Group) -> float:
    return _BARE_GROUP if "limit" in group[2] else bars.GROUP


def _draw_groups(axis: "Axes", groups: Sequence[_Group], theme: Theme) -> None:
    y = 0.0
    for group in groups:
        title, note, by_role = group
        bars.label_group(axis, y, title, note, theme)
        first = y + bars.LABEL + 0.5 * bars.PITCH
        for role, point in by_role.items():
            bars.draw_bar(axis, bars.lanes(y).get(role, first), point, role, theme)
        y += _height(group)


def _in_words(recording: Recording, panels: Sequence[tuple[int, Sequence[_Group]]]) -> str:
    sentences = ["Bars: the rate of each way in MB/s."]
    for n, groups in panels:
        sentences.append(f"Heaps of {size(n)}:")
        for title, note, by_role in groups:
            values = [
                f"{NAMES.get(role, '')} {_value(one)}".strip() for role, one in by_role.items()
            ]
            sentences.append(f"{title} ({note}): {', '.join(values)};")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _value(point: Point) -> str:
    estimate = point.estimate()
    return "failed" if estimate is None else f"{estimate.median:.0f}"
