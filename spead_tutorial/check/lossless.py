# SPDX-License-Identifier: BSD-3-Clause
"""How fast a reader's receiver is: the highest rate at which it loses nothing, beside others'."""

import functools
from collections.abc import Iterator
from pathlib import Path

from spead_tutorial.chapters import exercises
from spead_tutorial.chapters.catalogue import ReceiverExercise
from spead_tutorial.check.arriving import started
from spead_tutorial.check.comparison import SKELETON, YOURS, Comparison, Show, in_rounds
from spead_tutorial.lab import Lab
from spead_tutorial.measure import blast, search
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import Done, ProgramError
from spead_tutorial.measure.records import OURS, Received, Sample
from spead_tutorial.measure.running import Running

__all__ = ["measured"]

_PACKET_SIZE = 9000
_LIMIT_S = 60.0
#: Rates of searches that differ by less than this are called the same: two steps of a search.
_CLOSE = search.THOROUGH.narrow**2 - 1


def measured(exercise: ReceiverExercise, program: Path, rounds: int, show: Show) -> Comparison:
    """Find the highest rates without loss of a receiver, the skeleton, and the chapter's own."""
    heap_size = exercise.heap_size
    assert heap_size is not None
    programs = {
        SKELETON: exercises.skeleton(exercise),
        YOURS: program,
        OURS: exercises.solution(exercise),
    }
    cases = [
        Case(who, "python", exercise.program, heap_size, _PACKET_SIZE, search=True)
        for who in programs
    ]
    with receiving_lab() as lab:

        def look(step: Step, warm_up: Sample | None) -> Iterator[Received]:
            run = functools.partial(_run, lab, exercise, step, programs[step.case.implementation])
            return search.look(run, step, warm_up)

        found = in_rounds(cases, look, programs, lab.facts(), rounds, show, search.settled)
    for who, row in found.items():
        if row.failure is not None:
            raise ProgramError(f"{programs[who].name}: {row.failure}")
    if search.is_bound(found[SKELETON].samples):
        raise ProgramError(
            "the sender could not keep a rate at which the skeleton loses something: this machine"
            " is busy, try again"
        )
    return Comparison(found, "it would not look at the values", _CLOSE)


def _run(
    lab: Lab, exercise: ReceiverExercise, step: Step, program: Path, heaps: int, rate: float
) -> Received:
    """Send to a receiver at a rate, in bytes of payload a second."""
    before = lab.counters().tx_dropped
    return blast.take(
        step,
        heaps,
        lambda: _both(lab, exercise, program, step.case, heaps, rate),
        (lab.device, lab.kind),
        chapter=exercise.chapter.number,
        asked=rate,
        lost_messages=lambda: lab.counters().tx_dropped - before,
    )


def _both(
    lab: Lab, exercise: ReceiverExercise, program: Path, case: Case, heaps: int, rate: float
) -> tuple[Done, Done]:
    """Run the sender and a receiver beside each other."""
    first, second = a_core_each()
    argv = blast.blast(case, heaps, "--describe", lab.address, lab.port, payload=rate)
    with (
        started(lab.receiver, exercise, program, case.heap_size, core=second) as receiver,
        Running(lab.popen, "blast", argv, core=first) as sender,
    ):
        return sender.wait(), receiver.wait(_LIMIT_S)
