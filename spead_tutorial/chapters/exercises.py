# SPDX-License-Identifier: BSD-3-Clause
"""The programs of exercises: what a reader begins with, and the chapter's own."""

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

__all__ = ["find_exercise", "skeleton", "solution"]

_CHAPTERS = Path(__file__).parent


def skeleton(exercise: SenderExercise | ReceiverExercise) -> Path:
    """Return the program that lacks the chapter's change, with marks where it belongs."""
    return Path(_skeletons().name, f"chapter_{exercise.chapter.number}.py")


def solution(exercise: SenderExercise | ReceiverExercise) -> Path:
    """Return the program that has it."""
    return _CHAPTERS / f"{exercise.program}.py"


def _write_skeletons() -> tempfile.TemporaryDirectory[str]:
    """Write all skeletons: programs of chapters, with the changes that exercises.diff has."""
    folder = tempfile.TemporaryDirectory(prefix="spead-tutorial-")
    text = (_CHAPTERS / "exercises.diff").read_text(encoding="utf-8")
    for part in re.split(r"(?m)^--- ", text)[1:]:
        head, *hunks = re.split(r"(?m)^@@\n", part)
        before, name = head.split("\n+++ ")
        program = (_CHAPTERS / before).read_text(encoding="utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] or line for line in lines if line[0] != "+")
            new = "".join(line[1:] or line for line in lines if line[0] != "-")
            if program.count(old) != 1:
                raise ValueError(f"exercises.diff, {name.strip()}: {before} has not once\n{old}")
            program = program.replace(old, new)
        Path(folder.name, name.strip()).write_text(program, encoding="utf-8")
    return folder


_skeletons = functools.cache(_write_skeletons)


def find_exercise(number: int) -> SenderExercise | ReceiverExercise:
    """Look the exercise of a chapter up; a ValueError lists those that have one."""
    every: list[SenderExercise | ReceiverExercise] = [*EXERCISES, *RECEIVING]
    every.sort(key=lambda exercise: exercise.chapter.number)
    for exercise in every:
        if exercise.chapter.number == number:
            return exercise
    numbers = ", ".join(str(exercise.chapter.number) for exercise in every)
    raise ValueError(f"chapter {number} has no exercise: there are those of {numbers}")
