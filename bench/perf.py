# SPDX-License-Identifier: BSD-3-Clause
"""What programs are doing, looked at from outside: stacks of functions, by perf.

It does not know what a function is part of.
"""

import dataclasses
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.peers import TIMEOUT_S
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.measure.case import Step, take
from spead_tutorial.measure.place import Place
from spead_tutorial.measure.programs import ProgramError, command
from spead_tutorial.measure.records import Sent

#: Of each running thread. More of them slow programs down further, and shares hardly change.
LOOKS_PER_S = 2500
#: What a machine without counters has, too: a timer that runs while a thread does. The core has no
#: frame pointers, so stacks are unwound afterwards: from so many bytes of them as reach from the
#: innermost function to the one of ours that called it.
_EVENT = ["-e", "cpu-clock", "-F", str(LOOKS_PER_S), "--call-graph", "dwarf,4096"]
_INSTALL = "apt install linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora)"
_ALLOW = "run as root, or say: sudo sysctl kernel.perf_event_paranoid=-1 kernel.kptr_restrict=0"
_HEAD = re.compile(r".*?(\d+)/(\d+)\s+([\d.]+):\s*$")
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """A function, and the file that it is of."""

    name: str  # `"[unknown]"` where it is not known
    file: str  # path of a program or library; in brackets, the kernel or a module of it

    @property
    def of_kernel(self) -> bool:
        return self.file.startswith("[") and self.file not in ("[vdso]", "[unknown]")


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """One look at one thread."""

    process: int  # which; a process's first thread has its number
    thread: int
    at_s: float  # when
    frames: tuple[Frame, ...]  # from the innermost function outwards


@functools.cache
def missing() -> str | None:
    """Say why there is nothing to look with; None where perf is there, and may see the kernel."""
    if shutil.which("perf") is None:
        return f"perf is missing: {_INSTALL}"
    with tempfile.TemporaryDirectory() as folder:
        # Asked for the kernel alone, it does not fall back on what it may see.
        only_kernel = ["-e", "cpu-clock:k", "-o", f"{folder}/data", "--", "true"]
        done = _perf("record", "-q", *only_kernel)
    if "not found for kernel" in done.stderr:  # what some distributions install as perf
        return f"perf is there, but not the one for this kernel: {_INSTALL}"
    if done.returncode != 0 or not _has_kernel_names():
        return f"perf may not look at the kernel here: {_ALLOW}"
    return None


def _has_kernel_names() -> bool:
    """Whether the kernel tells where its functions are: it says zero where it does not."""
    with Path("/proc/kallsyms").open() as lines:
        return any(int(line.split()[0], 16) for _, line in zip(range(100), lines, strict=False))


def looked_at(place: Place, step: Step, heaps: int, seen: Path) -> Sent:
    """Run a case's program, and look at it: what was seen is in a file."""
    case, record = step.case, ["perf", "record", "-q", *_EVENT, "-o", str(seen), "--"]
    program, options = find_chapter(case.program), case.options(heaps)

    def launch(to: tuple[str, int] | None) -> list[str]:
        return [*record, *command(program, case.language, options, to)]

    return take(place, step, heaps, launch=launch, timeout=TIMEOUT_S)


def stacks(path: Path) -> list[Look]:
    """Read what was seen."""
    fields = ["-F", "pid,tid,time,ip,sym,dso"]
    done = _perf("script", "--no-inline", "-i", str(path), *fields)
    if done.returncode != 0:
        raise ProgramError(f"perf script: {(done.stderr.strip() or 'it failed').splitlines()[-1]}")
    return list(_looks(done.stdout.splitlines()))


def _looks(lines: Iterable[str]) -> Iterator[Look]:
    """Take apart what ``perf script`` writes: a line for each look, and one for each frame."""
    head: re.Match[str] | None = None
    frames: list[Frame] = []
    for line in [*lines, ""]:
        if found := _HEAD.match(line):
            head, frames = found, []
        elif found := _FRAME.match(line):
            frames.append(Frame(found[1], found[2]))
        elif not line and head is not None:
            yield Look(int(head[1]), int(head[2]), float(head[3]), tuple(frames))
            head = None


def _perf(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["perf", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
