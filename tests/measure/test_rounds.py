# SPDX-License-Identifier: BSD-3-Clause
"""Rounds: their order, and that a record is gone on with."""

import dataclasses

import pytest
from msgspec.structs import replace

from spead_tutorial.measure.case import WARM_UP, Case, Observer, Step
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import RecordError, Recording, Sample
from spead_tutorial.measure.rounds import left, measure, schedule
from support.records import HEADER, SAMPLE


class Once(Observer):
    """Observes a case once."""

    once = True


ORDERS = ["fedcab", "bcaedf", "bdfcea"]
CASES = [Case("ours", "c", program) for program in "abcdef"]


def orders(rounds: int, seed: int) -> list[str]:
    """Who comes when, a word for each round, the warm-up first."""
    words = "".join(step.case.program for step in schedule(CASES, rounds, seed))
    return [words[at : at + len(CASES)] for at in range(0, len(words), len(CASES))]


def test_the_order_of_a_round_follows_from_the_seed_and_the_round_alone():
    assert orders(2, 31) == ORDERS
    assert orders(20, 31)[:3] == ORDERS
    assert orders(2, 32) != ORDERS


def test_every_round_has_all_cases_and_the_first_warms_up():
    steps = list(schedule(CASES, 9, 31))
    assert [step.warm_up for step in steps] == [True] * len(CASES) + [False] * 9 * len(CASES)
    for number in range(9):
        mine = [step.case for step in steps if not step.warm_up and step.number == number]
        assert sorted(case.program for case in mine) == list("abcdef")
    assert len(set(orders(9, 31))) == 10


def test_timelines_come_once_and_last():
    timeline = dataclasses.replace(CASES[0], observer=Once())
    steps = list(schedule([timeline, *CASES], 2, 31))
    assert [step.case.observer.once for step in steps] == [False] * 18 + [True]


def test_a_warm_up_sends_a_part_of_what_a_sample_sends():
    case = dataclasses.replace(CASES[0], heaps=64)
    assert Step(0, True, case).heaps == 64 // WARM_UP
    assert Step(0, False, case).heaps == 64
    assert Step(0, True, dataclasses.replace(case, heaps=3)).heaps == 1
    assert Step(0, True, CASES[0]).heaps is None


def take(step: Step, warm_up: Sample | None) -> Sample:
    assert (warm_up is None) is step.warm_up
    case, number = step.case.name, step.number
    return replace(SAMPLE, case=case, round=number, warm_up=step.warm_up)


def test_how_much_a_sample_sends_follows_from_the_fastest_before_it():
    """The warm-up may have been held up, and samples may fail."""
    rates, known = [1.0, None, 9.0, 5.0], []

    def at_a_rate(step: Step, before: Sample | None) -> Sample:
        known.append(before and before.rate)
        sample, rate = take(step, before), rates[len(known) - 1]
        if rate is None:
            return replace(sample, failure="no memory")
        return replace(sample, elapsed_ns=round(sample.heaps * sample.heap_size * 1e9 / rate))

    measure(schedule(CASES[:1], 3, 31), at_a_rate, HEADER, say=lambda *_: None)
    assert known == [None, *map(pytest.approx, (1.0, 1.0, 9.0))]


def test_what_a_record_holds_is_not_taken_again(tmp_path):
    path = tmp_path / "one.jsonl"
    steps = list(schedule(CASES, 2, 31))
    measure(steps[:7], take, HEADER, path=path, say=lambda *_: None)
    shown: list[Step] = []

    def show(left: list[Step]) -> list[Step]:
        shown.extend(left)
        return left

    recording = measure(steps, take, HEADER, path=path, show=show, say=lambda *_: None)
    assert shown == steps[7:]
    without = measure(steps, take, HEADER, say=lambda *_: None)
    assert (without.header, without.samples) == (recording.header, recording.samples)
    assert len(without.samples) == 18


def test_a_record_of_something_else_is_refused(tmp_path):
    path = tmp_path / "one.jsonl"
    steps = list(schedule(CASES, 1, 31))
    measure(steps[:2], take, HEADER, path=path, say=lambda *_: None)
    other = replace(HEADER, revision="another")
    with pytest.raises(RecordError, match=r"begun otherwise \(revision is unknown, and ano"):
        measure(steps, take, other, path=path, say=lambda *_: None)


def test_a_program_that_cannot_be_run_is_told_and_the_rest_goes_on():
    said = []

    def broken(step: Step, warm_up: Sample | None) -> Sample:
        if step.case.program == "c":
            raise ProgramError("it is not there")
        return take(step, warm_up)

    recording = measure(
        schedule(CASES, 1, 31), broken, HEADER, say=lambda step, why: said.append((step.key, why))
    )
    assert {why for _, why in said} == {"it is not there"}
    assert len(said) == 2
    assert len(recording.samples) == 10


# ---- What fails ----


class Failing:
    """Takes samples, of which those of one program fail with these words, as long as they last."""

    def __init__(self, program: str, *words: str | None) -> None:
        self.program, self.words, self.said = program, list(words), []

    def take(self, step: Step, warm_up: Sample | None) -> Sample:
        good = take(step, None if step.warm_up else SAMPLE)
        if step.case.program != self.program or not self.words:
            return good
        return replace(good, failure=self.words.pop(0))

    def measure(self, steps, path=None, **more) -> Recording:
        say = lambda step, words: self.said.append((step.case.program, words))  # noqa: E731
        return measure(steps, self.take, HEADER, path=path, say=say, **more)


def test_a_sample_that_is_repeated_takes_the_place_of_the_one_that_failed(tmp_path):
    path, steps = tmp_path / "one.jsonl", list(schedule(CASES, 2, 31))
    failing = Failing("c", None, "it failed")
    before = failing.measure(steps, path)
    (failed,) = [one for one in before.samples if one.failure is not None]
    assert failing.said == [("c", "it failed")]
    (step,) = [step for step in steps if step.key == (failed.case, failed.round, failed.warm_up)]
    assert left(steps, before) == [step]
    after = failing.measure(steps, path)
    assert after.superseded == (failed,)
    assert len(after.samples) == len(before.samples)
    assert all(one.failure is None for one in after.samples)
    assert left(steps, after) == []
