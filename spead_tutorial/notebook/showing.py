# SPDX-License-Identifier: BSD-3-Clause
"""What came of a measurement: numbers, tables and pictures."""

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure import stats
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.summary import Row, rates_by_round, rows
from spead_tutorial.notebook.measuring import NotebookError, Run
from spead_tutorial.results import plots
from spead_tutorial.results.plots.theme import NAMES
from spead_tutorial.results.tables import Column, Table

if TYPE_CHECKING:
    import pandas

__all__ = ["by_heap_size", "contents", "gain", "per_heap", "picture", "rate", "samples", "table"]

_MARK = "measured over loopback"


def samples(recording: Recording, run: Run) -> list[Sample]:
    """Return the samples of a run that count, one for each round.

    Raises
    ------
    NotebookError
        Where the recording has none of it.
    """
    counted = [
        sample
        for sample in recording.samples
        if sample.case == run.case.name and not sample.warm_up
    ]
    if not counted:
        raise NotebookError(f"{run} was not measured in this recording")
    return counted


def rate(recording: Recording, run: Run) -> float:
    """Return the median rate of a run: bytes/s of payload."""
    return stats.median(list(_rates(recording, run).values())).median


def gain(recording: Recording, before: Run, after: Run) -> stats.Estimate:
    """Return how many times as fast `after` is as `before`, of ratios within rounds."""
    return stats.gain(_rates(recording, before), _rates(recording, after))


def _rates(recording: Recording, run: Run) -> dict[tuple[int, int], float]:
    return rates_by_round(samples(recording, run))


def per_heap(recording: Recording, run: Run, *counts: str) -> float:
    """Return what a run had of something for each heap: the median of its rounds.

    Parameters
    ----------
    recording : Recording
        What `measure` returned.
    run : Run
        One that was measured.
    *counts : str
        Of what: attributes of a sample that were counted, such as ``"messages"``; their sum.
    """
    counted = samples(recording, run)
    return stats.median(
        [sum(getattr(sample, count) for count in counts) / sample.heaps for sample in counted]
    ).median


def table(recording: Recording) -> "pandas.DataFrame":
    """Return a row for each run, in the order in which `measure` was given them.

    Sizes are in bytes; ``± %`` is half of the interval of the rate, in percent of its median
    (of a few rounds, half of their range); ``packets`` is what the last round sent.
    """
    wanted = recording.header.settings.get("cases") or []
    by_case = {row.last.case: row for row in rows(recording)}
    order = dict.fromkeys([*(case for case in wanted if case in by_case), *by_case])
    shown = Table(_RUN, _CAME_TO, [by_case[case] for case in order]).frame()
    if _over_loopback(recording):
        shown.columns.name = shown.attrs["title"] = _MARK
    return shown


def _rounded(value: float | None, digits: int) -> float:
    return round(value or 0.0, digits)


def _percent_apart(row: Row) -> float | None:
    """Return half of the interval, or of the range, as a share of the median."""
    rate = row.rate
    return None if rate is None else round(50 * (rate.high - rate.low) / rate.median, 1)


_RUN: list[Column[Row]] = [
    Column("program", lambda row: row.last.program),
    Column("language", lambda row: row.last.language),
    Column("heap", lambda row: row.last.heap_size),
    Column("packet", lambda row: row.last.packet_size),
    Column("variant", lambda row: row.series.variant),
]
_CAME_TO: list[Column[Row]] = [
    Column("MB/s", lambda row: row.rate and round(row.rate.median / 1e6, 1)),
    Column("± %", _percent_apart),
    Column("packets", lambda row: row.last.packets),
    Column("calls per heap", lambda row: _rounded(row.calls_per_heap, 3)),
    Column("faults per heap", lambda row: _rounded(row.faults_per_heap, 2)),
    Column("CPU µs per heap", lambda row: _rounded(row.cpu_us_per_heap, 1)),
]


def _over_loopback(recording: Recording) -> bool:
    return any(over_loopback(header.lab) for header in recording.headers)


def contents() -> None:
    """Show what each of the notebooks beside this one is about."""
    from IPython.display import Markdown, display

    rows = ["| notebook | what it is about |", "|---|---|"]
    for path in sorted(Path().glob("[0-9][0-9]_*.ipynb"))[1:]:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        title = notebook["cells"][0]["source"][0].removeprefix("# ").strip()
        rows.append(f"| [{title}]({path.name}) | {notebook['metadata']['card']['about']} |")
    display(Markdown("\n".join(rows)))


def picture(draw: plots.Draw, recording: Recording) -> None:
    """Draw a picture of a recording and show it; one over loopback says so across it.

    Parameters
    ----------
    draw : function
        Such as ``spead_tutorial.results.plots.ladder``.
    recording : Recording
        What `measure` returned.
    """
    from IPython.display import display

    drawn = plots.render_both(
        _marked(draw) if _over_loopback(recording) else draw, recording, plots.LIGHT
    )
    # Front ends show the SVG only of a notebook that they trust, and the PNG of any other.
    kinds = {
        "image/svg+xml": drawn.svg.decode(),
        "image/png": base64.b64encode(drawn.png).decode(),
    }
    words = {kind: {"alt": drawn.title} for kind in kinds}
    display(kinds | {"text/plain": drawn.title}, raw=True, metadata=words)


def by_heap_size(title: str, sweep: str, **programs: str) -> plots.Sweep:
    """Return what draws the rates of two programs with the size of heaps, and what is gained.

    Parameters
    ----------
    title : str
        What stands above the picture.
    sweep : str
        The harness's sweep that measures the same at length.
    **programs : str
        Two names of programs: that after a change, and that before it, by what the picture calls
        them, with underscores for spaces. Both are drawn in Python and in C.
    """
    (after, _), (before, _) = programs.items()
    lines = {
        (what, language): Series(OURS, language, Run(program).program.name)
        for what, program in programs.items()
        for language in MEASURED
    }
    return plots.Sweep(
        f"{title}: {{most}}",
        tuple(
            (series, f"{NAMES[language]}: {what.replace('_', ' ')}")
            for (what, language), series in lines.items()
        ),
        sweep,
        before=tuple((lines[before, one], lines[after, one]) for one in MEASURED),
        gained=before.replace("_", " "),
    )


def _marked(draw: plots.Draw) -> plots.Draw:
    """Return what draws the same, and across it where it was measured."""

    def drawn(recording: Recording, theme: plots.Theme) -> Any:
        figure, title, words = draw(recording, theme)
        look: Any = {"fontsize": 26, "color": theme.text, "alpha": 0.25, "rotation": 25}
        figure.text(0.5, 0.5, _MARK, ha="center", va="center", **look)
        return figure, title, f"{words} {_MARK.capitalize()}."

    return drawn
