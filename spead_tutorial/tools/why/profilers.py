# SPDX-License-Identifier: BSD-3-Clause
"""The tools that look at a program: strace, perf and py-spy, and how they are told to."""

import contextlib
import dataclasses
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from spead_tutorial.tools.why import stacks
from spead_tutorial.tools.why.calls import SHOWN
from spead_tutorial.tools.why.stacks import Sampled

#: Samples a second, at no multiple of what programs wait for, and bytes of each stack.
_RATE, _PYTHON_RATE, _STACK = "997", "397", "8192"
_PATIENCE_S, _READING_S, _MOST_LINES = 15.0, 20.0, 500_000
_STRACE = ("-ff", "-qq", "-ttt", "--syscall-times=ns", "-y", "-s", "0", "-e", f"verbose={SHOWN}",
           "-e", "abbrev=all", "-e", "signal=none")  # fmt: skip
_NOTHING = subprocess.DEVNULL

#: What programs are run by, by the name of the file: in the words of the report.
LANGUAGES = {
    "python": "Python", "pypy": "Python", "node": "JavaScript", "java": "Java", "php": "PHP",
    "ruby": "Ruby", "perl": "Perl", "lua": "Lua", "tclsh": "Tcl", "bash": "shell", "dash": "shell",
    "sh": "shell", "zsh": "shell", "dotnet": "C#",
}  # fmt: skip
#: Those whose compiled code keeps frame pointers, where an unwinder by tables finds nothing.
_BY_POINTERS = ("Java", "JavaScript", "Go")
#: What has an interpreter tell perf the names of what it compiles, and keep frame pointers.
NAMING = {
    "NODE_OPTIONS": "--perf-basic-prof-only-functions --interpreted-frames-native-stack",
    "JAVA_TOOL_OPTIONS": "-XX:+IgnoreUnrecognizedVMOptions -XX:+PreserveFramePointer"
    " -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
}


def language(pid: int) -> str:
    """Return what a process is written in, as far as its program tells; or nothing."""
    path, name = Path(f"/proc/{pid}/exe"), ""
    with contextlib.suppress(OSError):
        name = LANGUAGES.get(re.sub(r"[\d.-].*$", "", os.path.basename(os.readlink(path))), "")
        with path.open("rb") as program:
            name = name or "Go" * (b"Go\0\0" in program.read(1 << 13))
    return name


def naming() -> dict[str, str]:
    """Return the environment that has interpreters name what they compile."""
    return {key: f"{os.environ.get(key, '')} {value}".strip() for key, value in NAMING.items()}


# ---- strace ----


def strace(folder: Path, pids: Sequence[int] = ()) -> list[str] | None:
    """Return what writes down the calls of a program, or of some that run; None without strace."""
    path = shutil.which("strace")
    what = [word for pid in pids for word in ("-p", str(pid))] or ["--"]
    return None if path is None else [path, *_STRACE, "-o", str(folder / "strace"), *what]


def strace_lines(folder: Path) -> Iterator[str]:
    """Yield what it wrote, which has a file for each thread, behind the number of the thread."""
    for path in folder.glob("strace.*"):
        with path.open(errors="replace") as lines:
            for line in itertools.islice(lines, _MOST_LINES):
                yield f"{path.suffix[1:]} {line}"


# ---- Profiles ----


@dataclasses.dataclass(slots=True)
class Profile:
    """What profilers noted of some processes, to be read when there is time."""

    folder: Path
    python: int | None = None  # the process that py-spy is for
    said: str = ""  # by them

    def read(self, names: Mapping[int, str]) -> tuple[dict[int, Sampled] | None, list[str]]:
        """Return the samples of each thread, None where there are none, and what was not seen.

        Threads have names of the kernel's: py-spy has others.
        """
        found: dict[int, Sampled] = {}
        unseen = list[str]()
        for path in self.folder.glob("perf-*.data"):
            found |= stacks.of_perf(_script(path))
        spied = self.folder / "python"
        if self.python is not None and spied.exists():
            said = stacks.of_py_spy(spied.read_text(errors="replace").splitlines())
            found |= {
                tid: msgspec.structs.replace(its, name=names.get(tid, its.name))
                for tid, its in said.items()
            }
        elif self.python is not None:
            unseen.append(
                "Its lines of Python were not seen, as there is no py-spy: pip install py-spy."
            )
        return found or None, unseen if found else [*unseen, _reason(self.said)]


def _py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


@contextlib.contextmanager
def profile(pids: Sequence[int], folder: Path, seconds: float) -> Iterator[Profile]:
    """Sample processes for some time, and wait for its end after the block."""
    made, commands = Profile(folder), list[list[str]]()
    pythons = [pid for pid in pids if language(pid) == "Python"]
    perf, py_spy = shutil.which("perf"), _py_spy()
    if pythons:
        made.python = pythons[-1]
        if py_spy is not None:
            words = ["--native", "-f", "raw", "-t", "-F", "--full-filenames", "-r", _PYTHON_RATE]
            words += ["-d", str(max(1, round(seconds))), "-o", str(folder / "python")]
            commands.append([py_spy, "record", *words, "-p", str(made.python)])
    rest = {pid for pid in pids if py_spy is None or pid != made.python}
    pointers = {pid for pid in rest if language(pid) in _BY_POINTERS}
    for graph, its in ("fp", pointers), (f"dwarf,{_STACK}", rest - pointers):
        if perf is None or not its:
            continue
        words = ["-q", "-e", "cpu-clock", "-F", _RATE, "--call-graph", graph]
        words += ["-o", str(folder / f"perf-{graph}.data"), "-p", ",".join(map(str, its))]
        # A program of its own, which begins when perf looks, and with which perf ends.
        commands.append([perf, "record", *words, "--", "sleep", str(seconds)])
    with contextlib.ExitStack() as stack:
        running = list[subprocess.Popen[str]]()
        for words in commands:
            one = subprocess.Popen(
                words, stdin=_NOTHING, stdout=_NOTHING, stderr=subprocess.PIPE, errors="replace"
            )
            running.append(stack.enter_context(one))
            stack.callback(one.kill)
        yield made
        for one in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                made.said += one.communicate(timeout=_PATIENCE_S)[1]


def forget_names(pids: Sequence[int]) -> None:
    """Remove what interpreters wrote down for perf."""
    for pid in pids:
        with contextlib.suppress(OSError):
            Path(f"/tmp/perf-{pid}.map").unlink()


def _script(path: Path) -> list[str]:
    command = ["perf", "script", "-i", str(path), "--no-inline", "-F", "comm,pid,tid,ip,sym,dso"]
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        done = subprocess.run(
            command, stdin=_NOTHING, capture_output=True, check=False, timeout=_READING_S,
            env=os.environ | {"DEBUGINFOD_URLS": ""},
        )  # fmt: skip
        return done.stdout.decode(errors="replace").splitlines()
    return []


def _reason(said: str) -> str:
    """Say why there are no samples, by what the profilers have said."""
    why = "there is no perf: apt install linux-perf"
    if shutil.which("perf") is not None:
        lines = filter(None, (line.strip(" .:") for line in said.splitlines()))
        why = f"perf or py-spy saw none: {next(lines, 'it was over too soon')}"
    if "aranoid" in said:
        why = "perf may not look: sysctl kernel.perf_event_paranoid is above 2"
    return f"What its own code does was not seen, as {why}."
