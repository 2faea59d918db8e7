# SPDX-License-Identifier: BSD-3-Clause
"""The programs of exercises: what a reader begins with, and the chapter's own.

A skeleton is a program of a chapter, with the changes that ``exercises.diff`` has.
"""

import functools
import re
import tempfile
from pathlib import Path

from spead_tutorial.chapters.catalogue import (
    EXERCISES,
    RECEIVING,
    ReceiverExercise,
    SenderExercise,
)

_CHAPTERS = Path(__file__).parent


@functools.cache
def skeleton(exercise: SenderExercise | ReceiverExercise) -> Path:
    """Return the program that lacks the chapter's change, with marks where it belongs."""
    number = exercise.chapter.number
    path = Path(_folder().name, f"chapter_{number}.py")
    head, *hunks = re.split(r"(?m)^@@.*\n", exercise.changes)
    (before,) = re.findall(r"(?m)^--- (\S+)", head)
    program = (_CHAPTERS / before).read_text(encoding="utf-8")
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] or line for line in lines if line[0] != "+")
        new = "".join(line[1:] or line for line in lines if line[0] != "-")
        if program.count(old) != 1:
            raise ValueError(f"exercises.diff, chapter {number}: {before} has not once\n{old}")
        program = program.replace(old, new)
    path.write_text(program, encoding="utf-8")
    return path


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="spead-tutorial-")


def solution(exercise: SenderExercise | ReceiverExercise) -> Path:
    return _CHAPTERS / f"{exercise.program}.py"


def find_exercise(number: int) -> SenderExercise | ReceiverExercise:
    """Look the exercise of a chapter up; a ValueError lists those that have one."""
    every = {exercise.chapter.number: exercise for exercise in (*EXERCISES, *RECEIVING)}
    if number in every:
        return every[number]
    numbers = ", ".join(map(str, sorted(every)))
    raise ValueError(f"chapter {number} has no exercise: there are those of {numbers}")
