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


def test_parts_that_have_room_are_named_in_the_bar_and_all_in_the_legend():
    words = drawing("where").seen
    assert words.count("copy") > words.count("looking") == 1
    assert {"not running", "fill", "wake-up"} <= set(words)
    assert "lock" not in words  # nothing was seen there


def test_the_words_say_every_part_of_every_thread():
    words = drawing("where").words
    said = (
        "chapter 10 in Python, 2000 ns a heap. Program: fill 500 ns, program 100 ns, queue 150 ns"
    )
    assert f"Heaps of 8 KiB, {said}" in words
    assert "Stream: packetizing 60 ns, copy 600 ns, stack 750 ns" in words
    assert "chapter 13 in C" in words


def test_what_failed_or_warmed_up_is_not_drawn():
    recording = make_where()
    warm = [dataclasses.replace(one, warm_up=True, elapsed_ns=10) for one in recording.samples]
    failed = [dataclasses.replace(one, failure="it failed", own={}) for one in recording.splits]
    more = dataclasses.replace(
        recording,
        samples=(*warm, *recording.samples),
        splits=(*failed, *recording.splits),
    )
    assert draw(plots.where, more).svg == drawing("where").svg


def test_one_language_is_enough():
    picture, recording = PICTURES["where"]
    ours = tuple(one for one in recording.splits if one.language == "c")
    drawn = draw(picture, recording, splits=ours)
    assert len(drawn.figure.axes) == 2
    assert "in Python" not in drawn.words


def test_the_title_is_what_part_of_the_time_the_kernel_takes_in_the_thread_that_sends():
    title = drawing("where").title
    # Chapter 13: 45 of 70 looks, of half the time; chapter 10's stream: 45 of 50, of 3 quarters.
    assert title.startswith("The kernel's work: 32 % to 68 % of a heap's time. Where")
