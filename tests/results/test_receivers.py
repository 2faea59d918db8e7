# SPDX-License-Identifier: BSD-3-Clause
"""The receivers' ladder, and what is lost at which rate."""

import dataclasses

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.pictures import draw, drawing
from support.recordings import make_lossless

SEVEN = "tut_7_recv_power"


def test_the_title_of_the_ladder_says_what_the_last_chapter_gained_over_the_first():
    assert drawing("receivers").typed_title.startswith(
        "1 MiB heaps, from chapter 3 to 7: x3.00 (Python), x2.00 (C). "
    )


def test_the_ladder_says_the_highest_rate_of_each_receiver_for_each_size():
    words = drawing("receivers").words
    first, second = words.split("Heaps of 64 KiB, packets of 9000 bytes:")
    for part in (first, second):
        assert "7 Power that keeps up" in part
        assert "Python 1500 (" in part
        assert "spead2 from source (the same in C++): 2000 (" in part
        assert "bare system calls (and a copy into place): 5000 (" in part


def test_chapters_stand_above_what_they_are_compared_with():
    words = drawing("receivers").seen
    order = ["3 A first receiver", "7 Power that keeps up", "bare system calls"]
    places = [words.index(one) for one in order]
    assert places == sorted(places)


def at_least(recording: Recording) -> Recording:
    """The same recording, but chapter 7 loses nothing at rates that its sender cannot keep."""
    others = [one for one in recording.samples if one.program != SEVEN]
    mine = [
        dataclasses.replace(one, asked_bytes_per_s=2 * (one.asked_bytes_per_s or 0))
        for one in recording.samples
        if one.program == SEVEN and not one.received_dropped
    ]
    return dataclasses.replace(recording, samples=(*others, *mine))


def test_a_rate_above_which_the_sender_could_not_go_is_called_a_lower_bound():
    recording = at_least(make_lossless())
    ladder = draw(plots.receivers_ladder, recording)
    assert ladder.typed_title.startswith(
        "1 MiB heaps, from chapter 3 to 7: at least x3.00 (Python)"
    )
    assert "Python at least 1500 (" in ladder.words
    assert any(one.endswith(", at least") for one in ladder.seen)
    loss = draw(plots.loss, recording)
    assert loss.typed_title.startswith(
        "Chapter 7 loses nothing up to at least 1 500 MB/s (Python), at least 3 000 MB/s (C). "
    )


def test_the_title_of_what_is_lost_says_up_to_which_rate_nothing_is():
    assert drawing("loss").typed_title.startswith(
        "Chapter 7 loses nothing up to 1 500 MB/s (Python), 3 000 MB/s (C). Heaps of 1 MiB,"
    )


def test_what_is_lost_is_said_of_each_line_step_by_step():
    words = drawing("loss").words
    assert "Chapter 7, C: nothing up to 3000 (" in words
    assert "50.0 % at 6000" in words
    assert "Spead2 from source, C++, computes nothing: nothing up to 2000 (" in words
