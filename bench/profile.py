# SPDX-License-Identifier: BSD-3-Clause
"""What programs are doing, looked at from outside: stacks of functions, with perf or py-spy.

It does not know what a function is part of. The command `profile` writes the stacks of a chapter's
program down, as it sends in a lab, in a file that speedscope shows.
"""

import dataclasses
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from bench.peers import TIMEOUT_S
from spead_tutorial.chapters.catalogue import LANGUAGES, Chapter, find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.measure.case import Case, Step, take
from spead_tutorial.measure.place import Device, Place
from spead_tutorial.measure.programs import ProgramError, command, finish
from spead_tutorial.measure.records import OURS, Sent
from spead_tutorial.tools.command_line import Number, parsed

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


def require_perf() -> None:
    """Check that perf is there, and may look at the kernel."""
    if shutil.which("perf") is None:
        raise ProgramError(f"perf is missing: {_INSTALL}")
    with tempfile.TemporaryDirectory() as folder:
        # Asked for the kernel alone, it does not fall back on what it may see.
        only_kernel = ["-e", "cpu-clock:k", "-o", f"{folder}/data", "--", "true"]
        done = _perf("record", "-q", *only_kernel)
    if "not found for kernel" in done.stderr:  # what some distributions install as perf
        raise ProgramError(f"perf is there, but not the one for this kernel: {_INSTALL}")
    if done.returncode != 0 or not _has_kernel_names():
        raise ProgramError(f"perf may not look at the kernel here: {_ALLOW}")


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
    return list(_looks(_script(path, "-F", "pid,tid,time,ip,sym,dso").splitlines()))


def _script(path: Path, *options: str) -> str:
    done = _perf("script", "--no-inline", "-i", str(path), *options)
    if done.returncode != 0:
        raise ProgramError(f"perf script: {(done.stderr.strip() or 'it failed').splitlines()[-1]}")
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


# ---- The command ----

RESULTS = Path("results", "profile")
_SECONDS = 3.0
#: py-spy stops the program for each look, and each of its stacks takes it a while.
_PY_SPY_LOOKS_PER_S = 250


def _py_spy() -> str | None:
    """Find py-spy, beside this Python before anywhere else."""
    installed = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    return installed or shutil.which("py-spy")


def tool_for(language: str, wanted: str | None) -> str:
    """Choose what looks: py-spy sees lines of Python, perf the kernel and the stream's thread."""
    if wanted == "py-spy" and language != "python":
        raise ProgramError("py-spy sees programs in Python alone: take perf")
    if wanted != "perf" and language == "python" and _py_spy() is not None:
        return "py-spy"
    if wanted == "py-spy":
        raise ProgramError("py-spy is missing: pip install 'spead-tutorial[profile]'")
    try:
        require_perf()
    except ProgramError as error:
        more = "; or pip install 'spead-tutorial[profile]'" if language == "python" else ""
        raise ProgramError(f"{error}{more}") from None
    return "perf"


def _profile(case: Case, seconds: float, tool: str, path: Path) -> None:
    """Run a program for about so long, and write what was seen, as speedscope reads it."""
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        place, seen = Device(lab), Path(folder, "perf.data")
        first = take(place, Step(0, True, case), 1 + (64 << 20) // case.heap_size)
        if first.rate is None:
            raise ProgramError(first.failure or "it told no rate")
        heaps = 2 + round(first.rate * seconds / case.heap_size)
        if tool == "py-spy":
            _with_py_spy(place, case, heaps, path)
            return
        sample = looked_at(place, Step(0, False, case), heaps, seen)
        if sample.failure is not None:
            raise ProgramError(sample.failure)
        path.write_text(_script(seen))


def _with_py_spy(place: Place, case: Case, heaps: int, path: Path) -> None:
    """Run a program by py-spy, whose words are among its own: nobody reads what it reports."""
    chapter = find_chapter(case.program)
    looks = ["--native", "--threads", "-r", str(_PY_SPY_LOOKS_PER_S)]
    looker = [str(_py_spy()), "record", "-f", "speedscope", *looks, "-o", str(path), "--"]
    with place.fitting(chapter.takes_destination).watching() as watched:
        to = watched.destination if chapter.takes_destination else None
        program = command(chapter, case.language, case.options(heaps), to)
        done = finish(place.run, "py-spy", [*looker, *program], TIMEOUT_S)
    if done.status != 0:
        raise ProgramError(done.complaint)


@click.command()
@click.argument("chapter", type=parsed(find_chapter))
@click.option("--lang", "language", type=click.Choice(LANGUAGES), default="python",
              show_default=True, help="Of the program.")  # fmt: skip
@click.option("-H", "heap_size", type=click.IntRange(1), default=8192, show_default=True,
              metavar="BYTES", help="Of samples in a heap.")  # fmt: skip
@click.option("--tool", type=click.Choice(["perf", "py-spy"]),
              help="What looks: py-spy for Python, where it is there, else perf.")  # fmt: skip
@click.option("--seconds", type=Number(0, min_open=True), default=_SECONDS,
              show_default=True, help="How long to look.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=RESULTS,
              show_default=True, help="Folder for the file.")  # fmt: skip
def profile(
    chapter: Chapter,
    language: str,
    heap_size: int,
    tool: str | None,
    seconds: float,
    output: Path,
) -> int:
    """Write down the stacks of a CHAPTER's program: which functions take its time.

    py-spy shows lines of Python; perf shows the kernel, and the stream's thread. Open the file in
    https://www.speedscope.app, which draws a flame graph of it in the browser.

    Example: python -m bench profile 10 --lang c
    """
    chosen = tool_for(language, tool)
    output.mkdir(parents=True, exist_ok=True)
    end = "speedscope.json" if chosen == "py-spy" else "perf.txt"
    path = output / f"{chapter.name}-{language}.{end}"
    _profile(Case(OURS, language, chapter.name, heap_size), seconds, chosen, path)
    click.echo(path)
    return 0
