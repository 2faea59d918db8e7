# SPDX-License-Identifier: BSD-3-Clause
"""The receivers' ladder: the highest rate without loss of every chapter that receives."""

from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED, RECEIVERS
from spead_tutorial.measure import search
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import differs
from spead_tutorial.results.plots import steps
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.points import Point, gain, require
from spead_tutorial.results.plots.sheet import Drawn
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.titles import gained
from spead_tutorial.results.units import bytes_text, size

__all__ = ["at_least", "by_sizes", "receivers_ladder"]

#: Size of heaps, and of packets.
Sizes = tuple[int, int]
Found = Mapping[Sizes, Mapping[Series, Point]]

_PROGRAM = "receive"
#: What stands below the chapters, as far as it was measured: title, remark, series by their colour.
_BESIDE = (
    (
        "memory used again",
        "computes nothing",
        {language: Series(OURS, language, _PROGRAM) for language in MEASURED},
    ),
    ("spead2 from source", "the same in C++", {"spead2": Series("spead2-source", "c", _PROGRAM)}),
    (
        "spead2 from source",
        "the same in its Python",
        {"spead2": Series("spead2-source", "python", _PROGRAM)},
    ),
    (
        "spead2 from PyPI",
        "the same in its Python",
        {"spead2": Series("spead2", "python", _PROGRAM)},
    ),
    (
        "bare system calls",
        "and a copy into place",
        {"limit": Series("ceiling", "c", _PROGRAM)},
    ),
)


def receivers_ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw the highest rate without loss, chapter by chapter, a panel for each pair of sizes."""
    settled = search.settled(recording)
    found = by_sizes(settled)
    ours = [Series(OURS, language, one.name) for one in RECEIVERS for language in MEASURED]
    require({series: 0 for points in found.values() for series in points}, ours, "receive-lossless")
    sheet = steps.draw_steps(
        theme,
        _title(found),
        "The highest payload rate at which a receiver loses nothing, sender and receiver on a core"
        " each",
        caption(settled, "median of {rounds} rounds, a search in each, line: {spread}"),
        {
            f"Heaps of {size(heap)}, packets of {bytes_text(packet)}": rungs
            for (heap, packet), points in found.items()
            if (rungs := _steps(points))
        },
        "payload without loss, GB/s",
        lambda point: search.is_bound(point.samples),
    )
    return sheet.drawn("Dots: the highest payload rate at which a receiver loses nothing, in MB/s.")


def by_sizes(settled: Recording) -> Found:
    """Sort what searches have found: by sizes, those with most cases first, and by series."""
    samples: dict[Sizes, dict[Series, list[Sample]]] = {}
    for one in settled.samples:
        if not one.warm_up and search.is_search(one):
            sizes = one.heap_size, one.packet_size
            samples.setdefault(sizes, {}).setdefault(one.series, []).append(one)
    order = sorted(samples, key=lambda sizes: (-len(samples[sizes]), -sizes[0], -sizes[1]))
    return {
        sizes: {series: Point(tuple(some)) for series, some in samples[sizes].items()}
        for sizes in order
    }


def at_least(*points: Point | None) -> str:
    """Return the words before what was found, where one of these is but a lower bound."""
    bound = any(one is not None and search.is_bound(one.samples) for one in points)
    return "at least " if bound else ""


def _steps(points: Mapping[Series, Point]) -> list[steps.Step]:
    """Return the chapters, each with what it gained on the one before, and what is beside them."""
    rungs: list[steps.Step] = []
    for one in RECEIVERS:
        series = {language: Series(OURS, language, one.name) for language in MEASURED}
        there = {role: points[x] for role, x in series.items() if x in points}
        before = rungs[-1].points if rungs else {}
        gains = {role: gain(before.get(role), point) for role, point in there.items() if before}
        rungs += [steps.Step(f"{one.number}  {one.title}", "", there, gains)] * bool(there)
    for title, note, series in _BESIDE:
        there = {role: points[x] for role, x in series.items() if x in points}
        rungs += [steps.Step(title, note, there)] * bool(there)
    return rungs


def _title(found: Found) -> str:
    """Say how many times as high the rate of the last chapter is as that of the first."""
    (heap_size, _), points = next(iter(found.items()))
    there = [one for one in RECEIVERS if any(x.program == one.name for x in points)]
    first, last = (
        [points.get(Series(OURS, language, one.name)) for language in MEASURED]
        for one in (there[0], there[-1])
    )
    gains = [gain(*pair) for pair in zip(first, last, strict=True)]
    if len(there) < 2 or not any(gains):
        return "Rates without loss"
    least = at_least(*last) * any(one is not None and differs(one) for one in gains)
    words = gained({NAMES[x]: one for x, one in zip(MEASURED, gains, strict=True)})
    chapters = f"from chapter {there[0].number} to {there[-1].number}"
    return f"{size(heap_size)} heaps, {chapters}: {least}{words}"
