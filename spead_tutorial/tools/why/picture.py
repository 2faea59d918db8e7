# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of somebody's sender goes, thread by thread."""

from typing import TYPE_CHECKING, Any

from spead_tutorial.measure.records import Recording
from spead_tutorial.measure.units import number, percent
from spead_tutorial.results.plots.bars import part_legend, part_look
from spead_tutorial.results.plots.caption import caption
from spead_tutorial.results.plots.marks import say
from spead_tutorial.results.plots.sheet import Drawn, Sheet
from spead_tutorial.results.plots.theme import Theme
from spead_tutorial.tools.why.facts import Seen, Thread

if TYPE_CHECKING:
    from matplotlib.artist import Artist

__all__ = ["picture"]

_SUBTITLE = "What its threads did while it sent"
_MOST = 12
#: Inches from thread to thread, and of a bar; and beside the panel.
_PITCH, _BAR = 0.34, 0.22
_SIDES, _NARROW_SIDES = (1.7, 0.3), (1.2, 0.2)
#: The colour of a part, as the theme has it, and its hatch.
_LOOKS = {
    "in the program": ("preparing", ""),
    "in the kernel": ("sending", "////"),
    "waiting for a core": ("limit", "...."),
}
_ASLEEP = "asleep"


def picture(recording: Recording, theme: Theme, *, seen: Seen) -> Drawn:
    """Draw what the threads of a sender did, as shares of the time."""
    threads = [thread for thread in seen.run.threads if thread.cpu_s > 0][:_MOST]
    foot = caption(recording, f"one run of {number(seen.run.seconds)} s")
    rows = [(0.1, _PITCH * max(1, len(threads)))]
    title = f"{seen.program}: {number(seen.run.rate / 1e6)} MB/s"
    sheet = Sheet(theme, title, rows, foot, subtitle=_SUBTITLE, legend=_legend(theme), columns=2)
    axis = sheet.axes(0, *(_NARROW_SIDES if theme.is_narrow else _SIDES))
    axis.set_ylim(max(1, len(threads)) - 0.5, -0.5)
    axis.set_xlim(0, 100)
    axis.grid(axis="x")
    axis.set_axisbelow(True)
    for y, thread in enumerate(threads):
        left, shares = 0.0, _shares(thread, seen.run.seconds)
        listed = ", ".join(f"{part} {percent(share)}" for part, share in shares.items())
        say(axis, f"{thread.name} ({thread.tid})", listed)
        for part, share in shares.items():
            width = min(100 * share, 100 - left)
            axis.barh(y, width, _BAR / _PITCH, left, **_look(part, theme))
            left += width
    axis.set_yticks(range(len(threads)), [f"{one.name} ({one.tid})" for one in threads])
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("share of the time, %")
    return sheet.drawn(
        "Bars: what each thread did, as shares of the time in which the sender sent."
    )


def _shares(thread: Thread, seconds: float) -> dict[str, float]:
    waited = thread.runnable_s or 0.0
    parts = (thread.user_s / seconds, thread.system_s / seconds, waited / seconds)
    shares = dict(zip(_LOOKS, parts, strict=True))
    return shares | {_ASLEEP: max(0.0, 1 - sum(parts))}


def _look(part: str, theme: Theme) -> dict[str, Any]:
    if part == _ASLEEP:
        return {"facecolor": "none", "edgecolor": theme.faint, "linewidth": 0.8}
    return part_look(_LOOKS[part], theme) | {"linewidth": 0}


def _legend(theme: Theme) -> list["Artist"]:
    from matplotlib.patches import Patch

    return [*part_legend(_LOOKS, theme), Patch(label=_ASLEEP, **_look(_ASLEEP, theme))]
