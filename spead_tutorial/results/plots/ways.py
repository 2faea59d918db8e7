# SPDX-License-Identifier: BSD-3-Clause
"""Ways to send beside each other, a column for each size of heaps: a program's, or bare loops."""

import dataclasses
from collections.abc import Iterable, Mapping

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Series, joined, words_of
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import bars
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.grid import Grid, Lane, Lanes
from spead_tutorial.results.plots.points import Point, bare_name, gains, is_bare, points, require
from spead_tutorial.results.plots.sheet import Drawn, Sheet
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import NO_DIFFERENCE, fill, over_sizes
from spead_tutorial.results.units import size, times

__all__ = ["Ways", "ceiling"]

Found = Mapping[Series, Mapping[int, Point]]


@dataclasses.dataclass(frozen=True, slots=True)
class Ways:
    """A picture of a program's variants: what it shows of a recording; call it to draw it."""

    title: str  # what was done, and what it gained: see `titles`
    program: str  # which
    # its variants from top to bottom; what each is called, and a remark
    ways: tuple[tuple[str, str, str], ...]
    bare: tuple[tuple[str, str], ...]  # variants of the bare loops that stand below, and remarks
    sweep: str  # which sweep is to be run where a recording has none of them
    # two of the variants: what was before, and what the title says the gain of
    compared: tuple[str, str]
    subtitle: str = ""  # what the picture is of

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        found = points(recording)
        require(found, [self._series(language) for language in MEASURED], self.sweep)
        grid = Grid(tuple(row for row in self._rows(found) if row.lanes))
        sheet = Sheet(
            theme,
            fill(self.title, over_sizes(self.gains(recording))),
            grid.sheet_rows(theme),
            caption(recording),
            subtitle=self.subtitle,
            legend=bars.language_legend(theme),
        )
        grid.draw(sheet)
        return sheet.drawn("Bars: the rate of each way in MB/s.")

    def gains(self, recording: Recording) -> dict[str, dict[int, Estimate | None]]:
        """Return what the title has slots for: the gain of each language at each size."""
        found, (before, after) = points(recording), self.compared
        return {
            NAMES[language]: gains(
                found.get(self._series(language, before), {}),
                found.get(self._series(language, after), {}),
            )
            for language in MEASURED
        }

    def _series(self, language: str, variant: str = "") -> Series:
        return Series(OURS, language, self.program, variant)

    def _rows(self, found: Found) -> Iterable[Lanes]:
        for variant, title, note in self.ways:
            series = {language: self._series(language, variant) for language in MEASURED}
            lanes = (
                Lane(NAMES[language], language, found[one])
                for language, one in series.items()
                if one in found
            )
            yield Lanes(title, note, tuple(lanes))
        for variant, note in self.bare:
            loop = Series("ceiling", "c", "ceiling", variant)
            known = (Lane("", "limit", found[loop]),) if loop in found else ()
            yield Lanes("bare system calls", note, known)


# ---------------------------------------------------------------------------------------
# All bare loops

#: What the others are held against: chapters 4 to 11 work in this way.
_NAMED = Series("ceiling", "c", "ceiling", "two threads")
_SUBTITLE = "All bare loops, beside two threads that fill and copy (dashed)"
_ROOM_FOR_NAMES = 0.95
_WORKS = ("fill and copy", "fill and read in place", "copy", "read in place")


def ceiling(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of each bare loop: a row for what is done with the bytes, a lane for who."""
    found = {series: known for series, known in points(recording).items() if is_bare(series)}
    require(found, [_NAMED], "ceiling")
    grid = Grid(tuple(_loops(found)), _ROOM_FOR_NAMES, Lane("", "limit", found[_NAMED]))
    rows, foot = grid.sheet_rows(theme), caption(recording)
    sheet = Sheet(theme, f"Bare calls{_farthest(found)}", rows, foot, subtitle=_SUBTITLE)
    grid.draw(sheet)
    return sheet.drawn("Bars: the rate of each loop in MB/s.")


def _loops(found: Found) -> Iterable[Lanes]:
    """Sort the loops by what is done with the bytes."""
    lanes: dict[str, list[Lane]] = {}
    for series, known in found.items():
        who, *works = words_of(bare_name(series.variant))
        work = joined(*works)
        lanes.setdefault(work, []).append(Lane(who, "limit", known))
    order = [work for name in _WORKS for work in sorted(lanes) if words_of(work)[0] == name]
    for work in order:
        title, _, note = work.partition(", ")
        yield Lanes(title, note, tuple(sorted(lanes[work], key=lambda lane: _place(lane.name))))


def _place(who: str) -> tuple[int, str]:
    """Return where a lane is: one thread, two, then several streams."""
    return ("one" in who, "two" in who, "stream" in who).index(True), who


def _farthest(found: Found) -> str:
    """Say which loop is the farthest from the one with the line, and where."""
    known = [
        (one.median, series, x)
        for series in found
        for x, one in gains(found[_NAMED], found[series]).items()
        if one is not None and differs(one)
    ]
    if not known:
        return f": {NO_DIFFERENCE}"
    factor, series, x = max(known, key=lambda one: one[0])
    return f", up to {times(factor)}: {bare_name(series.variant)}, at {size(x)}"
