# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: sending in turns against sending while preparing, and where the time went."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.analysis import shares
from spead_tutorial.measure.records import OURS, Recording, Series, Timeline, joined
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import bars
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import TIMES, Line, say
from spead_tutorial.results.plots.points import Point, gain, highest, points
from spead_tutorial.results.plots.sheet import Drawn, Sheet, name_panel, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.timeline import counted, fill, patch, timelines, title
from spead_tutorial.results.plots.titles import gained, strongest
from spead_tutorial.results.units import percent, size, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pipeline"]

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
class _Group:
    """What is sent of one kind of samples in one situation: by language, in both ways."""

    kind: str
    situation: str
    pairs: dict[str, tuple[Point | None, Point | None]]  # what was not measured is None

    @property
    def name(self) -> str:
        """What it is called: kind and situation."""
        return f"{self.kind}, {_called(self.situation)}"

    @property
    def points(self) -> list[Point]:
        """All that were measured."""
        return [point for pair in self.pairs.values() for point in pair if point is not None]

    @property
    def heap_size(self) -> int:
        """Of how many bytes its heaps are."""
        return self.points[0].samples[0].heap_size

    @property
    def gains(self) -> dict[str, Estimate | None]:
        """How many times as fast overlapping is, by language."""
        return {language: gain(*pair) for language, pair in self.pairs.items()}


#: Groups by the kind of their samples.
Found = dict[str, list[_Group]]


def pipeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates in turns and overlapped with their gains, and what the programs' time went to."""
    found = _found(recording)
    runs = timelines(recording) if recording.timelines else []
    rows = [
        (0.38 if not row else 0.95, _group(theme) * len(found[kind]))
        for row, kind in enumerate(found)
    ]
    if runs:
        rows.append((1.25, _share(theme) * len(runs)))
    gains = {
        group.name: {NAMES[language]: one for language, one in group.gains.items()}
        for groups in found.values()
        for group in groups
    }
    most = strongest(gains)
    sheet = Sheet(
        theme,
        f"{most}: overlapped {gained(gains[most])}",
        rows,
        caption(recording),
        subtitle="Sent in turns, and overlapped; the title has the largest change",
        legend=[
            bars.patch(theme, language, f"{NAMES[language]}, {way}", pale=way == _WAYS[0])
            for language in MEASURED
            for way in _WAYS
        ],
    )
    for row, (kind, groups) in enumerate(found.items()):
        of_rates, of_gains = (_NARROW_RATES, _NARROW_GAINS) if theme.is_narrow else (_RATES, _GAINS)
        _draw_rates(sheet.axes(row, *of_rates), kind, groups, theme)
        _draw_gains(sheet.axes(row, *of_gains), groups, theme)
    if runs:
        _draw_shares(sheet, len(found), runs)
    return sheet.drawn(
        "Bars: the rate in turns and overlapped in MB/s, and the gain of overlapping."
    )


def _found(recording: Recording) -> Found:
    """Return what there is to compare; at the largest heaps where there are several sizes."""
    largest = {series: sizes[max(sizes)] for series, sizes in points(recording).items()}
    situations = dict.fromkeys(
        sample.variant for sample in sorted(recording.samples, key=lambda s: _place(s.variant))
    )
    found: Found = {}
    for kind, (program, variant) in _KINDS.items():
        for situation in situations:
            both = joined(variant, situation)
            pairs = {
                language: (
                    largest.get(Series(OURS, language, program, situation)),
                    largest.get(Series(OURS, language, _OVERLAPPED, both)),
                )
                for language in MEASURED
            }
            pairs = {language: pair for language, pair in pairs.items() if any(pair)}
            if pairs:
                found.setdefault(kind, []).append(_Group(kind, situation, pairs))
    if not found:
        raise ValueError(
            f"the recording has no sample of {_OVERLAPPED}, or in turns: python -m bench run tut-5"
        )
    return found


def _place(situation: str) -> tuple[bool, str]:
    return situation.startswith("link"), situation


def _called(situation: str) -> str:
    """Return what a situation is called: a variant of a record."""
    if situation.startswith("link"):
        return f"behind a {situation}"
    return f"without a limit, {situation}" if situation else "without a limit"


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
    most = highest(point for group in groups for point in group.points)
    room, marks = (1.4, 3) if theme.is_narrow else (1.24, 4)
    bars.prepare(axis, _group(theme) * len(groups), most, room, marks)
    axis.set_title(kind, loc="left", fontsize=11)
    for index, group in enumerate(groups):
        heaps = f"heaps of {size(group.heap_size)}"
        bars.label_group(axis, index * _group(theme), _called(group.situation), heaps, theme)
        for language, pair in group.pairs.items():
            for way, point in enumerate(pair):
                if point is not None:
                    y = _lane(index, language, way, theme)
                    row, name = f"{group.name}, {_WAYS[way]}", NAMES[language]
                    line = Line(f"{row}, {name}", language, name, row, point.key)
                    bars.draw_bar(axis, y, point, language, theme, pale=not way, line=line)


def _draw_gains(axis: "Axes", groups: Sequence[_Group], theme: Theme) -> None:
    """Draw beside the bars how many times as fast overlapping is."""
    axis.set_yticks([])
    gains = [
        (_lane(index, language, 0, theme) + bars.PITCH / 2, group, language, one)
        for index, group in enumerate(groups)
        for language, one in group.gains.items()
        if one is not None
    ]
    ends = [x for *_, one in gains for x in (one.low, one.high)]
    margin, marks = (2.0, 3) if theme.is_narrow else (1.5, 4)
    label, inches = "times as fast\nas in turns", _group(theme) * len(groups)
    bars.prepare_gains(axis, inches, ends or [1.0], theme, label, margin, marks)
    for y, group, language, one in gains:
        line = Line(f"{group.name}, {NAMES[language]}, gain", language, unit=TIMES)
        bars.draw_gain(axis, y, one, language, theme, line, group.heap_size)
        _say_gain(axis, y, one, theme)


def _say_gain(axis: "Axes", y: float, estimate: Estimate, theme: Theme) -> None:
    low, high = axis.get_xlim()
    right = estimate.high * estimate.high < low * high
    end, shift, align = (estimate.high, 6, "left") if right else (estimate.low, -6, "right")
    box = {"facecolor": theme.background, "edgecolor": "none", "pad": 0.5}
    style: dict[str, Any] = {"ha": align, "va": "center_baseline", "bbox": box}
    write(axis, times(estimate.median), (end, y), (shift, 0), **style)


def _draw_shares(sheet: Sheet, row: int, runs: Sequence[Timeline]) -> None:
    """Draw a bar for each timeline: what the time of the program went to."""
    theme = sheet.theme
    axis = sheet.axes(row, 0.2, 0.3)
    axis.set_xlim(0, 1)
    axis.set_ylim(_share(theme) * len(runs), 0)
    axis.set_yticks([])
    axis.xaxis.set_major_formatter(lambda x, _: percent(x))
    heaps = " or ".join(dict.fromkeys(map(counted, runs)))
    axis.set_xlabel(f"share of the time of {heaps}")
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    name_panel(axis, "What the program in Python does", raised=20)
    close: dict[str, Any] = {"borderpad": 0.1, "handlelength": 1.2, "columnspacing": 1.2}
    axis.legend(
        handles=[patch(theme, role) for role in _SHARES],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=3,
        frameon=False,
        borderaxespad=0,
        **close if theme.is_narrow else {},
    )
    for index, run in enumerate(runs):
        portions, y = shares(run), index * _share(theme)
        bar = y + bars.label_height(theme, "shares") + bars.PITCH / 2
        said = f"preparing {percent(portions.preparing)}, waiting {percent(portions.waiting)}"
        bars.label_group(axis, y, title(run), said, theme)
        say(axis, f"Time of {counted(run)}, {title(run)}, in {NAMES[run.language]}", said)
        left = 0.0
        for role in _SHARES:
            share = getattr(portions, role)
            axis.barh(bar, share, bars.PITCH, left, **fill(theme, role))
            left += share
