# SPDX-License-Identifier: BSD-3-Clause
"""What programs are doing, looked at by perf: stacks of functions, of the kernel's too.

It does not know what a function is part of.
"""

import dataclasses
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

__all__ = [
    "LOOKS_PER_S",
    "Frame",
    "Look",
    "StackError",
    "require_perf",
    "sample",
    "stacks",
    "write",
]

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


class StackError(ProgramError):
    """Nothing can be looked at here; the text says why and what to do about it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """A function, and the file that it is of."""

    name: str  # `"[unknown]"` where it is not known
    file: str  # path of a program or library; in brackets, the kernel or a module of it

    @property
    def of_kernel(self) -> bool:
        """Whether it is the kernel's."""
        return self.file.startswith("[") and self.file not in ("[vdso]", "[unknown]")


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """One look at one thread."""

    process: int  # which; a process's first thread has its number
    thread: int
    at_s: float  # when
    frames: tuple[Frame, ...]  # from the innermost function outwards


def require_perf() -> None:
    """Check that perf is there, and may look at the kernel."""
    if shutil.which("perf") is None:
        raise StackError(f"perf is missing: {_INSTALL}")
    with tempfile.TemporaryDirectory() as folder:
        # Asked for the kernel alone, it does not fall back on what it may see.
        only_kernel = ["-e", "cpu-clock:k", "-o", f"{folder}/data", "--", "true"]
        done = _perf("record", "-q", *only_kernel)
    if "not found for kernel" in done.stderr:  # what some distributions install as perf
        raise StackError(f"perf is there, but not the one for this kernel: {_INSTALL}")
    if done.returncode != 0 or not _has_kernel_names():
        raise StackError(f"perf may not look at the kernel here: {_ALLOW}")


def _has_kernel_names() -> bool:
    """Whether the kernel tells where its functions are: it says zero where it does not."""
    with Path("/proc/kallsyms").open() as lines:
        return any(int(line.split()[0], 16) for _, line in zip(range(100), lines, strict=False))


def sample(place: Place, step: Step, heaps: int, seen: Path) -> Sent:
    """Run a case's program, and look at it: what was seen is in a file."""
    case, record = step.case, ["perf", "record", "-q", *_EVENT, "-o", str(seen), "--"]
    program, options = find_chapter(case.program), case.options(heaps)

    def launch(to: tuple[str, int] | None) -> list[str]:
        return [*record, *command(program, case.language, options, to)]

    return take(place, step, heaps, launch=launch, timeout=TIMEOUT_S)


def stacks(path: Path) -> list[Look]:
    """Read what was seen."""
    return list(_looks(_script(path, "-F", "pid,tid,time,ip,sym,dso").splitlines()))


def write(path: Path, output: Path) -> None:
    """Write what was seen as text, as speedscope and others read it."""
    output.write_text(_script(path))


def _script(path: Path, *options: str) -> str:
    done = _perf("script", "--no-inline", "-i", str(path), *options)
    if done.returncode != 0:
        raise StackError(f"perf script: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}")
    return done.stdout


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
