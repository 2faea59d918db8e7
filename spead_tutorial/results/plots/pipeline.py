# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 5: what overlapping gains over sending in turns, with each kind of samples."""

from collections.abc import Mapping
from typing import Any

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Series, joined
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.plots import bars, facts
from spead_tutorial.results.plots.curves import scale_gains
from spead_tutorial.results.plots.render import TIMES, Axes, Drawn, Line, mark, say
from spead_tutorial.results.plots.sheet import FAINT, Sheet, count_down, panels, write
from spead_tutorial.results.plots.theme import MARKERS, NAMES, Theme
from spead_tutorial.results.units import size, times

_OVERLAPPED = "tut_5_send_pipeline"
#: Where its samples are of a kind: the program that sends in turns, and the other one's variant.
_KINDS = {
    "Random samples": ("tut_4_send_perf", "random"),
    "Constant samples": ("tut_4_send_constant", ""),
}
#: What variants of a record are called; those of a link have its name.
_CALLED = {"": "free threads", "pinned": "a core each", "one core": "one core for both"}
#: Inches: of a row, between its two marks, beside the panels and between them, and above them.
_ROW, _LANES, _SIDES, _GAP, _ROOM = 0.4, 0.17, (1.45, 0.15), 0.25, 0.36

#: By kind and variant: what was sent in turns and overlapped in each language, and its gain.
_Setting = tuple[str, str]
_Pairs = Mapping[_Setting, Mapping[str, tuple[facts.Point, facts.Point]]]


def pipeline(recording: Recording, theme: Theme) -> Drawn:
    """Draw how many times as fast overlapping is: a panel for a kind of samples, rows for where."""
    pairs = _found(recording)
    found = {
        place: {language: facts.gain(*pair) for language, pair in some.items()}
        for place, some in pairs.items()
    }
    most = facts.strongest(found)
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    rows = sorted(
        {where for _, where in found}, key=lambda where: (where.startswith("link"), where)
    )
    height = _ROW * len(rows)
    sheet = Sheet(
        theme,
        f"Overlapped, {most[0].lower()}, {_name(most[1])}: {facts.gained(found[most])}",
        [(_ROOM, height)],
        facts.caption(recording, "median of {rounds} rounds, line: {spread}"),
        subtitle="How many times as fast as in turns; pale: no difference found",
        legend=bars.language_legend(theme),
    )
    ends = facts.ends(gain for some in found.values() for gain in some.values())
    for slot, kind in zip(panels(len(kinds), _SIDES, _GAP), kinds, strict=True):
        axis = sheet.axes(0, *slot.sides)
        names = {(n + 0.5) * _ROW: _name(where) * slot.is_first for n, where in enumerate(rows)}
        count_down(axis, height, names)
        axis.set_xscale("log")
        scale_gains(axis.xaxis, ends or [1.0], 1.4, most_marks=4)
        axis.axvline(1, color=theme.text, linewidth=1.2)
        axis.set_xlabel("times as fast as in turns")
        axis.set_title(kind, loc="left", fontsize=11)
        for n, where in enumerate(rows):
            for language, (_, after) in pairs.get((kind, where), {}).items():
                y = (n + 0.5) * _ROW + _LANES * (MEASURED.index(language) - 0.5)
                gain = found[kind, where][language]
                _draw(axis, y, gain, after, language, f"{kind}, {_name(where)}", theme)
    return sheet.drawn("Marks: how many times as fast overlapping is as sending in turns.")


def _name(where: str) -> str:
    return _CALLED.get(where, where)


def _found(recording: Recording) -> _Pairs:
    """Return what there is to compare, in the order of kinds."""
    largest = {
        series: sizes[max(sizes)] for series, sizes in facts.points(recording.samples).items()
    }
    variants = {sample.variant for sample in recording.samples}
    found: dict[_Setting, dict[str, tuple[facts.Point, facts.Point]]] = {}
    for kind, (program, variant) in _KINDS.items():
        for where in sorted(variants):
            for language in MEASURED:
                before = largest.get(Series(OURS, language, program, where))
                after = largest.get(Series(OURS, language, _OVERLAPPED, joined(variant, where)))
                if before is not None and after is not None:
                    found.setdefault((kind, where), {})[language] = before, after
    if not found:
        raise ValueError(
            f"the recording has no sample of {_OVERLAPPED}, and in turns: python -m bench run tut-5"
        )
    return found


def _draw(
    axis: Axes,
    y: float,
    gain: Estimate | None,
    point: facts.Point,
    language: str,
    row: str,
    theme: Theme,
) -> None:
    """Draw a gain with its number; of one that failed, say so."""
    heap_size, name = point.samples[0].heap_size, f"{row}, {NAMES[language]}"
    style: dict[str, Any] = {"va": "center_baseline", "fontsize": FAINT}
    if gain is None:
        say(axis, name, f"{size(heap_size)} failed")
        write(axis, "failed: no rate", (1, y), (6, 0), **style)
        return
    mark(axis, gain.median, y, Line(f"{name}, gain", language, unit=TIMES), heap_size, gain)
    colour = theme.colours[language]
    axis.plot([gain.low, gain.high], [y, y], color=colour, linewidth=2)
    axis.plot([gain.median], [y], color=colour, marker=MARKERS[language], markersize=6)
    colour = theme.text if differs(gain) else theme.faint
    write(axis, times(gain.median), (gain.high, y), (6, 0), color=colour, **style)
