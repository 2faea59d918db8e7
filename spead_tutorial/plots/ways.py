# SPDX-License-Identifier: BSD-3-Clause
"""One program in several ways beside each other, a column for each size of heaps."""

import dataclasses
from collections.abc import Iterable, Mapping

from spead_tutorial.catalogue import MEASURED
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.grid import Grid, Lane, Row
from spead_tutorial.plots.points import Point, gains, points, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.plots.verdict import gains_over_sizes, whole
from spead_tutorial.records import OURS, Recording, Series
from spead_tutorial.units import size

__all__ = ["Ways"]


@dataclasses.dataclass(frozen=True, slots=True)
class Ways:
    """A picture of a program's variants: what it shows of a recording; call it to draw it."""

    title: str  # what was done, for the title; what it gained is written behind it
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
        foot = caption(recording)
        sheet = Sheet(
            theme,
            ": ".join(filter(None, (self.title, self._finding(found)))),
            grid.sheet_rows(theme),
            foot,
            subtitle=self.subtitle,
            legend=bars.language_legend(theme),
        )
        grid.draw(sheet)
        words = ["Bars: the rate of each way in MB/s.", *grid.in_words(), " ".join(foot.split())]
        return sheet.figure, sheet.title, " ".join(words)

    def _series(self, language: str, variant: str = "") -> Series:
        return Series(OURS, language, self.program, variant)

    def _rows(self, found: Mapping[Series, Mapping[int, Point]]) -> Iterable[Row]:
        for variant, title, note in self.ways:
            series = {language: self._series(language, variant) for language in MEASURED}
            lanes = (
                Lane(NAMES[language], language, found[one])
                for language, one in series.items()
                if one in found
            )
            yield Row(title, note, tuple(lanes))
        for variant, note in self.bare:
            loop = Series("ceiling", "c", "ceiling", variant)
            known = (Lane("", "limit", found[loop]),) if loop in found else ()
            yield Row("bare system calls", note, known)

    def _finding(self, found: Mapping[Series, Mapping[int, Point]]) -> str:
        """Say what was gained from one variant to the other."""
        before, after = self.compared
        known = {
            NAMES[language]: gains(
                found.get(self._series(language, before), {}),
                found.get(self._series(language, after), {}),
            )
            for language in MEASURED
        }
        return gains_over_sizes(known, lambda x: whole(size(x)))
