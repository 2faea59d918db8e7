# SPDX-License-Identifier: BSD-3-Clause
"""The exercises: what skeletons lack, what solutions have, and what both send."""

from pathlib import Path

import pytest

from spead_tutorial.catalogue import CHAPTERS, RECEIVERS
from spead_tutorial.check import arriving
from spead_tutorial.check.trying import fault
from spead_tutorial.exercises import (
    EXERCISES,
    RECEIVING,
    Exercise,
    ReceiverExercise,
    find_exercise,
)
from support import ROOT
from support.labs import needs_lab

TUTORIAL = ROOT / "docs" / "tutorial"


def name(value: object) -> str | None:
    return (
        f"chapter {value.chapter.number}"
        if isinstance(value, Exercise | ReceiverExercise)
        else None
    )


def test_every_chapter_with_a_program_has_an_exercise():
    assert [one.chapter for one in EXERCISES] == list(CHAPTERS)
    assert [one.chapter for one in RECEIVING] == list(RECEIVERS)


@pytest.mark.parametrize("exercise", [*EXERCISES, *RECEIVING], ids=name)
def test_a_skeleton_says_where_something_is_to_be_done_and_a_solution_has_done_it(exercise):
    assert "# TODO: " in exercise.skeleton.read_text()
    assert "TODO" not in exercise.solution.read_text()


@pytest.mark.parametrize("exercise", [*EXERCISES, *RECEIVING], ids=name)
def test_an_exercise_is_on_its_page_and_its_chapter_leads_there(exercise):
    number = exercise.chapter.number
    (chapter,) = TUTORIAL.glob(f"{number}-*.md")
    assert f"(exercises.md#exercise-{number})" in chapter.read_text()
    page = (TUTORIAL / "exercises.md").read_text()
    assert f"(exercise-{number})=\n" in page
    assert f"```{{exercise}} {number}\n" in page


@needs_lab
@pytest.mark.parametrize("exercise", EXERCISES, ids=name)
def test_a_solution_sends_what_it_should(exercise):
    assert fault(exercise, exercise.solution) is None


@needs_lab
@pytest.mark.parametrize("exercise", EXERCISES[1:], ids=name)
def test_a_skeleton_sends_what_it_should_so_that_only_the_step_is_missing(exercise):
    assert fault(exercise, exercise.skeleton) is None


@needs_lab
def test_of_chapter_2_the_skeleton_is_told_what_is_missing():
    exercise = find_exercise(2)
    expected = "heap 1: expected a descriptor of item 0x3300 (adc_samples), found none"
    assert fault(exercise, exercise.skeleton) == expected


# ---- Those that receive ----


def check_received(exercise: ReceiverExercise, program: Path) -> str | None:
    return arriving.fault(exercise, program)


@needs_lab
@pytest.mark.parametrize("exercise", RECEIVING, ids=name)
def test_a_solution_receives_and_prints_what_it_should(exercise):
    assert check_received(exercise, exercise.solution) is None


@needs_lab
@pytest.mark.parametrize("exercise", RECEIVING[1:], ids=name)
def test_a_skeleton_receives_what_it_should_so_that_only_the_step_is_missing(exercise):
    assert check_received(exercise, exercise.skeleton) is None


@needs_lab
def test_of_chapter_3_the_skeleton_is_told_that_it_prints_nothing():
    found = check_received(RECEIVING[0], RECEIVING[0].skeleton)
    assert found == "it printed no heap: expected 'Timestamp: 0          Power: 1.50'"
