# SPDX-License-Identifier: BSD-3-Clause
"""What ``/proc`` says of a process, of those that it started, and of all their threads."""

import contextlib
import dataclasses
import os
from pathlib import Path

from spead_tutorial.tools.why.facts import Thread

__all__ = ["Task", "family", "tasks", "threads"]

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A thread's counters since it began."""

    name: str  # what the kernel calls it
    user_s: float  # as in `Thread`; the last is None where the kernel does not tell
    system_s: float
    runnable_s: float | None
    voluntary: int  # as in `Thread`
    involuntary: int
    faults: int
    cpus: tuple[int, ...]  # as in `Thread`


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


def tasks(pids: list[int]) -> dict[int, Task]:
    """Read the counters of all threads of some processes; those that have ended are left out."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, IndexError, ValueError):
                    found[int(name)] = _task(f"/proc/{pid}/task/{name}")
    return found


def _task(path: str) -> Task:
    stat = _read(f"{path}/stat")
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    user, system = int(fields[11]) / _TICKS, int(fields[12]) / _TICKS
    status = dict(line.split(":\t", 1) for line in _read(f"{path}/status").splitlines())
    runnable = None
    with contextlib.suppress(OSError, ValueError):
        ran_ns, waited_ns, _ = map(int, _read(f"{path}/schedstat").split())
        runnable = waited_ns / 1e9
        # Exact, where the two others are whole ticks: they say how it is divided.
        user, system = _divided(ran_ns / 1e9, user, system)
    return Task(
        name,
        user,
        system,
        runnable,
        int(status["voluntary_ctxt_switches"]),
        int(status["nonvoluntary_ctxt_switches"]),
        int(fields[7]),
        _cores(status["Cpus_allowed_list"].strip()),
    )


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _divided(ran_s: float, user_s: float, system_s: float) -> tuple[float, float]:
    whole = user_s + system_s
    share = user_s / whole if whole else 0.5
    return ran_s * share, ran_s * (1 - share)


def _cores(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def threads(before: dict[int, Task], after: dict[int, Task]) -> tuple[Thread, ...]:
    """Return what threads did between two looks; one that was not there before began at nothing."""
    nothing = Task("", 0.0, 0.0, 0.0, 0, 0, 0, ())
    found = []
    for tid, now in after.items():
        then = before.get(tid, nothing)
        runnable = None
        if now.runnable_s is not None and then.runnable_s is not None:
            runnable = now.runnable_s - then.runnable_s
        found.append(
            Thread(
                tid,
                now.name,
                max(0.0, now.user_s - then.user_s),
                max(0.0, now.system_s - then.system_s),
                runnable,
                now.voluntary - then.voluntary,
                now.involuntary - then.involuntary,
                now.faults - then.faults,
                now.cpus,
            )
        )
    return tuple(sorted(found, key=lambda thread: -thread.cpu_s))
