# SPDX-License-Identifier: BSD-3-Clause
"""The picture of receivers."""

import dataclasses

from spead_tutorial import plots
from support.pictures import draw, drawing
from support.recordings import make_receiving


def test_the_title_says_how_many_times_as_fast_as_the_peer_ours_is_for_each_packet_size():
    assert drawing("receiving").typed_title.startswith(
        "C beside spead2's C++: x1.50 to x1.50 (packets of 1472 bytes),"
        " x1.50 to x1.50 (packets of 9000 bytes). "
    )


def test_rates_and_cpu_times_are_said_apart_for_each_packet_size():
    words = drawing("receiving").words
    assert "Packets of 1472 bytes, C: 64 KiB 4500 (0.100), 1 MiB 4500 (0.100)" in words
    assert "Packets of 9000 bytes, spead2 from source, C++: 64 KiB 6000 (0.200)" in words


def test_what_was_received_at_once_is_not_drawn():
    recording = make_receiving()
    more = tuple(dataclasses.replace(one, variant="") for one in recording.samples)
    both = dataclasses.replace(recording, samples=recording.samples + more)
    assert draw(plots.receiving, both).words == drawing("receiving").words
