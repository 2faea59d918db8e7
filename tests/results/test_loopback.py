# SPDX-License-Identifier: BSD-3-Clause
"""The picture of chapter 6's loopback: rates, and what became of the packets."""

import dataclasses
import statistics

from spead_tutorial import plots
from spead_tutorial.records import Recording
from spead_tutorial.units import times
from support.pictures import draw, drawing, fail
from support.recordings import make_loopback, make_rounds
from support.records import HEADER


def test_each_situation_has_its_rate_and_its_evidence():
    recording = make_loopback()
    words = drawing("loopback").words
    rate = statistics.median(
        one.payload_bytes / one.elapsed_ns * 1e3
        for one in recording.samples
        if (one.variant, one.language) == ("slow listener", "c")
    )
    assert f"a slow listener, C: {rate:.0f}, sent 118, got 60, dropped 58." in words
    assert "nobody listens, Python: 900, sent 118, ICMP errors 118." in words
    assert "the lab's device, C: 4000, sent 118." in words


def test_evidence_is_beside_the_bars_and_what_was_not_counted_is_a_dash():
    words = drawing("loopback").seen
    assert {"got", "dropped", "ICMP errors", "of 118 packets a heap", "60", "58"} <= set(words)
    # Of 8 bars with 3 columns each: 2 with ICMP errors, 4 with packets that were got or dropped.
    assert words.count("\N{EN DASH}") == 24 - 2 - 2 * 4


def test_situations_that_were_not_measured_are_left_out():
    recording = make_loopback()
    listened = tuple(one for one in recording.samples if one.variant == "listener")
    recording = dataclasses.replace(recording, samples=listened)
    drawn = draw(plots.loopback, recording)
    assert "loopback, a listener that reads as fast as it can" in drawn.seen
    assert not any("nobody" in words for words in drawn.seen)


def test_a_situation_that_failed_says_so():
    recording = make_loopback()
    failed = fail(recording, lambda one: one.variant == "no listener")
    drawn = draw(plots.loopback, recording, samples=failed)
    assert drawn.seen.count("failed: no rate") == 2
    assert "nobody listens, C: failed (7 of 7)." in drawn.words


def test_other_sizes_of_packets_are_not_mixed_in():
    recording = make_loopback()
    others = make_rounds("tut_6_send_pktsize", "c", [9.0] * 7, packet_size=65504)
    more = Recording(HEADER, (*recording.samples, *others))
    assert (
        draw(plots.loopback, more).words.split("a processor")[0]
        == (drawing("loopback").words.split("a processor")[0])
    )


def test_the_title_is_where_loopback_differs_most_from_the_labs_device():
    title = drawing("loopback").title
    assert title.startswith(
        f"Loopback, a slow listener, beside the lab: {times(0.175)} (Python, C)."
    )
    recording = make_loopback()
    alone = tuple(one for one in recording.samples if one.variant)
    title = draw(plots.loopback, recording, samples=alone).title
    assert title.startswith("One kind of destination: nothing to compare.")
