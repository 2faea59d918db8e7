# SPDX-License-Identifier: BSD-3-Clause
"""What a tour came to: gains within rounds, shares of the bare loops, and how they are called."""

import os

import pytest

from spead_tutorial.measure.case import Case
from spead_tutorial.results.units import times
from spead_tutorial.tools.tour.rows import (
    Entry,
    entries,
    entries_table,
    headlines,
    notes,
    proof,
    spread,
    steps_table,
)
from support.tours import recorded

MIB = 1 << 20


def entry(found, program: str, by: str, heap_size: int = MIB) -> Entry:
    wanted = program, by, heap_size
    (one,) = (
        one for one in found if (one.row.last.program, one.by, one.row.last.heap_size) == wanted
    )
    return one


def doubling(case: Case, number: int) -> float:
    """Everything is twice as fast in each round as in that before; chapter 6 is so by itself."""
    faster = {"tut_6_send_pktsize": 2.0, "ceiling": 4.0}
    return 1e9 * faster.get(case.program, 1.0) * 2**number


def test_a_gain_is_over_the_chapter_before_by_ratios_within_rounds():
    found = entries(recorded(doubling))
    gain = entry(found, "tut_6_send_pktsize", "C").gain
    # Not that of medians over all rounds, whose range would be wide.
    assert (gain.low, gain.median, gain.high) == pytest.approx((2, 2, 2))
    after = entry(found, "tut_8_send_reuse_memory", "C").gain
    assert after.median == pytest.approx(0.5)


def test_the_first_of_a_size_has_no_gain_and_nothing_is_compared_with_chapter_2():
    found = entries(recorded())
    assert entry(found, "tut_4_send_perf", "Python").gain is None
    assert entry(found, "tut_8_send_reuse_memory", "Python", 8192).gain is None
    first = entry(found, "tut_2_send", "Python")
    assert (first.gain, first.share) == (None, None)
    assert [one.row.last.chapter for one in found[-2:]] == [2, 2]


def test_a_share_is_of_the_bare_loops_with_as_many_streams():
    cores = len(os.sched_getaffinity(0))

    def rates(case: Case, number: int) -> float:
        return {None: 4e9, cores: 8e9}[case.streams] if case.program == "ceiling" else 1e9

    found = entries(recorded(rates))
    one, all_cores = (
        entry(found, name, "C").share for name in ("tut_13_send_hot", "tut_14_send_many_streams")
    )
    assert one.median == pytest.approx(0.25)
    assert all_cores.median == pytest.approx(0.125 if cores > 1 else 0.25)


def test_the_headline_goes_from_constant_samples_to_the_last_chapter():
    rates = {
        "tut_2_send": 9e9,
        "tut_4_send_perf": 0.077e9,
        "tut_4_send_constant": 4e9,
        "tut_13_send_hot": 9.9e9,
        "tut_14_send_many_streams": 8.8e9,
        "tut_15_send_zero_copy": 9e9,
    }
    python, c = headlines(entries(recorded(lambda case, number: rates.get(case.program, 1e9))))
    assert str(c).replace("\N{THIN SPACE}", "") == "4000 → 8800 MB/s, 2.2 times"
    assert c.details == [
        "chapter 4 Constant samples → 14 A stream for each core",
        "range: 2.2\N{EN DASH}2.2 times",
        f"largest step: 13 Send where the data is hot, {times(9.90)}",
        f"not counted: constant samples instead of random ones, {times(51.9)}",
    ]
    assert (python.by, c.by) == ("Python", "C")


def test_what_few_rounds_cannot_tell_is_no_gain_and_no_loss():
    def rates(case: Case, number: int) -> float:
        worse = {"tut_8_send_reuse_memory": 0.9 + 0.1 * number, "tut_10_send_reuse_heaps": 0.5}
        return 1e9 * worse.get(case.program, 1.0)

    shown = str(steps_table(entries(recorded(rates)))).splitlines()
    assert len(shown) == 9  # eight steps
    assert all(line.count("cannot tell") == 2 for line in shown[2:5])
    assert shown[5].count(times(0.50)) == 2
    assert shown[6].count(times(2.00)) == 2


def test_a_chapter_that_failed_has_no_headline_no_gain_and_no_share():
    def rates(case: Case, number: int) -> float | None:
        return None if (case.program, case.language) == ("tut_4_send_constant", "c") else 1e9

    found = entries(recorded(rates))
    assert [one.by for one in headlines(found)] == ["Python"]
    failed = entry(found, "tut_4_send_constant", "C")
    assert (failed.row.rate, failed.gain, failed.share) == (None, None, None)
    assert entry(found, "tut_5_send_pipeline", "C").gain is None
    assert str(steps_table(found)).count("✗ failed") == 1
    assert proof(found).startswith("✗ 1 of ")


@pytest.mark.parametrize(("rounds", "name"), [(5, "range"), (6, "95 % interval")])
def test_a_few_rounds_have_a_range_and_more_an_interval(rounds, name):
    recording = recorded(rounds=rounds)
    assert spread(recording) == name
    found = entries(recording)
    assert f"{name} of the gain" in heading(recording)
    assert all(one.details[1].startswith(name) for one in headlines(found))


def heading(recording) -> str:
    return str(entries_table(entries(recording), recording)).splitlines()[0]


def test_a_table_without_bare_loops_has_no_column_for_what_they_reach():
    recording = recorded()
    ours = [one for one in recording.samples if one.program != "ceiling"]
    without = type(recording)(recording.header, tuple(ours))
    assert " beside a bare loop " in heading(recording)
    assert " beside a bare loop " not in heading(without)
    assert not any("bare loop" in note for note in notes(without, whole=True))


def test_a_terminal_of_80_columns_has_room_for_the_table():
    recording = recorded(lambda case, number: 99.9e9)
    lines = steps_table(entries(recording)).text(80).splitlines()
    assert max(map(len, lines)) <= 80
