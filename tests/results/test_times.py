# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of chapter 5: who works when, shares of the time, and what was gained."""

import dataclasses
import re
import statistics

import pytest

from spead_tutorial import plots, units
from spead_tutorial import timeline as times
from spead_tutorial.records import Recording, Timeline
from support.pictures import bars_of, draw, drawing
from support.recordings import MIB, make_pipeline, make_rounds, make_timeline
from support.records import HEADER

MS = 1_000_000
#: Two heaps, one after the other: 6 ms to prepare, 2 ms to send, 1 ms until the program goes on.
ALTERNATING = Timeline(
    "some", "tut_4_send_perf", "python", True, MIB, 1472,
    prepare_ns=(0, 10 * MS),
    queued_ns=(6 * MS, 16 * MS),
    first_packet_ns=(6 * MS, 16 * MS),
    last_packet_ns=(8 * MS, 18 * MS),
    completed_ns=(8 * MS, 18 * MS),
    resumed_ns=(9 * MS, 20 * MS),
)  # fmt: skip
#: The second is prepared while the first is sent: nothing is waited for but the last.
OVERLAPPING = Timeline(
    "some", "tut_5_send_pipeline", "python", True, MIB, 1472,
    prepare_ns=(0, 6 * MS),
    queued_ns=(6 * MS, 12 * MS),
    first_packet_ns=(6 * MS, 12 * MS),
    last_packet_ns=(8 * MS, 14 * MS),
    completed_ns=(8 * MS, 14 * MS),
    resumed_ns=(12 * MS, 15 * MS),
)  # fmt: skip


def test_shares_of_a_run_are_those_of_its_times():
    found = times.shares(ALTERNATING)
    assert found.preparing == pytest.approx(12 / 20)
    assert found.waiting == pytest.approx((3 + 4) / 20)
    assert found.rest == pytest.approx(1 / 20)
    assert found.sending == pytest.approx(4 / 20)


def test_the_first_third_of_the_heaps_is_a_cold_start_and_no_part_of_the_shares():
    one = make_timeline("tut_4_send_constant", False, 300, 400)
    late = 50 * MS  # the first heap of twelve took that much longer to prepare
    moved = {
        field.name: tuple(moment + late for moment in getattr(one, field.name))
        for field in dataclasses.fields(Timeline)
        if field.name.endswith("_ns")
    }
    cold = dataclasses.replace(one, **moved | {"prepare_ns": (0, *moved["prepare_ns"][1:])})
    assert times.first_steady(cold) == 4
    assert times.shares(cold) == times.shares(one)
    assert times.shares(cold).preparing == pytest.approx(3 / 7)
    slow = dataclasses.replace(one, last_packet_ns=(*one.last_packet_ns[:4], *[0] * 8))
    assert times.shares(slow).sending == 0  # those before the first that counts do not


def test_what_goes_on_when_the_first_heap_that_counts_is_begun_counts_from_there():
    one = make_timeline("tut_5_send_pipeline", False, 100, 400)
    begin, end = times.steady(one)
    assert begin == one.prepare_ns[4]
    assert one.first_packet_ns[3] <= begin < one.last_packet_ns[3]
    assert times.shares(one).sending == pytest.approx(1)
    assert end == one.resumed_ns[-1]


def test_preparing_the_next_heap_is_not_waiting_for_the_last():
    assert times.waiting(OVERLAPPING) == [(12 * MS, 15 * MS)]
    found = times.shares(OVERLAPPING)
    assert (found.preparing, found.waiting, found.rest) == pytest.approx((12 / 15, 3 / 15, 0))


def test_bars_are_at_the_times_that_were_recorded():
    figure = draw(plots.timeline, Recording(HEADER, (), (ALTERNATING,))).figure
    found = bars_of(figure.axes[1])
    rows = sorted({y for *_, y in found})
    program = [(left, right) for left, right, y in found if y == rows[0]]
    network = [(left, right) for left, right, y in found if y == rows[1]]
    assert program == [(0, 6), (6, 9), (10, 16), (16, 20)]  # preparing, waiting
    assert network == [(6, 8), (16, 18)]


def test_blocks_are_in_turns_and_then_overlapped_with_their_shares():
    drawn = drawing("timeline")
    wanted = [
        *("Random samples", "In turns", "Overlapped"),
        *("Constant samples", "In turns", "Overlapped"),
        *("Constant samples, link of 10 Gb/s", "Overlapped"),
    ]
    assert [words for words in drawn.seen if words in wanted] == wanted
    assert "Who works when: program and network thread (Python, heaps of 1 MiB)" in drawn.seen
    assert "shares: heaps 4 to 11" in " ".join(drawn.seen)
    busy = "network thread busy 20 % of the time, program preparing 80 %"
    assert busy in drawn.seen
    assert busy in drawn.words


def test_the_title_of_a_timeline_is_where_overlapping_changed_most():
    title = drawing("timeline").title
    assert title.startswith(
        "Constant samples: network thread busy 57 % in turns, 100 % overlapped."
    )
    one = Recording(HEADER, (), (ALTERNATING,))
    assert draw(plots.timeline, one).title.startswith(
        "Random samples: network thread busy 20 % in turns."
    )


def test_blocks_of_the_same_samples_have_one_scale():
    figure = drawing("timeline").figure
    blocks = [axis for axis in figure.axes if axis.get_yticks().size]
    ends = [axis.get_xlim()[1] for axis in blocks]
    assert ends[0] == ends[1] == pytest.approx(70)  # seven heaps of 8 and 2 ms in turns
    # In turns, seven heaps take 4.9 ms, but the other run is over 4.4 ms after its third heap.
    assert ends[2] == ends[3] == pytest.approx(0.3 + 12 * 0.4 - 0.7)


def test_another_scale_is_said_and_shown():
    words = drawing("timeline").seen
    assert "70 ms from left to right" in words
    assert f"4.4 ms from left to right, magnified {units.times(16)}" in words
    assert words.count("1 ms") == 5  # a mark beside each block
    figure = drawing("timeline").figure
    marks = [
        line.get_xdata() for axis in figure.axes for line in axis.lines if line.get_linewidth() == 3
    ]
    assert [right - left for left, right in marks] == pytest.approx([1] * 5)


def test_heaps_are_from_the_middle_of_a_run_and_numbered():
    one = make_timeline("tut_4_send_perf", True, 8000, 2000)
    drawn = draw(plots.timeline, Recording(HEADER, (), (one,)))
    assert "heaps 2 to 8 of 12" in drawn.words
    numbers = [words for words in drawn.seen if words.isdecimal()]
    assert all(numbers.count(f"{heap}") >= 2 for heap in range(2, 9))  # in both rows
    assert "11" not in numbers


def test_the_network_thread_sleeps_where_it_has_nothing_to_do():
    idle = make_timeline("tut_4_send_perf", True, 8000, 2000)
    busy = make_timeline("tut_5_send_pipeline", False, 100, 2000)
    for one, asleep in ((idle, True), (busy, False)):
        drawn = draw(plots.timeline, Recording(HEADER, (), (one,)))
        assert ("asleep" in drawn.seen) is asleep


def test_a_run_of_one_heap_is_drawn():
    fields = [field.name for field in dataclasses.fields(Timeline) if field.name.endswith("_ns")]
    short = dataclasses.replace(
        ALTERNATING, **{name: getattr(ALTERNATING, name)[:1] for name in fields}
    )
    assert "heaps 0 to 0 of 1" in draw(plots.timeline, Recording(HEADER, (), (short,))).words


def test_a_recording_without_timelines_says_what_to_run():
    with pytest.raises(ValueError, match=r"no timeline: python -m bench run tut-5"):
        draw(plots.timeline, dataclasses.replace(make_pipeline(), timelines=()))


def rates(recording: Recording, program: str, random: bool) -> list[float]:
    """Those of the program in C, without a variant, in the order of the rounds."""
    return [
        one.payload_bytes / one.elapsed_ns
        for one in recording.samples
        if (one.language, one.program, one.random, one.variant) == ("c", program, random, "")
    ]


@pytest.mark.parametrize(
    ("kind", "program", "random"),
    [("Random", "tut_4_send_perf", True), ("Constant", "tut_4_send_constant", False)],
)
def test_the_pipeline_says_rates_in_turns_and_overlapped_and_the_gain(kind, program, random):
    recording = make_pipeline()
    words = drawing("pipeline").words
    found = re.search(
        rf"{kind} samples, without a limit, heaps of 1 MiB: .*?C in turns (\d+), overlapped (\d+),"
        r" gain .([\d.]+)",
        words,
    )
    assert found is not None
    before, after = (
        rates(recording, program, False),
        rates(recording, "tut_5_send_pipeline", random),
    )
    middle = [statistics.median(some) * 1000 for some in (before, after)]
    assert [float(one) for one in found.groups()[:2]] == pytest.approx(middle, rel=0.01)
    gain = statistics.median(new / old for old, new in zip(before, after, strict=True))
    assert float(found[3]) == pytest.approx(gain, rel=0.01)
    assert {"100", "150", "3\N{THIN SPACE}000"} <= set(drawing("pipeline").seen)


def test_the_pipeline_has_a_group_for_each_situation_with_the_limited_link_last():
    drawn = drawing("pipeline").seen
    wanted = ["without a limit", "without a limit, pinned", "behind a link of 10 Gb/s"]
    assert [words for words in drawn if words in wanted] == wanted * 2


def test_the_pipeline_says_what_the_time_went_to():
    words = drawing("pipeline").words
    assert (
        "Time of heaps 4 to 11, Random samples, in turns, in Python: preparing 80 %, waiting 20 %."
    ) in words


def test_without_timelines_there_is_a_pipeline_of_rates_only():
    recording = dataclasses.replace(make_pipeline(), timelines=())
    drawn = draw(plots.pipeline, recording)
    assert not any("share of the time" in words for words in drawn.seen)
    assert "Time of" not in drawn.words


def test_what_was_not_measured_is_left_out():
    samples = tuple(make_rounds("tut_4_send_perf", "c", [100.0] * 3))
    words = draw(plots.pipeline, Recording(HEADER, samples)).words
    assert "Random samples, without a limit, heaps of 1 MiB: C in turns 100." in words
    for other in ("Constant", "overlapped 1", "pinned", "link of"):
        assert other not in words


def test_the_title_of_the_pipeline_is_where_overlapping_changes_most():
    recording = make_pipeline()
    slower = tuple(
        dataclasses.replace(one, elapsed_ns=3 * one.elapsed_ns)
        if (one.variant, one.program, one.random) == ("pinned", "tut_5_send_pipeline", True)
        else one
        for one in recording.samples
    )
    title = draw(plots.pipeline, recording, samples=slower).title
    where = "Random samples, without a limit, pinned"
    assert title.startswith(f"{where}: overlapped {units.times(0.5)} (Python, C).")


def test_a_pipeline_that_gains_nothing_says_so():
    recording = make_pipeline()
    in_turns = {
        (one.language, one.variant, one.round): one.elapsed_ns
        for one in recording.samples
        if one.program == "tut_4_send_constant"
    }
    as_fast = tuple(
        dataclasses.replace(one, elapsed_ns=in_turns[one.language, one.variant, one.round])
        for one in recording.samples
    )
    title = draw(plots.pipeline, recording, samples=as_fast).title
    assert "overlapped no difference found." in title
