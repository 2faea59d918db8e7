# SPDX-License-Identifier: BSD-3-Clause
"""Plans the measuring of a sweep: which cases, how thoroughly, and for how long."""

import contextlib
import dataclasses
import fcntl
import importlib.metadata
import importlib.util
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import spead_tutorial
from bench import lateness, losing, receivers
from bench.peers import (
    TIMEOUT_S,
    Installations,
    build_key,
    build_of,
    builds,
    launch,
    missing,
    take_timeline,
)
from bench.sweeps import LOST, ONE_BY_ONE, RECEIVERS, Size, Sweep
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure import rounds, search
from spead_tutorial.measure.baselines import PEER
from spead_tutorial.measure.case import WARM_UP, Case, Step, take
from spead_tutorial.measure.delivery import receiving_lab
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.records import OURS, Header, Recording, Sample, Timeline
from spead_tutorial.measure.rounds import left, schedule

SEED = 31
_START_S = 0.1  # what a process needs besides: 0.06 to 0.2 s in the committed records
_GUESS = 3e9  # bytes/s, of what has never been measured
_WARM_UP_BYTES = 1 << 30  # at most
#: About how many runs a search has, and what each needs besides, in the slower language.
_RUNS, _RUN_S = 12, 0.3


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured for one record."""

    sweep: str  # its name
    size: Size  # how thorough
    cases: tuple[Case, ...]  # those of this record that can run here
    rounds: int  # how many count
    skipped: dict[str, str]  # why the other cases cannot run: a reason for the name of each
    shard: str = "1/1"  # `"1/1"`, or which part of a sweep that several machines share
    retry: bool = False  # whether cases are tried again that were given up

    def steps(self) -> Iterator[Step]:
        """Yield all steps in their order: a warm-up of all cases, the rounds, the timelines."""
        return schedule(self.cases, self.rounds, SEED)

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "size": self.size.name,
            "rounds": self.rounds,
            "seed": SEED,
            "longest_s": self.size.longest_s,
            "most_bytes": self.size.most_bytes,
            "shard": self.shard,
            "skipped": self.skipped,
        }


def _cases_of(sweep: Sweep, size: Size, shard: tuple[int, int] = (1, 1)) -> list[Case]:
    """Return the cases of a sweep, whether they can run here or not."""
    part, parts = shard
    points = sorted({case.point for case in sweep.of(size)})
    mine = set(points[part - 1 :: parts])
    return [case for case in sweep.of(size) if case.point in mine]


def plan_of(
    sweep: Sweep,
    size: Size,
    rounds: int | None = None,
    shard: tuple[int, int] = (1, 1),
    others: Sequence[str] = (),
) -> Plan:
    cases = _cases_of(sweep, size, shard)
    for name in others:
        cases += [
            dataclasses.replace(case, implementation=name)
            for case in _cases_of(sweep, size, shard)
            if case.implementation == OURS and _plain(case)
        ]
    part, parts = shard
    reasons = {
        case.name: (receivers.missing if case.program in RECEIVERS else missing)(case)
        for case in cases
    }
    return Plan(
        sweep.name,
        size,
        tuple(case for case in cases if reasons[case.name] is None),
        size.rounds if rounds is None else rounds,
        {name: reason for name, reason in reasons.items() if reason is not None},
        f"{part}/{parts}",
    )


def _plain(case: Case) -> bool:
    """Whether a case is a program that sends to the lab's device, and nothing else."""
    special = case.timeline or case.environment or case.listener is not None
    special = special or bool(case.pinned) or case.link is not None or case.program in RECEIVERS
    return not special and find_chapter(case.program).takes_destination


# ---- How much, and how long ----


def _heaps(case: Case, size: Size, known: Sample | None) -> int:
    """How many heaps a sample sends: what lasts long enough at the rate of one before it."""
    if case.search:
        return search.heaps_of_a_run(case.heap_size, search.START, size.most_bytes)
    if case.heaps is not None:
        return case.heaps if known is not None else max(1, case.heaps // WARM_UP)
    n_bytes: float = min(size.most_bytes // WARM_UP, _WARM_UP_BYTES)
    if case.program == "tut_2_send":
        return find_chapter(case.program).heaps
    if case.random or case.program == "tut_4_send_perf":
        n_bytes /= WARM_UP  # random numbers: one knows that they are slow
    if known is not None and known.rate is not None:
        n_bytes = min(size.most_bytes, known.rate * size.longest_s)
    return max(2, int(n_bytes) // case.heap_size)


def estimate(plan: Plan, begun: Recording | None, known: Recording | None) -> float:
    """Estimate how many seconds a plan takes."""
    like = {**_with_rates(known), **_with_rates(begun)}
    steps = left(plan.steps(), begun, retry=plan.retry)
    return sum(_START_S + _lasts(step, plan.size, like) for step in steps)


#: Samples that warmed a case up, or that count, by its name and whether they warm up.
_Like = dict[tuple[str, bool], list[Sample]]


def _with_rates(recording: Recording | None) -> _Like:
    found: _Like = {}
    for sample in recording.samples if recording is not None else ():
        if sample.rate is not None:
            found.setdefault((sample.case, sample.warm_up), []).append(sample)
    return found


def _lasts(step: Step, size: Size, like: _Like) -> float:
    """Estimate how many seconds a sample lasts: what it would send, at the rate it had before."""
    case, name = step.case, step.case.name
    if case.timeline:
        return 0.0
    mine = like.get((name, step.warm_up and not case.search)) or like.get((name, False)) or []
    rates = [search.offered(one) if case.search else one.rate or _GUESS for one in mine]
    rate = statistics.median(rates) if rates else _GUESS
    if case.search:
        heaps = search.heaps_of_a_run(case.heap_size, rate, size.most_bytes)
        return _RUNS * (_RUN_S + heaps * case.heap_size / rate)
    before = [*like.get((name, True), ()), *like.get((name, False), ())]
    if not before and not step.warm_up:
        return min(size.most_bytes / rate, size.longest_s)
    fastest = max(before, key=lambda one: one.rate or 0, default=None)
    heaps = _heaps(case, size, None if step.warm_up else fastest)
    return heaps * case.heap_size / rate


# ---- One sample at a time on a machine, whoever measures, and in whatever folder ----

#: Not where ``TMPDIR`` says: that may differ from user to user.
SHARED = Path("/tmp")


@contextlib.contextmanager
def alone(folder: Path = SHARED) -> Iterator[None]:
    """Have the machine for one sample, by a lock on a folder; wait until nobody else has it."""
    # Everybody can read the folder, and the lock ends with the process that has it.
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a child may have it open still
        os.close(fd)


# ---- Doing it ----


def measure(
    plan: Plan,
    path: Path,
    installations: Installations,
    show: Callable[[Sequence[Step]], Iterator[Step]],
    say: Callable[[str], None],
) -> Recording:
    """Take all samples of a plan that a record does not hold yet."""
    with _lab(plan) as lab:
        place = Device(lab)

        def take_step(step: Step, known: Sample | None) -> Sample | Timeline | Iterable[Sample]:
            if step.case.search:
                return receivers.look(lab, step, known, plan.size)
            if step.case.timeline:
                return take_timeline(lab, step.case)
            heaps = _heaps(step.case, plan.size, known)
            if step.case.program == LOST:
                return losing.take(lab, step, heaps)
            if ONE_BY_ONE in step.case.words:
                return lateness.take(lab, step, heaps)
            if step.case.program in RECEIVERS:
                return receivers.take(lab, step, heaps)
            return take(
                place,
                step,
                heaps,
                launch=launch(step.case, heaps, installations),
                timeout=TIMEOUT_S,
            )

        def take_in_turn(step: Step, known: Sample | None) -> Iterator[Sample | Timeline]:
            with alone():
                result = take_step(step, known)
                yield from (result,) if isinstance(result, Sample | Timeline) else result

        return rounds.measure(
            plan.steps(),
            take_in_turn,
            _header(plan, lab),
            path=path,
            retry=plan.retry,
            show=show,
            say=lambda step, failure: say(f"{step.case.name}: {failure}"),
        )


def _receives(plan: Plan) -> bool:
    return any(case.program in RECEIVERS for case in plan.cases)


def _lab(plan: Plan) -> Lab:
    return receiving_lab() if _receives(plan) else Lab()


def _header(plan: Plan, lab: Lab) -> Header:
    """Return what a record says of where its samples were taken, and with what."""
    where, software = Device(lab).facts(), versions()
    if _receives(plan):
        where, software = receivers.facts(lab), software | receivers.versions()
    if any(case.program == LOST for case in plan.cases):
        where |= {"kind": lab.kind, "mtu": lab.mtu}
    return header(plan.sweep, where, plan.settings, software)


def versions() -> dict[str, str | None]:
    """Return what a record says of the software, besides what every record says."""
    found: dict[str, str | None] = {"build": build_of(Path(spead_tutorial.__file__).parent)}
    if importlib.util.find_spec(PEER) is not None:
        found[PEER] = importlib.metadata.version(PEER)
    return found | {build_key(name): build for name, build in builds().items()}
