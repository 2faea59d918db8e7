# SPDX-License-Identifier: BSD-3-Clause
"""The receivers' ladder: the highest rate without loss of every chapter that receives."""

import dataclasses
from collections.abc import Mapping, Sequence

from spead_tutorial.catalogue import LANGUAGES, RECEIVERS
from spead_tutorial.measure import search
from spead_tutorial.plots import bars
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained, is_told
from spead_tutorial.plots.points import Point, gain, highest, rate, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, rate_axis
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.records import OURS, Recording, Sample, Series
from spead_tutorial.units import bytes_text, size, thousands

__all__ = ["Place", "by_place", "receivers_ladder"]

#: Size of heaps, and of packets.
Place = tuple[int, int]
Found = Mapping[Place, Mapping[Series, Point]]

_PROGRAM = "receive"
_SUBTITLE = (
    "The highest payload rate at which a receiver loses nothing, sender and receiver on a core each"
)
_RATE = "highest payload rate without loss in MB/s (10⁶ bytes a second)"
_SHOWN = "median of {rounds} rounds, a search in each (dots), line: {spread}"
_SIDES = (0.2, 0.2)
_ROOM, _FIRST_ROOM = 0.62, 0.66
#: What stands below the chapters, as far as it was measured: title, remark, bars by their colour.
_BESIDE = (
    (
        "memory used again, and nothing computed",
        "our receiver, without a chapter",
        {language: Series(OURS, language, _PROGRAM) for language in LANGUAGES},
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


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """Bars below one line of words."""

    title: str
    note: str
    points: dict[str, Point]  # by what gives a bar its colour

    @property
    def height(self) -> float:
        """Inches."""
        return bars.GROUP - (len(LANGUAGES) - 1) * bars.PITCH * (not self.points.keys() & NAMES)


def receivers_ladder(recording: Recording, theme: Theme) -> Drawn:
    """Draw the highest rate without loss, chapter by chapter, a panel for each pair of sizes.

    Parameters
    ----------
    recording : Recording
        Of the sweep ``receive-lossless``.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    settled = search.settled(recording)
    found = by_place(settled)
    ours = [Series(OURS, language, one.name) for one in RECEIVERS for language in LANGUAGES]
    require({series: 0 for points in found.values() for series in points}, ours, "receive-lossless")
    panels = {place: groups for place, points in found.items() if (groups := _groups(points))}
    heights = [sum(group.height for group in groups) for groups in panels.values()]
    rows = [(_ROOM if row else _FIRST_ROOM, height) for row, height in enumerate(heights)]
    foot = caption(settled, _SHOWN)
    sheet = Sheet(
        theme,
        _finding(found),
        rows,
        foot,
        subtitle=_SUBTITLE,
        legend=bars.language_legend(theme),
    )
    most = highest(one for points in found.values() for one in points.values())
    for row, (place, groups) in enumerate(panels.items()):
        axis = sheet.axes(row, *_SIDES)
        bars.prepare(axis, heights[row], most, room=1.3)
        y = 0.0
        for group in groups:
            bars.label_group(axis, y, group.title, group.note, theme)
            lanes = bars.lanes(y)
            for index, (role, point) in enumerate(group.points.items()):
                lane = lanes.get(role, y + bars.LABEL + (index + 0.5) * bars.PITCH)
                text = _at_least if search.is_bound(point.samples) else thousands
                bars.draw_bar(axis, lane, point, role, theme, text=text)
            y += group.height
        axis.set_title(_name(place), loc="left", fontsize=11)
        rate_axis(axis, theme, "top" if not row else None)
    axis.set_xlabel(_RATE)
    return sheet.figure, sheet.title, _in_words(panels, foot)


def by_place(settled: Recording) -> Found:
    """Sort what searches have found: by sizes, those with most cases first, and by series."""
    samples: dict[Place, dict[Series, list[Sample]]] = {}
    for one in settled.samples:
        if not one.warm_up and one.asked_bytes_per_s is not None:
            place = one.heap_size, one.packet_size
            samples.setdefault(place, {}).setdefault(one.series, []).append(one)
    order = sorted(samples, key=lambda place: (-len(samples[place]), -place[0], -place[1]))
    return {
        place: {series: Point(tuple(some)) for series, some in samples[place].items()}
        for place in order
    }


def _at_least(value: float) -> str:
    return f"at least {thousands(value)}"


def _name(place: Place) -> str:
    return f"Heaps of {size(place[0])}, packets of {bytes_text(place[1])}"


def _groups(points: Mapping[Series, Point]) -> list[_Group]:
    wanted = [
        (
            f"{one.number}  {one.title}",
            one.change,
            {language: Series(OURS, language, one.name) for language in LANGUAGES},
        )
        for one in RECEIVERS
    ]
    return [
        _Group(title, note, {role: points[x] for role, x in series.items() if x in points})
        for title, note, series in (*wanted, *_BESIDE)
        if any(x in points for x in series.values())
    ]


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
        for language in LANGUAGES
    }
    ends = [points.get(Series(OURS, language, last.name)) for language in LANGUAGES]
    bound = any(end is not None and search.is_bound(end.samples) for end in ends)
    told = any(one is not None and is_told(one) for one in gains.values())
    words = f"from chapter {first.number} to {last.number}"
    return f"{size(place[0])} heaps, {words}: {'at least ' * (bound and told)}{gained(gains)}"


def _in_words(panels: Mapping[Place, Sequence[_Group]], foot: str) -> str:
    sentences = ["Bars: the highest payload rate at which a receiver loses nothing, in MB/s."]
    for place, groups in panels.items():
        said = [
            f"{' '.join(group.title.split())} ({group.note}): "
            + ", ".join(
                f"{NAMES.get(role, '')} {_value(x)}".strip() for role, x in group.points.items()
            )
            for group in groups
        ]
        sentences.append(f"{_name(place)}: {'; '.join(said)}.")
    return " ".join([*sentences, " ".join(foot.split())])


def _value(point: Point) -> str:
    estimate = point.estimate(rate)
    if estimate is None:
        return "failed"
    ends = f"({estimate.low:.0f} to {estimate.high:.0f})"
    return f"{'at least ' * search.is_bound(point.samples)}{estimate.median:.0f} {ends}"
