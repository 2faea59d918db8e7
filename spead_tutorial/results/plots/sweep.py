# SPDX-License-Identifier: BSD-3-Clause
"""The rate against the size of heaps, and what was gained."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import TIMES, Line, say
from spead_tutorial.results.plots.points import (
    Point,
    bare_name,
    best_bare,
    gains,
    points,
    require,
    top,
)
from spead_tutorial.results.plots.sheet import Drawn, Sheet, panels
from spead_tutorial.results.plots.theme import NAMES, Look, Theme, looks, role_of
from spead_tutorial.results.plots.titles import fill, over_sizes
from spead_tutorial.results.units import percent, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Sweep"]

_HEIGHT, _BESIDE_HEIGHT, _GAIN_HEIGHT = 3.3, 2.7, 1.6
_ROOM, _GAIN_ROOM, _LOWER_ROOM = 0.34, 0.38, 0.85
_GAP = 0.3
_MOST_LABELS, _MOST_GAINS = 8, 8
#: What a legend calls the best of all bare loops that were measured together.
_BEST = "the best of all bare loops here"

Gains = Mapping[int, Estimate | None]


@dataclasses.dataclass(frozen=True, slots=True)
class _Lines:
    """What is drawn of a recording."""

    # the points of each series, those that are not drawn too
    points: Mapping[Series, Mapping[int, Point]]
    labels: Mapping[Series, str]  # the series that are drawn, and what the legend calls them
    # the gain at each size, by what was before and what it became; empty where none is known
    gains: Mapping[tuple[Series, Series], Gains]
    # the best bare loop at each size, where it is another than the one that is drawn
    best: Mapping[int, tuple[Series, Point]]

    @property
    def sizes(self) -> list[int]:
        """All sizes that something is drawn of."""
        return sorted({x for series in self.labels for x in self.points[series]})

    def columns(self) -> dict[str, list[Series]]:
        """Return the lines of each panel: one for a language that is compared, or one for all.

        What is in no comparison is beside each of them.
        """
        gained = {after.language for _, after in self.gains}
        compared = {series for pair in self.gains for series in pair}
        return {
            language: [
                one for one in self.labels if one.language == language or one not in compared
            ]
            for language in MEASURED
            if language in gained
        } or {"": list(self.labels)}


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A picture of rates over sizes: what it shows of a recording; call it to draw it.

    What the recording does not have is left out, the legend's line too. With something to
    compare, there is a panel for each language, and the gain below it.
    """

    # what was done, and what that gained (see `titles`), or what share of the rate of bare system
    # calls it reaches
    title: str
    series: tuple[tuple[Series, str], ...]  # its lines, and what the legend calls them
    sweep: str  # which sweep is to be run where a recording has none of them
    # bare system calls of the same recording. Where it has others that are faster, a thin line
    # shows the best of all at each size: what is drawn is no limit by itself
    bare: Series | None = None
    # what was before, and what it became: for the panels of gains, in the second one's colours.
    # Of a language, the last pair is the one that the title speaks of
    before: tuple[tuple[Series, Series], ...] = ()
    gained: str = "before"  # what those panels say the gain is over
    # lines as in `series`, of which the first that the recording has is drawn
    peers: tuple[tuple[Series, str], ...] = ()
    subtitle: str = ""  # what the picture is of
    largest: int | None = None  # sizes above it are left out
    rate: str = curves.RATE  # what a panel of rates is called

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        lines = self._lines(recording)
        look = dict(zip(lines.labels, looks(list(lines.labels), theme), strict=True))
        columns = lines.columns()
        sheet = self._sheet(recording, lines, look, theme)
        most_labels = _MOST_LABELS // (2 if theme.is_narrow else len(columns))
        places = panels(theme, len(columns), curves.SIDES, _GAP)
        for place, (language, shown) in zip(places, columns.items(), strict=True):
            axis = sheet.axes(2 * place.row, *place.sides)
            curves.size_axis(axis, lines.sizes, None if lines.gains else curves.SIZE, most_labels)
            unit = f": {self.rate}" if place.is_first else ""
            name = NAMES[language] + unit if language else self.rate
            ends = place.is_first, place.is_last
            curves.rate_panel(axis, theme, top(recording), False, name, *ends)
            _draw_rates(axis, lines, {one: look[one] for one in shown}, theme)
            if lines.gains:
                axis = sheet.axes(2 * place.row + 1, *place.sides)
                curves.size_axis(axis, lines.sizes, curves.SIZE, most_labels)
                words = "gain over" if theme.is_narrow else "gain: times as fast as"
                name = f"{words} {self.gained}" if place.is_first else ""
                _draw_gains(axis, lines, look, language, name, theme)
                axis.tick_params(axis="y", labelleft=place.is_first)
        return sheet.drawn("Lines: the rate in MB/s against the size of a heap.", last_first=True)

    def gains(self, recording: Recording) -> dict[str, Gains]:
        """Return what the title has slots for, by language: what was gained at each size.

        Where nothing is compared, it is the share of the rate of the bare system calls.
        """
        return self._gains(self._lines(recording))

    def _gains(self, lines: _Lines) -> dict[str, Gains]:
        if self.before:
            return {NAMES[after.language]: one for (_, after), one in lines.gains.items()}
        bare = lines.points.get(self.bare, {}) if self.bare is not None else {}
        return {
            label: gains(bare, lines.points[series])
            for series, label in self.series
            if series in lines.labels
        }

    def _lines(self, recording: Recording) -> _Lines:
        """Find what the recording has of what is wanted."""
        found = {
            series: shown
            for series, known in points(recording).items()
            if (shown := {x: one for x, one in known.items() if x <= (self.largest or x)})
        }
        require(found, [series for series, _ in self.series], self.sweep)
        wanted = dict(self.series)
        for before, after in self.before:
            if after in found:
                wanted.setdefault(before, f"{NAMES[before.language]}: {self.gained}")
        wanted |= dict([(series, name) for series, name in self.peers if series in found][:1])
        if self.bare is not None:
            wanted[self.bare] = f"bare calls: {bare_name(self.bare.variant)}"
        labels = {series: label for series, label in wanted.items() if series in found}
        pairs = [one for one in self.before if one[0] in labels and one[1] in labels]
        compared = {(old, new): gains(found[old], found[new]) for old, new in pairs}
        best: dict[int, tuple[Series, Point]] = {}
        if self.bare in labels:
            sizes = {x for series in labels for x in found[series]}
            best = {x: one for x, one in best_bare(found, self.bare).items() if x in sizes}
        other = any(series != self.bare for series, _ in best.values())
        known = any(compared.values())
        return _Lines(found, labels, compared if known else {}, best if other else {})

    def _sheet(
        self, recording: Recording, lines: _Lines, look: Mapping[Series, Look], theme: Theme
    ) -> Sheet:
        """Make room for the panels, below what says what is what."""
        count = len(lines.columns())
        height = _BESIDE_HEIGHT if count > 1 or theme.is_narrow else _HEIGHT
        legend = curves.curve_legend([(lines.labels[one], look[one]) for one in look], theme)
        said = None if self.before else _shares
        return Sheet(
            theme,
            fill(self.title, over_sizes(self._gains(lines), words=said)),
            [
                row
                for first in (_ROOM, *[_LOWER_ROOM] * (count - 1) * theme.is_narrow)
                for row in [(first, height)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * bool(lines.gains)
            ],
            caption(recording, curves.SHOWN),
            subtitle=self.subtitle,
            legend=legend + [curves.thin_line(theme, _BEST)] * bool(lines.best),
        )


def _draw_gains(
    axis: "Axes",
    lines: _Lines,
    look: Mapping[Series, Look],
    language: str,
    name: str,
    theme: Theme,
) -> None:
    """Draw the gains of a language on the scale of all."""
    shown = []
    for (before, after), one in lines.gains.items():
        if after.language == language:
            words = f"{lines.labels[after]}, gain over {lines.labels[before]}"
            shown.append((one, look[after], Line(words, role_of(after), unit=TIMES)))
    curves.gain_panel(axis, shown, theme, name, lines.gains.values(), _MOST_GAINS)


def _shares(at: Mapping[str, Estimate | None]) -> str:
    known = [f"{percent(one.median)} ({name})" for name, one in at.items() if one is not None]
    return ", ".join(known)


def _draw_rates(axis: "Axes", lines: _Lines, look: Mapping[Series, Look], theme: Theme) -> None:
    for series in reversed(list(look)):  # what the picture is about is on top
        key = next(iter(lines.points[series].values())).key
        line = Line(lines.labels[series], role_of(series), key=key)
        curves.draw_curve(axis, lines.points[series], look[series], theme, line=line)
    if lines.best:
        curves.draw_thin(axis, {x: point for x, (_, point) in lines.best.items()}, theme)
    for x, (series, point) in lines.best.items():
        say(axis, _BEST, f"{size(x)} {point.median:.0f} ({bare_name(series.variant)})")
    curves.draw_failures(axis, lines.points, look)
