# SPDX-License-Identifier: BSD-3-Clause
"""Exercises: questions whose answers are checked, and programs to be written.

Answers are hidden until they are asked for.
"""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["Exercise", "check"]

_NO_ANSWER = "Not answered yet: give check() your answer, or call reveal()."
#: How numbers look that have commas, and what these stand for.
_COMMAS = {r"-?\d{1,3}(,\d{3})+(\.\d+)?": "", r"-?\d+,\d+": "."}


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

    def check(self, *answer: Any) -> None:
        """Say whether an answer is right, and why; None is for one that has not been given.

        Several numbers may be given without parentheses. One number may have commas, ``1,638``.
        """
        right = self._answer()
        if all(one is None for one in answer):
            print(_NO_ANSWER)
        elif any(_same(one, right, self.tolerance) for one in _readings(answer, right)):
            print(f"Right. {self.explanation}".rstrip())
        else:
            print(f"Not yet: {self.hint or 'think again'}")

    def reveal(self) -> None:
        """Tell the answer, and why it is that."""
        print(f"The answer is {self._answer()}. {self.explanation}".rstrip())

    def _answer(self) -> Any:
        return self.answer() if callable(self.answer) else self.answer


def _readings(given: tuple[Any, ...], right: Any) -> list[Any]:
    """Return what an answer may mean: Python takes ``1,638`` for two numbers."""
    one = given[0] if len(given) == 1 else given
    found = [one]
    if not isinstance(right, str | bytes | bool | list | tuple):
        text = one if isinstance(one, str) else ",".join(map(str, given))
        for look, comma in _COMMAS.items():
            if re.fullmatch(look, text):
                found.append(float(text.replace(",", comma)))
    return found


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
