# SPDX-License-Identifier: BSD-3-Clause
"""Rates over the size of heaps, or of packets, and what was gained."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.render import PACKET, TIMES, Drawn, Line
from spead_tutorial.results.plots.sheet import FAINT, Sheet, Slot, name_panel, panels
from spead_tutorial.results.plots.theme import NAMES, Look, Theme, looks, role_of
from spead_tutorial.results.units import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Sweep", "packet_sizes"]

_HEIGHT, _BESIDE_HEIGHT, _PAIR_HEIGHT, _GAIN_HEIGHT = 3.3, 2.7, 2.3, 1.6
_ROOM, _GAIN_ROOM, _LOWER_ROOM = 0.34, 0.38, 0.85
_GAP = 0.3
_MOST_LABELS, _MOST_GAINS = 8, 8

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
        """Return the lines of each panel: one for a language that is compared, or one for all.

        What is in no comparison is beside each of them; but the peer in Python only beside Python,
        and the one in C++ only beside C.
        """
        gained = {after.language for _, after in self.gains}
        compared = {series for pair in self.gains for series in pair}

        def belongs(one: Series, language: str) -> bool:
            if one in compared:
                return one.language == language
            return role_of(one) != PEER or (one.language == "python") == (language == "python")

        return {
            language: [one for one in self.labels if belongs(one, language)]
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
        look = looks(lines.labels, theme)
        columns = lines.columns()
        sheet = self._sheet(recording, lines, look, theme)
        most_labels = _MOST_LABELS // (2 if theme.is_narrow else len(columns))
        places, most = panels(theme, len(columns), curves.SIDES, _GAP), self._most(recording)
        has_gains = self._has_gains(lines)
        for place, (language, shown) in zip(places, columns.items(), strict=True):
            axis = sheet.axes((1 + has_gains) * place.row, *place.sides)
            curves.size_axis(axis, lines.sizes, None if has_gains else curves.SIZE, most_labels)
            unit = f": {self.rate}" if place.is_first else ""
            name = NAMES[language] + unit if language else self.rate
            ends = place.is_first, place.is_last
            curves.rate_panel(axis, theme, most, False, name, *ends)
            shown = [one for one in shown if one not in self._hidden]
            _draw_rates(axis, lines, {one: look[one] for one in shown}, theme)
            if has_gains:
                axis = sheet.axes(2 * place.row + 1, *place.sides)
                curves.size_axis(axis, lines.sizes, curves.SIZE, most_labels)
                words = "gain over" if theme.is_narrow else "gain: times as fast as"
                name = f"{words} {self.gained}" if place.is_first else ""
                _draw_gains(axis, lines, look, language, name, theme)
                axis.tick_params(axis="y", labelleft=place.is_first)
        return sheet.drawn("Lines: the rate in MB/s against the size of a heap.", last_first=True)

    def gains(self, recording: Recording) -> dict[str, Gains]:
        """Return what the title has slots for, by language: what was gained at each size.

        Of a picture of what was before, it is the rate in MB/s.
        """
        return self._slots(self._lines(recording))

    @property
    def _hidden(self) -> set[Series]:
        return {after for _, after in self.before} if self.part == "before" else set()

    def _slots(self, lines: _Lines) -> dict[str, Gains]:
        if not self._hidden:
            return {NAMES[after.language]: one for (_, after), one in lines.gains.items()}
        return {
            NAMES[old.language]: {x: point.estimate() for x, point in lines.points[old].items()}
            for old, _ in lines.gains
        }

    def _words(self, lines: _Lines) -> tuple[str, str]:
        """Fill the slots of the title, and of the subtitle."""
        said = _rates if self._hidden else None
        slots = facts.over_sizes(self._slots(lines), words=said)
        return facts.fill(self.title, slots), facts.fill(self.subtitle, slots)

    def _has_gains(self, lines: _Lines) -> bool:
        return bool(lines.gains) and not self.part

    def _most(self, recording: Recording) -> float:
        """Return the highest rate of the scale: of a pair, that of a line of either."""
        if self.beside is None:
            return facts.top(recording)
        both = [one._lines(recording) for one in (self, self.beside)]
        drawn = [lines.points[series] for lines in both for series in lines.labels]
        return facts.highest(point for points in drawn for point in points.values())

    def _lines(self, recording: Recording) -> _Lines:
        """Find what the recording has of what is wanted."""
        found = {
            series: shown
            for series, known in facts.points(recording.samples).items()
            if (shown := {x: one for x, one in known.items() if x <= (self.largest or x)})
        }
        facts.require(found, [series for series, _ in self.series], self.sweep)
        wanted = dict(self.series)
        for before, after in self.before:
            if after in found:
                wanted.setdefault(before, f"{NAMES[before.language]}: {self.gained}")
        peers = [(series, name) for series, name in self.peers if series in found]
        wanted |= dict({one[0].language: one for one in reversed(peers)}.values())
        if self.bare is not None:
            wanted[self.bare] = f"bare calls: {facts.bare_name(self.bare.variant)}"
        labels = {series: label for series, label in wanted.items() if series in found}
        pairs = [one for one in self.before if one[0] in labels and one[1] in labels]
        compared = {(old, new): facts.gains(found[old], found[new]) for old, new in pairs}
        return _Lines(found, labels, compared if any(compared.values()) else {})

    def _sheet(
        self, recording: Recording, lines: _Lines, look: Mapping[Series, Look], theme: Theme
    ) -> Sheet:
        """Make room for the panels, below what says what is what."""
        count = len(lines.columns())
        height = _BESIDE_HEIGHT if count > 1 or theme.is_narrow else _HEIGHT
        height, other = _PAIR_HEIGHT if self.part else height, self.beside
        title, subtitle = self._words(lines)
        return Sheet(
            theme,
            title,
            [
                row
                for first in (_ROOM, *[_LOWER_ROOM] * (count - 1) * theme.is_narrow)
                for row in [(first, height)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * self._has_gains(lines)
            ],
            facts.caption(recording, curves.SHOWN),
            subtitle=subtitle,
            legend=curves.curve_legend(lines.labels, look, theme),
            beside=other._words(other._lines(recording)) if other is not None else ("", ""),
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


def _rates(at: Mapping[str, Estimate | None]) -> str:
    known = {name: one.median for name, one in at.items() if one is not None}
    return ", ".join(f"{number(float(f'{x:.3g}'))} ({name})" for name, x in known.items())


def _draw_rates(axis: "Axes", lines: _Lines, look: Mapping[Series, Look], theme: Theme) -> None:
    for series in reversed(list(look)):  # what the picture is about is on top
        key = next(iter(lines.points[series].values())).key
        line = Line(lines.labels[series], role_of(series), key=key)
        curves.draw_curve(axis, lines.points[series], look[series], theme, line=line)
    curves.draw_failures(axis, lines.points, look)


# ---------------------------------------------------------------------------------------
# Chapter 6: the size of packets: those that travel whole, and those in fragments

#: The lines of the picture, over the size of packets.
PacketsFound: TypeAlias = Mapping[Series, Mapping[int, facts.Point]]
#: The names of the panels, and of each where along x a size is.
Panels: TypeAlias = Mapping[str, Mapping[int, int]]

_CHAPTER = find_chapter("6")
_OURS = {Series(OURS, language, _CHAPTER.name): NAMES[language] for language in MEASURED}
_ALL = {
    **_OURS,
    Series(
        "ceiling", "c", "ceiling", "two threads"
    ): "bare system calls: two threads, fill and copy",
}
#: The packets before this chapter, and its own: the title holds them against each other.
_SMALL, _LARGE = find_chapter("5").packet_size, _CHAPTER.packet_size
#: Bytes of headers that the MTU counts; and what the size of a packet is a multiple of.
_IP_AND_UDP, _UNIT = 28, 8
_ANY, _WHOLE, _CUT = "", "Sent whole (MTU {mtu})", "In fragments"
#: Inches: the room above a panel, and above one below another; between two; of a line of sizes.
_ABOVE, _LOWER_ABOVE, _BETWEEN, _LOWER = 0.66, 1.5, 0.22, 0.16
#: Points: how long the mark of a size is.
_TICK = 3.5
#: Along x, in thousandths of an octave: the least between two sizes, and beside all of them.
_OCTAVE, _LEAST, _NARROW_LEAST, _MARGIN = 1000, 310, 450, 350


def packet_sizes(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate over the size of packets, a panel on each side of the MTU."""
    found = _found(recording)
    look, parted = looks(found, theme), _parted(recording, found, theme)
    lower = [(_LOWER_ABOVE, _BESIDE_HEIGHT)] * (len(parted) - 1) * theme.is_narrow
    sheet = Sheet(
        theme,
        _title(found, next(iter(parted.get(_CUT, ())), None)),
        [(_ABOVE, _HEIGHT), *lower],
        facts.caption(recording, curves.SHOWN),
        subtitle="The rate against the size of packets",
        legend=curves.curve_legend(_ALL, look, theme),
        below=0.95,
    )
    widest = max(parted.values(), key=lambda places: max(places.values()))
    for slot, (name, places) in zip(_slots(theme, parted), parted.items(), strict=True):
        axis = sheet.axes(slot.row, *slot.sides)
        name_panel(axis, curves.RATE * slot.is_first)
        ends = slot.is_first, slot.is_last
        curves.rate_panel(axis, theme, facts.top(recording), False, "", *ends)
        _scale(axis, places)
        axis.set_title(name, loc="left", fontsize=11, weight="bold", pad=24)
        if theme.is_narrow or places is widest:
            some = [places] if theme.is_narrow else parted.values()
            apart = " and ".join(filter(None, (_apart(one, theme) for one in some)))
            note = f"\n(logarithmic; {apart} drawn apart)" if apart else " (logarithmic)"
            axis.set_xlabel(f"size of a packet in bytes{note}")
        shown = {
            series: {x: point for x, point in points.items() if x in places}
            for series, points in found.items()
        }
        for series, of_sizes in shown.items():
            line = Line(_ALL[series], role_of(series), over=PACKET)
            curves.draw_curve(axis, of_sizes, look[series], theme, line=line, places=places)
        curves.draw_failures(axis, shown, look, places)
    return sheet.drawn("Lines: the rate in MB/s against the size of a packet.")


def _found(recording: Recording) -> PacketsFound:
    """Return the series by the sizes that are sent: where one asks for others, they are cut."""
    by_series = facts.points(recording.samples, "packet_size")
    facts.require(by_series, _OURS, "tut-6")
    return {
        series: {x - x % _UNIT: point for x, point in by_series[series].items()}
        for series in _ALL
        if series in by_series
    }


def _parted(recording: Recording, found: PacketsFound, theme: Theme) -> Panels:
    """Part the sizes where the MTU does; where it is not known, they are all in one panel."""
    sizes = sorted({x for by_size in found.values() for x in by_size})
    mtus = {header.lab.get("mtu") for header in recording.headers}
    mtu = mtus.pop()
    if mtus or not isinstance(mtu, int):
        return {_ANY: _places(sizes, theme)}
    panels = {
        _WHOLE.format(mtu=mtu): [x for x in sizes if x <= mtu - _IP_AND_UDP],
        _CUT: [x for x in sizes if x > mtu - _IP_AND_UDP],
    }
    return {name: _places(sizes, theme) for name, sizes in panels.items() if sizes}


def _title(found: PacketsFound, cut: int | None) -> str:
    """Say what larger packets gain, and what those lose that do not travel whole."""

    def gained_from(before: int, after: int) -> dict[str, Estimate | None]:
        return {
            name: facts.gain(found[series].get(before), found[series].get(after))
            for series, name in _OURS.items()
            if series in found
        }

    gains = gained_from(_SMALL, _LARGE)
    if not any(gains.values()):
        return "Packets of several sizes"
    fragments = f"; in fragments {facts.gained(gained_from(_LARGE, cut))}" if cut else ""
    return f"Packets of {_LARGE}, not {_SMALL} bytes: {facts.gained(gains)}{fragments}"


# ---------------------------------------------------------------------------------------
# The scale


def _least(theme: Theme) -> int:
    return _NARROW_LEAST if theme.is_narrow else _LEAST


def _places(sizes: Sequence[int], theme: Theme) -> dict[int, int]:
    """Return where along x each size is: never closer to another than their marks are wide."""
    octaves = (round(_OCTAVE * math.log2(after / before)) for before, after in pairwise(sizes))
    steps = (max(_least(theme), step) for step in octaves)
    return dict(zip(sizes, accumulate(steps, initial=0), strict=True))


def _slots(theme: Theme, among: Panels) -> list[Slot]:
    """Return where panels are: as wide as their sizes are apart, or below each other."""
    if theme.is_narrow:
        return panels(theme, len(among), curves.SIDES, _BETWEEN)
    left, right = curves.SIDES
    widths = [max(places.values()) + 2 * _MARGIN for places in among.values()]
    inches = (theme.width - left - right - _BETWEEN * (len(widths) - 1)) / sum(widths)
    slots: list[Slot] = []
    for width in widths:
        sides = left, theme.width - left - width * inches
        slots.append(Slot(0, sides, not slots, len(slots) == len(widths) - 1))
        left += width * inches + _BETWEEN
    return slots


def _scale(axis: "Axes", places: Mapping[int, int]) -> None:
    """Mark each size, every other one a line lower, so that they do not touch."""
    axis.set_xlim(-_MARGIN, max(places.values()) + _MARGIN)
    for odd in (False, True):
        some = list(places.items())[odd::2]
        axis.set_xticks([x for _, x in some], [f"{n}" for n, _ in some], minor=odd, fontsize=FAINT)
    axis.tick_params(axis="x", which="both", length=_TICK, width=0.8, pad=_TICK)
    axis.tick_params(axis="x", which="minor", pad=_TICK + 72 * _LOWER)
    axis.grid(which="both")
    axis.set_axisbelow(True)


def _apart(places: Mapping[int, int], theme: Theme) -> str:
    """Say which sizes are not where a logarithmic scale has them."""
    pairs = pairwise(places.items())
    close = [
        n for one, other in pairs if other[1] - one[1] == _least(theme) for n in (one[0], other[0])
    ]
    return f"{close[0]} to {close[-1]}" if close else ""
