# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: sending in turns against sending while preparing, and where the time went."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spead_tutorial import units
from spead_tutorial.analysis.timeline import shares
from spead_tutorial.catalogue import MEASURED
from spead_tutorial.plots import bars, curves, times
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import gained, strongest
from spead_tutorial.plots.points import Point, gain, highest, points
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, name_panel
from spead_tutorial.plots.spots import TIMES, Line
from spead_tutorial.plots.theme import NAMES, Theme
from spead_tutorial.plots.timeline import fill, patch
from spead_tutorial.records import OURS, Recording, Series, Timeline, joined
from spead_tutorial.stats import Estimate
from spead_tutorial.units import percent, size, thousands

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["pipeline"]

_SUBTITLE = "Sent in turns, and overlapped; the title has the largest change"
_OVERLAPPED = "tut_5_send_pipeline"
#: Where its samples are of a kind: the program that sends in turns, and the other one's variant.
_KINDS = {
    "Random samples": ("tut_4_send_perf", "random"),
    "Constant samples": ("tut_4_send_constant", ""),
}
_WAYS = ("in turns", "overlapped")
_RATES, _GAINS = (0.2, 2.1), (4.6, 0.3)
_NARROW_RATES, _NARROW_GAINS = (0.2, 1.45), (2.3, 0.2)
#: Inches of a group of bars: for each language one in turns and one overlapped.
_GROUP = 1.1
#: Inches from one bar of shares to the next.
_SHARE = 0.46
_SHARES = ("preparing", "waiting", "rest")


@dataclasses.dataclass(frozen=True, slots=True)
class _Pair:
    """What a language sends in turns, and overlapped; what was not measured is None."""

    language: str
    in_turns: Point | None
    overlapped: Point | None

    @property
    def points(self) -> tuple[Point | None, Point | None]:
        """Both, in the order in which they are drawn."""
        return self.in_turns, self.overlapped

    @property
    def gain(self) -> Estimate | None:
        """How many times as fast overlapping is."""
        return gain(self.in_turns, self.overlapped)


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """The pairs of one kind of samples in one situation."""

    situation: str
    pairs: list[_Pair]

    @property
    def heaps(self) -> str:
        """Of which size its heaps are, in words."""
        return f"heaps of {size(self.heap_size)}"

    @property
    def heap_size(self) -> int:
        """Of how many bytes its heaps are."""
        points = (point for pair in self.pairs for point in pair.points if point is not None)
        return next(points).samples[0].heap_size


#: Groups by the kind of their samples.
Found = dict[str, list[_Group]]


def pipeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates in turns and overlapped with their gains, and what the programs' time went to."""
    found = _found(recording)
    timelines = times.timelines(recording) if recording.timelines else []
    rows = [
        (0.38 if not row else 0.95, _group(theme) * len(found[kind]))
        for row, kind in enumerate(found)
    ]
    if timelines:
        rows.append((1.25, _share(theme) * len(timelines)))
    title, foot = _finding(found), caption(recording)
    sheet = Sheet(theme, title, rows, foot, subtitle=_SUBTITLE, legend=_legend(theme))
    for row, (kind, groups) in enumerate(found.items()):
        rates, gains = (_NARROW_RATES, _NARROW_GAINS) if theme.is_narrow else (_RATES, _GAINS)
        _draw_rates(sheet.axes(row, *rates), kind, groups, theme)
        _draw_gains(sheet.axes(row, *gains), kind, groups, theme)
    if timelines:
        _draw_shares(sheet, len(found), timelines)
    return sheet.figure, sheet.title, _in_words(recording, found, timelines)


def _found(recording: Recording) -> Found:
    """Return what there is to compare; at the largest heaps where there are several sizes."""
    points_by_series = points(recording)
    largest = {series: found[max(found)] for series, found in points_by_series.items()}
    situations = dict.fromkeys(
        sample.variant for sample in sorted(recording.samples, key=lambda s: _place(s.variant))
    )
    found = {}
    for kind, (program, variant) in _KINDS.items():
        groups = []
        for situation in situations:
            both = joined(variant, situation)
            pairs = [
                _Pair(
                    language,
                    largest.get(Series(OURS, language, program, situation)),
                    largest.get(Series(OURS, language, _OVERLAPPED, both)),
                )
                for language in MEASURED
            ]
            pairs = [pair for pair in pairs if pair.points != (None, None)]
            if pairs:
                groups.append(_Group(situation, pairs))
        if groups:
            found[kind] = groups
    if not found:
        raise ValueError(
            f"the recording has no sample of {_OVERLAPPED}, or in turns: python -m bench run tut-5"
        )
    return found


def _finding(found: Found) -> str:
    """Say what overlapping changes where it changes most."""
    by_place = {
        f"{kind}, {_called(group.situation)}": {
            NAMES[pair.language]: pair.gain for pair in group.pairs
        }
        for kind, groups in found.items()
        for group in groups
    }
    place = strongest(by_place)
    return f"{place}: overlapped {gained(by_place[place])}"


def _place(situation: str) -> tuple[bool, str]:
    return situation.startswith("link"), situation


def _called(situation: str) -> str:
    """Return what a situation is called: a variant of a record."""
    if situation.startswith("link"):
        return f"behind a {situation}"
    return f"without a limit, {situation}" if situation else "without a limit"


def _legend(theme: Theme) -> list["Artist"]:
    return [
        bars.patch(theme, language, f"{NAMES[language]}, {way}", pale=way == _WAYS[0])
        for language in MEASURED
        for way in _WAYS
    ]


def _group(theme: Theme) -> float:
    return _GROUP - bars.LABEL + bars.label_height(theme, "heaps")


def _share(theme: Theme) -> float:
    return _SHARE - bars.LABEL + bars.label_height(theme, "shares")


def _lane(index: int, language: str, way: int, theme: Theme) -> float:
    """Return where a bar is, in inches from the top of its panel."""
    place = 2 * MEASURED.index(language) + way
    label = bars.label_height(theme, "heaps")
    return index * _group(theme) + label + (place + 0.5) * bars.PITCH


def _draw_rates(axis: "Axes", kind: str, groups: Sequence[_Group], theme: Theme) -> None:
    there = [point for group in groups for pair in group.pairs for point in pair.points if point]
    room, marks = (1.4, 3) if theme.is_narrow else (1.24, 4)
    bars.prepare(axis, _group(theme) * len(groups), highest(there), room)
    axis.locator_params(axis="x", nbins=marks)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.set_xlabel("payload sent in MB/s")
    axis.set_title(kind, loc="left", fontsize=11)
    for index, group in enumerate(groups):
        bars.label_group(axis, index * _group(theme), _called(group.situation), group.heaps, theme)
        for pair in group.pairs:
            for way, point in enumerate(pair.points):
                if point is not None:
                    y = _lane(index, pair.language, way, theme)
                    row = f"{kind}, {_called(group.situation)}, {_WAYS[way]}"
                    language = NAMES[pair.language]
                    line = Line(f"{row}, {language}", pair.language, language, row, point.key)
                    bars.draw_bar(axis, y, point, pair.language, theme, pale=not way, line=line)


def _draw_gains(axis: "Axes", kind: str, groups: Sequence[_Group], theme: Theme) -> None:
    """Draw beside the bars how many times as fast overlapping is."""
    axis.set_ylim(_group(theme) * len(groups), 0)
    axis.set_yticks([])
    axis.set_xscale("log")
    gains = [
        (_lane(index, pair.language, 0, theme) + bars.PITCH / 2, group, pair, estimate)
        for index, group in enumerate(groups)
        for pair in group.pairs
        if (estimate := pair.gain) is not None
    ]
    ends = [x for *_, estimate in gains for x in (estimate.low, estimate.high)]
    margin, marks = (2.0, 3) if theme.is_narrow else (1.5, 4)
    curves.scale_gains(axis.xaxis, ends or [1.0], margin=margin, most_marks=marks)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    axis.axvline(1, color=theme.text, linewidth=1.2)
    axis.set_xlabel("times as fast\nas in turns")
    for y, group, pair, estimate in gains:
        name = f"{kind}, {_called(group.situation)}, {NAMES[pair.language]}, gain"
        line = Line(name, pair.language, unit=TIMES)
        bars.draw_gain(axis, y, estimate, pair.language, theme, line, group.heap_size)
        _say_gain(axis, y, estimate, theme)


def _say_gain(axis: "Axes", y: float, estimate: Estimate, theme: Theme) -> None:
    low, high = axis.get_xlim()
    right = estimate.high * estimate.high < low * high
    axis.annotate(
        units.times(estimate.median),
        (estimate.high if right else estimate.low, y),
        (6 if right else -6, 0),
        textcoords="offset points",
        ha="left" if right else "right",
        va="center_baseline",
        bbox={"facecolor": theme.background, "edgecolor": "none", "pad": 0.5},
    )


def _draw_shares(sheet: Sheet, row: int, timelines: Sequence[Timeline]) -> None:
    """Draw a bar for each timeline: what the time of the program went to."""
    theme = sheet.theme
    axis = sheet.axes(row, 0.2, 0.3)
    axis.set_xlim(0, 1)
    axis.set_ylim(_share(theme) * len(timelines), 0)
    axis.set_yticks([])
    axis.xaxis.set_major_formatter(lambda x, _: percent(x))
    heaps = " or ".join(dict.fromkeys(map(times.counted, timelines)))
    axis.set_xlabel(f"share of the time of {heaps}")
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    name_panel(axis, "What the program in Python does", raised=20)
    axis.legend(
        handles=[patch(theme, role) for role in _SHARES],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        borderaxespad=0,
        borderpad=0.1 if theme.is_narrow else None,
        handlelength=1.2 if theme.is_narrow else None,
        columnspacing=1.2 if theme.is_narrow else None,
    )
    for index, timeline in enumerate(timelines):
        portions = shares(timeline)
        y = index * _share(theme)
        bar = y + bars.label_height(theme, "shares") + bars.PITCH / 2
        bars.label_group(axis, y, times.title(timeline), _said(timeline), theme)
        left = 0.0
        for role in _SHARES:
            share = getattr(portions, role)
            axis.barh(bar, share, bars.PITCH, left, **fill(theme, role))
            left += share


def _said(timeline: Timeline) -> str:
    portions = shares(timeline)
    return f"preparing {percent(portions.preparing)}, waiting {percent(portions.waiting)}"


def _in_words(recording: Recording, found: Found, timelines: Sequence[Timeline]) -> str:
    sentences = ["Bars: the rate in turns and overlapped in MB/s, and the gain of overlapping."]
    for kind, groups in found.items():
        for group in groups:
            words = [_pair_in_words(pair) for pair in group.pairs]
            where = f"{kind}, {_called(group.situation)}, {group.heaps}"
            sentences.append(f"{where}: {'; '.join(words)}.")
    for timeline in timelines:
        name = " ".join(times.title(timeline).split())
        sentences.append(
            f"Time of {times.counted(timeline)}, {name}, in {NAMES[timeline.language]}:"
            f" {_said(timeline)}."
        )
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _pair_in_words(pair: _Pair) -> str:
    words = [
        f"{way} {curves.in_words(point)}"
        for way, point in zip(_WAYS, pair.points, strict=True)
        if point is not None
    ]
    estimate = pair.gain
    words += [f"gain {curves.gain_in_words(estimate)}"] if estimate is not None else []
    return f"{NAMES[pair.language]} {', '.join(words)}"
