# SPDX-License-Identifier: BSD-3-Clause
"""Observer of stacks: where the time of a heap goes, by looks at programs while they run.

The shares are from runs that are looked at, the CPU time from others of the same case and round, so
that looking costs nothing in what is shown. A look at a thread is put into a part by its stack, as
``where.toml`` says.
"""

import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from bench import perf
from bench.perf import Frame, Look
from bench.senders import Sending
from spead_tutorial.lab import Lab
from spead_tutorial.measure.analysis import OTHER, split_times
from spead_tutorial.measure.case import Case, Size, Step
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Recording, Sample, Split
from spead_tutorial.results.units import number, percent
from spead_tutorial.results.units import size as in_words

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

#: Of a run that is looked at; and bytes/s where no rate is known yet.
_SECONDS = {"quick": 0.2, "full": 0.4, "tiny": 0.3}
_GUESS = 2e8


class Stacks(Sending):
    """How often a program is found at each part of the work, in a run of its own."""

    warms_up = False
    settings: ClassVar = {"looks_per_s": perf.LOOKS_PER_S}

    def missing(self, case: Case) -> str | None:
        return super().missing(case) or perf.missing()

    def heaps(self, case: Case, size: Size, known: Sample | None) -> int:
        rate = known.rate if known is not None else None
        return max(2, round((rate or _GUESS) * _SECONDS[size.name]) // case.heap_size)

    def asked(self, step: Step) -> Split:
        case = step.case
        return Split(case.name, step.number, case.program, case.language, 1, case.heap_size)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Split]:
        heaps = self.heaps(step.case, size, known)
        with tempfile.TemporaryDirectory() as folder:
            seen = Path(folder, "perf.data")
            sample = perf.looked_at(Device(lab), step, heaps, seen)
            if sample.failure is not None:
                raise ProgramError(sample.failure)
            own, others, unsorted = sorted_out(perf.stacks(seen))
        if not own:
            raise ProgramError("perf saw nothing of it")
        return [
            replace(
                self.asked(step),
                heaps=heaps,
                elapsed_ns=sample.elapsed_ns,
                own=dict(own),
                others=dict(others),
                unsorted=dict(unsorted.most_common(10)),
            )
        ]

    def table(self, recording: Recording) -> str:
        """Write for each case and thread what a heap takes, part by part."""
        try:
            return "\n".join(_lines(recording))
        except ValueError as error:  # all of them failed
            return str(error)


def _lines(recording: Recording) -> Iterator[str]:
    for kind, threads in split_times(recording).items():
        yield f"{kind.program}, {kind.language}, heaps of {in_words(kind.heap_size)}:"
        for thread in threads:
            whole = thread.elapsed.median
            listed = [*((name, one.median) for name, one in thread.parts.items())]
            listed.append(("not running", thread.idle_ns))
            ns = ", ".join(f"{name} {number(x)} ({percent(x / whole)})" for name, x in listed)
            yield f"  {'program' if thread.own else 'stream':7} {number(whole)} ns: {ns}"


STACKS = Stacks()
