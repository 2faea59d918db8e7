# SPDX-License-Identifier: BSD-3-Clause
"""Showing: numbers, tables and pictures of what was measured, and packets as tables."""

import base64
import dataclasses
import html
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from spead_tutorial import wire
from spead_tutorial._shown import shown
from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis import (
    Interval,
    Row,
    preparing,
    rates_by_round,
    rows,
    sending,
    shares,
)
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import Recording, Sample, Timeline
from spead_tutorial.notebook.measuring import NotebookError, Run
from spead_tutorial.results import plots
from spead_tutorial.results.plots.facts import NO_DIFFERENCE
from spead_tutorial.results.plots.parts import Parts, legend
from spead_tutorial.results.plots.parts import Row as Bar
from spead_tutorial.results.plots.picture import Picture
from spead_tutorial.results.plots.sweep import compared
from spead_tutorial.results.tables import Column, Table

if TYPE_CHECKING:
    import pandas

__all__ = [
    "CPU",
    "by_heap_size",
    "contents",
    "draw_parts",
    "gain",
    "gains",
    "median_ms",
    "overlapping",
    "packet",
    "per_heap",
    "picture",
    "predict_overlap",
    "rate",
    "samples",
    "table",
    "time_shares",
]

#: What `per_heap` counts as CPU time, in ns: that of all threads, and of the kernel.
CPU = ("cpu_user_ns", "cpu_system_ns")

_MARK = "measured over loopback"
_TRY = (
    "No difference found: the rounds differ by as much. Close what else is running, and give"
    " measure() more rounds, such as rounds=9."
)
#: How the parts of a bar are told apart, in turn: colour and hatch.
_PARTS = (
    ("limit", True),
    ("preparing", False),
    ("preparing", True),
    ("python", False),
    ("sending", True),
)
_NAMES = 1.5  # inches of the names of bars
#: For the fields of a table: how its row is tinted. The words say the same without colours.
_TINTS = {
    "header": "rgba(120, 120, 120, 0.16)",
    "pointer": "rgba(0, 103, 165, 0.20)",
    "descriptor": "rgba(204, 85, 0, 0.20)",
    "value": "rgba(0, 128, 90, 0.20)",
    "padding": "rgba(120, 120, 120, 0.08)",
    "surplus": "rgba(200, 0, 0, 0.20)",
}
_MOST_SHOWN = 16


# ---- Recordings ----


def samples(recording: Recording, run: Run) -> list[Sample]:
    """Return the samples of a run that count, one for each round; without any, `NotebookError`."""
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


def _rates(recording: Recording, run: Run) -> dict[int, float]:
    return rates_by_round(samples(recording, run))


def per_heap(recording: Recording, run: Run, *counts: str) -> float:
    """Return what a run had of something for each heap: the median of its rounds.

    The counts are attributes of a sample, such as ``"messages"``, of which it is the sum.
    """
    counted = samples(recording, run)
    return stats.median(
        [sum(getattr(sample, count) for count in counts) / sample.heaps for sample in counted]
    ).median


def gains(
    recording: Recording, pairs: Mapping[str, tuple[Run, Run]], **counts: str | tuple[str, ...]
) -> "pandas.DataFrame":
    """Return a table of how many times as fast runs became, and of what a heap took them.

    Each pair is a run before a change and one after it, by what the table calls them. Each count is
    what `per_heap` takes, by the name of its column, with underscores for spaces.
    """
    import pandas

    table = {}
    for name, (before, after) in pairs.items():
        found = gain(recording, before, after)
        table[name] = {"times as fast": f"{found.median:.2f}"}
        table[name]["interval"] = f"{found.low:.2f} to {found.high:.2f}"
        for column, count in counts.items():
            of = (count,) if isinstance(count, str) else count
            both = (round(per_heap(recording, run, *of), 3) for run in (before, after))
            table[name][column.replace("_", " ")] = " → ".join(f"{count:g}" for count in both)
    return pandas.DataFrame(table).T


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
    return over_loopback(recording.header.lab)


def contents() -> None:
    """Show what each of the notebooks next to this one is about."""
    from IPython.display import Markdown, display

    rows = ["| notebook | what it is about |", "|---|---|"]
    for path in sorted(Path().glob("[0-9][0-9]_*.ipynb"))[1:]:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        title = notebook["cells"][0]["source"][0].removeprefix("# ").strip()
        rows.append(f"| [{title}]({path.name}) | {notebook['metadata']['card']['about']} |")
    display(Markdown("\n".join(rows)))


def picture(draw: plots.Draw, recording: Recording) -> None:
    """Draw a picture of a recording and show it; one over loopback says so across it."""
    from IPython.display import display

    shown = draw(recording)
    if _over_loopback(recording):
        shown = dataclasses.replace(shown, across=_MARK)
    svg, png = plots.render_both(shown, plots.LIGHT)
    # Front ends show the SVG only of a notebook that they trust, and the PNG of any other.
    kinds = {
        "image/svg+xml": svg.decode(),
        "image/png": base64.b64encode(png).decode(),
    }
    words = {kind: {"alt": shown.name} for kind in kinds}
    display(kinds | {"text/plain": shown.name}, raw=True, metadata=words)
    if NO_DIFFERENCE in shown.name:
        print(_TRY)


def draw_parts(
    title: str, bars: Mapping[str, Mapping[str, float]], note: str = "", subtitle: str = ""
) -> plots.Draw:
    """Return what draws bars, by name, of named parts, which are in µs for each heap.

    The note stands below the picture, and may speak of ``{rounds}``.
    """

    fills = dict(zip({part: 0 for bar in bars.values() for part in bar}, _PARTS, strict=False))
    sums = {name: sum(parts.values()) for name, parts in bars.items()}
    rows = [
        Bar(
            name,
            parts,
            said=", ".join(f"{part} {us:.2f}" for part, us in parts.items()),
            end=f"{sums[name]:.2f}",
        )
        for name, parts in bars.items()
    ]
    most = 1.15 * max(sums.values())
    panel = Parts("", "µs for each heap", rows, fills, lambda *_: "", _NAMES, most, 1)

    def draw(recording: Recording) -> Picture:
        foot = plots.caption(recording, note)
        words = "Bars, in µs for each heap."
        return Picture(title, subtitle, [[panel]], words, foot, legend([panel]))

    return draw


def by_heap_size(title: str, sweep: str, **programs: str) -> plots.Sweep:
    """Return what draws the rates of two programs with the size of heaps, and what is gained.

    They are the one after a change, and the one before it, by what the picture calls them, with
    underscores for spaces. The harness's sweep of that name measures the same at length.
    """
    (after, changed), (before, first) = programs.items()
    names = (before.replace("_", " "), after.replace("_", " "))
    pairs = compared((Run(first).program.name, ""), (Run(changed).program.name, ""))
    return plots.Sweep(f"{title} make", pairs, names, sweep)


# ---- Timelines: what overlapping gains, and the model that predicts it ----


def median_ms(intervals: Sequence[Interval]) -> float:
    """Return the median of how long intervals last, in ms: each is a begin and an end in ns."""
    return stats.median([(end - begin) / 1e6 for begin, end in intervals]).median


def _period_ms(timeline: Timeline) -> float:
    """Return how long it takes from one heap to the next."""
    return median_ms(list(pairwise(timeline.prepare_ns)))


def overlapping(timeline: Timeline) -> int:
    """Return how many heaps were still being sent when the next one was begun."""
    pairs = zip(timeline.last_packet_ns, timeline.prepare_ns[1:], strict=False)
    return sum(begun < sent for sent, begun in pairs)


def time_shares(**timelines: Timeline) -> "pandas.DataFrame":
    """Return a table of what the time of runs went to, by names with underscores for spaces."""
    import pandas

    rows = {}
    for name, timeline in timelines.items():
        share = shares(timeline)
        rows[name.replace("_", " ")] = {
            "preparing, ms": f"{median_ms(preparing(timeline)):.2f}",
            "sending, ms": f"{median_ms(sending(timeline)):.2f}",
            "from heap to heap, ms": f"{_period_ms(timeline):.2f}",
            "program prepares": f"{share.preparing:.0%}",
            "program waits": f"{share.waiting:.0%}",
            "thread sends": f"{share.sending:.0%}",
        }
    return pandas.DataFrame(rows).T


def predict_overlap(before: Timeline, after: Timeline) -> None:
    """Say how much overlapping gains by the model, and how much it did gain.

    By the model, a heap in turns takes as long as preparing and sending it, and overlapped as the
    longer of the two.
    """
    parts = median_ms(preparing(before)), median_ms(sending(before))
    print(f"Preparing takes {parts[0]:.2f} ms, and sending {parts[1]:.2f} ms.")
    print(f"By the model, overlapped is {sum(parts) / max(parts):.2f} times as fast.", end=" ")
    print(f"It became {_period_ms(before) / _period_ms(after):.2f} times as fast.")


# ---- Packets, which say without colours what they say with them ----


class _PacketTable:
    """Rows of a packet, which a front end shows as HTML and a terminal as text."""

    def __init__(self, title: str, fields: Sequence[wire.Field]) -> None:
        self._title = title
        self._fields = fields

    def __repr__(self) -> str:
        return f"{shown(self._title)}\n{wire.format_table(self._fields)}"

    def _repr_html_(self) -> str:
        cell = "text-align: left; padding: 1px 8px"
        head = "".join(
            f'<th scope="col" style="{cell}">{name}</th>'
            for name in ("offset", "bytes", "part", "field", "meaning")
        )
        rows = "".join(map(self._row, self._fields))
        caption = f'<caption style="text-align: left">{_escaped(self._title)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _row(self, field: wire.Field) -> str:
        part = _part(field)
        raw = field.raw[:_MOST_SHOWN].hex(" ")
        if len(field.raw) > _MOST_SHOWN:
            raw += f" … ({len(field.raw)} bytes)"
        indent = "\N{NO-BREAK SPACE}" * 4 * field.depth
        style = f"text-align: left; padding: 1px 8px; background-color: {_TINTS[part]}"
        what, meaning = indent + _escaped(field.field), _escaped(field.meaning)
        cells = (str(field.offset), f"<code>{raw}</code>", part, what, meaning)
        written = "".join(f'<td style="{style}">{text}</td>' for text in cells)
        return f"<tr>{written}</tr>"


def _escaped(text: str) -> str:
    return html.escape(shown(text))


def _part(field: wire.Field) -> str:
    """Say which part of a packet a row belongs to."""
    if field.depth or "descriptor" in field.field:
        return "descriptor"
    if field.field == "item pointer":
        return "pointer"
    if field.field == "padding":
        return "padding"
    if field.field in ("surplus", "rest"):
        return "surplus"
    return "value" if "value" in field.field or field.field == "payload" else "header"


def packet(
    data: bytes | Sequence[wire.Field],
    *,
    names: Mapping[int, str] | None = None,
    title: str = "",
) -> None:
    """Show a packet as a table: where, which bytes, what they are, and what they say.

    It is bytes, or what `spead_tutorial.wire.dissect_heap` made of them, which knows of the heap's
    other packets. Items have names by their id.
    """
    from IPython.display import display

    if isinstance(data, bytes | bytearray | memoryview):
        fields: Sequence[wire.Field] = wire.dissect(data, names=names)
    else:
        fields = data
    n_bytes = sum(len(field.raw) for field in fields)
    display(_PacketTable(title or f"A packet of {n_bytes} bytes", fields))
