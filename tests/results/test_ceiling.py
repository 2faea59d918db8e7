# SPDX-License-Identifier: BSD-3-Clause
"""The picture of all bare loops."""

import dataclasses

import pytest

from spead_tutorial import plots
from support.pictures import draw, drawing
from support.recordings import MIB, make_ceiling


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
