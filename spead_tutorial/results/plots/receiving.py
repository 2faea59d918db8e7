# SPDX-License-Identifier: BSD-3-Clause
"""Receivers: the highest rate without loss."""

from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import CHAINED, MEASURED, RECEIVERS
from spead_tutorial.measure import search
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import differs
from spead_tutorial.results.plots import facts
from spead_tutorial.results.plots.ladder import Rung, rows_of
from spead_tutorial.results.plots.picture import Picture
from spead_tutorial.results.units import size

#: Size of heaps, and of packets.
Sizes = tuple[int, int]
Searched = Mapping[Sizes, Mapping[Series, facts.Point]]

#: What stands below the chapters, as far as it was measured: title, remark, series by their colour.
_BESIDE = (
    ("memory used again", "computes nothing", OURS, {x: x for x in MEASURED}),
    ("spead2 in C++", "computes nothing", "spead2-source", {"spead2": "c"}),
    ("spead2 in Python", "computes nothing", "spead2-source", {"spead2": "python"}),
    ("bare system calls", "a copy into place", "ceiling", {"limit": "c"}),
)
#: Of so many pairs of sizes, those with the most receivers.
_MOST_PANELS = 2


def receivers_ladder(recording: Recording) -> Picture:
    """Show the highest rate without loss, chapter by chapter, a panel for a pair of sizes."""
    settled = search.settled(recording)
    found = _by_sizes(settled)
    ours = [Series(OURS, language, receiver.name) for receiver in CHAINED for language in MEASURED]
    there = dict.fromkeys(series for points in found.values() for series in points)
    facts.require(there.keys() & {*ours}, "receive-lossless", *(one.program for one in ours))
    panels = {
        f"{size(heap)}, packets of {packet}": rungs
        for (heap, packet), points in list(found.items())[:_MOST_PANELS]
        if (rungs := _rungs(points))
    }
    all_there = [point for points in found.values() for point in points.values()]
    return Picture(
        _gained(found),
        "\N{GREATER-THAN OR EQUAL TO}: at least, for the sender could do no more"
        if _at_least(*all_there)
        else "The highest rates at which nothing is lost",
        rows_of(panels, "without loss, GB/s", lambda point: search.is_bound(point.samples)),
        "Bars: the highest payload rate at which a receiver loses nothing, in MB/s.",
        facts.caption(settled, "median of {rounds} rounds, a search in each, line: {spread}"),
    )


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


def _at_least(*points: facts.Point) -> str:
    """Return the words before what was found, where one of these is but a lower bound."""
    return "at least " * any(search.is_bound(point.samples) for point in points)


def _rungs(points: Mapping[Series, facts.Point]) -> list[Rung]:
    """Return the chapters, and what is beside them."""
    rungs = [
        Rung(f"{receiver.number} {receiver.title}", "", there)
        for receiver in RECEIVERS
        if (there := _of(points, OURS, receiver.name))
    ]
    return rungs + [
        Rung(title, note, there)
        for title, note, implementation, languages in _BESIDE
        if (there := _of(points, implementation, "receive", languages))
    ]


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
    if len(there) < 2 or not any(gain is not None and differs(gain) for gain in gains.values()):
        return "Receivers lose nothing up to these rates"
    # A search is exact to a step, which is about 9 %: two digits are all that it knows.
    said = facts.told(facts.in_languages(gains), facts.HIGH, _at_least(*last.values()))
    return f"Chapters {there[0].number} to {there[-1].number} make the rate without loss {said}"
