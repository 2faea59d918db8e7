# SPDX-License-Identifier: BSD-3-Clause
"""The receivers' ladder, and what is lost at which rate."""

import dataclasses

from spead_tutorial import plots
from spead_tutorial.records import Recording
from support.pictures import draw, drawing, typed
from support.recordings import make_lossless

SEVEN = "tut_7_recv_power"


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
    assert typed(ladder.title).startswith(
        "1 MiB heaps, from chapter 3 to 7: at least x3.00 (Python)"
    )
    assert "Python at least 1500 (" in ladder.words
    assert any(one.endswith(", at least") for one in ladder.seen)
    loss = draw(plots.loss, recording)
    assert typed(loss.title).startswith(
        "Chapter 7 loses nothing up to at least 1 500 MB/s (Python), at least 3 000 MB/s (C). "
    )
