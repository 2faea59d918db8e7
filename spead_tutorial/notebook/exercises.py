# SPDX-License-Identifier: BSD-3-Clause
"""Exercises: questions whose answers are checked, and senders with a fault, to be repaired.

Answers are hidden until they are asked for.
"""

import dataclasses
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spead_tutorial.check.trying import Wanted, first_fault
from spead_tutorial.measure.place import Place
from spead_tutorial.notebook.trials import Trial, try_sender

__all__ = ["Exercise", "Repair"]

#: So slow that a program is always ready before the heap that it sent last is: then what overlaps
#: depends on the program alone, and not on the machine.
_SLOW = 250e3
_PACKET_SIZE = 9000
#: For page faults: heaps too large for the allocator to keep, and few of them.
_LARGE, _N_LARGE = 64 << 20, 10

_NO_ANSWER = "Not answered yet: give check() your answer, or call reveal()."

#: Whether one thing that was looked at is right, and what is said of it.
_Verdict = tuple[bool, str]


class _Question:
    """Shows itself as what it asks."""

    __slots__ = ()

    question: str

    def __repr__(self) -> str:
        return f"Exercise: {self.question}"

    def _repr_markdown_(self) -> str:
        return f"**Exercise.** {self.question}"


# ---- Questions ----


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Exercise(_Question):
    """A question whose answer is checked, and hidden until it is asked for."""

    question: str  #: Markdown.
    answer: Any  #: The answer, or a function without arguments that finds it when it is needed.
    tolerance: float = 0.0  #: By how much a number may differ, in the answer's own unit.
    hint: str = ""  #: What to think about, for those whose answer is wrong.
    explanation: str = ""  #: Why the answer is what it is.

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


# ---- Repairs ----


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Repair(_Question):
    """An exercise: a sender with a fault, to be repaired.

    A sender is a function ``send(stream, heap_size, n_heaps)``, a coroutine as a rule. Heap i of
    those that it sends, from 0, has the timestamp i, and all of its samples are i.
    """

    place: Place  #: Where it is tried.
    question: str  #: Markdown.
    solution: str  #: A sender that is right, as code.
    explanation: str = ""  #: Why it is.
    heap_size: int = 8192  #: Of the heaps whose samples are looked at.
    n_heaps: int = 20  #: How many they are: at most 127, as a sample has one byte.
    max_heaps: int = 2  #: Heaps that the stream takes at a time.
    calls_per_heap: float | None = None  #: Calls of the stream that it may make for each heap.
    #: Heaps whose memory it may touch for the first time, when it sends ten large ones; None where
    #: that is not looked at.
    new_memory: int | None = None

    def check(self, send: Callable[..., Any] | None) -> None:
        """Try a sender, and say what is right and what is not; None is for no answer yet."""
        if send is None:
            print(_NO_ANSWER)
            return
        verdicts = list(self._verdicts(send))
        for right, text in verdicts:
            print(f"{'right' if right else 'WRONG'}  {text}")
        wrong = sum(not right for right, _ in verdicts)
        print("Repaired." if wrong == 0 else f"Not repaired yet: {wrong} of {len(verdicts)} wrong.")

    def reveal(self) -> None:
        """Show a sender that is right, and say why it is."""
        print(textwrap.dedent(self.solution).strip())
        if self.explanation:
            print(f"\n{self.explanation}")

    def _verdicts(self, send: Callable[..., Any]) -> Iterator[_Verdict]:
        trial = self._try(send, self.heap_size, self.n_heaps, receive=True, rate=_SLOW)
        if trial.failure is not None:
            yield False, trial.failure
            return
        yield self._samples(trial)
        yield _overlap(trial)
        if self.calls_per_heap is not None:
            yield _calls(trial, self.calls_per_heap)
        if trial.unfinished:
            yield False, f"futures: {trial.unfinished} not done at the end; await them"
        if self.new_memory is not None:
            yield from self._memory(send, self.new_memory)

    def _samples(self, trial: Trial) -> _Verdict:
        """Say what is wrong first with what has arrived."""
        wanted = Wanted(self.n_heaps, self.heap_size, _PACKET_SIZE, tick=1, whole=False)
        fault = first_fault(trial.arrived or [], wanted)
        right = f"all {self.n_heaps} heaps arrived, and are what they should be"
        return fault is None, f"samples: {fault or right}"

    def _memory(self, send: Callable[..., Any], most: int) -> Iterator[_Verdict]:
        trial = self._try(send, _LARGE, _N_LARGE, small_pages=True)
        if trial.failure is not None:
            yield False, f"large heaps: {trial.failure}"
            return
        if trial.heaps != _N_LARGE:
            yield False, f"large heaps: {trial.heaps} were sent, not {_N_LARGE}"
            return
        touched = round(trial.page_faults * trial.page_size / _LARGE)
        more = "" if touched <= most else f"; that of {most} is enough"
        yield (
            touched <= most,
            f"memory: for {_N_LARGE} heaps of {_LARGE >> 20} MiB, that of {touched} was touched for"
            f" the first time{more}",
        )

    def _try(self, send: Callable[..., Any], heap_size: int, n_heaps: int, **how: Any) -> Trial:
        trial = try_sender(
            self.place,
            send,
            heap_size=heap_size,
            n_heaps=n_heaps,
            packet_size=_PACKET_SIZE,
            max_heaps=self.max_heaps,
            **how,
        )
        print(trial.said, end="")
        return trial


def _overlap(trial: Trial) -> _Verdict:
    """Say whether a call is made while the heaps of the call before are on their way."""
    what = "batches" if trial.heaps > trial.calls else "heaps"
    if trial.in_flight >= 2:
        return True, f"{what} in flight: at least 2, one on its way and one that is ready"
    text = f"{what} in flight: {trial.in_flight}; there should be 2, one on its way and one ready"
    return False, text


def _calls(trial: Trial, most: float) -> _Verdict:
    """Say whether calls are shared by many heaps."""
    right = trial.calls <= most * trial.heaps
    more = "" if right else f"; {most * trial.heaps:.0f} are enough"
    return right, f"calls: {trial.calls} for {trial.heaps} heaps{more}"
