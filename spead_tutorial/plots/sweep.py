# SPDX-License-Identifier: BSD-3-Clause
"""The rate against the size of heaps or packets, and what was gained."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.plots import curves
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.points import Point, points, require, top
from spead_tutorial.plots.points import gains as gains_of
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import Theme, looks
from spead_tutorial.records import Recording, Series
from spead_tutorial.stats import Estimate
from spead_tutorial.units import bytes_text, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Sweep"]

_HEIGHT, _GAIN_HEIGHT = 3.3, 1.25
_ROOM, _LINES_ROOM, _GAIN_ROOM = 0.34, 0.46, 0.38
_IP_AND_UDP = 28

Gains = dict[Series, dict[int, Estimate | None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A picture of rates over sizes: what it shows of a recording; call it to draw it.

    What the recording does not have is left out, the legend's line too.

    Parameters
    ----------
    title : str
        Of the picture.
    series : tuple of (Series, str)
        Its lines, and what the legend calls them.
    sweep : str
        Which sweep is to be run where a recording has none of them.
    x : str
        ``"heap_size"`` or ``"packet_size"``.
    limit : Series, optional
        Bare system calls of the same recording. At each size that it has, the best of all
        with as many streams that the recording has of them is drawn.
    before : tuple of (Series, Series)
        What was before, and what it became: for the panel of gains, in the second one's
        colours.
    gained : str
        What that panel says the gain is over.
    """

    title: str
    series: tuple[tuple[Series, str], ...]
    sweep: str
    x: str = "heap_size"
    limit: Series | None = None
    before: tuple[tuple[Series, Series], ...] = ()
    gained: str = "before"

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        points_by_series = self._with_limit(points(recording, self.x))
        require(points_by_series, [series for series, _ in self.series], self.sweep)
        shown = {series: label for series, label in self._lines() if series in points_by_series}
        look = dict(zip(shown, looks(list(shown), theme), strict=True))
        gains = self._gains(points_by_series)
        room = _ROOM if self.x == "heap_size" else _LINES_ROOM
        rows = [(room, _HEIGHT)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * bool(gains)
        legend = curves.curve_legend([(shown[series], look[series]) for series in shown], theme)
        foot = caption(recording, curves.SHOWN)
        sheet = Sheet(theme, self.title, rows, foot, legend=legend)
        sizes = sorted({x for series in shown for x in points_by_series[series]})
        axes = [sheet.axes(row, *curves.SIDES) for row in range(len(rows))]
        for axis in axes:
            curves.size_axis(axis, sizes, curves.size_label(self.x) if axis is axes[-1] else None)
        curves.rate_panel(axes[0], theme, top(recording), lines=self.x == "packet_size")
        if self.x == "packet_size":
            _draw_mtu(axes[0], recording, sizes, theme)
        for series in shown:
            curves.draw_curve(axes[0], points_by_series[series], look[series], theme)
        curves.draw_failures(axes[0], curves.failures(points_by_series, look))
        if gains:
            name = f"gain: times as fast as {self.gained}"
            curves.gain_panel(
                axes[1], [(gains[series], look[series]) for series in gains], theme, name
            )
        return sheet.figure, self.title, self._in_words(recording, points_by_series, shown, gains)

    def _lines(self) -> list[tuple[Series, str]]:
        limit = [(self.limit, "limit: bare system calls")] if self.limit is not None else []
        return [*self.series, *limit]

    def _with_limit(
        self, points_by_series: Mapping[Series, Mapping[int, Point]]
    ) -> Mapping[Series, Mapping[int, Point]]:
        """Have the limit be the best of all bare loops at each size: one kind alone is none.

        Of as many streams: those of two are no limit to one.
        """
        limit = self.limit
        if limit is None or limit not in points_by_series:
            return points_by_series
        bare = [
            known
            for series, known in points_by_series.items()
            if series.implementation == limit.implementation and _streams(series) == _streams(limit)
        ]
        best = {
            x: max((known[x] for known in bare if x in known), key=_median)
            for x in points_by_series[limit]
        }
        return {**points_by_series, limit: best}

    def _gains(self, points_by_series: Mapping[Series, Mapping[int, Point]]) -> Gains:
        """Return the gains at each size where both have a rate."""
        drawn = {series for series, _ in self.series}
        gains = {
            after: gains_of(points_by_series.get(before, {}), points_by_series.get(after, {}))
            for before, after in self.before
            if after in drawn
        }
        return {series: known for series, known in gains.items() if known}

    def _in_words(
        self,
        recording: Recording,
        points_by_series: Mapping[Series, Mapping[int, Point]],
        shown: Mapping[Series, str],
        gains: Gains,
    ) -> str:
        write = size if self.x == "heap_size" else bytes_text
        sentences = [f"Lines: the rate in MB/s against the {curves.size_label(self.x)}."]
        for series, label in shown.items():
            rates = [
                f"{write(x)} {curves.in_words(point)}"
                for x, point in points_by_series[series].items()
            ]
            sentences.append(f"{label}: {', '.join(rates)}.")
        for series, ratios in gains.items():
            sentences.append(f"Gain of {shown[series]}: {curves.gains_in_words(ratios, write)}.")
        return " ".join([*sentences, " ".join(caption(recording, curves.SHOWN).split())])


def _streams(series: Series) -> list[str]:
    return [word for word in series.variant.split(", ") if word.endswith(("stream", "streams"))]


def _median(point: Point) -> float:
    estimate = point.estimate()
    return 0.0 if estimate is None else estimate.median


def _draw_mtu(axis: "Axes", recording: Recording, sizes: Sequence[int], theme: Theme) -> None:
    """Draw the largest packet that the lab's device takes whole; IP cuts larger ones up."""
    mtus = {header.lab.get("mtu") for header in recording.headers}
    mtu = mtus.pop()
    if not mtus and isinstance(mtu, int) and sizes[0] < mtu - _IP_AND_UDP < sizes[-1]:
        curves.name_line(axis, mtu - _IP_AND_UDP, f"MTU {mtu}", theme)
