# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: loopback with and without a listener against the lab's device, and the evidence."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure import stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Sent
from spead_tutorial.results.plots import bars
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import Line, say
from spead_tutorial.results.plots.points import Point, Value, gain, highest
from spead_tutorial.results.plots.sheet import Drawn, Sheet
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import gained
from spead_tutorial.results.units import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["loopback"]

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
#: The same where the evidence is below the bars, and the room above it.
_NARROW, _ROOM, _LOWER_ROOM = (0.2, 0.2), 0.36, 1.15
_COLUMNS = {"got": 2.25, "dropped": 1.4, "ICMP errors": 0.55}
_UNKNOWN = "\N{EN DASH}"

Found = Mapping[str, Mapping[str, Point]]


def _per_heap(count: Callable[[Sample], int | None]) -> Value:
    """Return what takes a count from a sample, for each heap."""

    def value(sample: Sample) -> float | None:
        total = count(sample)
        return None if total is None or sample.failure is not None else total / sample.heaps

    return value


_SENT = _per_heap(lambda sample: sample.packets)
_EVIDENCE = {
    "got": _per_heap(lambda sample: sample.received_packets),
    "dropped": _per_heap(lambda sample: sample.received_dropped),
    "ICMP errors": _per_heap(
        lambda sample: sample.icmp_errors if isinstance(sample, Sent) else None
    ),
}


def loopback(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate in each situation, and beside it what became of the packets."""
    found = _found(recording)
    group = bars.group_height(theme, "remarks")
    height = group * len(found)
    sheet = Sheet(
        theme,
        _title(found),
        [(_ROOM, height), (_LOWER_ROOM, height)] if theme.is_narrow else [(0.66, height)],
        caption(recording),
        subtitle="Four destinations of one program, and what became of its packets",
        legend=bars.language_legend(theme),
    )
    sides = _NARROW if theme.is_narrow else _SIDES
    axis = sheet.axes(0, *sides)
    table = _table(sheet, height) if theme.is_narrow else axis
    points = [point for languages in found.values() for point in languages.values()]
    bars.prepare(axis, height, highest(points), room=1.3, marks=4)
    for index, (variant, languages) in enumerate(found.items()):
        y, name = index * group, _SITUATIONS[variant]
        title, _, note = name.partition(", ") if theme.is_narrow else (name, "", "")
        for one in (axis, table) if theme.is_narrow else (axis,):
            bars.label_group(one, y, title, note, theme)
        lanes = bars.lanes(y, bars.label_height(theme, "remarks"))
        for language, point in languages.items():
            line = Line(f"{name}, {NAMES[language]}", language, NAMES[language], name, point.key)
            bars.draw_bar(axis, lanes[language], point, language, theme, line=line)
            if theme.is_narrow:
                table.text(0.05, lanes[language], NAMES[language], va="center")
            _write_evidence(table, lanes[language], point, line.name, sides[1])
    _head(table, points, sides[1])
    return sheet.drawn(
        "Bars: the rate in MB/s. Beside them, for each heap: packets that were sent, that the"
        " listener got, that its socket dropped, and that came back as ICMP errors."
    )


def _found(recording: Recording) -> Found:
    """Return the point of each situation and language, of the setting with the most situations."""
    settings: dict[tuple[int, int], dict[str, dict[str, list[Sample]]]] = {}
    for sample in recording.samples:
        ours = sample.implementation == OURS and sample.program == _PROGRAM and not sample.random
        if ours and sample.variant in _SITUATIONS and not sample.warm_up:
            situations = settings.setdefault((sample.heap_size, sample.packet_size), {})
            situations.setdefault(sample.variant, {}).setdefault(sample.language, []).append(sample)
    if not settings:
        raise ValueError(
            f"the recording has no sample of {_PROGRAM}: python -m bench run tut-6-loopback"
        )
    chosen = max(settings.items(), key=lambda item: (len(item[1]), item[0]))[1]
    return {
        variant: {
            language: Point(tuple(chosen[variant][language]))
            for language in MEASURED
            if language in chosen[variant]
        }
        for variant in _SITUATIONS
        if variant in chosen
    }


def _title(found: Found) -> str:
    """Say what becomes of the lab's rate where somebody listens as fast as one can."""
    lab, listener = found.get("", {}), found.get("listener", {})
    gains = {NAMES[one]: gain(lab.get(one), listener[one]) for one in listener}
    if not any(gains.values()):
        return "Loopback, beside the lab"
    return f"Loopback, a fast listener, beside the lab: {gained(gains)}"


def _table(sheet: Sheet, height: float) -> "Axes":
    """Add a panel for the evidence alone."""
    axis = sheet.axes(1, *_NARROW)
    axis.set(xlim=(0, 1), ylim=(height, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    return axis


def _head(axis: "Axes", points: list[Point], right: float) -> None:
    """Write above the columns what they hold."""
    sent = [one.median for point in points if (one := point.estimate(_SENT)) is not None]
    if sent:
        middle = right - sum(_COLUMNS.values()) / len(_COLUMNS)
        of = number(stats.median(sent).median)
        bars.write_beside(axis, -0.42, f"of {of} packets a heap", middle)
    for name, place in _COLUMNS.items():
        bars.write_beside(axis, -0.16, name, right - place)


def _write_evidence(axis: "Axes", y: float, point: Point, name: str, right: float) -> None:
    for what, place in _COLUMNS.items():
        one = point.estimate(_EVIDENCE[what])
        bars.write_beside(axis, y, _UNKNOWN if one is None else number(one.median), right - place)
    for what, value in {"sent": _SENT, **_EVIDENCE}.items():
        if (one := point.estimate(value)) is not None:
            say(axis, name, f"{what} {number(one.median)}")
