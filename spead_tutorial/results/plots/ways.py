# SPDX-License-Identifier: BSD-3-Clause
"""Bars of ways to send: all bare loops, and chapter 6's destinations."""

import textwrap
from collections.abc import Mapping

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.render import Drawn, Line
from spead_tutorial.results.plots.sheet import FAINT, Sheet
from spead_tutorial.results.plots.theme import Theme
from spead_tutorial.results.units import size

# ---- All bare loops ----

#: What the others are held against: chapters 4 to 11 work in this way.
_NAMED = Series("ceiling", "c", "ceiling", "two threads")
#: Inches of the names of loops, letters in a line of them, and inches from bar to bar.
_LEFT, _COLUMNS, _PITCH = 3.15, 50, 0.22


def ceiling(recording: Recording, theme: Theme) -> Drawn:
    """Draw the rate of each bare loop, the fastest first, at the heaps where they differ most."""
    points = facts.points(recording.samples)
    found = {series: points[series] for series in points if facts.is_bare(series)}
    facts.require(found, [_NAMED], "ceiling")
    gains = {
        n: {
            series.variant: facts.gain(found[_NAMED].get(n), found[series].get(n))
            for series in found
        }
        for n in found[_NAMED]
    }
    n = facts.strongest(gains)
    loops = sorted(
        (series for series in found if n in found[series]),
        key=lambda series: -found[series][n].median,
    )
    best = gains[n][loops[0].variant]
    gained = "not known" if best is None else facts.gain_text(best)
    height = _PITCH * len(loops)
    sheet = Sheet(
        theme,
        f"The best bare loop, not two threads: {gained}",
        [(0.1, height)],
        facts.caption(recording),
        subtitle=f"Heaps of {size(n)}; dark: two threads that fill and copy",
    )
    axis = sheet.axes(0, _LEFT, 0.2)
    bars.prepare(
        axis, height, facts.highest(found[series][n] for series in loops), room=1.4, marks=3
    )
    names = {}
    for place, series in enumerate(loops):
        y, point, name = (place + 0.5) * _PITCH, found[series][n], facts.bare_name(series.variant)
        names[y] = textwrap.fill(name, _COLUMNS)
        line = Line(name, "limit", point.key)
        bars.draw_bar(axis, y, point, "limit", theme, line, pale=series != _NAMED)
    axis.set_yticks(list(names), list(names.values()), fontsize=FAINT)
    return sheet.drawn("Bars: the rate of each loop in MB/s.")


# ---- Chapter 6: loopback with and without a listener against the lab's device ----

_PROGRAM = "tut_6_send_pktsize"
#: Variants, and what they are called; the one without a name sends to the lab's device.
_SITUATIONS = {
    "no listener": "loopback, nobody listens",
    "slow listener": "loopback, a slow listener",
    "listener": "loopback, a listener that reads as fast as it can",
    "": "the lab's device",
}
Situations = Mapping[str, Mapping[str, facts.Point]]


def loopback(recording: Recording, theme: Theme) -> Drawn:
    """Draw chapter 6's rate in each situation."""
    found, group = _situations(recording), bars.GROUP
    sheet = Sheet(
        theme,
        _beside_lab(found),
        [(0.1, group * len(found))],
        facts.caption(recording),
        subtitle="One program, sent to several places",
        legend=bars.language_legend(theme),
    )
    axis = sheet.axes(0, 0.2, 0.2)
    points = [point for languages in found.values() for point in languages.values()]
    bars.prepare(axis, group * len(found), facts.highest(points), room=1.3, marks=4)
    for index, (variant, languages) in enumerate(found.items()):
        y, name = index * group, _SITUATIONS[variant]
        bars.label_group(axis, y, name, "", theme)
        for language, point in languages.items():
            line, lane = bars.line_of(name, language, point), bars.lanes(y)[language]
            bars.draw_bar(axis, lane, point, language, theme, line)
    return sheet.drawn("Bars: the rate in MB/s.")


def _situations(recording: Recording) -> Situations:
    """Return the point of each situation and language, of the setting with the most situations."""
    settings: dict[tuple[int, int], list[Sample]] = {}
    for sample in recording.samples:
        ours = sample.implementation == OURS and sample.program == _PROGRAM and not sample.random
        if ours and sample.variant in _SITUATIONS and not sample.warm_up:
            settings.setdefault((sample.heap_size, sample.packet_size), []).append(sample)
    if not settings:
        facts.require({}, [Series(OURS, "python", _PROGRAM)], "tut-6-loopback")
    most = max(
        settings, key=lambda sizes: (len({sample.variant for sample in settings[sizes]}), sizes)
    )
    known = facts.points(settings[most])
    found = {
        variant: {
            language: known[series][most[0]]
            for language in MEASURED
            if (series := Series(OURS, language, _PROGRAM, variant)) in known
        }
        for variant in _SITUATIONS
    }
    return {variant: languages for variant, languages in found.items() if languages}


def _beside_lab(found: Situations) -> str:
    """Say what becomes of the lab's rate where somebody listens as fast as one can."""
    lab, listener = found.get("", {}), found.get("listener", {})
    gains = facts.gain_each(lab, listener)
    if not any(gains.values()):
        return "Loopback, not the lab"
    return f"Loopback with a fast listener: {facts.gained(gains)}"
