# SPDX-License-Identifier: BSD-3-Clause
"""The rate against the size of heaps or packets, and what was gained."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spead_tutorial.plots import curves
from spead_tutorial.plots.bare import BEST, bare_name, best_bare
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
    bare : Series, optional
        Bare system calls of the same recording. Where it has others that are faster, a thin line
        shows the best of all at each size: what is drawn is no limit by itself.
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
    bare: Series | None = None
    before: tuple[tuple[Series, Series], ...] = ()
    gained: str = "before"

    def __call__(self, recording: Recording, theme: Theme) -> Drawn:
        """Draw it: the figure, its title, and its description in words and numbers."""
        points_by_series = points(recording, self.x)
        require(points_by_series, [series for series, _ in self.series], self.sweep)
        shown = {series: label for series, label in self._lines() if series in points_by_series}
        look = dict(zip(shown, looks(list(shown), theme), strict=True))
        gains = self._gains(points_by_series)
        room = _ROOM if self.x == "heap_size" else _LINES_ROOM
        rows = [(room, _HEIGHT)] + [(_GAIN_ROOM, _GAIN_HEIGHT)] * bool(gains)
        legend = curves.curve_legend([(shown[series], look[series]) for series in shown], theme)
        sizes = sorted({x for series in shown for x in points_by_series[series]})
        best = self._best(points_by_series, sizes)
        legend += [curves.thin_line(theme, label=BEST)] if best else []
        foot = caption(recording, curves.SHOWN)
        sheet = Sheet(theme, self.title, rows, foot, legend=legend)
        axes = [sheet.axes(row, *curves.SIDES) for row in range(len(rows))]
        for axis in axes:
            curves.size_axis(axis, sizes, curves.size_label(self.x) if axis is axes[-1] else None)
        curves.rate_panel(axes[0], theme, top(recording), lines=self.x == "packet_size")
        if self.x == "packet_size":
            _draw_mtu(axes[0], recording, sizes, theme)
        for series in shown:
            curves.draw_curve(axes[0], points_by_series[series], look[series], theme)
        if best:
            curves.draw_thin(axes[0], {x: point for x, (_, point) in best.items()}, theme)
        curves.draw_failures(axes[0], curves.failures(points_by_series, look))
        if gains:
            name = f"gain: times as fast as {self.gained}"
            curves.gain_panel(
                axes[1], [(gains[series], look[series]) for series in gains], theme, name
            )
        return sheet.figure, self.title, self._in_words(
            recording, points_by_series, shown, best, gains
        )

    def _lines(self) -> list[tuple[Series, str]]:
        bare = self.bare
        named = [(bare, f"bare calls: {bare_name(bare.variant)}")] if bare is not None else []
        return [*self.series, *named]

    def _best(
        self, points_by_series: Mapping[Series, Mapping[int, Point]], sizes: Sequence[int]
    ) -> dict[int, tuple[Series, Point]]:
        """Return the best bare loop at each size; none where that is the one that is named."""
        if self.bare is None or self.bare not in points_by_series:
            return {}
        best = {x: one for x, one in best_bare(points_by_series, self.bare).items() if x in sizes}
        return best if any(series != self.bare for series, _ in best.values()) else {}

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
        best: Mapping[int, tuple[Series, Point]],
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
        if best:
            which = [
                f"{write(x)} {curves.in_words(point)} ({bare_name(series.variant)})"
                for x, (series, point) in best.items()
            ]
            sentences.append(f"{BEST}: {'; '.join(which)}.")
        for series, ratios in gains.items():
            sentences.append(f"Gain of {shown[series]}: {curves.gains_in_words(ratios, write)}.")
        return " ".join([*sentences, " ".join(caption(recording, curves.SHOWN).split())])


def _draw_mtu(axis: "Axes", recording: Recording, sizes: Sequence[int], theme: Theme) -> None:
    """Draw the largest packet that the lab's device takes whole; IP cuts larger ones up."""
    mtus = {header.lab.get("mtu") for header in recording.headers}
    mtu = mtus.pop()
    if not mtus and isinstance(mtu, int) and sizes[0] < mtu - _IP_AND_UDP < sizes[-1]:
        curves.name_line(axis, mtu - _IP_AND_UDP, f"MTU {mtu}", theme)
