# SPDX-License-Identifier: BSD-3-Clause
"""The exercises: what skeletons lack, what solutions have, and what both send."""

import subprocess
from itertools import product
from types import SimpleNamespace

import pytest

from spead_tutorial.chapters import exercises
from spead_tutorial.chapters.catalogue import (
    ARRAY,
    CHAPTERS,
    EXERCISES,
    RECEIVERS,
    RECEIVING,
    SenderExercise,
)
from spead_tutorial.check import arriving, trying
from support import ROOT
from support.labs import needs_lab
from support.programs import cases

TUTORIAL = ROOT / "docs" / "tutorial"
FORMS = ("solution", "skeleton")


def name(value: object) -> str | None:
    return f"chapter {value.chapter.number}" if hasattr(value, "chapter") else None


each_exercise = pytest.mark.parametrize("exercise", [*EXERCISES, *RECEIVING], ids=name)


def test_every_chapter_with_a_program_has_an_exercise():
    assert [one.chapter for one in EXERCISES] == [*CHAPTERS, ARRAY[0]]
    assert [one.chapter for one in RECEIVING] == list(RECEIVERS)


@each_exercise
def test_a_skeleton_says_where_something_is_to_be_done_and_a_solution_has_done_it(exercise):
    assert "# TODO: " in exercises.skeleton(exercise).read_text()
    assert "TODO" not in exercises.solution(exercise).read_text()


def test_what_diff_prints_makes_a_skeleton(tmp_path):
    before = exercises.solution(exercises.find_exercise(13))
    mine = tmp_path / "chapter_99.py"
    mine.write_text(before.read_text().replace("import numpy", "# TODO: NumPy\nimport numpy", 1))
    words = ["diff", "-U1", before.name, mine]
    shown = subprocess.run(words, cwd=before.parent, capture_output=True, text=True).stdout
    made = SimpleNamespace(chapter=SimpleNamespace(number=99), changes=shown)
    assert exercises.skeleton.__wrapped__(made).read_text() == mine.read_text()


@each_exercise
def test_a_chapter_leads_to_its_exercise(exercise):
    number = exercise.chapter.number
    (chapter,) = TUTORIAL.glob(f"{number}-*.md")
    assert f"(exercises.md#exercise-{number})" in chapter.read_text()


#: What the first skeletons, which lack more than a step, are told that they do not do.
LACKING = {
    2: "heap 1: expected a descriptor of item 0x3300 (adc_samples), found none",
    3: "it printed no heap: expected 'Timestamp: 0          Power: 1.50'",
    19: "receiver 0: heap 1: expected a count such as 2 or 6, found one of another sender's",
}


@needs_lab
@pytest.mark.parametrize(
    ("exercise", "form"),
    cases(
        product([*EXERCISES, *RECEIVING], FORMS),
        lambda exercise, form: form == "skeleton" and exercise.chapter.number in (*LACKING, 10),
    ),
    ids=name,
)
def test_a_solution_does_what_it_should_and_so_does_a_skeleton_that_lacks_only_the_step(
    exercise, form
):
    check = trying if isinstance(exercise, SenderExercise) else arriving
    lacking = LACKING.get(exercise.chapter.number) if form == "skeleton" else None
    assert check.fault(exercise, getattr(exercises, form)(exercise)) == lacking
