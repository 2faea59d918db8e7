# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: what sending while preparing gained, and what the fill did; where the time went."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from spead_tutorial import units
from spead_tutorial.catalogue import LANGUAGES, find_chapter
from spead_tutorial.plots import bars, curves, times
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.ladder import step_title
from spead_tutorial.plots.points import Point, gain, highest, points, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet, name_panel
from spead_tutorial.plots.theme import MARKERS, NAMES, Theme
from spead_tutorial.plots.timeline import fill, patch
from spead_tutorial.records import OURS, Recording, Series, Timeline
from spead_tutorial.stats import Estimate
from spead_tutorial.timeline import shares
from spead_tutorial.units import percent, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["pipeline"]

_TITLE = "Sending while preparing, and what the fill did"
_RATES, _GAINS = (0.2, 2.1), (4.6, 0.3)
#: Inches from one bar of shares to the next.
_SHARE = 0.5
_SHARES = ("preparing", "waiting", "rest")

#: Program, and whether its samples are random: chapter 4's always are.
Step = tuple[str, bool]
_STEPS: tuple[Step, ...] = (
    ("tut_4_send_perf", False),
    ("tut_5_send_pipeline", True),
    ("tut_5_send_pipeline", False),
)
Found = Mapping[Step, Mapping[str, Point]]
Gains = Mapping[tuple[Step, str], Estimate]


def pipeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rates of chapters 4 and 5 with their gains, and what the programs' time went to.

    Parameters
    ----------
    recording : Recording
        Of the sweep ``tut-5``. Without timelines, there is no panel of times.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    points_by_step = _found(recording)
    gained = _gained(points_by_step)
    timelines = times.timelines(recording) if recording.timelines else []
    height = bars.GROUP * len(points_by_step)
    rows = [(0.32, height)]
    if timelines:
        rows.append((1.1, _SHARE * len(timelines)))
    sheet = Sheet(theme, _TITLE, rows, caption(recording), legend=bars.language_legend(theme))
    _draw_rates(sheet.axes(0, *_RATES), height, points_by_step, theme)
    if gained:
        _draw_gains(sheet.axes(0, *_GAINS), height, points_by_step, gained, theme)
    if timelines:
        _draw_shares(sheet, timelines)
    return sheet.figure, _TITLE, _in_words(recording, points_by_step, gained, timelines)


def _found(recording: Recording) -> Found:
    """Return each step's point in each language; at the largest heaps where there are several."""
    series_by_step = {
        (name, with_random): {
            language: Series(OURS, language, name, "random" * with_random) for language in LANGUAGES
        }
        for name, with_random in _STEPS
    }
    points_by_series = points(recording)
    require(
        points_by_series,
        [series for languages in series_by_step.values() for series in languages.values()],
        "tut-5",
    )
    points_by_step = {
        step: {
            language: points_by_series[series][max(points_by_series[series])]
            for language, series in languages.items()
            if series in points_by_series
        }
        for step, languages in series_by_step.items()
    }
    return {step: languages for step, languages in points_by_step.items() if languages}


def _gained(points_by_step: Found) -> Gains:
    """Return what each step gained over the one before it."""
    gained = {}
    for before, after in pairwise(points_by_step):
        for language, point in points_by_step[after].items():
            estimate = gain(points_by_step[before].get(language), point)
            if estimate is not None:
                gained[after, language] = estimate
    return gained


def _title(step: Step) -> str:
    return step_title(find_chapter(step[0]), step[1])


def _draw_rates(axis: "Axes", height: float, points_by_step: Found, theme: Theme) -> None:
    most = highest(point for languages in points_by_step.values() for point in languages.values())
    bars.prepare(axis, height, most, room=1.24)
    axis.locator_params(axis="x", nbins=4)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x))
    axis.set_xlabel("payload sent in MB/s")
    for index, (step, languages) in enumerate(points_by_step.items()):
        y = index * bars.GROUP
        bars.label_group(axis, y, _title(step), "", theme)
        for language, point in languages.items():
            bars.draw_bar(axis, bars.lanes(y)[language], point, language, theme)


def _draw_gains(
    axis: "Axes", height: float, points_by_step: Found, gained: Gains, theme: Theme
) -> None:
    """Draw beside the bars how many times as fast each step is as the one before."""
    axis.set_ylim(height, 0)
    axis.set_yticks([])
    axis.set_xscale("log")
    ends = [x for estimate in gained.values() for x in (estimate.low, estimate.high)]
    curves.scale_gains(axis.xaxis, ends, margin=1.5, most_marks=4)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    axis.axvline(1, color=theme.text, linewidth=1.2)
    axis.set_xlabel("times as fast\nas the one above")
    name_panel(axis, "gain")
    for index, step in enumerate(points_by_step):
        for language, y in bars.lanes(index * bars.GROUP).items():
            if (step, language) in gained:
                _draw_gain(axis, y, gained[step, language], language, theme)


def _draw_gain(axis: "Axes", y: float, estimate: Estimate, language: str, theme: Theme) -> None:
    colour = theme.colours[language]
    axis.plot([estimate.low, estimate.high], [y, y], color=colour, linewidth=2)
    axis.plot([estimate.median], [y], color=colour, marker=MARKERS[language], markersize=6)
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


def _draw_shares(sheet: Sheet, timelines: Sequence[Timeline]) -> None:
    """Draw a bar for each timeline: what the time of the program went to."""
    theme = sheet.theme
    axis = sheet.axes(1, 0.2, 0.3)
    axis.set_xlim(0, 1)
    axis.set_ylim(_SHARE * len(timelines), 0)
    axis.set_yticks([])
    axis.xaxis.set_major_formatter(lambda x, _: percent(x))
    axis.set_xlabel("share of the time of a run")
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
    )
    for index, timeline in enumerate(timelines):
        portions = shares(timeline)
        y = index * _SHARE
        bars.label_group(axis, y, times.title(timeline), _said(timeline), theme)
        left = 0.0
        for role in _SHARES:
            share = getattr(portions, role)
            axis.barh(y + bars.LABEL + bars.PITCH / 2, share, bars.PITCH, left, **fill(theme, role))
            left += share


def _said(timeline: Timeline) -> str:
    portions = shares(timeline)
    return ", ".join(f"{role} {percent(getattr(portions, role))}" for role in _SHARES)


def _in_words(
    recording: Recording, points_by_step: Found, gained: Gains, timelines: Sequence[Timeline]
) -> str:
    sentences = ["Bars: the rate of each step in MB/s, and its gain over the step before."]
    for step, languages in points_by_step.items():
        words = []
        for language, point in languages.items():
            estimate = gained.get((step, language))
            gain_words = f", gain {curves.gain_in_words(estimate)}" if estimate else ""
            words.append(f"{NAMES[language]} {curves.in_words(point)}{gain_words}")
        sentences.append(f"Chapter {' '.join(_title(step).split())}: {'; '.join(words)}.")
    for timeline in timelines:
        name = " ".join(times.title(timeline).split())
        sentences.append(f"Time of {name} in {NAMES[timeline.language]}: {_said(timeline)}.")
    return " ".join([*sentences, " ".join(caption(recording).split())])
