# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a heap goes: programs looked at while they run, beside runs nobody looks at.

The shares are from the former, the CPU time from the latter, so that looking costs nothing in what
is shown. How long a heap waits to be begun, and a program for the news that it is sent, is no CPU
time: that is from timelines.
"""

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from bench import parts, stacks
from bench.peers import TIMEOUT_S, take_timeline
from bench.plan import SEED, versions
from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.analysis.split import split_times
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.progress import Steps
from spead_tutorial.measure.records import OURS, Recording, Sample, Split, Writer, locked, read
from spead_tutorial.measure.rounds import schedule
from spead_tutorial.measure.units import number, percent, size
from spead_tutorial.results.tables import plain

__all__ = ["measure", "table", "where"]

RESULTS = Path("results", "where")
RECORD = "where.jsonl"
_FAILED = 1
_MIB = 1 << 20
HEAP_SIZES = (8 << 10, _MIB)
#: With a thread of the stream's own, and without.
PROGRAMS = tuple(find_chapter(number).name for number in ("10", "13"))
CASES = tuple(
    Case(OURS, language, program, heap_size)
    for heap_size in HEAP_SIZES
    for program in PROGRAMS
    for language in MEASURED
)
#: Chapter 4's heaps find the stream asleep, each of them.
TIMELINES = tuple(
    Case(OURS, "python", "tut_4_send_constant", heap_size, timeline=True)
    for heap_size in HEAP_SIZES
)
_TIMELINE_HEAPS = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """How thorough a run is: rounds, seconds of each program, and bytes sent to warm it up."""

    rounds: int
    seconds: float
    warm_up_bytes: int


SIZES = {
    "quick": Effort(3, 0.2, 256 * _MIB),
    "full": Effort(9, 0.4, 512 * _MIB),
    "tiny": Effort(1, 0.1, 64 * _MIB),
}


# ---------------------------------------------------------------------------------------
# Taking it


def _heaps(step: Step, warmed_up: Sample | None, size: Effort) -> int:
    """Return how many heaps last as long as wanted, at the rate of the warm-up."""
    if warmed_up is None or not warmed_up.rate:
        return max(2, size.warm_up_bytes // step.case.heap_size)
    return max(2, round(warmed_up.rate * size.seconds / step.case.heap_size))


def _look(lab: Lab, step: Step, heaps: int) -> Split:
    """Run a case's program and look at it."""
    case = step.case
    split = Split(case.name, step.number, case.program, case.language, heaps, case.heap_size)
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder, "perf.data")
        sample = stacks.sample(Device(lab), step, heaps, seen)
        if sample.failure is not None:
            return replace(split, failure=sample.failure)
        own, others, unsorted = parts.sorted_out(stacks.stacks(seen))
    if not own:
        return replace(split, failure="perf saw nothing of it")
    return replace(
        split,
        elapsed_ns=sample.elapsed_ns,
        own=dict(own),
        others=dict(others),
        unsorted=dict(unsorted.most_common(10)),
    )


def measure(size: Effort, path: Path) -> Recording:
    """Take a record: in each round every case twice, once with nobody looking, and once with."""
    stacks.require_perf()
    settings = {"rounds": size.rounds, "seed": SEED, "looks_per_s": stacks.LOOKS_PER_S}
    warm_ups: dict[str, Sample] = {}
    steps = list(schedule((*CASES, *TIMELINES), size.rounds, SEED))
    with (
        Lab() as lab,
        Writer(path, header("where", lab.facts(), settings, versions())) as writer,
        Steps() as shown,
    ):
        for step in shown(steps):
            if step.case.timeline:
                writer.add(take_timeline(lab, step.case, _TIMELINE_HEAPS))
                continue
            heaps = _heaps(step, warm_ups.get(step.case.name), size)
            sample = take(Device(lab), step, heaps, timeout=TIMEOUT_S)
            writer.add(sample)
            if step.warm_up:
                warm_ups[step.case.name] = sample
            else:
                writer.add(_look(lab, step, heaps))
    return read(path)


# ---------------------------------------------------------------------------------------
# What it comes to


def table(recording: Recording) -> str:
    """Write for each case and thread what a heap takes, part by part."""
    return "\n".join(_lines(recording))


def _lines(recording: Recording) -> Iterator[str]:
    for kind, threads in split_times(recording).items():
        yield f"{kind.program}, {kind.language}, heaps of {size(kind.heap_size)}:"
        for thread in threads:
            whole = thread.elapsed.median
            listed = [*((name, one.median) for name, one in thread.parts.items())]
            listed.append(("not running", thread.idle_ns))
            ns = ", ".join(f"{name} {number(x)} ({percent(x / whole)})" for name, x in listed)
            yield f"  {'program' if thread.own else 'stream':7} {number(whole)} ns: {ns}"


@click.command()
@click.option("--quick", "how", flag_value="quick", help="3 rounds, shorter ones.")
@click.option("--full", "how", flag_value="full", default=True, help="9 rounds (the default).")
@click.option("--tiny", "how", flag_value="tiny", hidden=True)
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS,
              show_default=True, help="Folder for the record, which is begun anew.")  # fmt: skip
@click.option("--read", "record", type=click.Path(dir_okay=False, path_type=Path),
              help="Measure nothing, show what this record holds.")  # fmt: skip
def where(how: str, output: Path, record: Path | None) -> int:
    """Split the time of a heap into parts, with perf.

    Programs of chapters 10 and 13 are run, in Python and in C, with heaps of 8 KiB and of 1 MiB.
    The exit status is 1 where something failed.

    Example: python -m bench where --quick
    """
    if record is None:
        path = output / RECORD
        with locked(output):
            recording = measure(SIZES[how], path)
        click.echo(path)
    else:
        recording = read(record)
    click.echo(table(recording))
    failures = {one.failure for one in recording.samples}
    failures |= {one.failure for one in recording.splits}
    for failure in sorted(filter(None, failures)):
        click.echo(plain(f"failed: {failure}"), err=True)
    return _FAILED if any(failures) else 0
