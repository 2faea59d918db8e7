# SPDX-License-Identifier: BSD-3-Clause
"""How fast a reader's sender is: measured in rounds with the skeleton and the chapter's own."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from spead_tutorial.chapters import exercises
from spead_tutorial.chapters.catalogue import SenderExercise
from spead_tutorial.check.trying import started_as
from spead_tutorial.measure import baselines
from spead_tutorial.measure.analysis import Row, rates_by_round, rows
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.programs import ProgramError, program_path
from spead_tutorial.measure.records import OURS, Sample
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.stats import Estimate, differs, gain
from spead_tutorial.results.units import percent

#: What the implementations are called besides ours and the bare loops.
SKELETON, YOURS = "skeleton", "yours"
_MIB = 1 << 20
_SEED = 17
_LIMIT_S = 60.0
_PACKET_SIZE = 9000
_CLOSE = 0.05  # rates that differ by less than this are called the same
_FASTER, _SLOWER = "is faster than", "is slower than"
Show = Callable[[Sequence[Step]], Iterable[Step]]  #: Shows how far all steps have come.


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    # a row for each implementation: `SKELETON` where there is one in the sender's language,
    # `YOURS`, `"ours"`, and `"ceiling"` where there is one
    found: dict[str, Row]
    without_ceiling: str | None  # why there is none

    def times(self, one: str, other: str) -> Estimate:
        """Return how many times as fast one is as the other, by ratios within rounds."""
        after, before = (rates_by_round(self.found[who].samples) for who in (one, other))
        return gain(before, after)


def measured(
    place: Place, exercise: SenderExercise, program: Path, rounds: int, show: Show
) -> Comparison:
    """Measure a sender, the skeleton, the chapter's own, and bare loops."""
    bare = _case(exercise, CEILING, "c")
    missing = baselines.missing(bare) if exercise.has_ceiling else "no bare loop does the same"
    language = "python" if program.suffix == ".py" else "c"
    programs = {YOURS: program, OURS: program_path(exercise.program, language)}
    if language == "python":
        programs = {SKELETON: exercises.skeleton(exercise)} | programs
    cases = [_case(exercise, who, language) for who in programs] + [bare] * (missing is None)

    def look(step: Step, _: Sample | None) -> Sample:
        who = step.case.implementation
        if who == CEILING:
            launch = baselines.launch(step.case, step.heaps)
        else:
            launch = started_as(programs[who], exercise.chapter, step.case.options(step.heaps))
        return take(place, step, launch=launch, timeout=_LIMIT_S)

    def stop(step: Step, failure: str) -> NoReturn:
        """Say it in the name of the program."""
        who = step.case.implementation
        name = programs[who].name if who in programs else who
        for called in (step.case.program, Path(name).stem):
            failure = failure.removeprefix(f"{called}: ")
        raise ProgramError(f"{name}: {failure}")

    about = header("check", place.facts(), {"rounds": rounds, "seed": _SEED})
    steps = schedule(cases, rounds, _SEED)
    found = {row.last.implementation: row
             for row in rows(measure(steps, look, about, show=show, say=stop))}  # fmt: skip
    return Comparison({case.implementation: found[case.implementation] for case in cases}, missing)


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


# ---- In words ----


def verdict(found: Comparison, name: str) -> str:
    """Say in a sentence how fast a program is."""
    to_chapter = found.times(YOURS, OURS)
    beside_chapter = f"{name} {_compared(to_chapter)} the chapter's own program"
    if SKELETON not in found.found:
        return beside_chapter
    step, mine = found.times(OURS, SKELETON), found.times(YOURS, SKELETON)
    if _compared(step) != _FASTER:
        return f"{beside_chapter}, which gains nothing here itself"
    if _compared(to_chapter) != _SLOWER:
        return beside_chapter
    if (compared := _compared(mine)) != _FASTER:
        return f"{name} gains nothing of the step: it {compared} the skeleton"
    return f"{name} gains {percent((mine.median - 1) / (step.median - 1))} of the step"


def _compared(times: Estimate) -> str:
    if 1 / (1 + _CLOSE) <= times.median <= 1 + _CLOSE:
        return "is as fast as"
    if not differs(times):
        return "cannot be told from"
    return _FASTER if times.median > 1 else _SLOWER
