# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a heap goes: programs looked at while they run, beside runs nobody looks at.

The shares are from the former, the CPU time from the latter, so that looking costs nothing in what
is shown. How long a heap waits to be begun, and a program for the news that it is sent, is no CPU
time: that is from timelines. A look at a thread is put into a part by its stack, as ``where.toml``
says.
"""

import dataclasses
import re
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from bench import perf
from bench.peers import TIMEOUT_S, take_timeline
from bench.perf import Frame, Look
from bench.plan import SEED, versions
from spead_tutorial.chapters.catalogue import MEASURED, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.analysis import OTHER, split_times
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.machine import header
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.records import OURS, Recording, Split, Writer, locked, read
from spead_tutorial.measure.rounds import schedule
from spead_tutorial.results.tables import plain
from spead_tutorial.results.units import number, percent, size
from spead_tutorial.tools.progress import Steps

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
    "tiny": Effort(1, 0.3, 64 * _MIB),
}


# ---- Which part of sending heaps a function is ----

_SEND = re.compile(r"udp(v6)?_sendmsg")
_SENDING = re.compile(r"sendm?msg")
#: Elsewhere in the kernel.
_DEVICE = re.compile(r"net_rx_action|net_tx_action|tasklet")
_SLEEP = re.compile(r"futex|schedule|poll|eventfd|nanosleep|_sys_(read|write)$|yield")
_ENTRY = re.compile(r"syscall|SYSCALL")
_FILL = re.compile(r"array_fill|FillWithScalar|AssignRawScalar|raw_array_assign")
#: The parts of ``where.toml``, each with its functions, in the order in which they are tried.
_TABLES: list[list[tuple[str, str]]] = [
    [(part, "|".join(names)) for part, names in table.items()]
    for table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).values()
]
_BELOW_SEND, _LIBRARY, _OURS = _TABLES
_CYTHON = re.compile(r"__pyx_(?:f|pf|pw)_14spead_tutorial_5_core_(?:\d+[A-Z]\w*?Stream_)?")


def part_of(frames: Sequence[Frame], own: bool) -> str:
    kernel = [frame.name for frame in frames if frame.of_kernel]
    return _of_kernel(kernel) or _of_program([f for f in frames if not f.of_kernel], own)


def _of_kernel(names: Sequence[str]) -> str | None:
    """Return the part of a stack in the kernel; None where it only interrupts a program."""
    whole = " ".join(names)
    if _DEVICE.search(whole):
        return "stack"
    if _SEND.search(whole):
        return next(
            (part for name in names for part, known in _BELOW_SEND if re.search(known, name)),
            "stack",
        )
    if _SLEEP.search(whole):
        return "wake-up"
    return "system call" if _SENDING.search(whole) or _ENTRY.search(whole) else None


def _of_program(frames: Sequence[Frame], own: bool) -> str:
    if not frames:
        return OTHER
    names = [frame.name for frame in frames]
    library = names[0] if "/libc" in frames[0].file else ""
    for part, known in _LIBRARY:
        if library and re.search(known, library):
            return part
    if any(_FILL.search(name) for name in names):
        return "fill"
    if "memset" in library and names[1:2] == ["main"]:
        return "fill"
    for name in (frame.name for frame in frames if _is_ours(frame)):
        plain = _CYTHON.sub("", name).partition("@")[0].partition(".")[0]
        for part, ours in _OURS:
            if re.fullmatch(ours, plain):
                return part
    return "program" if own and names[0] != "[unknown]" else OTHER


def _is_ours(frame: Frame) -> bool:
    path = Path(frame.file)
    return path.name.startswith("_core.") or path.parts[-3:-1] == ("spead_tutorial", "chapters")


def sorted_out(looks: Iterable[Look]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the parts of a run from its first send to its last."""
    looks = list(looks)
    sends = [one.at_s for one in looks if any(_SEND.search(frame.name) for frame in one.frames)]
    own, others, unsorted = Counter[str](), Counter[str](), Counter[str]()
    for one in looks:
        if not sends or not sends[0] <= one.at_s <= sends[-1]:
            continue
        mine = one.thread == one.process
        part = part_of(one.frames, mine)
        (own if mine else others)[part] += 1
        if part == OTHER:
            unsorted[one.frames[0].name if one.frames else "[unknown]"] += 1
    return own, others, unsorted


# ---- Taking it ----


def _heaps(step: Step, rate: float, size: Effort) -> int:
    """Return how many heaps last as long as wanted at a rate, or warm up where it is not known."""
    n_bytes = rate * size.seconds or size.warm_up_bytes
    return max(2, round(n_bytes / step.case.heap_size))


def _look(lab: Lab, step: Step, heaps: int) -> Split:
    case = step.case
    split = Split(case.name, step.number, case.program, case.language, heaps, case.heap_size)
    with tempfile.TemporaryDirectory() as folder:
        seen = Path(folder, "perf.data")
        sample = perf.looked_at(Device(lab), step, heaps, seen)
        if sample.failure is not None:
            return replace(split, failure=sample.failure)
        own, others, unsorted = sorted_out(perf.stacks(seen))
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
    perf.require_perf()
    settings = {"rounds": size.rounds, "seed": SEED, "looks_per_s": perf.LOOKS_PER_S}
    fastest = defaultdict[str, float](float)  # of each case, the highest rate yet
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
            name = step.case.name
            sample = take(Device(lab), step, _heaps(step, fastest[name], size), timeout=TIMEOUT_S)
            writer.add(sample)
            fastest[name] = max(fastest[name], sample.rate or 0)
            if not step.warm_up:
                writer.add(_look(lab, step, _heaps(step, fastest[name], size)))
    return read(path)


# ---- What it comes to ----


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
