# SPDX-License-Identifier: BSD-3-Clause
"""The search for the highest rate without loss: where it goes, ends, and what it finds."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from spead_tutorial.measure import search
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.records import Recording, Sample, read
from spead_tutorial.measure.rounds import left, measure
from spead_tutorial.measure.search import ROUGH, START, THOROUGH, begin, found, next_rate, settled
from support.records import CASE, HEADER, MOST_SENT, SAMPLE, run_of

MB = 1e6


def searched(
    capacity: float,
    start: float = START,
    *,
    criterion: search.Criterion = THOROUGH,
    chance: Callable[[int], bool] = lambda number: False,
    **more: object,
) -> list[Sample]:
    """All runs of a search; chance says which of them lose something whatever the rate is."""
    runs: list[Sample] = []
    while (rate := next_rate(runs, start, criterion)) is not None:
        runs.append(run_of(rate, capacity, len(runs), chance(len(runs)), **more))
        assert len(runs) < 200
    return runs


def asked(runs: list[Sample]) -> list[int]:
    """The rates in MB/s, in the order in which they came."""
    return [round(one.asked_bytes_per_s / MB) for one in runs]


@pytest.mark.parametrize("capacity", [40 * MB, 77 * MB, 900 * MB, 5300 * MB])
def test_what_is_found_is_below_what_a_receiver_can_by_less_than_a_step(capacity):
    best = search.offered(found(searched(capacity)))
    assert capacity / THOROUGH.narrow <= best <= capacity


def test_the_rate_is_doubled_until_something_is_lost_and_then_what_is_between_is_halved():
    """One run without loss is enough to go on, and the rate that is found has three."""
    runs = searched(1500 * MB, 500 * MB)
    assert asked(runs) == [500, 1000, 2000, 2000, 1414, 1682, 1682, 1542, 1542, 1414, 1414]
    assert search.offered(found(runs)) == pytest.approx(1414 * MB, rel=1e-3)


def test_a_loss_by_chance_is_forgiven_once_at_a_rate_and_the_runs_begin_anew():
    plain = searched(1500 * MB, 500 * MB)
    shaken = searched(1500 * MB, 500 * MB, chance=lambda number: number == 1)
    assert asked(shaken)[:6] == [500, 1000, 1000, 1000, 1000, 2000]
    assert [search.lost(one) for one in shaken[:5]] == [False, True, False, False, False]
    assert search.offered(found(shaken)) == search.offered(found(plain))


def test_below_a_rate_that_passed_and_cannot_be_held_the_search_goes_on():
    runs = searched(1500 * MB, 500 * MB, chance=lambda number: number in (9, 10))
    assert asked(runs)[8:12] == [1542, 1414, 1414, 1189]
    assert asked(runs)[-3:] == [1297, 1297, 1297]
    assert search.offered(found(runs)) == pytest.approx(1297 * MB, rel=1e-3)


def test_a_sender_that_is_late_once_does_not_end_the_search():
    slow = round(1000 * 2**20 / (900 * MB) * 1e9)
    runs = [run_of(1e9, 1.5e9, 0, elapsed_ns=slow)]
    assert next_rate(runs, 1e9, THOROUGH) == 1e9
    runs += [run_of(1e9, 1.5e9, number) for number in (1, 2)]
    assert next_rate(runs, 1e9, THOROUGH) == 2e9


def test_a_rate_at_which_every_other_run_loses_something_is_not_held():
    runs = searched(5000 * MB, 500 * MB, chance=lambda number: number % 2 == 1)
    assert found(runs).failure == "packets are lost at 31.2 MB/s, too"


def test_a_sender_that_does_not_keep_the_rate_ends_the_search_upwards():
    runs = searched(9000 * MB, 2000 * MB)
    assert sorted(set(asked(runs))) == [2000, 4000, 8000]
    assert search.fell_short(found(runs))
    assert search.offered(found(runs)) == pytest.approx(MOST_SENT)
    assert not search.fell_short(found(searched(5000 * MB, 2000 * MB)))


def test_what_stands_for_a_search_is_its_median_run_at_that_rate():
    runs = [run_of(1e9, 2e9, n, elapsed_ns=ns) for n, ns in enumerate((1048, 1060, 1050))]
    runs = [replace(one, elapsed_ns=one.elapsed_ns * 10**6) for one in runs]
    runs += [run_of(1.05e9, 1e9, n) for n in (3, 4)]
    assert found(runs).elapsed_ns == 1050 * 10**6


def test_a_warm_up_runs_once_at_a_rate_and_does_not_look_between():
    for capacity, wanted in ((2500, [1000, 2000, 4000]), (300, [1000, 500, 250])):
        runs = searched(capacity * MB, criterion=ROUGH, warm_up=True)
        assert asked(runs) == wanted
        best = max(rate for rate in wanted if rate <= capacity)
        assert search.offered(found(runs)) == pytest.approx(best * MB)


def test_a_search_goes_no_lower_than_its_criterion_says():
    slow = searched(2 * MB, 10 * MB, criterion=search.Criterion(1, 0, 2.0, lowest=1 * MB))
    assert asked(slow) == [10, 5, 2, 1]
    none = searched(0.5 * MB, 40 * MB, criterion=ROUGH)
    assert asked(none) == [40]


def test_rounds_begin_at_other_rates_within_a_step_of_what_the_warm_up_found():
    warm_up = found(searched(1500 * MB, criterion=ROUGH, warm_up=True))
    starts = [begin(warm_up, number) for number in range(9)]
    assert len(set(starts)) == 9
    assert max(starts) == pytest.approx(1000 * MB)
    assert min(starts) > 1000 * MB / THOROUGH.narrow
    assert begin(None, 0) == START


def test_a_run_that_fails_ends_the_search_with_its_failure():
    runs = [run_of(1e9, 2e9), run_of(1e9, 2e9, 1, failure="it failed")]
    assert next_rate(runs, START, THOROUGH) is None
    assert found(runs).failure == "it failed"


def test_of_a_recording_one_run_stands_for_each_search_that_is_over():
    whole, begun = searched(1500 * MB), searched(1500 * MB, round=1)[:-1]
    other = replace(SAMPLE, case="another")
    done = settled(Recording(HEADER, (other, *whole, *begun)))
    assert done.samples == (other, found(whole))


# ---- In rounds ----


CAPACITY = 3000 * MB


def take(step: Step, warm_up: Sample | None) -> list[Sample]:
    """The runs that are missing of a step's search."""

    def run(_: int, rate: float) -> Sample:
        return run_of(rate, CAPACITY, round=step.number, warm_up=step.warm_up)

    return list(search.look(run, step, warm_up))


STEPS = [Step(0, True, CASE), Step(0, False, CASE), Step(1, False, CASE)]


def test_a_search_that_was_interrupted_goes_on_where_it_was(tmp_path):
    path, whole = tmp_path / "one.jsonl", tmp_path / "whole.jsonl"
    measure(STEPS, take, HEADER, path=whole, say=lambda *_: None)
    runs = read(whole).samples
    assert len(settled(read(whole)).samples) == 3
    lines = whole.read_text().splitlines(keepends=True)
    for n in (1, 3, len(lines) - 2):
        path.write_text("".join(lines[:n]))
        steps = left(STEPS, read(path))
        assert len(steps) == sum(
            any(one.round == step.number and one.warm_up == step.warm_up for one in runs[n - 1 :])
            for step in STEPS
        )
        again = measure(STEPS, take, HEADER, path=path, say=lambda *_: None)
        assert again.samples == runs
    assert left(STEPS, read(path)) == []


def test_a_run_that_failed_is_repeated_in_its_place_and_the_search_goes_on(tmp_path):
    path = tmp_path / "one.jsonl"

    def fail(step: Step, warm_up: Sample | None) -> list[Sample]:
        return [*take(step, warm_up)[:1], run_of(1e9, 2e9, 1, failure="no memory", warm_up=True)]

    measure(STEPS[:1], fail, HEADER, path=path, say=lambda *_: None)
    (step,) = left(STEPS[:1], read(path))
    assert len(step.runs) == 1
    measure(STEPS[:1], take, HEADER, path=path, say=lambda *_: None)
    recording = read(path)
    assert [one.failure for one in recording.superseded] == ["no memory"]
    assert [one.run for one in recording.samples] == [0, 1, 2]
    assert search.offered(found(recording.samples)) == pytest.approx(2000 * MB)


def test_a_run_sends_so_much_that_a_receiver_a_tenth_too_slow_loses_something():
    for heap_size in (64 * 1024, 1024 * 1024, 16384 * 1024):
        heaps = search.heaps_of_a_run(heap_size, 1e8)
        taken_in = (8 << 20) + max(4, (1 << 20) // heap_size) * heap_size
        assert heaps * heap_size / 10 >= taken_in - heap_size
    assert search.heaps_of_a_run(heap_size, 1e10, 1e9) * heap_size > 0.95e9
