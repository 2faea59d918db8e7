# SPDX-License-Identifier: BSD-3-Clause
"""What a sender is watched with: ``/proc``, strace and perf, and what they say."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from spead_tutorial.tools.why.calls import SLEEPS, TIMER
from spead_tutorial.tools.why.facts import Thread, Traffic

# ---- /proc: a process, those that it started, and their threads ----

_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return a process and all that it started, directly or not, as far as they still run."""
    found, unseen = [], [pid]
    while unseen:
        one = unseen.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                text = Path(f"/proc/{one}/task/{thread}/children").read_text()
                unseen += [int(child) for child in text.split()]
    return found


def threads(pids: list[int]) -> dict[int, Thread]:
    """Read what all threads of some processes did since they began, if they still run."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    found[int(name)] = _thread(int(name), pid)
    return found


def _thread(tid: int, pid: int) -> Thread:
    def read(name: str) -> str:
        with open(f"/proc/{pid}/task/{tid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()

    before, _, after = read("stat").rpartition(")")
    fields = after.split()
    user, system = int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
    status = dict(line.split(":\t", 1) for line in read("status").splitlines())
    runnable = None
    with contextlib.suppress(OSError, ValueError):
        ran_ns, waited_ns, _ = map(int, read("schedstat").split())
        runnable = waited_ns / 1e9
        # Exact, where the two others are whole ticks: they say how it is divided.
        share = user / (user + system) if user + system else 0.5
        user, system = ran_ns / 1e9 * share, ran_ns / 1e9 * (1 - share)
    return Thread(
        tid,
        before.partition("(")[2],
        user,
        system,
        runnable,
        voluntary=int(status["voluntary_ctxt_switches"]),
        faults=int(fields[7]),
        cpus=tuple(sorted(os.sched_getaffinity(tid))),
        pid=pid,
    )


def between(before: dict[int, Thread], after: dict[int, Thread]) -> tuple[Thread, ...]:
    """Return what threads did between two looks; one that was not there before began at nothing."""
    done = [_since(before[tid], now) if tid in before else now for tid, now in after.items()]
    return tuple(sorted(done, key=lambda thread: -thread.cpu_s))


def _since(then: Thread, now: Thread) -> Thread:
    runnable = None
    if now.runnable_s is not None and then.runnable_s is not None:
        runnable = now.runnable_s - then.runnable_s
    return dataclasses.replace(
        now,
        user_s=max(0.0, now.user_s - then.user_s),
        system_s=max(0.0, now.system_s - then.system_s),
        runnable_s=runnable,
        voluntary=now.voluntary - then.voluntary,
        faults=now.faults - then.faults,
    )


# ---- strace: which system calls a sender makes ----

#: What is said of a call's arguments: of those that sleep how long, of the others addresses alone,
#: as thousands of packets would have to be written out. Some machines lack some of them: a question
#: mark lets strace pass over those.
_SHOWN = ",".join(f"?{name}" for name in (*SLEEPS, TIMER))
_STRACE = ("-f", "-qq", "-ttt", "--syscall-times=ns", "-y", "-s", "0", "-e",
            f"verbose={_SHOWN}", "-e", "signal=none")  # fmt: skip


def strace(output: str, argv: Sequence[str], pid: int | None) -> list[str] | None:
    """Return what writes down the calls of a program, or of one that runs; None without strace."""
    path = shutil.which("strace")
    what = ["--", *argv] if pid is None else ["-p", str(pid)]
    return None if path is None else [path, *_STRACE, "-o", output, *what]


# ---- perf ----


def begun(*command: str) -> "subprocess.Popen[bytes]":
    """Start perf, which looks until it is told to end."""
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=subprocess.PIPE)


def ended(process: "subprocess.Popen[bytes]") -> str:
    """Have perf write what it has noted and end, and return what it says."""
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    return said.decode(errors="replace")


# ---- How much a sender gets from memory, by perf's counters of the processor ----

_EVENT = "cache-misses"  # of the last cache, as perf names it for every processor
_LINE_BYTES = 64
_PATIENCE_S = 5.0
_NO_PERF = "there is no perf: apt install linux-perf"
_UNSUPPORTED = "this machine shows no hardware counters, as most virtual ones"
_NOTHING = "perf counted nothing, for want of time or of permission (kernel.perf_event_paranoid)"


def parse_traffic(text: str) -> Traffic:
    """Read what ``perf stat -x,`` wrote."""
    found = re.search(rf"^([^,\n]*),[^,\n]*,{_EVENT}(:u)?,", text, re.M)
    if found is None:
        return Traffic(None, False, _NOTHING)
    if not found[1].isdigit():
        return Traffic(None, False, _UNSUPPORTED)
    return Traffic(int(found[1]) * _LINE_BYTES, found[2] is not None, "")


@contextlib.contextmanager
def traffic(pid: int) -> Iterator[list[Traffic]]:
    """Count what a process and what it starts get from memory, for the time of a block."""
    made: list[Traffic] = []
    perf = shutil.which("perf")
    if perf is None:
        made.append(Traffic(None, False, _NO_PERF))
        yield made
        return
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "counts")
        words = "-x", ",", "-e", _EVENT, "-o", str(output), "-p", str(pid)
        process = begun(perf, "stat", *words)
        try:
            yield made
        finally:
            ended(process)
        made.append(parse_traffic(output.read_text() if output.exists() else ""))
