# SPDX-License-Identifier: BSD-3-Clause
"""The picture of when messages leave."""

import pytest
from msgspec.structs import replace

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.pictures import draw, drawing
from support.records import HEADER, make_spacing


def lines_of(axis):
    """When each line of a panel is, in ms, sorted."""
    segments = [one for lines in axis.collections for one in lines.get_segments()]
    return sorted(round(float(points[0][0]), 6) for points in segments)


def test_there_is_a_line_at_the_time_of_each_message_of_three_heaps_and_the_next():
    one = make_spacing("tut_4_send_perf", True, 6000)
    figure = draw(plots.spacing, Recording(HEADER, (), spacings=(one,))).figure
    begins = [6.03 * heap for heap in range(4)]
    expected = [begin + 0.01 * message for begin in begins for message in range(4)]
    assert lines_of(figure.axes[1]) == pytest.approx(expected)


def test_heaps_one_after_the_other_have_different_colours():
    figure = drawing("spacing").figure
    of_one, of_next = figure.axes[1].collections[:2]
    assert of_one.get_color()[0].tolist() != of_next.get_color()[0].tolist()


def test_a_heap_that_was_held_up_is_not_shown():
    even = make_spacing("tut_4_send_perf", True, 100)
    late = [time + 10**8 * (heap > 14) for heap, time in zip(even.heaps, even.time_ns, strict=True)]
    one = replace(even, time_ns=tuple(late))
    figure = draw(plots.spacing, Recording(HEADER, (), spacings=(one,))).figure
    assert figure.axes[1].get_xlim()[1] < 1


def test_where_as_much_leaves_at_once_the_title_says_that_no_difference_is_told():
    runs = tuple(
        make_spacing(program, False, 100, 10, number)
        for program in ("tut_4_send_perf", "tut_5_send_pipeline")
        for number in range(7)
    )
    title = draw(plots.spacing, Recording(HEADER, (), spacings=runs)).title
    assert title.startswith("Constant samples, no limit: no difference found in how much")


def test_a_program_alone_is_compared_with_nothing():
    one = make_spacing("tut_4_send_perf", True, 6000)
    title = draw(plots.spacing, Recording(HEADER, (), spacings=(one,))).title
    assert title.startswith("Random samples, no limit: 255 KiB leave at once in turns.")
