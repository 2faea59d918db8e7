# SPDX-License-Identifier: BSD-3-Clause
"""The tools that look at a program: strace, perf and py-spy, and how they are told to."""

import bisect
import contextlib
import itertools
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from spead_tutorial.tools.why import stacks
from spead_tutorial.tools.why.calls import SHOWN
from spead_tutorial.tools.why.stacks import Sampled

#: Samples a second, at no multiple of what programs wait for, and bytes of each stack.
_RATE, _PYTHON_RATE, _STACK = "997", "397", "8192"
_PATIENCE_S, _READING_S, _MOST_LINES = 15.0, 20.0, 500_000
_MOST_NAMES = 1 << 22  # bytes of names of compiled code that are put in order
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


def _py_spy() -> str | None:
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def profile(
    pids: Sequence[int],
    folder: Path,
    seconds: float,
    names: Mapping[int, str],
    *,
    ours: bool = True,
) -> tuple[dict[int, Sampled] | None, list[str]]:
    """Sample processes for some time; return the samples of each thread, and what was not seen.

    Threads have the names that are given: py-spy has others. Of programs that are not ours, which
    run already, nothing is changed.
    """
    commands, spied, data = list[list[str]](), folder / "python", folder / "perf.data"
    languages = {pid: language(pid) for pid in pids}
    if (py_spy := _py_spy()) is not None and "Python" in languages.values():
        python = max(pid for pid in pids if languages.pop(pid, "") == "Python")
        words = ["--native", "-f", "raw", "-t", "-F", "--full-filenames", "-r", _PYTHON_RATE]
        words += ["-d", str(max(1, round(seconds))), "-o", str(spied)]
        commands.append([py_spy, "record", *words, "-p", str(python)])
    if languages and (perf := shutil.which("perf")) is not None:
        graph = "fp" if {*_BY_POINTERS} & {*languages.values()} else f"dwarf,{_STACK}"
        words = ["-q", "-e", "cpu-clock", "-F", _RATE, "--call-graph", graph, "-o", str(data)]
        # A program of its own, which begins when perf looks, and with which perf ends.
        words += ["-p", ",".join(map(str, languages)), "--", "sleep", str(seconds)]
        commands.append([perf, "record", *words])
    said = ""
    with contextlib.ExitStack() as stack, contextlib.suppress(subprocess.TimeoutExpired):
        running = list[subprocess.Popen[str]]()
        for words in commands:
            one = subprocess.Popen(
                words, stdin=_NOTHING, stdout=_NOTHING, stderr=subprocess.PIPE, errors="replace"
            )
            running.append(stack.enter_context(one))
            stack.callback(one.kill)
        time.sleep(seconds)
        for one in running:
            said += one.communicate(timeout=_PATIENCE_S)[1]
    for pid in languages if ours else ():
        with contextlib.suppress(OSError):
            keep_latest(Path(f"/tmp/perf-{pid}.map"))
    found = stacks.of_perf(_script(data)) if data.exists() else {}
    if spied.exists():
        its = stacks.of_py_spy(spied.read_text(errors="replace").splitlines())
        for tid, samples in its.items():
            found[tid] = replace(samples, name=names.get(tid, samples.name))
    return found or None, [] if found else [_reason(said)]


def keep_latest(path: Path) -> None:
    """Leave the name of what was compiled last at each place: perf takes any that was there.

    It lies where everybody may write, so what another user put there, or is too large, is left.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        it = os.fstat(file.fileno())
        if not stat.S_ISREG(it.st_mode) or it.st_uid != os.geteuid() or it.st_size > _MOST_NAMES:
            return
        text = file.read(_MOST_NAMES).decode(errors="replace")
    kept = list[tuple[int, int, str]]()
    for line in reversed(text.split("\n")):
        with contextlib.suppress(ValueError):
            begin, size, _ = line.split(" ", 2)
            one = (int(begin, 16), int(begin, 16) + int(size, 16), line)
            at = bisect.bisect(kept, one)
            if all(one[1] <= it[0] or it[1] <= one[0] for it in kept[max(0, at - 1) : at + 1]):
                kept.insert(at, one)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
        new.write("".join(f"{line}\n" for *_, line in kept))
    os.replace(new.name, path)  # who writes there still writes to the old one


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
