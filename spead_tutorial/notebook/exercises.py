# SPDX-License-Identifier: BSD-3-Clause
"""Questions with answers that are checked, and hidden until they are asked for."""

import dataclasses
from collections.abc import Sequence
from typing import Any

__all__ = ["Exercise"]


@dataclasses.dataclass(frozen=True, slots=True)
class Exercise:
    """A question whose answer is checked, and hidden until it is asked for.

    Parameters
    ----------
    question : str
        Markdown.
    answer : object
        The answer, or a function without arguments that finds it when it is needed.
    tolerance : float
        By how much a number may differ, in the answer's own unit.
    hint : str
        What to think about, for those whose answer is wrong.
    explanation : str
        Why the answer is what it is.
    """

    question: str
    answer: Any
    tolerance: float = 0.0
    hint: str = ""
    explanation: str = ""

    def __repr__(self) -> str:
        return f"Exercise: {self.question}"

    def _repr_markdown_(self) -> str:
        return f"**Exercise.** {self.question}"

    def check(self, answer: Any) -> None:
        """Say whether an answer is right; None is for one that has not been given."""
        if answer is None:
            print("Not answered yet.")
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
