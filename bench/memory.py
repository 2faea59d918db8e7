# SPDX-License-Identifier: BSD-3-Clause
"""Observer of memory: whether it stays flat however much a program sends."""

import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from bench.senders import Sending
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.case import Size, Step
from spead_tutorial.measure.place import Evidence
from spead_tutorial.measure.programs import command
from spead_tutorial.measure.records import Memory, Recording, Sample
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.verify import Report, contradiction
from spead_tutorial.results.tables import Column, Table

INTERVAL_S = 0.25
#: The first part of the run, in which memory may still grow.
WARM_UP = 0.2
#: What may be added after that, in all: over ten million heaps, a tenth of a byte for each.
MOST_GROWTH = 1 << 20
#: Heaps of runs of each size.
_HEAPS = {"quick": 3 * 10**6, "full": 10**7, "tiny": 1000}


class FlatMemory(Sending):
    """A program's resident memory, looked at every now and then."""

    warms_up, once = False, True
    settings: ClassVar = {"warm_up": WARM_UP, "most_growth_bytes": MOST_GROWTH}

    def asked(self, step: Step) -> Memory:
        case = step.case
        name = f"{find_chapter(case.program).number}/{case.language}"
        return Memory(case=name, heaps=1, heap_size=case.heap_size)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Memory]:
        case, heaps = step.case, _HEAPS[size.name]
        chapter, options = find_chapter(case.program), case.options(heaps)
        at_ns: list[int] = []
        resident_bytes: list[int] = []
        before = lab.counters()
        argv = command(chapter, case.language, options, (lab.address, lab.port))
        start = time.monotonic_ns()
        with Running(lab.popen, chapter.name, argv) as running:
            while running.process.poll() is None:
                now = resident(running.process.pid)
                if now is not None:
                    at_ns.append(time.monotonic_ns() - start)
                    resident_bytes.append(now)
                time.sleep(INTERVAL_S)
            done = running.wait()
        report, evidence = Report.parse(done.output), Evidence(lab.counters() - before)
        failure: str | None = done.complaint
        if done.status == 0 and report is not None:
            failure = contradiction(report, evidence, heaps) or complaint(resident_bytes)
        return [
            replace(
                self.asked(step),
                heaps=heaps,
                elapsed_ns=report.elapsed_ns if report is not None else None,
                failure=failure,
                at_ns=tuple(at_ns),
                resident_bytes=tuple(resident_bytes),
            )
        ]

    def table(self, recording: Recording) -> str:
        names: list[Column[Memory]] = [
            Column("program", lambda one: f"chapter {one.case}", is_words=True),
            Column("heaps", lambda one: one.heaps),
        ]
        values: list[Column[Memory]] = [
            Column("looks", lambda one: len(one.at_ns)),
            Column("most MB", lambda one: f"{max(one.resident_bytes) / 1e6:.1f}"),
            Column("growth kB", lambda one: f"{growth(one.resident_bytes) / 1e3:.0f}"),
        ]
        rows = recording.those(Memory)
        return str(Table(names, values, rows, lambda one: one.failure))


def growth(resident_bytes: tuple[int, ...] | list[int]) -> int:
    """Return how many bytes the last look found more than the first one after the warm-up."""
    counted = resident_bytes[int(len(resident_bytes) * WARM_UP) :]
    return counted[-1] - counted[0] if counted else 0


def complaint(resident_bytes: list[int]) -> str | None:
    """Say why memory is not known to be flat; None where it is."""
    if len(resident_bytes) <= 4:
        return f"it was over after {len(resident_bytes)} looks: send more heaps"
    more = growth(resident_bytes)
    return f"its memory grew by {more} bytes after the warm-up" if more > MOST_GROWTH else None


def resident(pid: int) -> int | None:
    """Return a process's resident memory in bytes; None where it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * resource.getpagesize() or None


FLAT_MEMORY = FlatMemory()
