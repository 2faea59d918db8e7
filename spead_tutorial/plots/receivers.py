# SPDX-License-Identifier: BSD-3-Clause
"""The receivers' ladder: the highest rate without loss of every chapter that receives."""

from collections.abc import Mapping, Sequence

from spead_tutorial.catalogue import MEASURED, RECEIVERS
from spead_tutorial.measure import search
from spead_tutorial.plots import dots
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained
from spead_tutorial.plots.points import Point, gain, rate, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.stats import is_told
from spead_tutorial.units import bytes_text, size

__all__ = ["Place", "at_least", "by_place", "in_words", "receivers_ladder"]

#: Size of heaps, and of packets.
Place = tuple[int, int]
Found = Mapping[Place, Mapping[Series, Point]]

_PROGRAM = "receive"
_SUBTITLE = (
    "The highest payload rate at which a receiver loses nothing, sender and receiver on a core each"
)
_RATE = "payload without loss, GB/s"
_SHOWN = "median of {rounds} rounds, a search in each, line: {spread}"
#: What stands below the chapters, as far as it was measured: title, remark, dots by their colour.
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
    found = by_place(settled)
    ours = [Series(OURS, language, one.name) for one in RECEIVERS for language in MEASURED]
    require({series: 0 for points in found.values() for series in points}, ours, "receive-lossless")
    panels = {place: groups for place, points in found.items() if (groups := _steps(points))}
    foot = caption(settled, _SHOWN)
    steps = list(panels.values())
    sheet = Sheet(
        theme,
        _finding(found),
        dots.panel_rows(steps, theme),
        foot,
        subtitle=_SUBTITLE,
        legend=dots.dot_legend(steps, theme),
        columns=4,
    )
    titles = [_name(place) for place in panels]
    dots.draw_panels(sheet, steps, titles, _RATE, _is_bound)
    return sheet.figure, sheet.title, _in_words(panels, foot)


def _is_bound(point: Point) -> bool:
    return search.is_bound(point.samples)


def by_place(settled: Recording) -> Found:
    """Sort what searches have found: by sizes, those with most cases first, and by series."""
    samples: dict[Place, dict[Series, list[Sample]]] = {}
    for one in settled.samples:
        if not one.warm_up and search.is_search(one):
            place = one.heap_size, one.packet_size
            samples.setdefault(place, {}).setdefault(one.series, []).append(one)
    order = sorted(samples, key=lambda place: (-len(samples[place]), -place[0], -place[1]))
    return {
        place: {series: Point(tuple(some)) for series, some in samples[place].items()}
        for place in order
    }


def at_least(*points: Point | None) -> str:
    """Return the words before what was found, where one of these is but a lower bound."""
    bound = any(one is not None and search.is_bound(one.samples) for one in points)
    return "at least " if bound else ""


def in_words(point: Point | None) -> str:
    """Say what was found, in MB/s, with its interval."""
    estimate = point.estimate(rate) if point is not None else None
    if estimate is None:
        return "failed"
    ends = f"({estimate.low:.0f} to {estimate.high:.0f})"
    return f"{at_least(point)}{estimate.median:.0f} {ends}"


def _name(place: Place) -> str:
    return f"Heaps of {size(place[0])}, packets of {bytes_text(place[1])}"


def _steps(points: Mapping[Series, Point]) -> list[dots.Step]:
    """Return the chapters, each with what it gained on the one before, and what is beside them."""
    steps: list[dots.Step] = []
    for one in RECEIVERS:
        series = {language: Series(OURS, language, one.name) for language in MEASURED}
        there = {role: points[x] for role, x in series.items() if x in points}
        before = steps[-1].points if steps else {}
        gains = {role: gain(before.get(role), point) for role, point in there.items() if before}
        steps += [dots.Step(f"{one.number}  {one.title}", "", there, gains)] * bool(there)
    for title, note, series in _BESIDE:
        there = {role: points[x] for role, x in series.items() if x in points}
        steps += [dots.Step(title, note, there)] * bool(there)
    return steps


def _finding(found: Found) -> str:
    """Say how many times as high the rate of the last chapter is as that of the first."""
    place, points = next(iter(found.items()))
    there = [one for one in RECEIVERS if any(x.program == one.name for x in points)]
    if len(there) < 2:
        return f"{size(place[0])} heaps: nothing to compare"
    first, last = there[0], there[-1]
    gains = {
        NAMES[language]: gain(
            points.get(Series(OURS, language, first.name)),
            points.get(Series(OURS, language, last.name)),
        )
        for language in MEASURED
    }
    ends = [points.get(Series(OURS, language, last.name)) for language in MEASURED]
    told = any(one is not None and is_told(one) for one in gains.values())
    words = f"from chapter {first.number} to {last.number}"
    return f"{size(place[0])} heaps, {words}: {at_least(*ends) * told}{gained(gains)}"


def _in_words(panels: Mapping[Place, Sequence[dots.Step]], foot: str) -> str:
    sentences = ["Dots: the highest payload rate at which a receiver loses nothing, in MB/s."]
    for place, groups in panels.items():
        said = [
            f"{' '.join(group.title.split())}{f' ({group.note})' * bool(group.note)}: "
            + ", ".join(
                f"{NAMES.get(role, '')} {in_words(x)}".strip() for role, x in group.points.items()
            )
            for group in groups
        ]
        sentences.append(f"{_name(place)}: {'; '.join(said)}.")
    return " ".join([*sentences, " ".join(foot.split())])
