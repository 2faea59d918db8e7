# SPDX-License-Identifier: BSD-3-Clause
"""The picture of where the time of a heap goes."""

import dataclasses
from typing import Any

import pytest

from spead_tutorial import plots
from support.pictures import draw, drawing
from support.recordings import PICTURES, make_where


def bars_of(axis: Any) -> dict[float, list[tuple[float, float]]]:
    """Left ends and widths of the bars of a panel, row by row."""
    rows: dict[float, list[tuple[float, float]]] = {}
    for bar in axis.patches:
        rows.setdefault(round(bar.get_y(), 3), []).append((bar.get_x(), bar.get_width()))
    return dict(sorted(rows.items()))


def test_a_bar_has_the_parts_of_a_thread_and_ends_when_the_next_heap_begins():
    small, large = drawing("where").figure.axes
    for axis, ns in ((small, 1000), (large, 50_000)):
        rows = list(bars_of(axis).values())
        assert len(rows) == 6  # chapter 10 has two threads, chapter 13 one, in two languages
        for row in rows:
            assert row[-1][0] + row[-1][1] == pytest.approx(2 * ns)
            lefts = [left for left, _ in row]
            ends = [left + width for left, width in row]
            assert lefts == pytest.approx([0, *ends[:-1]])
        program, stream, *_ = rows
        assert [width for _, width in program] == pytest.approx(
            [ns * x for x in (0.5, 0.1, 0.15, 0.25, 1.0)]
        )
        assert [width for _, width in stream] == pytest.approx(
            [ns * 1.5 * x for x in (0.04, 0.4, 0.5, 0.06)] + [ns * 0.5]
        )
