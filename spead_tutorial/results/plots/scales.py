# SPDX-License-Identifier: BSD-3-Clause
"""Scales of time that differ within a picture: what says so, so that nobody can miss it."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spead_tutorial.results.plots.sheet import FAINT, Sheet, write
from spead_tutorial.results.plots.theme import Theme
from spead_tutorial.results.units import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["band_height", "draw_band", "draw_mark", "mark"]

#: Inches: the height of a band, the same with two lines, and its sides.
_BAND, _TWO_LINES = 0.28, 0.48
_SIDES = (0.12, 0.12)
#: So many times as long is another scale; and what part of the shortest one the mark may take.
_OTHER, _PART = 1.2, 0.45


def band_height(theme: Theme) -> float:
    """Return the inches of a band, which has two lines where it is narrow."""
    return _TWO_LINES if theme.is_narrow else _BAND


def draw_band(sheet: Sheet, row: int, name: str, span: float, longest: float) -> None:
    """Head what has one scale, and say how it differs from the longest one; both are in ns."""
    axis = sheet.axes(row, *_SIDES, facecolor=sheet.theme.grid)
    axis.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(0, 1))
    axis.spines[:].set_visible(False)
    where: dict[str, Any] = {"va": "center_baseline", "transform": axis.transAxes}
    narrow = sheet.theme.is_narrow
    axis.text(0.012, 0.72 if narrow else 0.48, name, weight="bold", **where)
    scale = f"{number(span / 1e6)} ms from left to right"
    if longest > _OTHER * span:
        scale += f", magnified \N{MULTIPLICATION SIGN}{float(f'{longest / span:.2g}'):g}"
    if narrow:
        axis.text(0.012, 0.27, scale, **where)
    else:
        axis.text(0.988, 0.48, scale, ha="right", **where)


def mark(spans: Iterable[float]) -> float:
    """Return a time that all spans have room for: 1, 2 or 5 with noughts."""
    most = _PART * min(spans)
    power = 10.0 ** math.floor(math.log10(most))
    return max(x * power for x in (1, 2, 5) if x * power <= most)


def draw_mark(axis: "Axes", ns: float, raised: float, theme: Theme) -> None:
    """Draw how long a time is in a panel whose x is in ms, at some inches above its right end."""
    from matplotlib.transforms import ScaledTranslation

    _, high = axis.get_xlim()
    ms = ns / 1e6
    up = ScaledTranslation(0, raised, axis.figure.dpi_scale_trans)
    place = axis.get_xaxis_transform() + up
    axis.plot(
        [high - ms, high], [1, 1], transform=place, linewidth=3, color=theme.text, clip_on=False
    )
    style: dict[str, Any] = {"ha": "right", "va": "center_baseline", "fontsize": FAINT}
    write(axis, f"{number(ms)} ms", (high - ms, 1), (-5, 0), place, **style)
