# SPDX-License-Identifier: BSD-3-Clause
"""The picture of all bare loops."""

import dataclasses

import pytest

from spead_tutorial import plots
from support.pictures import draw, drawing
from support.recordings import MIB, make_ceiling


def test_loops_stand_together_by_what_is_done_with_the_bytes():
    words = drawing("ceiling").words
    assert (
        "Heaps of 1 MiB: fill and copy: one thread 7000, two threads 8000, 2 streams 12000;"
        " read in place, huge pages: one thread 20000;"
    ) in words


def test_the_title_names_the_loop_that_is_farthest_from_two_threads_and_where():
    title = drawing("ceiling").title.replace("\N{MULTIPLICATION SIGN}", "x")
    title = title.replace("\N{NO-BREAK SPACE}", " ")
    assert title.startswith(
        "Bare calls, up to x2.50: one thread, read in place, huge pages, at 1 MiB. "
    )


def test_loops_of_one_rate_are_not_told_apart():
    recording = make_ceiling()
    two = {
        (one.heap_size, one.round): one.elapsed_ns
        for one in recording.samples
        if one.variant == "two threads"
    }
    same = tuple(
        dataclasses.replace(one, elapsed_ns=two[one.heap_size, one.round])
        for one in recording.samples
    )
    title = draw(plots.ceiling, recording, samples=same).title
    assert title.startswith("Bare calls: no difference found. ")


def test_each_column_has_a_line_where_two_threads_end():
    figure = drawing("ceiling").figure
    assert [axis.get_title(loc="left") for axis in figure.axes] == [
        "Heaps of 8 KiB",
        "Heaps of 1 MiB",
    ]
    for axis in figure.axes:
        upright = [line for line in axis.lines if list(line.get_ydata()) == [0, 1]]
        assert [line.get_xdata()[0] for line in upright] == [pytest.approx(8000, rel=1e-3)]


def test_lanes_are_named_beside_the_first_column_alone():
    words = drawing("ceiling").seen
    assert words.count("one thread") == 2  # rows
    assert words.count("2 streams") == 1


def test_a_loop_that_was_not_measured_at_a_size_leaves_a_gap():
    recording = make_ceiling()
    fewer = tuple(
        one for one in recording.samples if "2 streams" not in one.variant or one.heap_size == MIB
    )
    words = draw(plots.ceiling, recording, samples=fewer).words
    small, large = words.split("Heaps of 1 MiB:")
    assert "2 streams" not in small
    assert "2 streams 12000" in large
