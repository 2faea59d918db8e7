# SPDX-License-Identifier: BSD-3-Clause
"""How fast a reader's program is: measured in rounds with the skeleton and the chapter's own.

Of a sender that is its rate, of a receiver the highest one at which it loses nothing.
"""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from spead_tutorial.chapters import exercises
from spead_tutorial.chapters.catalogue import ReceiverExercise, SenderExercise
from spead_tutorial.check.arriving import started
from spead_tutorial.check.trying import started_as
from spead_tutorial.lab import Lab
from spead_tutorial.measure import baselines, delivery, search
from spead_tutorial.measure.analysis import Row, rates_by_round, rows
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.machine import a_core_each, header
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.programs import Done, ProgramError, program_path
from spead_tutorial.measure.records import OURS, Received, Recording, Sample
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.stats import Estimate, differs, gain
from spead_tutorial.results.units import percent

#: What the implementations are called besides ours and the bare loops.
SKELETON, YOURS = "skeleton", "yours"
_MIB = 1 << 20
_SEED = 17
_LIMIT_S = 60.0
_PACKET_SIZE = 9000
#: Rates of searches that differ by less than this are called the same: two steps of a search.
_CLOSE_SEARCHES = search.THOROUGH.narrow**2 - 1
_FASTER, _SLOWER = "is faster than", "is slower than"
Show = Callable[[Sequence[Step]], Iterable[Step]]  #: Shows how far all steps have come.


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    # a row for each implementation: `SKELETON` where there is one in the sender's language,
    # `YOURS`, `"ours"`, and `"ceiling"` where there is one
    found: dict[str, Row]
    without_ceiling: str | None  # why there is none
    close: float = 0.05  # rates that differ by less than this are called the same

    def times(self, one: str, other: str) -> Estimate:
        """Return how many times as fast one is as the other, by ratios within rounds."""
        after, before = (rates_by_round(self.found[who].samples) for who in (one, other))
        return gain(before, after)


def _in_python(exercise: SenderExercise | ReceiverExercise, program: Path) -> dict[str, Path]:
    return {
        SKELETON: exercises.skeleton(exercise),
        YOURS: program,
        OURS: exercises.solution(exercise),
    }


def _in_rounds(
    cases: Sequence[Case],
    look: Callable[..., Any],
    programs: Mapping[str, Path],
    facts: dict[str, Any],
    rounds: int,
    show: Show,
    settled: Callable[[Recording], Recording] = lambda recording: recording,
) -> dict[str, Row]:
    """Measure implementations in rounds; where one fails, it is said in the name of its program."""

    def stop(step: Step, failure: str) -> NoReturn:
        who = step.case.implementation
        name = programs[who].name if who in programs else who
        for called in (step.case.program, Path(name).stem):
            failure = failure.removeprefix(f"{called}: ")
        raise ProgramError(f"{name}: {failure}")

    about = header("check", facts, {"rounds": rounds, "seed": _SEED})
    steps = schedule(cases, rounds, _SEED)
    recording = measure(steps, look, about, show=show, say=stop)
    found = {row.last.implementation: row for row in rows(settled(recording))}
    return {case.implementation: found[case.implementation] for case in cases}


# ---- Senders ----


def measured(
    place: Place, exercise: SenderExercise, program: Path, rounds: int, show: Show
) -> Comparison:
    """Measure a sender, the skeleton, the chapter's own, and bare loops."""
    bare = _case(exercise, CEILING, "c")
    missing = baselines.missing(bare) if exercise.has_ceiling else "no bare loop does the same"
    programs = _in_python(exercise, program)
    language = "python" if program.suffix == ".py" else "c"
    if language == "c":
        programs = {YOURS: program, OURS: program_path(exercise.program, "c")}
    cases = [_case(exercise, who, language) for who in programs] + [bare] * (missing is None)

    def look(step: Step, _: Sample | None) -> Sample:
        who = step.case.implementation
        if who == CEILING:
            launch = baselines.launch(step.case, step.heaps)
        else:
            launch = started_as(programs[who], exercise.chapter, step.case.options(step.heaps))
        return take(place, step, launch=launch, timeout=_LIMIT_S)

    found = _in_rounds(cases, look, programs, place.facts(), rounds, show)
    return Comparison(found, missing)


def _case(exercise: SenderExercise, implementation: str, language: str) -> Case:
    cores = len(os.sched_getaffinity(0))
    is_bare = implementation == CEILING
    return Case(
        implementation,
        language,
        CEILING if is_bare else exercise.program,
        exercise.heap_size,
        exercise.chapter.packet_size or _PACKET_SIZE,  # where the route has the say
        variant="one thread" if is_bare else "",
        streams=cores if is_bare and "s" in exercise.chapter.accepted and cores > 1 else None,
        heaps=max(2 * cores, exercise.mebibytes * _MIB // exercise.heap_size),
    )


# ---- Receivers ----


def lossless(exercise: ReceiverExercise, program: Path, rounds: int, show: Show) -> Comparison:
    """Find the highest rates without loss of a receiver, the skeleton, and the chapter's own."""
    heap_size = exercise.heap_size
    assert heap_size is not None
    programs = _in_python(exercise, program)
    cases = [Case(who, "python", exercise.program, heap_size, _PACKET_SIZE) for who in programs]
    with receiving_lab() as lab:

        def look(step: Step, warm_up: Sample | None) -> Iterator[Received]:
            run = functools.partial(
                _receive, lab, exercise, step, programs[step.case.implementation]
            )
            return search.look(run, step, warm_up)

        found = _in_rounds(cases, look, programs, lab.facts(), rounds, show, search.settled)
    for who, row in found.items():
        if row.failure is not None:
            raise ProgramError(f"{programs[who].name}: {row.failure}")
    if search.is_bound(found[SKELETON].samples):
        raise ProgramError(
            "the sender could not keep a rate at which the skeleton loses something: this machine"
            " is busy, try again"
        )
    return Comparison(found, "it would not look at the values", _CLOSE_SEARCHES)


def _receive(
    lab: Lab, exercise: ReceiverExercise, step: Step, program: Path, heaps: int, rate: float
) -> Received:
    """Send to a receiver at a rate, in bytes of payload a second."""
    before = lab.counters().tx_dropped
    return delivery.take(
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
    first, second = a_core_each()
    argv = delivery.blast(case, heaps, "--describe", lab.address, lab.port, payload=rate)
    with (
        started(lab.receiver, exercise, program, case.heap_size, core=second) as receiver,
        Running(lab.popen, "blast", argv, core=first) as sender,
    ):
        return sender.wait(), receiver.wait(_LIMIT_S)


# ---- In words ----


def verdict(found: Comparison, name: str) -> str:
    """Say in a sentence how fast a program is."""
    to_chapter = found.times(YOURS, OURS)
    beside_chapter = f"{name} {_compared(to_chapter, found.close)} the chapter's own program"
    if SKELETON not in found.found:
        return beside_chapter
    step, mine = found.times(OURS, SKELETON), found.times(YOURS, SKELETON)
    if _compared(step, found.close) != _FASTER:
        return f"{beside_chapter}, which gains nothing here itself"
    if _compared(to_chapter, found.close) != _SLOWER:
        return beside_chapter
    if (compared := _compared(mine, found.close)) != _FASTER:
        return f"{name} gains nothing of the step: it {compared} the skeleton"
    return f"{name} gains {percent((mine.median - 1) / (step.median - 1))} of the step"


def _compared(times: Estimate, close: float) -> str:
    if 1 / (1 + close) <= times.median <= 1 + close:
        return "is as fast as"
    if not differs(times):
        return "cannot be told from"
    return _FASTER if times.median > 1 else _SLOWER
