# SPDX-License-Identifier: BSD-3-Clause
"""The bare system calls: how much each way to send makes of the machine."""

from collections.abc import Iterable, Mapping

from spead_tutorial.plots.bare import bare_name, is_bare
from spead_tutorial.plots.caption import caption
from spead_tutorial.plots.finding import NOT_TOLD
from spead_tutorial.plots.grid import Grid, Lane, Row
from spead_tutorial.plots.points import Point, gains, points, require
from spead_tutorial.plots.render import Drawn
from spead_tutorial.plots.sheet import Sheet
from spead_tutorial.plots.theme import Theme
from spead_tutorial.plots.verdict import whole
from spead_tutorial.records import Recording, Series, joined, words_of
from spead_tutorial.stats import is_told
from spead_tutorial.units import size, times

__all__ = ["ceiling"]

#: What the others are held against: chapters 4 to 11 work in this way.
_NAMED = Series("ceiling", "c", "ceiling", "two threads")
_SUBTITLE = "All bare loops, beside two threads that fill and copy (dashed)"
_BESIDE = 0.95
_WORKS = ("fill and copy", "fill and read in place", "copy", "read in place")


def ceiling(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of each bare loop: a row for what is done with the bytes, a lane for who."""
    found = {series: known for series, known in points(recording).items() if is_bare(series)}
    require(found, [_NAMED], "ceiling")
    grid = Grid(tuple(_rows(found)), _BESIDE, Lane("", "limit", found[_NAMED]))
    foot = caption(recording)
    sheet = Sheet(theme, _title(found), grid.sheet_rows(theme), foot, subtitle=_SUBTITLE)
    grid.draw(sheet)
    words = ["Bars: the rate of each loop in MB/s.", *grid.in_words(), " ".join(foot.split())]
    return sheet.figure, sheet.title, " ".join(words)


def _rows(found: Mapping[Series, Mapping[int, Point]]) -> Iterable[Row]:
    """Sort the loops by what is done with the bytes."""
    lanes: dict[str, list[Lane]] = {}
    for series, known in found.items():
        who, *works = words_of(bare_name(series.variant))
        work = joined(*works)
        lanes.setdefault(work, []).append(Lane(who, "limit", known))
    order = [work for name in _WORKS for work in sorted(lanes) if words_of(work)[0] == name]
    for work in order:
        title, _, note = work.partition(", ")
        yield Row(title, note, tuple(sorted(lanes[work], key=lambda lane: _place(lane.name))))


def _place(who: str) -> tuple[int, str]:
    """Return where a lane is: one thread, two, then several streams."""
    return ("one" in who, "two" in who, "stream" in who).index(True), who


def _title(found: Mapping[Series, Mapping[int, Point]]) -> str:
    """Say which loop is the farthest from the one with the line, and where."""
    most = max(
        (
            (gain.median, series, x)
            for series, known in found.items()
            for x, gain in gains(found[_NAMED], known).items()
            if gain is not None and is_told(gain)
        ),
        key=lambda one: one[0],
        default=None,
    )
    if most is None:
        return f"Bare calls: {NOT_TOLD}"
    factor, series, x = most
    return f"Bare calls, up to {times(factor)}: {bare_name(series.variant)}, at {whole(size(x))}"
