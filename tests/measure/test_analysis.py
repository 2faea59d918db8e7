# SPDX-License-Identifier: BSD-3-Clause
"""What records say of single runs: what their time went into, and how evenly messages left."""

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.measure import analysis
from spead_tutorial.measure.analysis import burst, shares, silence
from spead_tutorial.measure.records import Timeline
from support.recordings import make_timeline
from support.records import SAMPLE, TIMELINE, make_spacing, row

MS, US, KIB = 1_000_000, 1000, 1 << 10
#: Two heaps, one prepared while the other is sent.
MADE = replace(
    TIMELINE,
    prepare_ns=(0, 40),
    queued_ns=(30, 60),
    first_packet_ns=(35, 75),
    last_packet_ns=(70, 95),
    completed_ns=(72, 96),
    resumed_ns=(80, 100),
)


@pytest.mark.parametrize(("failure", "middle"), [(None, 2.0), ("it broke", None)])
def test_a_case_that_failed_has_no_medians(failure, middle):
    assert row("ours", [1e9, 2e9, 4e9], failure).middle(lambda one: (one.rate or 0) / 1e9) == middle


# ---- Shares of the time ----


def test_shares_are_the_time_that_intervals_cover():
    found = shares(MADE)
    assert found.preparing == pytest.approx(0.5)  # 0 to 30, and 40 to 60
    assert found.waiting == pytest.approx(0.4)  # 60 to 80, and 80 to 100
    assert found.rest == pytest.approx(0.1)
    assert found.sending == pytest.approx(0.55)  # 35 to 70, and 75 to 95
    assert analysis.waiting(MADE) == [(60, 80), (80, 100)]


def test_preparing_the_next_heap_is_not_waiting_for_the_last():
    overlapping = replace(
        MADE,
        prepare_ns=(0, 6),
        queued_ns=(6, 12),
        first_packet_ns=(6, 12),
        last_packet_ns=(8, 14),
        completed_ns=(8, 14),
        resumed_ns=(12, 15),
    )
    assert analysis.waiting(overlapping) == [(12, 15)]
    found = shares(overlapping)
    assert (found.preparing, found.waiting, found.rest) == pytest.approx((12 / 15, 3 / 15, 0))


def test_of_two_heaps_in_one_call_the_second_is_sent_after_the_first():
    shared = replace(MADE, first_packet_ns=(35, 60), completed_ns=(96, 96))
    assert analysis.sending(shared) == [(35, 70), (70, 95)]
    assert shares(shared).sending == pytest.approx(0.6)


def test_the_first_third_of_the_heaps_is_a_cold_start_and_no_part_of_the_shares():
    one = make_timeline("tut_4_send_constant", False, 300, 400)
    late = 50 * MS  # the first heap of twelve took that much longer to prepare
    moved = {
        field.name: tuple(moment + late for moment in getattr(one, field.name))
        for field in fields(Timeline)
        if field.name.endswith("_ns")
    }
    cold = replace(one, **moved | {"prepare_ns": (0, *moved["prepare_ns"][1:])})
    assert analysis.first_steady(cold) == 4
    assert shares(cold) == shares(one)
    assert shares(cold).preparing == pytest.approx(3 / 7)
    slow = replace(one, last_packet_ns=(*one.last_packet_ns[:4], *[0] * 8))
    assert shares(slow).sending == 0  # those before the first that counts do not


def test_what_goes_on_when_the_first_heap_that_counts_is_begun_counts_from_there():
    one = make_timeline("tut_5_send_pipeline", False, 100, 400)
    begin, end = analysis.steady(one)
    assert begin == one.prepare_ns[4]
    assert one.first_packet_ns[3] <= begin < one.last_packet_ns[3]
    assert shares(one).sending == pytest.approx(1)
    assert end == one.resumed_ns[-1]


@pytest.mark.parametrize(
    ("program_ns", "looked_ns", "waiting_ns", "busy"),
    [(700, 100, 200, (0.5, 0.7)), (999, 501, None, (0.999, 0.0)), (0, None, 9, (0.0, 1.5))],
)
def test_a_thread_is_busy_when_it_neither_waits_nor_looks(program_ns, looked_ns, waiting_ns, busy):
    looking = {"looking_ns": looked_ns, "waiting_looking_ns": waiting_ns}
    times = {"elapsed_ns": 1000, "cpu_user_ns": 900, "cpu_system_ns": 600}
    one = replace(SAMPLE, program_cpu_ns=program_ns, **looking, **times)
    assert (analysis.program_busy(one), analysis.others_busy(one)) == pytest.approx(busy)


# ---- Spacing ----


def test_silence_is_the_longest_time_between_two_messages():
    assert silence(make_spacing("some", True, 70)) == 70 * US
    assert silence(make_spacing("some", True, 5, 20)) == 20 * US


def test_a_heap_that_was_held_up_does_not_count():
    even = make_spacing("some", True, 10)
    late = tuple(
        time + 1000 * US * (heap > 10) for heap, time in zip(even.heaps, even.time_ns, strict=True)
    )
    held_up = replace(even, time_ns=late)
    assert silence(held_up) == silence(even)
    assert burst(held_up) == burst(even)


def test_of_messages_far_apart_one_comes_at_once_and_of_those_together_all_must_be_queued():
    assert burst(make_spacing("some", False, 10, 10)) == pytest.approx(64 * KIB)
    # In a hundredth of the time of a heap, a hundredth of it has left the bucket.
    assert burst(make_spacing("some", True, 2997, 1)) == pytest.approx(256 * KIB * (1 - 3 / 3000))


def test_one_heap_alone_has_no_time():
    with pytest.raises(ValueError, match="no two heaps"):
        silence(make_spacing("some", True, 10, heaps=1))
