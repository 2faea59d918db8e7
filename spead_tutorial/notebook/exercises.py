# SPDX-License-Identifier: BSD-3-Clause
"""Exercises: questions whose answers are checked, and programs to be written.

Answers are hidden until they are asked for.
"""

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["Exercise", "check"]

_NO_ANSWER = "Not answered yet: give check() your answer, or call reveal()."


# ---- Questions ----


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Exercise:
    """A question whose answer is checked, and hidden until it is asked for."""

    question: str  #: Markdown.
    answer: Any  #: The answer, or a function without arguments that finds it when it is needed.
    tolerance: float = 0.0  #: By how much a number may differ, in the answer's own unit.
    hint: str = ""  #: What to think about, for those whose answer is wrong.
    explanation: str = ""  #: Why the answer is what it is.

    def __repr__(self) -> str:
        return f"Exercise: {self.question}"

    def _repr_markdown_(self) -> str:
        return f"**Exercise.** {self.question}"

    def check(self, answer: Any) -> None:
        """Say whether an answer is right; None is for one that has not been given."""
        if answer is None:
            print(_NO_ANSWER)
        elif _same(answer, self._answer(), self.tolerance):
            print("Right.")
        else:
            print(f"Not yet: {self.hint or 'think again'}")

    def reveal(self) -> None:
        """Tell the answer, and why it is that."""
        print(f"The answer is {self._answer()}. {self.explanation}".rstrip())

    def _answer(self) -> Any:
        return self.answer() if callable(self.answer) else self.answer


def _same(given: Any, right: Any, tolerance: float) -> bool:
    if isinstance(right, str):
        return isinstance(given, str) and given.strip().casefold() == right.strip().casefold()
    if isinstance(right, bool | bytes):
        return bool(given == right)
    if isinstance(right, list | tuple):
        there = isinstance(given, Sequence) and len(given) == len(right)
        pairs = zip(given, right, strict=True) if there else ()
        return there and all(_same(element, expected, tolerance) for element, expected in pairs)
    try:
        return bool(abs(given - right) <= tolerance)
    except TypeError:
        return bool(given == right)


# ---- Programs ----


def check(chapter: int, *words: str) -> None:
    """Check a program for a chapter's exercise, by the command ``spead-tutorial check``.

    Of the words, ``"my_sender.py"`` is a program that was written, ``"--skeleton"`` asks for the
    one to begin with, and ``"--hint"`` for what is to be done.
    """
    argv = [sys.executable, "-P", "-m", "spead_tutorial.tools.cli", "check", str(chapter), *words]
    done = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(done.stdout, end="")
