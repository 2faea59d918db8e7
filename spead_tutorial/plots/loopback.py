# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 6: loopback with and without a listener against the lab's device, and the evidence."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spead_tutorial import stats
from spead_tutorial.catalogue import MEASURED
from spead_tutorial.plots import bars, curves
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained, strongest
from spead_tutorial.plots.points import Point, Value, gain, highest
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.spots import Line
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Sample, Sent
from spead_tutorial.units import number, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["loopback"]

_SUBTITLE = "Four destinations of one program, and what became of its packets"
_PROGRAM = "tut_6_send_pktsize"
#: Variants, and what they are called; the one without a name sends to the lab's device.
_SITUATIONS = {
    "no listener": "loopback, nobody listens",
    "slow listener": "loopback, a slow listener",
    "listener": "loopback, a listener that reads as fast as it can",
    "": "the lab's device",
}
#: What those of loopback are called in a title.
_SHORT = {
    "no listener": "Loopback, nobody listens",
    "slow listener": "Loopback, a slow listener",
    "listener": "Loopback, a fast listener",
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


_EVIDENCE = {
    "got": _per_heap(lambda sample: sample.received_packets),
    "dropped": _per_heap(lambda sample: sample.received_dropped),
    "ICMP errors": _per_heap(
        lambda sample: sample.icmp_errors if isinstance(sample, Sent) else None
    ),
}
_SENT = _per_heap(lambda sample: sample.packets)


def loopback(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate in each situation, and beside it what became of the packets."""
    points_by_situation = _found(recording)
    group = bars.group_height(theme, "remarks")
    height = group * len(points_by_situation)
    rows = [(_ROOM, height), (_LOWER_ROOM, height)] if theme.is_narrow else [(0.66, height)]
    legend = bars.language_legend(theme)
    title, foot = _finding(points_by_situation), caption(recording)
    sheet = Sheet(theme, title, rows, foot, subtitle=_SUBTITLE, legend=legend)
    sides = _NARROW if theme.is_narrow else _SIDES
    axis = sheet.axes(0, *sides)
    beside = _table(sheet, height) if theme.is_narrow else axis
    most = highest(
        point for languages in points_by_situation.values() for point in languages.values()
    )
    bars.prepare(axis, height, most, room=1.3)
    axis.locator_params(axis="x", nbins=4)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.set_xlabel("payload sent in MB/s")
    for index, (variant, languages) in enumerate(points_by_situation.items()):
        y = index * group
        _label(axis, y, variant, theme)
        if theme.is_narrow:
            _label(beside, y, variant, theme)
        lanes = bars.lanes(y, bars.label_height(theme, "remarks"))
        for language, point in languages.items():
            name = _SITUATIONS[variant]
            line = Line(f"{name}, {NAMES[language]}", language, NAMES[language], name, point.key)
            bars.draw_bar(axis, lanes[language], point, language, theme, line=line)
            if theme.is_narrow:
                beside.text(0.05, lanes[language], NAMES[language], va="center")
            _write_evidence(beside, lanes[language], point, sides)
    _head(beside, points_by_situation, sides)
    return sheet.figure, sheet.title, _in_words(recording, points_by_situation)


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


def _finding(points_by_situation: Found) -> str:
    """Say what becomes of the lab's rate where loopback differs from it most."""
    lab = points_by_situation.get("", {})
    by_situation = {
        variant: {
            NAMES[language]: gain(lab.get(language), languages[language]) for language in languages
        }
        for variant, languages in points_by_situation.items()
        if variant
    }
    if not (lab and by_situation):
        return "One kind of destination: nothing to compare"
    variant = strongest(by_situation)
    return f"{_SHORT[variant]}, beside the lab: {gained(by_situation[variant])}"


def _label(axis: "Axes", y: float, variant: str, theme: Theme) -> None:
    words = _SITUATIONS[variant]
    title, _, note = words.partition(", ") if theme.is_narrow else (words, "", "")
    bars.label_group(axis, y, title, note, theme)


def _table(sheet: Sheet, height: float) -> "Axes":
    """Add a panel for the evidence alone."""
    axis = sheet.axes(1, *_NARROW)
    axis.set(xlim=(0, 1), ylim=(height, 0), xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
    return axis


def _head(axis: "Axes", points_by_situation: Found, sides: tuple[float, float]) -> None:
    """Write above the columns what they hold."""
    sent = [
        estimate.median
        for languages in points_by_situation.values()
        for point in languages.values()
        if (estimate := point.estimate(_SENT)) is not None
    ]
    middle = sum(_COLUMNS.values()) / len(_COLUMNS)
    if sent:
        of = number(stats.median(sent).median)
        _write(axis, middle, -0.42, f"of {of} packets a heap", sides)
    for name, place in _COLUMNS.items():
        _write(axis, place, -0.16, name, sides)


def _write_evidence(axis: "Axes", y: float, point: Point, sides: tuple[float, float]) -> None:
    for name, place in _COLUMNS.items():
        estimate = point.estimate(_EVIDENCE[name])
        words = _UNKNOWN if estimate is None else number(estimate.median)
        _write(axis, place, y, words, sides)


def _write(axis: "Axes", place: float, y: float, words: str, sides: tuple[float, float]) -> None:
    """Write in the middle of a column: `place` is inches from the right side of the picture."""
    axis.annotate(
        words,
        (1, y),
        (72 * (sides[1] - place), 0),
        xycoords=axis.get_yaxis_transform(),
        textcoords="offset points",
        annotation_clip=False,
        ha="center",
        va="center",
    )


def _in_words(recording: Recording, points_by_situation: Found) -> str:
    sentences = [
        "Bars: the rate in MB/s. Beside them, for each heap: packets that were sent, that"
        " the listener got, that its socket dropped, and that came back as ICMP errors."
    ]
    for variant, languages in points_by_situation.items():
        for language, point in languages.items():
            words = [curves.in_words(point)]
            for name, value in {"sent": _SENT, **_EVIDENCE}.items():
                estimate = point.estimate(value)
                if estimate is not None:
                    words.append(f"{name} {number(estimate.median)}")
            sentences.append(f"{_SITUATIONS[variant]}, {NAMES[language]}: {', '.join(words)}.")
    return " ".join([*sentences, " ".join(caption(recording).split())])
