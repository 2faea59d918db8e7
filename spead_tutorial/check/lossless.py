# SPDX-License-Identifier: BSD-3-Clause
"""What a reader's receiver is worth: the highest rate at which it loses nothing, beside others."""

import contextlib
import dataclasses
import functools
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from spead_tutorial.check.arriving import receiving_lab, started
from spead_tutorial.check.worth import SKELETON, YOURS, Worth
from spead_tutorial.exercises import ReceiverExercise
from spead_tutorial.lab import Lab, LabProcess
from spead_tutorial.measure import search
from spead_tutorial.measure.believe import packet_sizes
from spead_tutorial.measure.case import Case, Step
from spead_tutorial.measure.machine import header, two_cores
from spead_tutorial.measure.programs import ProgramError, program_path
from spead_tutorial.measure.rounds import measure, schedule
from spead_tutorial.measure.summary import rows
from spead_tutorial.records import OURS, Sample

__all__ = ["measured"]

_PACKET_SIZE = 9000
_SEED = 17
_LIMIT_S = 60.0
#: A run sends so many times what the socket and heaps that wait can take in: who is slower than the
#: sender by one part in as many has lost something then. And it lasts a while.
_TIMES_TAKEN_IN, _BUFFER, _RUN_S = 10, 1 << 23, 0.1
#: Heaps that wait, of which some are in the ring.
_WAITING = 4
#: Rates of searches that differ by less than this are called the same: two steps of a search.
_CLOSE = search.THOROUGH.narrow**2 - 1


def measured(
    exercise: ReceiverExercise,
    program: Path,
    rounds: int,
    show: Callable[[Sequence[Step]], Iterable[Step]],
) -> Worth:
    """Find the highest rates without loss of a receiver, the skeleton, and the chapter's own."""
    heap_size = exercise.heap_size
    assert heap_size is not None
    programs = {SKELETON: exercise.skeleton, YOURS: program, OURS: exercise.solution}
    cases = [
        Case(who, "python", exercise.program, heap_size, _PACKET_SIZE, search=True)
        for who in programs
    ]

    def stop(step: Step, failure: str) -> NoReturn:
        raise ProgramError(f"{programs[step.case.implementation].name}: {failure}")

    with receiving_lab() as lab:

        def look(step: Step, warm_up: Sample | None) -> Iterator[Sample]:
            run = functools.partial(_run, lab, exercise, step, programs[step.case.implementation])
            return _search(run, step, warm_up)

        recording = measure(
            schedule(cases, rounds, _SEED),
            look,
            header("check", lab.facts(), {"rounds": rounds, "seed": _SEED}),
            show=show,
            say=stop,
        )
    found = {row.last.implementation: row for row in rows(search.settled(recording))}
    for who, row in found.items():
        if row.failure is not None:
            raise ProgramError(f"{programs[who].name}: {row.failure}")
    if search.is_bound(found[SKELETON].samples):
        raise ProgramError(
            "the sender could not keep a rate at which the skeleton loses something: this machine"
            " is busy, try again"
        )
    worth = {case.implementation: found[case.implementation] for case in cases}
    return Worth(worth, "it would not look at the values", _CLOSE)


def _search(run: Callable[[float], Sample], step: Step, warm_up: Sample | None) -> Iterator[Sample]:
    """Yield the runs of a search, each as it was taken."""
    runs: list[Sample] = []
    start = search.begin(warm_up, step.number)
    criterion = search.ROUGH if step.warm_up else search.THOROUGH
    while (rate := search.next_rate(runs, start, criterion)) is not None:
        runs.append(dataclasses.replace(run(rate), run=len(runs)))
        yield runs[-1]


def _run(lab: Lab, exercise: ReceiverExercise, step: Step, program: Path, rate: float) -> Sample:
    """Send to a receiver at a rate, in bytes of payload a second."""
    case = step.case
    heap_size = case.heap_size
    n_bytes = max(_TIMES_TAKEN_IN * (_BUFFER + _WAITING * heap_size), _RUN_S * rate)
    sample = Sample(
        case=case.name,
        round=step.number,
        warm_up=step.warm_up,
        chapter=exercise.chapter.number,
        program=case.program,
        language="python",
        random=False,
        heaps=int(n_bytes) // heap_size,
        heap_size=heap_size,
        packet_size=_PACKET_SIZE,
        device=lab.device,
        kind=lab.kind,
        implementation=case.implementation,
        asked_bytes_per_s=rate,
    )
    try:
        sent, received = _both(lab, exercise, program, sample)
    except ProgramError as error:
        return dataclasses.replace(sample, failure=str(error).removeprefix(f"{program.stem}: "))
    # Chunks have no place for the heap with the descriptors.
    heaps = received["heaps_complete"] - (0 if received["packets_no_place"] else 1)
    return dataclasses.replace(
        sample,
        elapsed_ns=sent["sending_ns"],
        payload_bytes=max(0, heaps) * heap_size,
        packets=sent["packets"],
        received_packets=received["socket_datagrams"],
        received_dropped=received["socket_dropped"],
        received_heaps=heaps,
    )


def _both(
    lab: Lab, exercise: ReceiverExercise, program: Path, sample: Sample
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a receiver and the sender beside each other, and return what both have counted."""
    rate = (sample.asked_bytes_per_s or 0) * _overhead(sample.heap_size)
    sizes = ["-n", sample.heaps, "-H", sample.heap_size, "-p", _PACKET_SIZE, "-r", rate]
    blast = [str(program_path("blast", "c")), *map(str, sizes), "--describe", "--json"]
    cores = [int(core) for core in (two_cores() or "").split(",") if core]
    with started(lab.receiver, exercise, program, sample.heap_size, "--json") as receiver:
        receiver.wait_until_ready()
        _pin(receiver.process, cores[1:])
        with lab.popen(
            [*blast, lab.address, str(lab.port)], stdout=subprocess.PIPE, text=True
        ) as sender:
            _pin(sender, cores[:1])
            assert sender.stdout is not None
            sent = sender.stdout.read()
        receiver.wait(_LIMIT_S)
    said = receiver.done
    if sender.returncode != 0:
        raise ProgramError(f"blast: it ended with status {sender.returncode}")
    try:
        return json.loads(sent), json.loads(said.output)
    except ValueError:
        raise ProgramError(said.complaint) from None


def _pin(process: LabProcess, cores: Sequence[int]) -> None:
    """Have all threads that a program has on these cores, where there are any to choose."""
    with contextlib.suppress(OSError):  # it may have ended
        for task in Path(f"/proc/{process.pid}/task").iterdir() if cores else ():
            os.sched_setaffinity(int(task.name), cores)


def _overhead(heap_size: int) -> float:
    """Return how many bytes packets have for each byte of payload."""
    return sum(packet_sizes(heap_size, _PACKET_SIZE)[1]) / heap_size
