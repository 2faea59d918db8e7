# SPDX-License-Identifier: BSD-3-Clause
"""Whether memory stays flat however much is sent: ten million heaps, and the process is watched."""

import resource
import sys
import time
from pathlib import Path

import click

from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Evidence
from spead_tutorial.measure.programs import ProgramOptions, command
from spead_tutorial.measure.records import Count, Taken, Writer, locked
from spead_tutorial.measure.running import Running
from spead_tutorial.measure.verify import Report, contradiction
from spead_tutorial.tools.command_line import Whole, finish

RECORD = "flat-memory.jsonl"
HEAP_SIZE = 8192
CASES = ((10, "c"), (11, "c"), (11, "python"))
INTERVAL_S = 0.25
#: The first part of the run, in which memory may still grow.
WARM_UP = 0.2
#: What may be added after that, in all: over ten million heaps, a tenth of a byte for each.
MOST_GROWTH = 1 << 20


class Memory(Taken, frozen=True):
    """The resident memory of a program while it ran."""

    #: Chapter and language.
    case: str
    #: How many heaps it sent.
    heaps: Count
    #: Bytes of samples in a heap.
    heap_size: Count
    #: From the first heap to the last; None where it failed.
    elapsed_ns: Count | None
    #: Why it failed, or what it claims and the device did not count.
    failure: str | None
    #: When it was looked at, from its start.
    at_ns: list[Count]
    #: How much of its memory was resident then.
    resident_bytes: list[Count]

    @property
    def growth(self) -> int:
        """Bytes that the last look found more than the first one after the warm-up."""
        counted = self.resident_bytes[int(len(self.resident_bytes) * WARM_UP) :]
        return counted[-1] - counted[0] if counted else 0

    @property
    def flat(self) -> bool:
        """Whether it ran well and its memory did not grow."""
        return self.failure is None and len(self.at_ns) > 4 and self.growth <= MOST_GROWTH

    def __str__(self) -> str:
        if self.failure is not None:
            return f"chapter {self.case}: {self.failure}"
        if not self.resident_bytes:
            return f"chapter {self.case}: it was over before anyone looked"
        return (
            f"chapter {self.case}: {self.heaps} heaps, looked at {len(self.at_ns)} times,"
            f" at most {max(self.resident_bytes) / 1e6:.1f} MB resident, grew by"
            f" {self.growth / 1e3:.0f} kB after the warm-up: {'flat' if self.flat else 'NOT FLAT'}"
        )


def resident(pid: int) -> int | None:
    """Return a process's resident memory in bytes; None where it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * resource.getpagesize() or None


def watch(lab: Lab, number: int, language: str, heaps: int) -> Memory:
    """Run a chapter's program in a lab, and look at its memory every now and then."""
    chapter = find_chapter(str(number))
    options = ProgramOptions(heaps=heaps, heap_size=HEAP_SIZE)
    at_ns: list[int] = []
    resident_bytes: list[int] = []
    before = lab.counters()
    argv = command(chapter, language, options, (lab.address, lab.port))
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
        failure = contradiction(report, evidence, heaps)
    elapsed_ns = report.elapsed_ns if report is not None else None
    case = f"{number}/{language}"
    return Memory(case, heaps, HEAP_SIZE, elapsed_ns, failure, at_ns, resident_bytes)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-n", "heaps", type=Whole(1), default=10**7, show_default=True,
              metavar="HEAPS", help="Heaps to send.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path),
              default=Path("results", "bench"), show_default=True,
              help="Folder for the record.")  # fmt: skip
def cli(heaps: int, output: Path) -> int:
    """Watch whether memory stays flat however much is sent; the exit status is 1 where it grew.

    Example: python -m bench.flat_memory -n 100000 -o results/bench
    """
    settings = {"warm_up": WARM_UP, "most_growth_bytes": MOST_GROWTH}
    with locked(output), Lab() as lab:
        first, watched = header("flat-memory", lab.facts(), settings), []
        with Writer(output / RECORD, first) as writer:
            for number, language in CASES:
                watched.append(watch(lab, number, language, heaps))
                writer.add(watched[-1])
                click.echo(watched[-1])
    return int(not all(memory.flat for memory in watched))


if __name__ == "__main__":
    sys.exit(finish(cli, "python -m bench.flat_memory", None))
