# SPDX-License-Identifier: BSD-3-Clause
"""What threads wait in, as ``/proc`` shows it to whoever may trace them."""

import contextlib
import dataclasses
import importlib.resources
import os
import platform
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from spead_tutorial.tools.why.calls import FUTEX, POLLS, READS
from spead_tutorial.tools.why.facts import Beside, Run, Thread, Wait


class Blocked(NamedTuple):
    call: str
    timed: bool  # whether a time ends it by itself
    is_lock: bool = False  # whether it is for a lock of the C library
    kind: str = ""  # what it is for, of `account.KINDS`, and on what, where that is known
    on: str = ""


#: What threads do at a moment; None where one runs, or could.
Doing = Blocked | None
Look = dict[int, Doing]

#: The calls that programs wait in here, by their numbers.
_FILE = importlib.resources.files(__package__).joinpath("syscalls.toml")
_NUMBERS = tomllib.loads(_FILE.read_text()).get(platform.machine(), {})
_HERE = {number: name for name, number in _NUMBERS.items()}
#: Which argument says until when: an address, of which nothing is none, or milliseconds.
_UNTIL = {"futex": 3, "ppoll": 2, "select": 4, "pselect6": 4, "epoll_pwait2": 3}
_MILLISECONDS = {"poll": 2, "epoll_wait": 3, "epoll_pwait": 3}
_OPERATION, _WAIT, _CONTENDED = 0x7F, 0, 2
_MOST_BESIDE, _MOST_ACTIVE = 8, 32


def doing(text: str, numbers: Mapping[int, str] = _HERE) -> Doing:
    """Read what the kernel says that a thread does: locks wait for a word to be no longer 2."""
    words = text.split()
    if not words or words[0] == "running":
        return None
    number, arguments = int(words[0]), [int(word, 16) for word in words[1:7]]
    name = numbers.get(number, f"call {number}" if number >= 0 else "")
    timed, is_lock = name.endswith("nanosleep"), False
    if len(arguments) == 6:
        if name in _UNTIL:
            timed = arguments[_UNTIL[name]] != 0
        elif name in _MILLISECONDS:
            timed = not arguments[_MILLISECONDS[name]] & 0x80000000  # less than nothing: for ever
        waits_for_word = name == FUTEX and arguments[1] & _OPERATION == _WAIT
        is_lock = waits_for_word and arguments[2] & 0xFFFFFFFF == _CONTENDED
    return Blocked(name, timed, is_lock)


def look(pids: Sequence[int]) -> Look | None:
    """Return what the threads of some processes do now; None where this user may not see it."""
    found: Look = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            for tid in os.listdir(f"/proc/{pid}/task"):
                one = f"/proc/{pid}/task/{tid}/syscall"
                with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(one) as file:
                    found[int(tid)] = doing(file.read())
    return found or None


def waits(looks: Iterable[Look]) -> dict[int, tuple[int, tuple[Wait, ...]]]:
    """Return how often each thread was looked at, and what it waited in."""
    times: Counter[int] = Counter()
    seen: dict[int, Counter[Blocked]] = defaultdict(Counter)
    beside: dict[tuple[int, Blocked], Counter[tuple[int, str]]] = defaultdict(Counter)
    for one in looks:
        times.update(one.keys())
        active = [
            (tid, "timed" if what else "running") for tid, what in one.items()
            if what is None or what.timed
        ]  # fmt: skip
        # Those that run first, and no more than are told of: there may be thousands.
        active = sorted(active, key=lambda other: other[1])[:_MOST_ACTIVE]
        for tid, what in one.items():
            if what is not None:
                seen[tid][what] += 1
                beside[tid, what].update(other for other in active if other[0] != tid)

    def wait(tid: int, what: Blocked, n: int) -> Wait:
        others = beside[tid, what].most_common(_MOST_BESIDE)
        told = tuple(Beside(*other, count) for other, count in others)
        return Wait(what.call, what.timed, n, told, what.kind, what.on)

    return {
        tid: (n, tuple(wait(tid, *found) for found in seen[tid].most_common()))
        for tid, n in times.items()
    }


def numbered(names: Mapping[int, str]) -> dict[int, tuple[str, int]]:
    """Return the name of each thread, and which one of those it is, to find it in another run."""
    times: Counter[str] = Counter()
    found = {}
    for tid, name in sorted(names.items()):
        found[tid] = name, times[name]
        times[name] += 1
    return found


def added(
    run: Run,
    looks: Sequence[Look],
    names: Mapping[int, tuple[str, int]],
    *,
    pooled: bool,
    queued: Sequence[bool] | None = None,
) -> Run:
    """Return a run whose threads say what they waited in; of a receiver, by what was queued."""
    threads = run.threads
    if pooled and threads:
        one = pool(threads)
        # Those that do nothing but watch the others sleep now and then.
        watching = {tid for tid, (_, its) in waits(looks).items() if its and its[0].call in _SLEEPS}
        threads = (one,)
        looks = [
            {one.tid: of_pool({tid: what for tid, what in look.items() if tid not in watching})}
            for look in looks
        ]
    if queued is None:
        looks = [{tid: what and what._replace(is_lock=False) for tid, what in one.items()}
                 for one in looks]  # fmt: skip
    else:
        looks = [of_receiver(*one, names) for one in zip(looks, queued, strict=True)]
    found = waits(looks)
    told = []
    for thread in threads:
        times, seen = found.get(thread.tid, (0, ()))
        nth = 0 if pooled else names.get(thread.tid, ("", 0))[1]
        told.append(dataclasses.replace(thread, looks=times, waits=seen, nth=nth))
    return dataclasses.replace(run, threads=tuple(told), looks=len(looks), pooled=pooled)


def of_receiver(look: Look, queued: bool, names: Mapping[int, tuple[str, int]]) -> Look:
    """Return a look at a receiver whose waits say what they are for."""
    running = [names.get(tid, ("", 0))[0] for tid, what in look.items() if what is None]
    return {
        tid: what and Blocked(what.call, what.timed, False, *_awaited(what, queued, running))
        for tid, what in look.items()
    }


def _awaited(what: Blocked, queued: bool, running: Sequence[str]) -> tuple[str, str]:
    """Return the kind of a receiver's wait, and what it is on: the first of those that run."""
    holder, is_futex = running[0] if running else "", what.call == FUTEX
    if not queued:  # nothing is late then
        return "input", ""
    # A futex with a timeout is a sleep; if another thread runs, it is a lock, such as Python's.
    if what.is_lock or (is_futex and what.timed and running):
        return "lock", holder
    if what.call in _SLEEPS or (what.timed and (is_futex or what.call in POLLS)):
        return "sleep", what.call
    if is_futex:
        return "thread", holder
    if what.call in (*READS, *POLLS):
        return "input", ""
    return ("calls", what.call) if what.call else ("unexplained", "")


# ---- Threads that stand in for each other ----

_SLEEPS = ("nanosleep", "clock_nanosleep", "restart_syscall")
_SENDING = ("sendto", "sendmsg", "sendmmsg", "write", "io_uring_enter")


def of_pool(one: Look) -> Doing:
    """Return what threads do together: what one does that runs, or that goes on first."""
    if None in one.values():
        return None
    blocked = [what for what in one.values() if what is not None]

    def rank(what: Blocked) -> int:
        if what.call in _SENDING:
            return 0
        return 1 if what.call in _MILLISECONDS and what.timed else 2 + (what.call == FUTEX)

    return min(blocked, key=rank, default=Blocked("", False))


def pool(threads: Sequence[Thread]) -> Thread:
    """Return threads that stand in for each other as one."""
    runnable = [thread.runnable_s for thread in threads if thread.runnable_s is not None]
    return Thread(
        tid=min(thread.tid for thread in threads),
        name=min(threads, key=lambda thread: thread.tid).name,
        user_s=sum(thread.user_s for thread in threads),
        system_s=sum(thread.system_s for thread in threads),
        runnable_s=sum(runnable) if runnable else None,
        voluntary=sum(thread.voluntary for thread in threads),
        faults=sum(thread.faults for thread in threads),
        cpus=tuple(sorted({core for thread in threads for core in thread.cpus})),
    )


def is_pooled(pid: int) -> bool:
    """Whether a process's threads stand in for each other, as those of Go's programs do."""
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/exe").open("rb") as program:
        return b"Go\0\0" in program.read(1 << 13)
    return False
