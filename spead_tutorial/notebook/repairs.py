# SPDX-License-Identifier: BSD-3-Clause
"""Senders with a fault that the reader repairs, and what tells whether it is repaired."""

import dataclasses
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from spead_tutorial.notebook.place import NotebookPlace
from spead_tutorial.notebook.trials import Trial, try_sender

__all__ = ["Repair"]

#: So slow that a program is always ready before the heap that it sent last is: then what overlaps
#: depends on the program alone, and not on the machine.
_SLOW = 250e3
#: For page faults: heaps too large for the allocator to keep, and few of them.
_LARGE, _N_LARGE = 64 << 20, 10


@dataclasses.dataclass(frozen=True, slots=True)
class _Finding:
    """One thing that was looked at."""

    right: bool
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Repair:
    """An exercise: a sender with a fault, to be repaired.

    A sender is a function ``send(stream, heap_size, n_heaps)``, a coroutine as a rule. Heap i of
    those that it sends, from 0, has the timestamp i, and all of its samples are i.

    Parameters
    ----------
    place : NotebookPlace
        Where it is tried.
    question : str
        Markdown.
    solution : str
        A sender that is right, as code.
    explanation : str
        Why it is.
    heap_size, n_heaps : int
        Of the heaps whose samples are looked at: at most 127, as a sample has one byte.
    max_heaps : int
        Heaps that the stream takes at a time.
    calls_per_heap : float, optional
        Calls of the stream that it may make for each heap.
    new_memory : int, optional
        Heaps whose memory it may touch for the first time, when it sends ten large ones; None
        where that is not looked at.
    """

    place: NotebookPlace
    question: str
    solution: str
    explanation: str = ""
    heap_size: int = 8192
    n_heaps: int = 20
    max_heaps: int = 2
    calls_per_heap: float | None = None
    new_memory: int | None = None

    def __repr__(self) -> str:
        return f"Exercise: {self.question}"

    def _repr_markdown_(self) -> str:
        return f"**Exercise.** {self.question}"

    def check(self, send: Callable[..., Any] | None) -> None:
        """Try a sender, and say what is right and what is not; None is for no answer yet."""
        if send is None:
            print("Not answered yet.")
            return
        findings = list(self._findings(send))
        for finding in findings:
            print(f"{'right' if finding.right else 'WRONG'}  {finding.text}")
        wrong = sum(not finding.right for finding in findings)
        print("Repaired." if wrong == 0 else f"Not repaired yet: {wrong} of {len(findings)} wrong.")

    def reveal(self) -> None:
        """Show a sender that is right, and say why it is."""
        print(textwrap.dedent(self.solution).strip())
        if self.explanation:
            print(f"\n{self.explanation}")

    def _findings(self, send: Callable[..., Any]) -> Iterator[_Finding]:
        trial = self._try(send, self.heap_size, self.n_heaps, receive=True, rate=_SLOW)
        if trial.failure is not None:
            yield _Finding(False, f"sender: {trial.failure}")
            return
        yield _samples(trial, self.n_heaps)
        yield _overlap(trial)
        if self.calls_per_heap is not None:
            yield _calls(trial, self.calls_per_heap)
        if trial.unfinished:
            yield _Finding(False, f"futures: {trial.unfinished} not done at the end; await them")
        if self.new_memory is not None:
            yield from self._memory(send, self.new_memory)

    def _memory(self, send: Callable[..., Any], most: int) -> Iterator[_Finding]:
        trial = self._try(send, _LARGE, _N_LARGE, small_pages=True)
        if trial.failure is not None:
            yield _Finding(False, f"sender, with large heaps: {trial.failure}")
            return
        if trial.heaps != _N_LARGE:
            yield _Finding(False, f"large heaps: {trial.heaps} were sent, not {_N_LARGE}")
            return
        touched = round(trial.page_faults * trial.page_size / _LARGE)
        more = "" if touched <= most else f"; that of {most} is enough"
        yield _Finding(
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
            max_heaps=self.max_heaps,
            **how,
        )
        print(trial.said, end="")
        return trial


def _samples(trial: Trial, n_heaps: int) -> _Finding:
    """Say whether all heaps have arrived, each once, in order, and as they were to be."""
    arrived = trial.arrived or []
    timestamps = [heap[0] for heap in arrived]
    missing = sorted(set(range(n_heaps)) - set(timestamps))
    if missing:
        there = n_heaps - len(missing)
        which = "" if there == 0 else f"; the first that is missing is heap {missing[0]}"
        return _Finding(False, f"samples: {there} of {n_heaps} heaps arrived{which}")
    if timestamps != list(range(n_heaps)):
        more = f"samples: {len(arrived)} heaps arrived: each of {n_heaps} is to come once, in order"
        return _Finding(False, more)
    spoilt = [heap for heap in arrived if not heap[0] == heap[1] == heap[2]]
    if not spoilt:
        return _Finding(True, f"samples: all {n_heaps} heaps arrived, and are what they should be")
    # Not the first: whether that one leaves before a program spoils it is a matter of luck.
    number, lowest, highest = spoilt[:2][-1]
    seen = f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
    text = f"samples: heaps are spoilt, such as heap {number}, which has samples {seen}"
    return _Finding(False, text)


def _overlap(trial: Trial) -> _Finding:
    """Say whether a call is made while the heaps of the call before are on their way."""
    what = "batches" if trial.heaps > trial.calls else "heaps"
    if trial.in_flight >= 2:
        return _Finding(True, f"{what} in flight: at least 2, one on its way and one that is ready")
    text = f"{what} in flight: {trial.in_flight}; there should be 2, one on its way and one ready"
    return _Finding(False, text)


def _calls(trial: Trial, most: float) -> _Finding:
    """Say whether calls are shared by many heaps."""
    right = trial.calls <= most * trial.heaps
    more = "" if right else f"; {most * trial.heaps:.0f} are enough"
    return _Finding(right, f"calls: {trial.calls} for {trial.heaps} heaps{more}")
