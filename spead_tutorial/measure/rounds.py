# SPDX-License-Identifier: BSD-3-Clause
"""Cases in rounds, in each of which all of them come in a random order.

What has been taken is on the disk at once. A run that was interrupted, or killed, goes on from
there: the order of each round follows from the seed and the round alone.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from spead_tutorial.measure import search
from spead_tutorial.measure.case import Case, Key, Step
from spead_tutorial.measure.machine import differs
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import (
    Header,
    Received,
    RecordError,
    Recording,
    Sample,
    Timeline,
    Writer,
    read,
)

#: A case is given up after this number of failures in a row with the same words.
PATIENCE = 3


def schedule(cases: Iterable[Case], rounds: int, seed: int) -> Iterator[Step]:
    """Yield all steps in their order: a warm-up of all cases, the rounds, the timelines."""
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


def _key(sample: Sample) -> Key:
    return sample.case, sample.round, sample.warm_up


def given_up(samples: Iterable[Sample], superseded: Iterable[Sample] = ()) -> dict[str, str]:
    """Return the cases that are not tried again, as they fail in the same way every time."""
    repeated = Counter((_key(one), one.failure) for one in superseded)
    last: dict[str, tuple[str | None, int]] = {}
    for one in samples:
        words, n = last.get(one.case, (None, 0))
        n = n if one.failure == words else 0
        n += 1 + repeated[_key(one), one.failure]
        last[one.case] = one.failure, n
    return {case: words for case, (words, n) in last.items() if words is not None and n >= PATIENCE}


def left(steps: Iterable[Step], begun: Recording | None, *, retry: bool = False) -> list[Step]:
    """Return the steps that are still to be done, or once more, as they failed."""
    if begun is None:
        return list(steps)
    done = {_key(sample) for sample in begun.samples}
    done |= {(timeline.case, 0, False) for timeline in begun.timelines}
    again = {_key(one): one.attempt + 1 for one in begun.samples if one.failure is not None}
    hopeless = {} if retry else given_up(begun.samples, begun.superseded)
    runs = _runs(begun.samples)
    wanted = []
    for step in steps:
        its = tuple(runs.get(step.key, ()))
        is_over = step.key in done and not (its and search.found(its) is None)
        if step.case.name not in hopeless and (step.key in again or not is_over):
            wanted.append(dataclasses.replace(step, runs=its, attempt=again.get(step.key, 0)))
    return wanted


def _runs(samples: Iterable[Sample]) -> dict[Key, list[Received]]:
    """Return the runs of each search that are not to be repeated, in their order."""
    found: dict[Key, list[Received]] = {}
    for one in sorted(filter(search.is_search, samples), key=lambda one: one.run):
        found.setdefault(_key(one), []).extend([one] * (one.failure is None))
    return found


def measure(
    steps: Iterable[Step],
    take: Callable[[Step, Sample | None], Sample | Timeline | Iterable[Sample | Timeline]],
    header: Header,
    *,
    path: Path | None = None,
    retry: bool = False,
    show: Callable[[Sequence[Step]], Iterable[Step]] = iter,
    say: Callable[[Step, str], None],
) -> Recording:
    """Take the samples that a record lacks; what fails alike `PATIENCE` times is given up."""
    writer, begun = None, Recording(header, ())
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        writer, begun = _open(path, header)
    samples = {(*_key(one), one.run): one for one in begun.samples}
    superseded, timelines = list(begun.superseded), list(begun.timelines)
    hopeless: set[str] = set()
    try:
        for step in show(left(steps, begun, retry=retry)):
            if step.case.name in hopeless:
                continue
            for result in _results(take, step, _known(step, samples.values()), say):
                if writer is not None:
                    writer.add(result)
                if isinstance(result, Timeline):
                    timelines.append(result)
                    continue
                key = (*step.key, result.run)
                if key in samples:
                    superseded.append(samples.pop(key))
                samples[key] = result
                if result.failure is None:
                    continue
                say(step, result.failure)
                if step.case.name in given_up(samples.values(), superseded):
                    hopeless.add(step.case.name)
                    say(step, f"is given up, as it failed like this {PATIENCE} times in a row")
    finally:
        if writer is not None:
            writer.close()
    if path is not None:
        return read(path)
    return Recording(
        header, tuple(samples.values()), tuple(timelines), superseded=tuple(superseded)
    )


def _results(
    take: Callable[[Step, Sample | None], Sample | Timeline | Iterable[Sample | Timeline]],
    step: Step,
    known: Sample | None,
    say: Callable[[Step, str], None],
) -> Iterator[Sample | Timeline]:
    """Yield what there is of a step: a sample, a timeline, or the runs of a search."""
    try:
        result = take(step, known)
        yield from (result,) if isinstance(result, Sample | Timeline) else result
    except ProgramError as error:
        say(step, str(error))


def _known(step: Step, samples: Iterable[Sample]) -> Sample | None:
    """Return a case's fastest sample yet, for its warm-up none; of a search, what that found."""
    if step.warm_up:
        return None
    mine = [one for one in samples if one.case == step.case.name]
    if step.case.search:
        warm_up = [one for one in mine if one.warm_up]
        return search.found(list(filter(search.is_search, warm_up)))
    return max(mine, key=lambda one: one.rate or 0, default=None)


def _open(path: Path, header: Header) -> tuple[Writer, Recording]:
    """Begin a record, or go on with the one that is there."""
    if not (path.exists() and path.stat().st_size):
        return Writer(path, header), Recording(header, ())
    before = read(path, unfinished=True)
    if len(before.headers) > 1:
        raise RecordError(f"{path.name} was merged: measure into another folder (-o)")
    if (why := differs(before.header, header)) is not None:
        raise RecordError(
            f"{path.name} was begun otherwise ({why}): --restart begins it anew, -o keeps it and"
            " measures into another folder"
        )
    return Writer(path), before
