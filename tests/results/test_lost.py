# SPDX-License-Identifier: BSD-3-Clause
"""The picture of where packets are lost."""

import dataclasses

from spead_tutorial import plots
from support.pictures import draw, drawing
from support.recordings import make_lost


def test_the_title_says_how_many_heaps_it_costs_that_packets_are_lost_on_the_way():
    assert drawing("lost").title.startswith("1 % of the packets lost: 20 % of the heaps. ")


def test_what_became_of_packets_is_said_along_their_way_and_is_all_of_them():
    words = drawing("lost").words
    sentences = (
        "Nothing in the way: 100 % in heaps that the program got. "
        "1 % lost: 80 % in heaps that the program got, 19 % received, of heaps not whole,"
        " 1 % lost on the way. "
        "Buffer of 8 KiB: 60 % in heaps that the program got, 30 % received, of heaps not whole,"
        " 10 % dropped by the socket. "
        "Ring of 1: 75 % in heaps that the program got, 15 % received, of heaps not whole,"
        " 10 % dropped by the socket, ring full 40 times, up to 5 ms. "
        "Ring of 1, full ring drops: 60 % in heaps that the program got,"
        " 40 % in heaps that the full ring dropped. "
    )
    assert sentences in words


def test_a_bottleneck_of_which_a_sample_failed_has_no_bar():
    recording = make_lost()
    first = dataclasses.replace(recording.samples[0], failure="it does not add up")
    both = dataclasses.replace(recording, samples=(first, *recording.samples[1:]))
    words = draw(plots.lost, both).words
    assert "1 % lost: failed: not all is accounted for." in words
    assert "Nothing in the way: 100 %" in words
