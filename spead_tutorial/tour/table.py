# SPDX-License-Identifier: BSD-3-Clause
"""A tour in plain text: its headline, and its table of 100 columns at most."""

import textwrap
from collections.abc import Sequence

from spead_tutorial.records import Recording
from spead_tutorial.tour.rows import (
    NOTHING,
    Line,
    Section,
    ends,
    headlines,
    middle,
    notes,
    spread,
    written,
)
from spead_tutorial.units import percent

__all__ = ["headline_text", "table"]

_COLUMNS, _GAP = 100, "  "
_MARKS = {True: "✓", False: "✗"}


def headline_text(found: Sequence[Section]) -> str:
    """Write what a tour has to say first, in each language; nothing where no gain is known."""
    lines = []
    for one in headlines(found):
        lines += ["", f"{one.by:6}  {one}"]
        lines += [f"{'':6}  {line}" for line in (one.chapters, one.largest_step, one.rounds)]
    return _plain("\n".join(lines))


def table(found: Sequence[Section], recording: Recording) -> str:
    """Write a tour's rows as a table for people, and what its columns are."""
    names = ("MB/s", spread(recording), "gain", "share", "packets", "calls", "CPU")
    lines = [line for section in found for line in section.lines]
    cells = [("", *names), *((line.by, *_cells(line)) for line in lines)]
    columns = [column for column in zip(*cells, strict=True) if set(column[1:]) != {NOTHING}]
    widths = [max(map(len, column)) for column in columns]
    room = _COLUMNS - sum(widths) - len(_GAP) * len(widths)

    def aligned(title: str, row: int) -> str:
        values = (f"{column[row]:>{width}}" for column, width in zip(columns, widths, strict=True))
        return _GAP.join([f"{_cut(title, room):{room}}", *values])

    text: list[str] = []
    row = 0
    for section in found:
        text += ["", section.title] if text else [aligned(section.title, 0)]
        for line in section.lines:
            row += 1
            text.append(aligned(line.title, row))
    return "\n".join([*text, "", *(textwrap.fill(note, _COLUMNS) for note in notes(recording))])


def _cells(line: Line) -> tuple[str, ...]:
    row, packets = line.row, line.row.last.packets
    cells = (
        middle(row.rate, 1e6),
        ends(row.rate, 1e6),
        middle(line.gain),
        NOTHING if line.share is None else percent(line.share.median),
        f"{NOTHING if packets is None else packets} {_MARKS[row.failure is None]}",
        written(row.calls_per_heap),
        written(row.cpu_s_per_gb),
    )
    return tuple(map(_plain, cells))


def _plain(text: str) -> str:
    """Leave out the spaces in large numbers: a terminal has wide ones only."""
    return text.replace("\N{THIN SPACE}", "")


def _cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: columns - 3]}..."
