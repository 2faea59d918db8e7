# SPDX-License-Identifier: BSD-3-Clause
"""The rate against the size of heaps or packets, and what was gained."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.plots import curves
from spead_tutorial.plots.bare import BEST, bare_name
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.lines import Lines
from spead_tutorial.plots.points import gains as gains_of
from spead_tutorial.plots.points import points, require, top
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, beside
from spead_tutorial.plots.theme import NAMES, Look, Theme
from spead_tutorial.plots.verdict import gains_over_sizes, shares_over_sizes, whole
from spead_tutorial.records import Recording, Series
from spead_tutorial.units import bytes_text, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Sweep"]

_HEIGHT, _BESIDE_HEIGHT, _GAIN_HEIGHT = 3.3, 2.7, 1.6
_ROOM, _LINES_ROOM, _GAIN_ROOM, _LOWER_ROOM = 0.34, 0.46, 0.38, 0.85
_GAP = 0.3
_MOST_LABELS, _MOST_GAINS = 8, 8
_IP_AND_UDP = 28


@dataclasses.dataclass(frozen=True, slots=True)
class _Column:
    """A column of panels, of which there is one for each language, or one for all.

    On a narrow picture they are below each other.
    """

    language: str
    number: int
    count: int
    rate: str
    is_narrow: bool

    def axes(self, sheet: Sheet, row: int) -> "Axes":
        """Add its panel of a row: all have one width."""
        line, left, right = beside(sheet.theme, self.count, curves.SIDES, _GAP)[self.number]
        return sheet.axes(2 * line + row, left, right)

    @property
    def is_first(self) -> bool:
        """Whether the numbers of the scales are beside it."""
        return self.is_narrow or not self.number

    @property
    def is_last(self) -> bool:
        """Whether the numbers of Gb/s are beside it."""
        return self.is_narrow or self.number == self.count - 1

    @property
    def most_labels(self) -> int:
        """How many sizes it has room to name."""
        return _MOST_LABELS // (2 if self.is_narrow else self.count)

    @property
    def name(self) -> str:
        """What is written above its rates."""
        if not self.language:
            return self.rate
        unit = f": {self.rate}" if self.is_first else ""
        return NAMES[self.language] + unit

    def over(self, before: str) -> str:
        """What is written above its gains."""
        words = "gain over" if self.is_narrow else "gain: times as fast as"
        return f"{words} {before}" if self.is_first else ""


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A picture of rates over sizes: what it shows of a recording; call it to draw it.

    What the recording does not have is left out, the legend's line too. With something to
    compare, there is a panel for each language, and the gain below it.
    """

    # what was done; the title says behind it what that gained, or what share of the rate of bare
    # system calls it reaches
    title: str
    series: tuple[tuple[Series, str], ...]  # its lines, and what the legend calls them
    sweep: str  # which sweep is to be run where a recording has none of them
    x: str = "heap_size"  # `"heap_size"` or `"packet_size"`
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
        look, columns = lines.looks(theme), lines.columns()
        sheet = self._sheet(recording, lines, look, theme)
        for number, (language, shown) in enumerate(columns.items()):
            column = _Column(language, number, len(columns), self.rate, theme.is_narrow)
            axis = column.axes(sheet, 0)
            self._prepare(axis, recording, lines, column, theme)
            _draw_rates(axis, lines, {one: look[one] for one in shown}, theme)
            if lines.gains:
                axis = column.axes(sheet, 1)
                curves.size_axis(axis, lines.sizes, curves.size_label(self.x), column.most_labels)
                _draw_gains(axis, lines, look, column, column.over(self.gained), theme)
        return sheet.figure, sheet.title, self._in_words(recording, lines)

    def _lines(self, recording: Recording) -> Lines:
        """Find what the recording has of what is wanted."""
        found = {
            series: shown
            for series, known in points(recording, self.x).items()
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
        return Lines.of(found, wanted, self.before, self.bare)

    def _sheet(
        self, recording: Recording, lines: Lines, look: Mapping[Series, Look], theme: Theme
    ) -> Sheet:
        """Make room for the panels, below what says what is what."""
        count = len(lines.columns())
        height = _BESIDE_HEIGHT if count > 1 or theme.is_narrow else _HEIGHT
        room = _ROOM if self.x == "heap_size" else _LINES_ROOM
        legend = curves.curve_legend([(lines.labels[one], look[one]) for one in look], theme)
        return Sheet(
            theme,
            ": ".join(filter(None, (self.title, self._finding(lines)))),
            [
                row
                for first in (room, *[_LOWER_ROOM] * (count - 1) * theme.is_narrow)
                for row in [(first, height)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * bool(lines.gains)
            ],
            caption(recording, curves.SHOWN),
            subtitle=self.subtitle,
            legend=legend + [curves.thin_line(theme, BEST)] * bool(lines.best),
        )

    def _finding(self, lines: Lines) -> str:
        """Say what the recording says, in so few words that a title has room for them."""
        if self.before:
            last = {NAMES[after.language]: gains for (_, after), gains in lines.gains.items()}
            return gains_over_sizes(last, self._whole)
        bare = lines.points.get(self.bare, {}) if self.bare is not None else {}
        shares = {
            label: gains_of(bare, lines.points[series])
            for series, label in self.series
            if series in lines.labels
        }
        return shares_over_sizes(shares, "the bare calls", self._whole)

    def _whole(self, x: int) -> str:
        return whole(self._write(x))

    def _write(self, x: int) -> str:
        return size(x) if self.x == "heap_size" else bytes_text(x)

    def _prepare(
        self, axis: "Axes", recording: Recording, lines: Lines, column: _Column, theme: Theme
    ) -> None:
        """Give a panel of rates its scales."""
        packets = self.x == "packet_size"
        name = None if lines.gains else curves.size_label(self.x)
        curves.size_axis(axis, lines.sizes, name, column.most_labels)
        ends = column.is_first, column.is_last
        curves.rate_panel(axis, theme, top(recording), packets, column.name, *ends)
        if packets:
            _draw_mtu(axis, recording, lines.sizes, theme)

    def _in_words(self, recording: Recording, lines: Lines) -> str:
        sentences = [f"Lines: the rate in MB/s against the {curves.size_label(self.x)}."]
        sentences += lines.in_words(self._write)
        return " ".join([*sentences, " ".join(caption(recording, curves.SHOWN).split())])


def _draw_rates(axis: "Axes", lines: Lines, look: Mapping[Series, Look], theme: Theme) -> None:
    for series in reversed(list(look)):  # what the picture is about is on top
        line = lines.marked(series)
        curves.draw_curve(axis, lines.points[series], look[series], theme, line=line)
    if lines.best:
        curves.draw_thin(axis, {x: point for x, (_, point) in lines.best.items()}, theme)
    curves.draw_failures(axis, curves.failures(lines.points, look))


def _draw_gains(
    axis: "Axes",
    lines: Lines,
    look: Mapping[Series, Look],
    column: _Column,
    name: str,
    theme: Theme,
) -> None:
    """Draw the gains of a language on the scale of all."""
    gains = lines.gains
    shown = [
        (one, look[after], lines.marked(after, before))
        for (before, after), one in gains.items()
        if after.language == column.language
    ]
    curves.gain_panel(axis, shown, theme, name, gains.values(), _MOST_GAINS)
    axis.tick_params(axis="y", labelleft=column.is_first)


def _draw_mtu(axis: "Axes", recording: Recording, sizes: Sequence[int], theme: Theme) -> None:
    """Draw the largest packet that the lab's device takes whole; IP cuts larger ones up."""
    mtus = {header.lab.get("mtu") for header in recording.headers}
    mtu = mtus.pop()
    if not mtus and isinstance(mtu, int) and sizes[0] < mtu - _IP_AND_UDP < sizes[-1]:
        curves.name_line(axis, mtu - _IP_AND_UDP, f"MTU {mtu}", theme)
