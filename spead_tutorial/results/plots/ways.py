# SPDX-License-Identifier: BSD-3-Clause
"""Bars in rows, which are ways to send, and in columns, which are sizes of heaps.

On a narrow picture the columns are below each other.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure import stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Sent, Series, joined, words_of
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.render import Drawn, Line, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, panels, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.units import number, size, times

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["Ways", "ceiling", "loopback"]

_SIDE, _GAP, _ROOM_ABOVE, _LOWER_ROOM = 0.2, 0.22, 0.42, 0.95
_PAD = bars.GROUP - bars.LABEL - 2 * bars.PITCH
#: Beside the longest bar is room for its number.
_ROOM = 1.48
_FEW_MARKS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class _Lane:
    """Bars of one kind, one in each column."""

    name: str  # what they are, in the description, and beside them where there is room
    role: str  # what gives them their colour
    points: Mapping[int, facts.Point]  # by size of heaps


@dataclasses.dataclass(frozen=True, slots=True)
class _Lanes:
    """Bars that stand together, with a title, and a remark behind it."""

    title: str  # written above them
    note: str
    lanes: tuple[_Lane, ...]  # from top to bottom

    @property
    def name(self) -> str:
        """What is written above it."""
        return joined(self.title, self.note)

    def height(self, theme: Theme) -> float:
        """Inches."""
        return bars.label_height(theme, self.note) + len(self.lanes) * bars.PITCH + _PAD


def _draw_grid(
    recording: Recording,
    theme: Theme,
    words: tuple[str, str],
    rows: Sequence[_Lanes],
    legend: Sequence["Artist"] = (),
    names: float = 0.0,
    line: _Lane | None = None,
) -> Sheet:
    """Draw rows of bars in columns, below words: a title, and a subtitle.

    On the left are some inches for the names of lanes; an upright line stands in each column
    where the bar of `line` ends.
    """
    lanes = [lane for row in rows for lane in row.lanes]
    sizes = sorted({x for lane in lanes for x in lane.points})
    most = facts.highest(point for lane in lanes for point in lane.points.values())
    height = sum(row.height(theme) for row in rows)
    rooms = [_ROOM_ABOVE] + [_LOWER_ROOM] * (len(sizes) - 1) * theme.is_narrow
    (title, subtitle), foot = words, facts.caption(recording)
    spans = [(room, height) for room in rooms]
    sheet = Sheet(theme, title, spans, foot, subtitle=subtitle, legend=legend)
    places = panels(theme, len(sizes), (_SIDE + names, _SIDE), _GAP)
    for column, (n, place) in enumerate(zip(sizes, places, strict=True)):
        axis = sheet.axes(place.row, *place.sides)
        label = "payload sent in MB/s" * (theme.is_narrow or column == len(sizes) // 2)
        bars.prepare(axis, height, most, _ROOM, _FEW_MARKS, label)
        axis.set_title(f"Heaps of {size(n)}", loc="left", fontsize=11)
        axis.set_zorder(not column)  # the titles of rows are wider than the first column
        _draw_column(axis, n, rows, theme, place.is_first, bool(names))
        point = line.points.get(n) if line is not None else None
        if point is not None and (one := point.estimate()) is not None:
            dashed: Any = {"linestyle": (0, (4, 2)), "linewidth": 1}
            axis.axvline(one.median, color=theme.text, zorder=2, **dashed)
    return sheet


def _draw_column(
    axis: "Axes", n: int, rows: Sequence[_Lanes], theme: Theme, is_first: bool, has_names: bool
) -> None:
    y = 0.0
    for row in rows:
        if is_first:
            words = (row.title, row.note) if theme.is_narrow else (row.name, "")
            bars.label_group(axis, y, *words, theme)
        for index, lane in enumerate(row.lanes):
            middle = y + bars.label_height(theme, row.note) + (index + 0.5) * bars.PITCH
            if n in lane.points:
                point = lane.points[n]
                line = _marked(row, lane, point)
                bars.draw_bar(axis, middle, point, lane.role, theme, line=line)
            if is_first and has_names:
                style: Any = {"ha": "right", "va": "center_baseline", "fontsize": FAINT}
                write(axis, lane.name, (0, middle), (-6, 0), axis.get_yaxis_transform(), **style)
        y += row.height(theme)


def _marked(row: _Lanes, lane: _Lane, point: facts.Point) -> Line:
    """Return what a page is told of a bar: languages share a row, but loops do not."""
    name = joined(row.name, lane.name)
    place = row.name if lane.role in NAMES else name
    return Line(name, lane.role, lane.name or row.title, place, point.key)


# ---------------------------------------------------------------------------------------
# Pictures of ways to send

Found = Mapping[Series, Mapping[int, facts.Point]]


@dataclasses.dataclass(frozen=True, slots=True)
class Ways:
    """A picture of a program's variants: what it shows of a recording; call it to draw it."""

    title: str  # what was done, and what it gained: see `facts`
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
        found = facts.points(recording.samples)
        facts.require(found, [self._series(language) for language in MEASURED], self.sweep)
        title = facts.fill(self.title, facts.over_sizes(self.gains(recording)))
        rows = [row for row in self._rows(found) if row.lanes]
        legend = bars.language_legend(theme)
        sheet = _draw_grid(recording, theme, (title, self.subtitle), rows, legend)
        return sheet.drawn("Bars: the rate of each way in MB/s.")

    def gains(self, recording: Recording) -> dict[str, dict[int, Estimate | None]]:
        """Return what the title has slots for: the gain of each language at each size."""
        found, (before, after) = facts.points(recording.samples), self.compared
        return {
            NAMES[language]: facts.gains(
                found.get(self._series(language, before), {}),
                found.get(self._series(language, after), {}),
            )
            for language in MEASURED
        }

    def _series(self, language: str, variant: str = "") -> Series:
        return Series(OURS, language, self.program, variant)

    def _rows(self, found: Found) -> Iterable[_Lanes]:
        for variant, title, note in self.ways:
            series = {language: self._series(language, variant) for language in MEASURED}
            lanes = (
                _Lane(NAMES[language], language, found[one])
                for language, one in series.items()
                if one in found
            )
            yield _Lanes(title, note, tuple(lanes))
        for variant, note in self.bare:
            loop = Series("ceiling", "c", "ceiling", variant)
            known = (_Lane("", "limit", found[loop]),) if loop in found else ()
            yield _Lanes("bare system calls", note, known)


# ---------------------------------------------------------------------------------------
# All bare loops

#: What the others are held against: chapters 4 to 11 work in this way.
_NAMED = Series("ceiling", "c", "ceiling", "two threads")
_SUBTITLE = "All bare loops, beside two threads that fill and copy (dashed)"
_ROOM_FOR_NAMES = 0.95
_WORKS = ("fill and copy", "fill and read in place", "copy", "read in place")


def ceiling(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of each bare loop: a row for what is done with the bytes, a lane for who."""
    points = facts.points(recording.samples)
    found = {series: points[series] for series in points if facts.is_bare(series)}
    facts.require(found, [_NAMED], "ceiling")
    words, line = (f"Bare calls{_farthest(found)}", _SUBTITLE), _Lane("", "limit", found[_NAMED])
    sheet = _draw_grid(recording, theme, words, _loops(found), names=_ROOM_FOR_NAMES, line=line)
    return sheet.drawn("Bars: the rate of each loop in MB/s.")


def _loops(found: Found) -> list[_Lanes]:
    """Sort the loops by what is done with the bytes."""
    lanes: dict[str, list[_Lane]] = {}
    for series, known in found.items():
        who, *works = words_of(facts.bare_name(series.variant))
        work = joined(*works)
        lanes.setdefault(work, []).append(_Lane(who, "limit", known))
    order = [work for name in _WORKS for work in sorted(lanes) if words_of(work)[0] == name]
    parted = ((work.partition(", "), lanes[work]) for work in order)
    return [
        _Lanes(title, note, tuple(sorted(some, key=lambda lane: _place(lane.name))))
        for (title, _, note), some in parted
    ]


def _place(who: str) -> tuple[int, str]:
    """Return where a lane is: one thread, two, then several streams."""
    return ("one" in who, "two" in who, "stream" in who).index(True), who


def _farthest(found: Found) -> str:
    """Say which loop is the farthest from the one with the line, and where."""
    known = [
        (one.median, series, x)
        for series in found
        for x, one in facts.gains(found[_NAMED], found[series]).items()
        if one is not None and differs(one)
    ]
    if not known:
        return f": {facts.NO_DIFFERENCE}"
    factor, series, x = max(known, key=lambda one: one[0])
    return f", up to {times(factor)}: {facts.bare_name(series.variant)}, at {size(x)}"


# ---------------------------------------------------------------------------------------
# Chapter 6: loopback with and without a listener against the lab's device, and the evidence

_PROGRAM = "tut_6_send_pktsize"
#: Variants, and what they are called; the one without a name sends to the lab's device.
_SITUATIONS = {
    "no listener": "loopback, nobody listens",
    "slow listener": "loopback, a slow listener",
    "listener": "loopback, a listener that reads as fast as it can",
    "": "the lab's device",
}
#: Inches at the sides of the bars, and from the right to the middle of each column of evidence.
_SIDES = (0.2, 2.75)
_COLUMNS = {"got": 2.25, "dropped": 1.4, "ICMP errors": 0.55}
#: The sides where the evidence is below the bars, and the room above each.
_NARROW, _BARS_ROOM, _TABLE_ROOM = (0.2, 0.2), 0.36, 1.15

Situations = Mapping[str, Mapping[str, facts.Point]]


def _per_heap(count: Callable[[Sample], int | None]) -> facts.Value:
    """Return what takes a count from a sample, for each heap."""

    def value(sample: Sample) -> float | None:
        total = count(sample)
        return None if total is None or sample.failure is not None else total / sample.heaps

    return value


_EVIDENCE = {
    "sent": _per_heap(lambda sample: sample.packets),
    "got": _per_heap(lambda sample: sample.received_packets),
    "dropped": _per_heap(lambda sample: sample.received_dropped),
    "ICMP errors": _per_heap(
        lambda sample: sample.icmp_errors if isinstance(sample, Sent) else None
    ),
}


def loopback(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate in each situation, and beside it what became of the packets."""
    found = _situations(recording)
    group = bars.group_height(theme)
    height = group * len(found)
    sheet = Sheet(
        theme,
        _beside_lab(found),
        [(_BARS_ROOM, height), (_TABLE_ROOM, height)] if theme.is_narrow else [(0.66, height)],
        facts.caption(recording),
        subtitle="Four destinations of one program, and what became of its packets",
        legend=bars.language_legend(theme),
    )
    sides = _NARROW if theme.is_narrow else _SIDES
    axis = table = sheet.axes(0, *sides)
    if theme.is_narrow:
        table = sheet.axes(1, *_NARROW)
        table.set(xlim=(0, 1), ylim=(height, 0), xticks=[], yticks=[])
        table.spines[:].set_visible(False)
    points = [point for languages in found.values() for point in languages.values()]
    bars.prepare(axis, height, facts.highest(points), room=1.3, marks=4)
    for index, (variant, languages) in enumerate(found.items()):
        y, name = index * group, _SITUATIONS[variant]
        title, _, note = name.partition(", ") if theme.is_narrow else (name, "", "")
        for one in (axis, table) if theme.is_narrow else (axis,):
            bars.label_group(one, y, title, note, theme)
        for language, point in languages.items():
            line, lane = bars.line_of(name, language, point), bars.lanes(y, theme)[language]
            bars.draw_bar(axis, lane, point, language, theme, line=line)
            if theme.is_narrow:
                table.text(0.05, lane, NAMES[language], va="center")
            _write_evidence(table, lane, point, line.name, sides[1])
    _head(table, points, sides[1])
    return sheet.drawn(
        "Bars: the rate in MB/s. Beside them, for each heap: packets that were sent, that the"
        " listener got, that its socket dropped, and that came back as ICMP errors."
    )


def _situations(recording: Recording) -> Situations:
    """Return the point of each situation and language, of the setting with the most situations."""
    settings: dict[tuple[int, int], list[Sample]] = {}
    for one in recording.samples:
        ours = one.implementation == OURS and one.program == _PROGRAM and not one.random
        if ours and one.variant in _SITUATIONS and not one.warm_up:
            settings.setdefault((one.heap_size, one.packet_size), []).append(one)
    if not settings:
        facts.require({}, [Series(OURS, "python", _PROGRAM)], "tut-6-loopback")
    most = max(settings, key=lambda sizes: (len({one.variant for one in settings[sizes]}), sizes))
    known = facts.points(settings[most])
    found = {
        variant: {
            language: known[series][most[0]]
            for language in MEASURED
            if (series := Series(OURS, language, _PROGRAM, variant)) in known
        }
        for variant in _SITUATIONS
    }
    return {variant: languages for variant, languages in found.items() if languages}


def _beside_lab(found: Situations) -> str:
    """Say what becomes of the lab's rate where somebody listens as fast as one can."""
    lab, listener = found.get("", {}), found.get("listener", {})
    gains = facts.gain_each(lab, listener)
    if not any(gains.values()):
        return "Loopback, beside the lab"
    return f"Loopback, a fast listener, beside the lab: {facts.gained(gains)}"


def _head(axis: "Axes", points: Sequence[facts.Point], right: float) -> None:
    """Write above the columns what they hold."""
    sent = [one.median for point in points if (one := point.estimate(_EVIDENCE["sent"]))]
    if sent:
        middle = right - sum(_COLUMNS.values()) / len(_COLUMNS)
        of = number(stats.median(sent).median)
        bars.write_beside(axis, -0.42, f"of {of} packets a heap", middle)
    for name, place in _COLUMNS.items():
        bars.write_beside(axis, -0.16, name, right - place)


def _write_evidence(axis: "Axes", y: float, point: facts.Point, name: str, right: float) -> None:
    for what, value in _EVIDENCE.items():
        one = point.estimate(value)
        words = "\N{EN DASH}" if one is None else number(one.median)
        if what in _COLUMNS:
            bars.write_beside(axis, y, words, right - _COLUMNS[what])
        if one is not None:
            say(axis, name, f"{what} {words}")
