# SPDX-License-Identifier: BSD-3-Clause
"""Rates over the size of heaps, and what was gained."""

import dataclasses
from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.records import Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.render import TIMES, Axes, Drawn, Line
from spead_tutorial.results.plots.sheet import Sheet, panels
from spead_tutorial.results.plots.theme import NAMES, LineStyle, Theme, line_styles, role_of
from spead_tutorial.results.units import number

_HEIGHT, _BESIDE_HEIGHT, _PAIR_HEIGHT, _GAIN_HEIGHT = 2.8, 1.8, 2.3, 1.05
_ROOM, _GAIN_ROOM = 0.34, 0.38
_GAP = 0.3
_MOST_LABELS, _MOST_GAINS = 8, 5

Gains = Mapping[int, Estimate | None]


@dataclasses.dataclass(frozen=True, slots=True)
class _Lines:
    """What is drawn of a recording."""

    # the points of each series, those that are not drawn too
    points: Mapping[Series, Mapping[int, facts.Point]]
    labels: Mapping[Series, str]  # the series that are drawn, and what the legend calls them
    # the gain at each size, by what was before and what it became; empty where none is known
    gains: Mapping[tuple[Series, Series], Gains]

    @property
    def sizes(self) -> list[int]:
        """All sizes that something is drawn of."""
        return sorted({x for series in self.labels for x in self.points[series]})

    def columns(self) -> dict[str, list[Series]]:
        """Return the lines of each panel: one for a language that is compared, or one for all."""
        gained = {after.language for _, after in self.gains}
        compared = {series for pair in self.gains for series in pair}

        def belongs(series: Series, language: str) -> bool:
            if series in compared:
                return series.language == language
            # The others stand beside each; but the peer in Python beside Python, in C++ beside C.
            return role_of(series) != PEER or (series.language == "python") == (
                language == "python"
            )

        return {
            language: [series for series in self.labels if belongs(series, language)]
            for language in MEASURED
            if language in gained
        } or {"": list(self.labels)}


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A picture of rates over sizes: what it shows of a recording; call it to draw it.

    What the recording does not have is left out, the legend's line too. With something to
    compare, there is a panel for each language, and but for a pair the gain below it.
    """

    title: str  # what was done, and what that gained (see `facts`); or what was before, in MB/s
    series: tuple[tuple[Series, str], ...]  # its lines, and what the legend calls them
    sweep: str  # which sweep is to be run where a recording has none of them
    bare: Series | None = None  # bare system calls of the same recording
    # what was before, and what it became: for the panels of gains, in the second one's colours.
    # Of a language, the last pair is the one that the title speaks of
    before: tuple[tuple[Series, Series], ...] = ()
    gained: str = "before"  # what those panels say the gain is over
    # of two in the same frame, between which one can flick, which one: "before", where only what
    # was before is drawn, or "after"
    part: str = ""
    beside: "Sweep | None" = None  # the other of the two
    # lines as in `series`, of which for each language the first that the recording has is drawn
    peers: tuple[tuple[Series, str], ...] = ()
    subtitle: str = ""  # what the picture is of; it has the same slots
    largest: int | None = None  # sizes above it are left out
    rate: str = curves.RATE  # what a panel of rates is called

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        lines = self._lines(recording)
        style = line_styles(lines.labels, theme)
        columns = lines.columns()
        sheet = self._sheet(recording, lines, style, theme)
        most_labels = _MOST_LABELS // len(columns)
        slots, most = panels(len(columns), curves.SIDES, _GAP), self._most(recording)
        has_gains = self._has_gains(lines)
        for slot, (language, shown) in zip(slots, columns.items(), strict=True):
            axis = sheet.axes(0, *slot.sides)
            curves.size_axis(axis, lines.sizes, None if has_gains else curves.SIZE, most_labels)
            unit = f": {self.rate}" if slot.is_first else ""
            name = NAMES[language] + unit if language else self.rate
            ends = slot.is_first, slot.is_last
            curves.rate_panel(axis, theme, most, False, name, *ends)
            shown = [series for series in shown if series not in self._hidden]
            drawn = {series: style[series] for series in shown}
            curves.draw_lines(axis, lines.points, lines.labels, drawn, theme)
            if has_gains:
                axis = sheet.axes(1, *slot.sides)
                curves.size_axis(axis, lines.sizes, curves.SIZE, most_labels)
                name = f"gain: times as fast as {self.gained}" if slot.is_first else ""
                _draw_gains(axis, lines, style, language, name, theme)
                axis.tick_params(axis="y", labelleft=slot.is_first)
        return sheet.drawn("Lines: the rate in MB/s against the size of a heap.", last_first=True)

    def gains(self, recording: Recording) -> dict[str, Gains]:
        """Return the gain at each size by language; of a picture of what was before, the rate."""
        return self._slots(self._lines(recording))

    @property
    def _hidden(self) -> set[Series]:
        return {after for _, after in self.before} if self.part == "before" else set()

    def _slots(self, lines: _Lines) -> dict[str, Gains]:
        if not self._hidden:
            return {NAMES[after.language]: by_size for (_, after), by_size in lines.gains.items()}
        return {
            NAMES[old.language]: {x: point.estimate() for x, point in lines.points[old].items()}
            for old, _ in lines.gains
        }

    def _words(self, lines: _Lines) -> tuple[str, str]:
        """Fill the slots of the title, and of the subtitle."""
        words = _rates if self._hidden else facts.gained
        slots = facts.over_sizes(self._slots(lines), words)
        return facts.fill(self.title, slots), facts.fill(self.subtitle, slots)

    def _has_gains(self, lines: _Lines) -> bool:
        return bool(lines.gains) and not self.part

    def _most(self, recording: Recording) -> float:
        """Return the highest rate of the scale: of a pair, that of a line of either."""
        if self.beside is None:
            return facts.top(recording)
        both = [sweep._lines(recording) for sweep in (self, self.beside)]
        drawn = [lines.points[series] for lines in both for series in lines.labels]
        return facts.highest(point for points in drawn for point in points.values())

    def _lines(self, recording: Recording) -> _Lines:
        """Find what the recording has of what is wanted."""
        found = {
            series: shown
            for series, known in facts.points(recording.samples).items()
            if (shown := {x: point for x, point in known.items() if x <= (self.largest or x)})
        }
        facts.require(found, [series for series, _ in self.series], self.sweep)
        wanted = dict(self.series)
        for before, after in self.before:
            if after in found:
                wanted.setdefault(before, f"{NAMES[before.language]}: {self.gained}")
        peers = [(series, name) for series, name in self.peers if series in found]
        wanted |= dict({peer[0].language: peer for peer in reversed(peers)}.values())
        if self.bare is not None:
            wanted[self.bare] = f"bare calls: {facts.bare_name(self.bare.variant)}"
        labels = {series: label for series, label in wanted.items() if series in found}
        pairs = [pair for pair in self.before if pair[0] in labels and pair[1] in labels]
        compared = {(old, new): facts.gains(found[old], found[new]) for old, new in pairs}
        return _Lines(found, labels, compared if any(compared.values()) else {})

    def _sheet(
        self, recording: Recording, lines: _Lines, style: Mapping[Series, LineStyle], theme: Theme
    ) -> Sheet:
        """Make room for the panels, below what says what is what."""
        height = _BESIDE_HEIGHT if len(lines.columns()) > 1 else _HEIGHT
        height, other = _PAIR_HEIGHT if self.part else height, self.beside
        title, subtitle = self._words(lines)
        return Sheet(
            theme,
            title,
            [(_ROOM, height)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * self._has_gains(lines),
            facts.caption(recording, curves.SHOWN, lines.labels),
            subtitle=subtitle,
            legend=curves.curve_legend(lines.labels, style, theme),
            beside=other._words(other._lines(recording)) if other is not None else ("", ""),
        )


def _draw_gains(
    axis: Axes,
    lines: _Lines,
    style: Mapping[Series, LineStyle],
    language: str,
    name: str,
    theme: Theme,
) -> None:
    """Draw the gains of a language on the scale of all."""
    shown = []
    for (before, after), by_size in lines.gains.items():
        if after.language == language:
            words = f"{lines.labels[after]}, gain over {lines.labels[before]}"
            shown.append((by_size, style[after], Line(words, role_of(after), unit=TIMES)))
    curves.gain_panel(axis, shown, theme, name, lines.gains.values(), _MOST_GAINS)


def _rates(at: Mapping[str, Estimate | None]) -> str:
    known = {name: rate.median for name, rate in at.items() if rate is not None}
    return ", ".join(f"{number(float(f'{x:.3g}'))} ({name})" for name, x in known.items())
