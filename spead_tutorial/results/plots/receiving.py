# SPDX-License-Identifier: BSD-3-Clause
"""Receivers: their rate, what they lose, and the highest rate without loss."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import median

from spead_tutorial.chapters.catalogue import CHAINED, MEASURED, RECEIVERS
from spead_tutorial.measure import search, stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.ladder import Rung, draw_rungs
from spead_tutorial.results.plots.render import PERCENT, RATE, Axes, Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import Sheet, name_panel, panels
from spead_tutorial.results.plots.theme import NAMES, LineStyle, Theme, line_styles, role_of
from spead_tutorial.results.units import bytes_text, number, size, thousands

#: The socket is filled while the receiver is stopped: what is timed is the receiver alone.
_HOW = "receive", "in turns"
_OURS, _PEER = Series(OURS, "c", *_HOW), Series("spead2-source", "c", *_HOW)
_LINES = {
    _OURS: "C",
    Series(OURS, "python", *_HOW): "Python",
    _PEER: "spead2 from source, C++",
    Series("spead2-source", "python", *_HOW): "spead2 from source, Python",
    Series("ceiling", "c", *_HOW): "bare calls, and a copy into place",
}
_GAP, _HEIGHT, _ROOM = 0.3, 2.7, 0.46
_MOST_LABELS = 3


def receiving(recording: Recording, theme: Theme) -> Drawn:
    """Draw receivers' rates over the size of heaps, for each size of packets."""
    samples = [sample for sample in recording.samples if sample.series in _LINES]
    found = {
        n: facts.points(sample for sample in samples if sample.packet_size == n)
        for n in sorted({sample.packet_size for sample in samples})
    }
    shown = [series for series in _LINES if any(series in lines for lines in found.values())]
    facts.require(dict.fromkeys(shown), [_OURS], "receive")
    style = line_styles(shown, theme)
    gains = {
        bytes_text(n): facts.gains(lines.get(_PEER, {}), lines.get(_OURS, {}))
        for n, lines in found.items()
    }
    sheet = Sheet(
        theme,
        facts.fill("C, not spead2's C++: {most}", facts.over_sizes(gains)),
        [(_ROOM, _HEIGHT)],
        facts.caption(recording, curves.SHOWN),
        subtitle="Receivers that empty a full socket, by the size of packets",
        legend=curves.curve_legend(_LINES, style, theme),
    )
    every = [point for some in found.values() for line in some.values() for point in line.values()]
    sizes = sorted({x for some in found.values() for line in some.values() for x in line})
    slots = panels(len(found), curves.SIDES, _GAP)
    for slot, (n, lines) in zip(slots, found.items(), strict=True):
        axis, title = sheet.axes(0, *slot.sides), f"packets of {bytes_text(n)}"
        curves.size_axis(axis, sizes, curves.SIZE, _MOST_LABELS)
        name = title + ": MB/s" * slot.is_first
        ends = slot.is_first, slot.is_last
        curves.rate_panel(axis, theme, facts.highest(every), False, name, *ends)
        there = {series: style[series] for series in shown if series in lines}
        names = {series: f"{_LINES[series]}, {title}" for series in there}
        curves.draw_lines(axis, lines, names, there, theme)
    return sheet.drawn("Lines: the rate in MB/s against the size of a heap.", last_first=True)


# ---- The highest rate without loss of every chapter that receives ----

#: Size of heaps, and of packets.
Sizes = tuple[int, int]
Searched = Mapping[Sizes, Mapping[Series, facts.Point]]

#: What stands below the chapters, as far as it was measured: title, remark, series by their colour.
_BESIDE = (
    ("memory used again", "computes nothing", OURS, {x: x for x in MEASURED}),
    ("spead2 in C++", "the same", "spead2-source", {"spead2": "c"}),
    ("spead2 in Python", "the same", "spead2-source", {"spead2": "python"}),
    ("bare system calls", "and a copy into place", "ceiling", {"limit": "c"}),
)
#: Of so many pairs of sizes, those with the most receivers.
_MOST_PANELS = 2


def receivers_ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw the highest rate without loss, chapter by chapter, a panel for a pair of sizes."""
    settled = search.settled(recording)
    found = _by_sizes(settled)
    ours = [Series(OURS, language, receiver.name) for receiver in CHAINED for language in MEASURED]
    there = dict.fromkeys(series for points in found.values() for series in points)
    facts.require(there, ours, "receive-lossless")
    sheet = draw_rungs(
        theme,
        (_gained(found), "At each bar: how many times as much as the chapter before"),
        facts.caption(
            settled,
            "median of {rounds} rounds, a search in each, line: {spread}"
            ", \N{GREATER-THAN OR EQUAL TO}: at least",
        ),
        {
            f"{size(heap)}, packets of {packet}": rungs
            for (heap, packet), points in list(found.items())[:_MOST_PANELS]
            if (rungs := _rungs(points))
        },
        "without loss, GB/s",
        lambda point: search.is_bound(point.samples),
    )
    return sheet.drawn("Bars: the highest payload rate at which a receiver loses nothing, in MB/s.")


def _by_sizes(recording: Recording) -> Searched:
    """Sort the runs of searches that count: by sizes, those with most first, and by series."""
    samples: dict[Sizes, dict[Series, list[Sample]]] = {}
    for sample in recording.samples:
        if not sample.warm_up and search.is_search(sample):
            sizes = sample.heap_size, sample.packet_size
            samples.setdefault(sizes, {}).setdefault(sample.series, []).append(sample)
    order = sorted(samples, key=lambda sizes: (-len(samples[sizes]), -sizes[0], -sizes[1]))
    return {
        sizes: {series: facts.Point(tuple(some)) for series, some in samples[sizes].items()}
        for sizes in order
    }


def _at_least(*points: facts.Point | None) -> str:
    """Return the sign before what was found, where one of these is but a lower bound."""
    bound = any(point is not None and search.is_bound(point.samples) for point in points)
    return "\N{GREATER-THAN OR EQUAL TO} " if bound else ""


def _rungs(points: Mapping[Series, facts.Point]) -> list[Rung]:
    """Return the chapters, each with what it gained on the one before, and what is beside them."""
    rungs: list[Rung] = []
    for receiver in RECEIVERS:
        there = _of(points, OURS, receiver.name)
        if there:
            before = rungs[-1].points if rungs else {}
            gains = facts.gain_each(before, there)
            rungs.append(Rung(f"{receiver.number}  {receiver.title}", "", there, gains))
    for title, note, implementation, languages in _BESIDE:
        if there := _of(points, implementation, "receive", languages):
            rungs.append(Rung(title, note, there))
    return rungs


def _of(
    points: Mapping[Series, facts.Point],
    implementation: str,
    program: str,
    languages: Mapping[str, str] = _BESIDE[0][3],
) -> dict[str, facts.Point]:
    """Return what there is of a program, by the colour of a language."""
    series = {
        role: Series(implementation, language, program) for role, language in languages.items()
    }
    return {role: points[line] for role, line in series.items() if line in points}


def _gained(found: Searched) -> str:
    """Say how many times as high the rate of the last chapter is as that of the first."""
    points = next(iter(found.values()))
    there = [receiver for receiver in RECEIVERS if _of(points, OURS, receiver.name)]
    first, last = (_of(points, OURS, receiver.name) for receiver in (there[0], there[-1]))
    gains = facts.gain_each(first, last)
    if len(there) < 2 or not any(gains.values()):
        return "Rates without loss"
    is_told = any(gain is not None and differs(gain) for gain in gains.values())
    least = _at_least(*last.values()) if is_told else ""
    chapters = f"chapter {there[0].number} to {there[-1].number}"
    # A search is exact to a step, which is about 9 %: two digits are all that it knows.
    known = {
        role: gain and dataclasses.replace(gain, median=float(f"{gain.median:.2g}"))
        for role, gain in gains.items()
    }
    return f"Lossless, {chapters}: {least}{facts.gained(known)}"


# ---- What is lost at which rate: every run of the searches ----

_RECEIVER = "tut_7_recv_power"
_LOSING = {
    Series(OURS, "python", _RECEIVER): "chapter 7, Python",
    Series(OURS, "c", _RECEIVER): "chapter 7, C",
    Series("spead2-source", "c", "receive"): "spead2 in C++, computes nothing",
    Series("ceiling", "c", "receive"): "bare calls, and a copy into place",
}
_SIZES = 1 << 20, 9000
_LOSS_HEIGHT, _LOSS_ROOM = 2.6, 0.46
#: Rates in MB/s that the axis has marks at, and how many parts of an octave are put together.
_MARKS = (1, 4, 16, 62.5, 125, 250, 500, 1000, 2000, 4000, 8000, 16000)
_PARTS = 4


def loss(recording: Recording, theme: Theme) -> Drawn:
    """Draw the share of packets that is lost over the rate that is sent."""
    searched = _by_sizes(recording).get(_SIZES, {})
    runs = {series: searched[series].samples for series in _LOSING if series in searched}
    ours = [series for series in _LOSING if series.implementation == OURS]
    facts.require(runs, ours, "receive-lossless")
    settled = search.settled(recording)
    best = _by_sizes(settled).get(_SIZES, {})
    style = line_styles(runs, theme)
    said = [
        f"{_at_least(best[series])}{_rounded(known.median)} MB/s ({NAMES[series.language]})"
        for series in ours
        if series in best and (known := best[series].estimate())
    ]
    up_to = f"up to {', '.join(said)}" if said else "at no rate that is known"
    heaps = f"Heaps of {size(_SIZES[0])}, packets of {bytes_text(_SIZES[1])}"
    sheet = Sheet(
        theme,
        f"Chapter 7 loses nothing {up_to}",
        [(_LOSS_ROOM, _LOSS_HEIGHT)],
        facts.caption(
            settled,
            "dots: runs, lines: their medians in steps of a quarter octave; at 0, highest rate"
            " without loss: median of {rounds} rounds and {spread}",
        ),
        subtitle=f"{heaps}: what a receiver loses",
        legend=curves.curve_legend(_LOSING, style, theme),
    )
    axis = sheet.axes(0, *curves.SIDES)
    every = [sample for some in runs.values() for sample in some if _known(sample)]
    _scales(axis, [*map(_megabytes, every)])
    most = max(map(_share, every), default=0) or 1
    axis.set_ylim(-0.04 * most, 1.06 * most)
    for series in reversed(runs):
        found = best[series].estimate() if series in best else None
        _draw_losses(axis, series, [*filter(_known, runs[series])], found, style[series], theme)
    words = "Lines: the share of packets that is lost, against the payload sent in MB/s."
    return sheet.drawn(words, last_first=True)


def _rounded(x: float) -> str:
    return thousands(float(f"{x:.2g}")) if x >= 100 else number(x)


def _known(sample: Sample) -> bool:
    return sample.failure is None and bool(sample.packets)


def _megabytes(sample: Sample) -> float:
    return search.offered(sample) / 1e6


def _share(sample: Sample) -> float:
    """Return the share of packets that was lost, in %."""
    return 100 * (sample.received_dropped or 0) / (sample.packets or 1)


def _scales(axis: Axes, rates: Sequence[float]) -> None:
    low, high = min(rates, default=500.0), max(rates, default=2000.0)
    axis.set_xscale("log", base=2)
    axis.set_xlim(low / 1.3, high * 1.3)
    axis.set_xticks([x for x in _MARKS if low / 1.3 <= x <= high * 1.3])
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x) if x >= 100 else f"{x:g}")
    axis.grid()
    axis.set_axisbelow(True)
    axis.set_xlabel("payload sent in MB/s (10⁶ bytes a second)")
    name_panel(axis, "packets lost, %")


def _draw_losses(
    axis: Axes,
    series: Series,
    runs: Sequence[Sample],
    found: Estimate | None,
    style: LineStyle,
    theme: Theme,
) -> None:
    name, words = _LOSING[series], "failed: no rate"
    if not runs or found is None:
        axis.plot([], [])
        say(axis, name, words)
        axis.annotate(words, (0.02, 0.5), xycoords="axes fraction", color=style.colour)
        return
    curves.draw_dots(axis, [*map(_megabytes, runs)], [*map(_share, runs)], style)
    steps = {
        median(map(_megabytes, some)): stats.median([*map(_share, some)]) for some in _steps(runs)
    }
    line = style.line(theme)
    shares = [share.median for share in steps.values()]
    axis.plot(list(steps), shares, **line | {"marker": "", "zorder": 3})
    lost = Line(name, role_of(series), unit=PERCENT, over=RATE)
    for x, share in steps.items():
        mark(axis, x, share.median, lost, x, share)
    ends = [found.low, found.high]
    axis.plot(ends, [0, 0], color=style.colour, linewidth=5, alpha=0.4, solid_capstyle="butt")
    axis.plot([found.median], [0], **line | {"markersize": 8.0, "zorder": 4})
    lossless = Line(f"{name}, without loss", role_of(series))
    mark(axis, found.median, 0, lossless, _SIZES[0], found)


def _steps(runs: Sequence[Sample]) -> list[list[Sample]]:
    """Put together the runs at nearly one rate."""
    steps: dict[int, list[Sample]] = {}
    for sample in runs:
        steps.setdefault(round(_PARTS * math.log2(_megabytes(sample))), []).append(sample)
    return [steps[slot] for slot in sorted(steps)]
