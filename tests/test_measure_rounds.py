# SPDX-License-Identifier: BSD-3-Clause
"""Rounds: their order, and that a record is gone on with."""

import dataclasses

import pytest
from test_records import HEADER, SAMPLE

from spead_tutorial.measure.case import WARM_UP, Case, Step
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.records import RecordError, Sample

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
    timeline = dataclasses.replace(CASES[0], timeline=True)
    steps = list(schedule([timeline, *CASES], 2, 31))
    assert [step.case.timeline for step in steps] == [False] * 18 + [True]


def test_a_warm_up_sends_a_part_of_what_a_sample_sends():
    case = dataclasses.replace(CASES[0], heaps=64)
    assert Step(0, True, case).heaps == 64 // WARM_UP
    assert Step(0, False, case).heaps == 64
    assert Step(0, True, dataclasses.replace(case, heaps=3)).heaps == 1
    assert Step(0, True, CASES[0]).heaps is None


def take(step: Step, warm_up: Sample | None) -> Sample:
    assert (warm_up is None) is step.warm_up
    case, number = step.case.name, step.number
    return dataclasses.replace(SAMPLE, case=case, round=number, warm_up=step.warm_up)


def test_without_a_path_there_is_a_recording_all_the_same():
    recording = measure(schedule(CASES, 2, 31), take, HEADER, say=lambda *_: None)
    assert recording.header == HEADER
    assert len(recording.samples) == 18


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
    assert len(recording.samples) == 18


def test_a_record_of_something_else_is_refused(tmp_path):
    path = tmp_path / "one.jsonl"
    steps = list(schedule(CASES, 1, 31))
    measure(steps[:2], take, HEADER, path=path, say=lambda *_: None)
    other = dataclasses.replace(HEADER, revision="another")
    with pytest.raises(RecordError, match="begun with another revision"):
        measure(steps, take, other, path=path, say=lambda *_: None)


def test_a_program_that_cannot_be_run_is_told_and_the_rest_goes_on():
    told = []

    def broken(step: Step, warm_up: Sample | None) -> Sample:
        if step.case.program == "c":
            raise ProgramError("it is not there")
        return take(step, warm_up)

    recording = measure(
        schedule(CASES, 1, 31), broken, HEADER, say=lambda step, why: told.append((step.key, why))
    )
    assert {why for _, why in told} == {"it is not there"}
    assert len(told) == 2
    assert len(recording.samples) == 10
