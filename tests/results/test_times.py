# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of chapter 5: who works when, shares of the time, and what was gained."""

import pytest
from msgspec.structs import fields, replace

from spead_tutorial.measure.analysis import intervals as times
from spead_tutorial.measure.records import Recording, Timeline
from spead_tutorial.results import plots
from support.pictures import bars_of, draw
from support.recordings import MIB, make_rounds, make_timeline
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
        for field in fields(Timeline)
        if field.name.endswith("_ns")
    }
    cold = replace(one, **moved | {"prepare_ns": (0, *moved["prepare_ns"][1:])})
    assert times.first_steady(cold) == 4
    assert times.shares(cold) == times.shares(one)
    assert times.shares(cold).preparing == pytest.approx(3 / 7)
    slow = replace(one, last_packet_ns=(*one.last_packet_ns[:4], *[0] * 8))
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
    drawn = draw(plots.timeline, Recording(HEADER, (), (ALTERNATING,)))
    assert drawn.title.startswith("Random samples: network thread busy 20 % in turns.")
    found = bars_of(drawn.figure.axes[1])
    rows = sorted({y for *_, y in found})
    program = [(left, right) for left, right, y in found if y == rows[0]]
    network = [(left, right) for left, right, y in found if y == rows[1]]
    assert program == [(0, 6), (6, 9), (10, 16), (16, 20)]  # preparing, waiting
    assert network == [(6, 8), (16, 18)]


def test_a_run_of_one_heap_is_drawn():
    names = [field.name for field in fields(Timeline) if field.name.endswith("_ns")]
    short = replace(ALTERNATING, **{name: getattr(ALTERNATING, name)[:1] for name in names})
    assert "heaps 0 to 0 of 1" in draw(plots.timeline, Recording(HEADER, (), (short,))).words


def test_what_was_not_measured_is_left_out():
    samples = tuple(make_rounds("tut_4_send_perf", "c", [100.0] * 3))
    words = draw(plots.pipeline, Recording(HEADER, samples)).words
    assert "Random samples, without a limit, in turns, C: 1 MiB 100." in words
    for other in ("Constant", "overlapped, C", "pinned", "link of", "Time of"):
        assert other not in words
