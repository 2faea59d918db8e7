# SPDX-License-Identifier: BSD-3-Clause
"""What is lost at which rate: every run of the searches for the highest rate without loss."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from spead_tutorial.chapters.catalogue import find_receiver
from spead_tutorial.measure import search, stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import PERCENT, RATE, Line, mark, say
from spead_tutorial.results.plots.points import Point, require
from spead_tutorial.results.plots.receivers import at_least, by_sizes
from spead_tutorial.results.plots.sheet import Drawn, Sheet, name_panel
from spead_tutorial.results.plots.theme import Look, Theme, looks, role_of
from spead_tutorial.results.units import bytes_text, number, size, thousands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["loss"]

_PROGRAM = "tut_7_recv_power"
_LINES = {
    Series(OURS, "python", _PROGRAM): "chapter 7, Python",
    Series(OURS, "c", _PROGRAM): "chapter 7, C",
    Series("spead2-source", "c", "receive"): "spead2 from source, C++, computes nothing",
    Series("ceiling", "c", "receive"): "bare calls, and a copy into place",
}
_SIZES = 1 << 20, 9000
_HEIGHT, _ROOM = 3.2, 0.46
#: Rates in MB/s that the axis has marks at, and how many parts of an octave are put together.
_MARKS = (1, 4, 16, 62.5, 125, 250, 500, 1000, 2000, 4000, 8000, 16000)
_PARTS = 4


def loss(recording: Recording, theme: Theme) -> Drawn:
    """Draw the share of packets that is lost over the rate that is sent."""
    runs = _runs(recording)
    require(runs, [one for one in _LINES if one.implementation == OURS], "receive-lossless")
    settled = search.settled(recording)
    best = by_sizes(settled).get(_SIZES, {})
    shown = [one for one in _LINES if one in runs]
    look = dict(zip(shown, looks(shown, theme), strict=True))
    heaps = f"Heaps of {size(_SIZES[0])}, packets of {bytes_text(_SIZES[1])}"
    sheet = Sheet(
        theme,
        _title(best),
        [(_ROOM, _HEIGHT)],
        caption(
            settled,
            "dots: runs, lines: their medians in steps of a quarter octave; at 0, highest rate"
            " without loss: median of {rounds} rounds and {spread}",
        ),
        subtitle=f"{heaps}: what a receiver loses",
        legend=curves.curve_legend([(_LINES[one], look[one]) for one in shown], theme),
        columns=1,
    )
    axis = sheet.axes(0, *curves.SIDES)
    rates = [_megabytes(one) for series in shown for one in runs[series] if _known(one)]
    _scales(axis, rates, step=2 if theme.is_narrow else 1)
    for series in reversed(shown):
        _draw(axis, series, runs[series], best.get(series), look[series], theme)
    words = "Lines: the share of packets that is lost, against the payload sent in MB/s."
    return sheet.drawn(words, last_first=True)


def _runs(recording: Recording) -> dict[Series, list[Sample]]:
    """Return the runs of each line's searches that count, at the sizes that are drawn."""
    found: dict[Series, list[Sample]] = {}
    for one in filter(search.is_search, recording.samples):
        if one.series in _LINES and not one.warm_up and (one.heap_size, one.packet_size) == _SIZES:
            found.setdefault(one.series, []).append(one)
    return found


def _known(one: Sample) -> bool:
    return one.failure is None and bool(one.packets)


def _megabytes(one: Sample) -> float:
    return search.offered(one) / 1e6


def _share(one: Sample) -> float:
    """Return the share of packets that was lost, in %."""
    return 100 * (one.received_dropped or 0) / (one.packets or 1)


def _steps(runs: Sequence[Sample]) -> dict[float, Estimate]:
    """Return the median share that was lost, by the median rate, of the runs of each step."""
    steps: dict[int, list[Sample]] = {}
    for one in filter(_known, runs):
        steps.setdefault(round(_PARTS * math.log2(_megabytes(one))), []).append(one)
    return {
        median(map(_megabytes, some)): stats.median(list(map(_share, some)))
        for _, some in sorted(steps.items())
    }


def _scales(axis: "Axes", rates: Sequence[float], step: int) -> None:
    low, high = min(rates, default=500.0), max(rates, default=2000.0)
    axis.set_xscale("log", base=2)
    axis.set_xlim(low / 1.3, high * 1.3)
    axis.set_xticks([x for x in _MARKS if low / 1.3 <= x <= high * 1.3][::step])
    axis.set_xticks([], minor=True)
    axis.xaxis.set_major_formatter(lambda x, _: thousands(x) if x >= 100 else f"{x:g}")
    axis.set_ylim(-4, 104)
    axis.grid()
    axis.set_axisbelow(True)
    axis.set_xlabel("payload sent in MB/s (10⁶ bytes a second)")
    name_panel(axis, "packets lost, %")


def _draw(
    axis: "Axes",
    series: Series,
    runs: Sequence[Sample],
    best: Point | None,
    look: Look,
    theme: Theme,
) -> None:
    known = list(filter(_known, runs))
    if not known or best is None or best.estimate() is None:
        axis.plot([], [])
        words = "failed: no rate"
        say(axis, _LINES[series], words)
        axis.annotate(words, (0.02, 0.5), xycoords="axes fraction", color=look.colour)
        return
    axis.plot(
        [_megabytes(one) for one in known],
        [_share(one) for one in known],
        linestyle="",
        marker=look.marker,
        markersize=3,
        markeredgewidth=0,
        color=look.colour,
        alpha=0.35,
    )
    steps = _steps(known)
    line = look.line(theme)
    shares = [one.median for one in steps.values()]
    axis.plot(list(steps), shares, **line | {"marker": "", "zorder": 3})
    lost = Line(_LINES[series], role_of(series), unit=PERCENT, over=RATE)
    for x, one in steps.items():
        mark(axis, x, one.median, lost, x, one)
    estimate = best.estimate()
    assert estimate is not None
    ends = [estimate.low, estimate.high]
    axis.plot(ends, [0, 0], color=look.colour, linewidth=5, alpha=0.4, solid_capstyle="butt")
    axis.plot([estimate.median], [0], **line | {"markersize": 8.0, "zorder": 4})
    found = Line(f"{_LINES[series]}, without loss", role_of(series))
    mark(axis, estimate.median, 0, found, _SIZES[0], estimate)


def _title(best: Mapping[Series, Point]) -> str:
    """Say up to which rate each language loses nothing."""
    said = []
    for series, label in _LINES.items():
        estimate = best[series].estimate() if series in best else None
        if series.implementation == OURS and estimate is not None:
            language = label.rpartition(" ")[2]
            said.append(f"{at_least(best[series])}{_rounded(estimate.median)} MB/s ({language})")
    receiver = find_receiver(_PROGRAM)
    assert receiver is not None
    words = f"up to {', '.join(said)}" if said else "at no rate that is known"
    return f"Chapter {receiver.number} loses nothing {words}"


def _rounded(x: float) -> str:
    return thousands(float(f"{x:.2g}")) if x >= 100 else number(x)
