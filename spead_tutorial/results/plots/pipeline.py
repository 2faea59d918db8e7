# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: sending in turns against sending while preparing, and where the time went."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.analysis import shares
from spead_tutorial.measure.records import OURS, Recording, Series, Timeline, joined
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.render import Drawn, say
from spead_tutorial.results.plots.sheet import Sheet, count_down, name_panel, write
from spead_tutorial.results.plots.theme import NAMES, Theme
from spead_tutorial.results.plots.timeline import counted, fill, patch, timelines, title
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
#: Inches of a group of bars, for each language one in turns and one overlapped; and of shares.
_GROUP, _SHARE = 1.1, 0.46
_SHARES = ("preparing", "waiting", "rest")


@dataclasses.dataclass(frozen=True, slots=True)
class _Group:
    """What is sent of one kind of samples in one situation: by language, in both ways."""

    kind: str
    situation: str  # a variant of a record
    pairs: dict[str, tuple[facts.Point | None, facts.Point | None]]  # what was not measured is None

    @property
    def called(self) -> str:
        """What its situation is called."""
        if self.situation.startswith("link"):
            return f"behind a {self.situation}"
        return joined("without a limit", self.situation)

    @property
    def name(self) -> str:
        """What it is called: kind and situation."""
        return f"{self.kind}, {self.called}"

    @property
    def points(self) -> list[facts.Point]:
        """All that were measured."""
        return [point for pair in self.pairs.values() for point in pair if point is not None]

    @property
    def heap_size(self) -> int:
        """Of how many bytes its heaps are."""
        return self.points[0].samples[0].heap_size

    @property
    def gains(self) -> dict[str, Estimate | None]:
        """How many times as fast overlapping is, by language."""
        return {language: facts.gain(*pair) for language, pair in self.pairs.items()}


def pipeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw rates in turns and overlapped with their gains, and what the programs' time went to."""
    found = _found(recording)
    runs = timelines(recording) if recording.timelines else []
    rows = [
        (0.95 if row else 0.38, bars.group_height(theme, _GROUP) * len(groups))
        for row, groups in enumerate(found)
    ]
    if runs:
        rows.append((1.25, bars.group_height(theme, _SHARE) * len(runs)))
    gains = {group.name: group.gains for groups in found for group in groups}
    most = facts.strongest(gains)
    sheet = Sheet(
        theme,
        f"{most}: overlapped {facts.gained(gains[most])}",
        rows,
        facts.caption(recording),
        subtitle="Sent in turns, and overlapped; the title has the largest change",
        legend=[
            bars.patch(theme, language, f"{NAMES[language]}, {way}", pale=way == _WAYS[0])
            for language in MEASURED
            for way in _WAYS
        ],
    )
    for row, groups in enumerate(found):
        of_rates, of_gains = (_NARROW_RATES, _NARROW_GAINS) if theme.is_narrow else (_RATES, _GAINS)
        _draw_rates(sheet.axes(row, *of_rates), groups, theme)
        _draw_gains(sheet.axes(row, *of_gains), groups, theme)
    if runs:
        _draw_shares(sheet, len(found), runs)
    return sheet.drawn(
        "Bars: the rate in turns and overlapped in MB/s, and the gain of overlapping."
    )


def _found(recording: Recording) -> list[list[_Group]]:
    """Return what there is to compare, by kind; at the largest heaps where there are several."""
    largest = {
        series: sizes[max(sizes)] for series, sizes in facts.points(recording.samples).items()
    }
    variants = {sample.variant for sample in recording.samples}
    found = []
    for kind, (program, variant) in _KINDS.items():
        groups = []
        for situation in sorted(variants, key=lambda one: (one.startswith("link"), one)):
            pairs = {
                language: (
                    largest.get(Series(OURS, language, program, situation)),
                    largest.get(Series(OURS, language, _OVERLAPPED, joined(variant, situation))),
                )
                for language in MEASURED
            }
            if pairs := {language: pair for language, pair in pairs.items() if any(pair)}:
                groups.append(_Group(kind, situation, pairs))
        found += [groups] * bool(groups)
    if not found:
        raise ValueError(
            f"the recording has no sample of {_OVERLAPPED}, or in turns: python -m bench run tut-5"
        )
    return found


def _lane(index: int, language: str, way: int, theme: Theme) -> float:
    """Return where a bar is, in inches from the top of its panel."""
    place = 2 * MEASURED.index(language) + way
    top = index * bars.group_height(theme, _GROUP) + bars.label_height(theme)
    return top + (place + 0.5) * bars.PITCH


def _draw_rates(axis: "Axes", groups: Sequence[_Group], theme: Theme) -> None:
    most = facts.highest(point for group in groups for point in group.points)
    room, marks = (1.4, 3) if theme.is_narrow else (1.24, 4)
    height = bars.group_height(theme, _GROUP)
    bars.prepare(axis, height * len(groups), most, room, marks)
    axis.set_title(groups[0].kind, loc="left", fontsize=11)
    for index, group in enumerate(groups):
        heaps = f"heaps of {size(group.heap_size)}"
        bars.label_group(axis, index * height, group.called, heaps, theme)
        for language, pair in group.pairs.items():
            for way, point in enumerate(pair):
                if point is not None:
                    y = _lane(index, language, way, theme)
                    line = bars.line_of(f"{group.name}, {_WAYS[way]}", language, point)
                    bars.draw_bar(axis, y, point, language, theme, pale=not way, line=line)


def _draw_gains(axis: "Axes", groups: Sequence[_Group], theme: Theme) -> None:
    """Draw beside the bars how many times as fast overlapping is."""
    gains = [
        (_lane(index, language, 0, theme) + bars.PITCH / 2, group, language, one)
        for index, group in enumerate(groups)
        for language, one in group.gains.items()
        if one is not None
    ]
    ends = facts.ends(one for *_, one in gains)
    margin, marks = (2.0, 3) if theme.is_narrow else (1.5, 4)
    label, inches = "times as fast\nas in turns", bars.group_height(theme, _GROUP) * len(groups)
    bars.prepare_gains(axis, inches, ends or [1.0], theme, label, margin, marks)
    low, high = axis.get_xlim()
    for y, group, language, one in gains:
        bars.draw_gain(axis, y, one, language, theme, group.name, group.heap_size)
        is_left = one.high * one.high < low * high  # so that there is more room on the right
        end, shift, align = (one.high, 6, "left") if is_left else (one.low, -6, "right")
        box = {"facecolor": theme.background, "edgecolor": "none", "pad": 0.5}
        style: dict[str, Any] = {"ha": align, "va": "center_baseline", "bbox": box}
        write(axis, times(one.median), (end, y), (shift, 0), **style)


def _draw_shares(sheet: Sheet, row: int, runs: Sequence[Timeline]) -> None:
    """Draw a bar for each timeline: what the time of the program went to."""
    theme, height = sheet.theme, bars.group_height(sheet.theme, _SHARE)
    axis = sheet.axes(row, 0.2, 0.3)
    axis.set_xlim(0, 1)
    count_down(axis, height * len(runs))
    axis.xaxis.set_major_formatter(lambda x, _: percent(x))
    heaps = " or ".join(dict.fromkeys(map(counted, runs)))
    axis.set_xlabel(f"share of the time of {heaps}")
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
        portions, y = shares(run), index * height
        said = f"preparing {percent(portions.preparing)}, waiting {percent(portions.waiting)}"
        bars.label_group(axis, y, title(run), said, theme)
        say(axis, f"Time of {counted(run)}, {title(run)}, in {NAMES[run.language]}", said)
        left, middle = 0.0, y + bars.label_height(theme) + bars.PITCH / 2
        for role in _SHARES:
            share = getattr(portions, role)
            axis.barh(middle, share, bars.PITCH, left, **fill(theme, role))
            left += share
