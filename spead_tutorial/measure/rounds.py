# SPDX-License-Identifier: BSD-3-Clause
"""Cases in rounds, in each of which all of them come in a random order.

What has been taken is on the disk at once. A run that was interrupted, or killed, goes on from
there: the order of each round follows from the seed and the round alone.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from spead_tutorial.measure.case import Case, Key, Step
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.records import Header, RecordError, Recording, Sample, Timeline, Writer, read

__all__ = [
    "differences",
    "measure",
    "schedule",
    "taken_so_far",
]

_DIFFERENT_EVERY_TIME = ("load",)
_SAME_SETTINGS = ("size", "seed", "longest_s", "most_bytes", "shard")


def schedule(cases: Iterable[Case], rounds: int, seed: int) -> Iterator[Step]:
    """Yield all steps in their order: a warm-up of all cases, the rounds, the timelines.

    Parameters
    ----------
    cases : iterable of Case
        No two of one name.
    rounds : int
        How many count.
    seed : int
        With the number of a round, it decides on the order in it.
    """
    cases = list(cases)
    rates = [case for case in cases if not case.timeline]
    for number in range(-1, rounds):
        order = list(rates)
        random.Random(f"{seed}/{number}").shuffle(order)
        for case in order:
            yield Step(max(0, number), number < 0, case)
    for case in cases:
        if case.timeline:
            yield Step(0, False, case)


def taken_so_far(recording: Recording) -> dict[Key, Sample | None]:
    """Return what a record holds already, by what no two samples of it share.

    Parameters
    ----------
    recording : Recording
        As it was read.

    Returns
    -------
    dict
        Of a timeline, there is None.
    """
    samples: dict[Key, Sample | None] = {
        (sample.case, sample.round, sample.warm_up): sample for sample in recording.samples
    }
    return samples | {(timeline.case, 0, False): None for timeline in recording.timelines}


def measure(
    steps: Iterable[Step],
    take: Callable[[Step, Sample | None], Sample | Timeline],
    header: Header,
    *,
    path: Path | None = None,
    show: Callable[[Sequence[Step]], Iterable[Step]] = iter,
    say: Callable[[Step, str], None],
) -> Recording:
    """Take all samples that a record does not hold yet.

    Parameters
    ----------
    steps : iterable of Step
        What is wanted.
    take : function
        Takes one: of a step, and the sample that warmed its case up, if there is one.
    header : Header
        Where, when and with what.
    path : path, optional
        The record; what it holds is kept. Without it there is none on the disk.
    show : function
        Takes all steps that are to be done, and yields them while it shows how far it has come.
    say : function
        Is told of a step without a rate, and why; it may raise.

    Raises
    ------
    RecordError
        Where the record that is there is of something else.
    """
    done: dict[Key, Sample | None] = {}
    taken: list[Sample | Timeline] = []
    writer = None
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer, done = _open(path, header)
    try:
        for step in show([step for step in steps if step.key not in done]):
            try:
                result = take(step, done.get((step.case.name, 0, True)))
            except ProgramError as error:
                say(step, str(error))
                continue
            taken.append(result)
            if writer is not None:
                writer.add(result)
            if isinstance(result, Sample):
                done[step.key] = result
                if result.failure is not None:
                    say(step, result.failure)
    finally:
        if writer is not None:
            writer.close()
    if path is not None:
        return read(path)
    return Recording(
        header,
        tuple(sample for sample in taken if isinstance(sample, Sample)),
        tuple(timeline for timeline in taken if isinstance(timeline, Timeline)),
    )


def _open(path: Path, header: Header) -> tuple[Writer, dict[Key, Sample | None]]:
    """Begin a record, or go on with the one that is there."""
    if not (path.exists() and path.stat().st_size):
        return Writer(path, header), {}
    before = read(path, unfinished=True)
    if len(before.headers) > 1:
        raise RecordError(f"{path.name} was merged: measure into another folder (-o)")
    changed = differences(before.header, header)
    if changed:
        raise RecordError(
            f"{path.name} was begun with another {', '.join(changed)}: --restart begins it anew,"
            " -o keeps it and measures into another folder"
        )
    return Writer(path), taken_so_far(before)


def differences(one: Header, other: Header) -> list[str]:
    """Name what makes samples of one header no continuation of those of another.

    Parameters
    ----------
    one, other : Header
        Of two records, or of one and of what is to go on with it.
    """
    names = [
        name
        for name in ("experiment", "lab", "versions", "revision")
        if getattr(one, name) != getattr(other, name)
    ]
    mine, theirs = (
        {k: v for k, v in h.machine.items() if k not in _DIFFERENT_EVERY_TIME} for h in (one, other)
    )
    names += ["machine"] * (mine != theirs)
    return names + [n for n in _SAME_SETTINGS if one.settings.get(n) != other.settings.get(n)]
