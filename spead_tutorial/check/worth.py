# SPDX-License-Identifier: BSD-3-Clause
"""What a reader's sender is worth: measured in rounds beside the skeleton and the chapter."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from spead_tutorial.check.trying import started_as
from spead_tutorial.exercises import Exercise
from spead_tutorial.measure import beside
from spead_tutorial.measure.beside import CEILING
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.programs import Launch, ProgramError, program_path
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.summary import Row, rows
from spead_tutorial.records import OURS, Sample
from spead_tutorial.stats import Estimate, gain, is_told
from spead_tutorial.units import percent

__all__ = ["SKELETON", "YOURS", "Worth", "measured", "verdict"]

#: What the implementations are called besides ours and the bare loops.
SKELETON, YOURS = "skeleton", "yours"
_MIB = 1 << 20
_SEED = 17
_LIMIT_S = 60.0
_FASTER, _SLOWER = "is faster than", "is slower than"


@dataclasses.dataclass(frozen=True, slots=True)
class Worth:
    """What was measured."""

    # a row for each implementation: `SKELETON` where there is one in the sender's language,
    # `YOURS`, `"ours"`, and `"ceiling"` where there is one
    found: dict[str, Row]
    without_ceiling: str | None  # why there is none
    close: float = 0.05  # rates that differ by less than this are called the same

    def times(self, one: str, other: str) -> Estimate:
        """Return how many times as fast one is as the other, by ratios within rounds."""
        after, before = (_rates(self.found[who].samples) for who in (one, other))
        return gain(before, after)


def _rates(samples: Iterable[Sample]) -> dict[int, float]:
    return {one.round: one.rate for one in samples if one.rate is not None}


def measured(
    place: Place,
    exercise: Exercise,
    program: Path,
    rounds: int,
    show: Callable[[Sequence[Step]], Iterable[Step]],
) -> Worth:
    """Measure a sender, the skeleton, the chapter's own, and bare loops."""
    bare = _case(exercise, CEILING, "c")
    missing = beside.missing(bare) if exercise.has_ceiling else "no bare loop does the same"
    programs = {SKELETON: exercise.skeleton, YOURS: program, OURS: exercise.solution}
    language = "python" if program.suffix == ".py" else "c"
    if language == "c":
        programs = {YOURS: program, OURS: program_path(exercise.rung.program, "c")}
    cases = [_case(exercise, who, language) for who in programs] + [bare] * (missing is None)

    def take_one(step: Step, _: Sample | None) -> Sample:
        launch = _launch(exercise, step, programs)
        return take(place, step, launch=launch, timeout=_LIMIT_S)

    def stop(step: Step, failure: str) -> NoReturn:
        who = step.case.implementation
        name = programs[who].name if who in programs else who
        raise ProgramError(f"{name}: {failure.removeprefix(f'{step.case.program}: ')}")

    recording = measure(
        schedule(cases, rounds, _SEED),
        take_one,
        header("check", place.facts(), {"rounds": rounds, "seed": _SEED}),
        show=show,
        say=stop,
    )
    found = {row.last.implementation: row for row in rows(recording)}
    return Worth({case.implementation: found[case.implementation] for case in cases}, missing)


def _case(exercise: Exercise, implementation: str, language: str) -> Case:
    rung = exercise.rung
    cores = len(os.sched_getaffinity(0))
    is_bare = implementation == CEILING
    return Case(
        implementation,
        language,
        CEILING if is_bare else rung.program,
        rung.heap_size,
        rung.packet_size,
        variant="one thread" if is_bare else "",
        streams=cores if is_bare and "s" in exercise.chapter.accepted and cores > 1 else None,
        heaps=max(2 * cores, rung.mebibytes * _MIB // rung.heap_size),
    )


def _launch(exercise: Exercise, step: Step, programs: dict[str, Path]) -> Launch:
    case = step.case
    if case.implementation == CEILING:
        return beside.launch(case, step.heaps)
    options = case.options(step.heaps)
    return started_as(programs[case.implementation], exercise.chapter, options)


# ---------------------------------------------------------------------------------------
# In words


def verdict(worth: Worth, name: str) -> str:
    """Say in a sentence what a sender is worth."""
    to_chapter = worth.times(YOURS, OURS)
    beside_chapter = f"{name} {_compared(to_chapter, worth.close)} the chapter's own program"
    if SKELETON not in worth.found:
        return beside_chapter
    step, mine = worth.times(OURS, SKELETON), worth.times(YOURS, SKELETON)
    if _compared(step, worth.close) != _FASTER:
        return f"{beside_chapter}, which gains nothing here itself"
    if _compared(to_chapter, worth.close) != _SLOWER:
        return beside_chapter
    if (compared := _compared(mine, worth.close)) != _FASTER:
        return f"{name} gains nothing of the step: it {compared} the skeleton"
    return f"{name} gains {percent((mine.median - 1) / (step.median - 1))} of the step"


def _compared(times: Estimate, close: float) -> str:
    if 1 / (1 + close) <= times.median <= 1 + close:
        return "is as fast as"
    if not is_told(times):
        return "cannot be told from"
    return _FASTER if times.median > 1 else _SLOWER
