# SPDX-License-Identifier: BSD-3-Clause
"""Cases in rounds, in each of which all of them come in a random order.

What has been taken is on the disk at once. A run that was interrupted, or killed, goes on from
there: the order of each round follows from the seed and the round alone.
"""

import contextlib
import dataclasses
import functools
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

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
    Taken,
    Writer,
    read,
)


def schedule(cases: Iterable[Case], rounds: int, seed: int) -> Iterator[Step]:
    """Yield all steps in their order: a warm-up, the rounds, and what is done once."""
    cases = list(cases)
    for number in range(-1, rounds):
        order = [case for case in cases if not case.observer.once]
        random.Random(f"{seed}/{number}").shuffle(order)
        for case in order:
            if number >= 0 or case.observer.warms_up:
                yield Step(max(0, number), number < 0, case)
    for case in cases:
        if case.observer.once:
            yield Step(0, False, case)


def _key(sample: Sample) -> Key:
    return sample.case, sample.round, sample.warm_up


def left(steps: Iterable[Step], begun: Recording | None) -> list[Step]:
    """Return the steps that are still to be done, or once more, as they failed."""
    if begun is None:
        return list(steps)
    lines = {one.key for one in begun.taken if getattr(one, "failure", None) is None}
    failed = {_key(one) for one in begun.samples if one.failure is not None}
    done = {_key(one) for one in begun.samples} - failed
    runs = _runs(begun.samples)
    wanted = []
    for step in steps:
        its = tuple(runs.get(step.key, ()))
        if (asked := step.case.observer.asked(step)) is not None:
            is_over = asked.key in lines
        else:
            is_over = step.key in done and not (its and search.found(its) is None)
        if not is_over:
            wanted.append(dataclasses.replace(step, runs=its))
    return wanted


def _runs(samples: Iterable[Sample]) -> dict[Key, list[Received]]:
    """Return the runs of each search that are not to be repeated, in their order."""
    found: dict[Key, list[Received]] = {}
    for one in sorted(filter(search.is_search, samples), key=lambda one: one.run):
        found.setdefault(_key(one), []).extend([one] * (one.failure is None))
    return found


def measure(
    steps: Iterable[Step],
    take: Callable[[Step, Sample | None], Taken | Iterable[Taken]],
    header: Header,
    *,
    path: Path | None = None,
    show: Callable[[Sequence[Step]], Iterable[Step]] = iter,
    say: Callable[[Step, str], None],
    lane: Callable[[Step], int] | None = None,
) -> Recording:
    """Take what a record lacks.

    Steps of different lanes are taken at the same time, those of one lane one after the other.
    """
    writer, begun = (None, Recording(header, ())) if path is None else _open(path, header)
    taken, lock = list(begun.taken), threading.Lock()

    def there() -> Recording:
        with lock:
            return Recording.of(begun.header, taken)

    def do(step: Step) -> None:
        for one in _observed(step, take, _known(step, there().samples), say):
            with lock:
                if writer is not None:
                    writer.add(one)
                taken.append(one)
            if isinstance(one, Sample) and one.failure is not None:
                say(step, one.failure)

    wanted = left(steps, begun)
    with writer or contextlib.nullcontext(), _begun(do, wanted, lane) as ends:
        for _, end in zip(show(wanted), ends, strict=True):
            end()
    return there() if path is None else read(path)


@contextlib.contextmanager
def _begun(
    do: Callable[[Step], None], steps: Sequence[Step], lane: Callable[[Step], int] | None
) -> Iterator[list[Callable[[], None]]]:
    """Lend what waits for the end of each step; each lane has a thread, which begins at once."""
    if lane is None:
        yield [functools.partial(do, step) for step in steps]
        return
    lanes = [lane(step) for step in steps]
    threads = {one: ThreadPoolExecutor(1) for one in set(lanes)}
    try:
        yield [threads[one].submit(do, step).result for one, step in zip(lanes, steps, strict=True)]
    finally:
        for thread in threads.values():
            thread.shutdown(wait=False, cancel_futures=True)


def _observed(
    step: Step,
    take: Callable[[Step, Sample | None], Taken | Iterable[Taken]],
    known: Sample | None,
    say: Callable[[Step, str], None],
) -> Iterator[Taken]:
    """Yield what there is of a step: a line, or the runs of a search; or say why there is none."""
    try:
        found = take(step, known)
        yield from (found,) if isinstance(found, Taken) else found
    except ProgramError as error:
        asked = step.case.observer.asked(step)
        if asked is not None and "failure" in asked.__struct_fields__:
            yield replace(asked, failure=str(error))
        say(step, str(error))


def _known(step: Step, samples: Iterable[Sample]) -> Sample | None:
    """Return a case's fastest sample yet, for its warm-up none; of a search, what that found."""
    if step.warm_up:
        return None
    mine = [one for one in samples if one.case == step.case.name]
    searched = list(filter(search.is_search, mine))
    if searched:
        return search.found([one for one in searched if one.warm_up])
    return max(mine, key=lambda one: one.rate or 0, default=None)


def _open(path: Path, header: Header) -> tuple[Writer, Recording]:
    """Begin a record, or go on with the one that is there."""
    if not (path.exists() and path.stat().st_size):
        return Writer(path, header), Recording(header, ())
    before = read(path, unfinished=True)
    if (why := differs(before.header, header)) is not None:
        raise RecordError(
            f"{path.name} was begun otherwise ({why}): --restart begins it anew, -o keeps it and"
            " measures into another folder"
        )
    return Writer(path), before
