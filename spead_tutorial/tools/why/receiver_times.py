# SPDX-License-Identifier: BSD-3-Clause
"""What a receiver's threads do: looks at ``/proc`` and strace's lines, and what these add up to."""

import bisect
import contextlib
import itertools
import math
import operator
import os
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from spead_tutorial.tools.why import waits
from spead_tutorial.tools.why.account import Account, Part, ThreadTime
from spead_tutorial.tools.why.calls import _number_of as number_of
from spead_tutorial.tools.why.facts import Thread
from spead_tutorial.tools.why.receiver_facts import Call, Reads

# ---- Waits: what a thread that does not run is blocked in ----

_READS = ("recvfrom", "recvmsg", "recvmmsg", "read", "readv")
_SLEEPS = ("nanosleep", "clock_nanosleep", "restart_syscall")
_POLLS = ("poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2")
#: Calls that wait, and do nothing else.
WAITS = (*_SLEEPS, *_POLLS, "futex", "rt_sigtimedwait", "wait4", "sched_yield")


class Blocked(NamedTuple):
    """What a thread waits in."""

    call: str
    timed: bool  # whether a time ends it by itself
    is_lock: bool = False  # whether it is for a lock of the C library


#: A look at the threads: None is one that runs.
Look = dict[int, Blocked | None]


def look(pids: Iterable[int]) -> Look:
    """Look at what all threads of some processes are in right now."""
    found: Look = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    try:
                        text = Path(f"/proc/{pid}/task/{name}/syscall").read_text()
                    except PermissionError:
                        text = "-1"
                    found[int(name)] = blocked(text)
    return found


_OPERATION, _WAIT, _CONTENDED = 0x7F, 0, 2


def blocked(text: str) -> Blocked | None:
    """Read what the kernel says that a thread is in: locks wait for a word to be no longer 2."""
    doing = waits.doing(text)
    if doing is None:
        return None
    numbers = [int(word, 16) for word in text.split()[1:4]]
    is_lock = doing[0] == "futex" and numbers[1] & _OPERATION == _WAIT
    return Blocked(*doing[:2], is_lock and numbers[2] & 0xFFFFFFFF == _CONTENDED)


def wait_of(
    tid: int, seen: Look, queued: int, names: Mapping[int, str], pool: Collection[int] = ()
) -> tuple[str, str]:
    """Return the kind of a thread's wait, as an account has it, and what it waits on.

    Nothing is late while the socket is empty: whatever a thread waits in then, it is for packets.
    So it is for one of a pool of threads that take turns, while it is spare. A futex with a timeout
    is a sleep, unless another thread runs meanwhile: then it is a lock, as that of Python's
    interpreter.
    """
    what = seen[tid]
    if what is None:
        raise ValueError(f"thread {tid} runs")
    running = [one for one, doing in seen.items() if doing is None and one != tid]
    is_futex = what.call == "futex"
    is_spare = tid in pool and is_futex and not what.timed
    if not queued or is_spare or (tid in pool and any(one in pool for one in running)):
        return "input", ""
    holder = names.get(running[0], "") if running else ""
    if what.is_lock or (is_futex and what.timed and running):
        return "lock", holder
    if what.call in _SLEEPS or (what.timed and (is_futex or what.call in _POLLS)):
        return "sleep", what.call
    if is_futex:
        return "thread", holder
    if what.call in (*_READS, *_POLLS):
        return "input", ""
    return ("calls", what.call) if what.call else ("unexplained", "")


# ---- Calls, as strace wrote them down ----

STRACE = ("-f", "-qq", "-ttt", "-T", "-y", "-s", "0", "-e", "verbose=none", "-e", "signal=none")
_CALL = re.compile(
    r"(?P<who>\d+) +(?P<at>\d+\.\d+) (?P<begin>\w+\(|<\.\.\. (?P<resumed>\w+) resumed>)"
    r"(?P<arguments>.*) = (?P<value>-?\d+|0x[0-9a-f]+|\?)(?: .*?)?<(?P<took>\d+\.\d+)>$"
)
_UNFINISHED = re.compile(r"(\d+) +(\d+\.\d+) (\w+)\((.*) <unfinished \.\.\.>$")
#: Times without a read count as pauses that are as long as this, and as many times the median.
_PAUSE_S, _FAR_LONGER = 5e-3, 20


#: A call: when it began, how long it took, who made it, its name, whether it is of the socket, and
#: what it returned.
_Seen = tuple[float, float, int, str, bool, int]
_AT = operator.itemgetter(0)


def parse_reads(
    lines: Iterable[str], inodes: Collection[int], since: float = 0.0, until: float = math.inf
) -> tuple[Reads, set[int]] | None:
    """Count what strace wrote down of a time, and find the threads that read; None for none."""
    marks = tuple(f":[{inode}]>" for inode in inodes)
    begun: dict[str, tuple[str, float]] = {}
    seen: list[_Seen] = []
    for line in lines:
        if (cut := _UNFINISHED.match(line)) is not None:
            begun[cut[1]] = cut[4], float(cut[2])
            continue
        match = _CALL.match(line.rstrip())
        if match is None:
            continue
        arguments, at = match["arguments"], float(match["at"])
        if match["resumed"]:
            first, at = begun.pop(match["who"], ("", at))
            arguments = first + arguments
        name = match["resumed"] or match["begin"][:-1]
        value = number_of(match["value"])
        of_socket = name in _READS and any(mark in arguments.split(",", 1)[0] for mark in marks)
        took = float(match["took"])
        seen.append((at, took, int(match["who"]), name, of_socket, value))
    seen.sort(key=_AT)  # strace writes a call down when it has ended
    reads = [one for one in seen if one[4] and one[5] > 0 and since <= one[0] <= until]
    if len(reads) < 2:
        return None
    readers = {who for _, _, who, *_ in reads}
    since, until = reads[0][0], reads[-1][0]
    theirs = [one for one in seen if one[2] in readers and since <= one[0] <= until]
    messages = sum(value if name == "recvmmsg" else 1 for *_, name, _, value in reads)
    others: defaultdict[str, list[float]] = defaultdict(list)
    for _, took, _, name, of_socket, _ in theirs:
        if not of_socket:
            others[name].append(took)
    # What looking itself takes is in every call's time.
    floor = min((one[1] for one in theirs), default=0.0)
    names = Counter(name for *_, name, _, _ in reads)
    calls = [
        Call(name, len(all_) / messages, sum(all_) - floor * len(all_), name in WAITS)
        for name, all_ in others.items()
    ]
    # A read that waited for packets is no pause: they begin where a read ended.
    gaps = [
        (then[0] + then[1], now[0])
        for then, now in itertools.pairwise(reads)
        if now[0] > then[0] + then[1]
    ]
    usual = statistics.median([end - start for start, end in gaps]) if gaps else 0.0
    least = max(_PAUSE_S, _FAR_LONGER * usual)
    long = [(a, b) for a, b in gaps if b - a >= least]
    found = Reads(
        calls=len(reads),
        messages=messages,
        names=tuple(name for name, _ in names.most_common()),
        seconds=sum(one[1] - floor for one in theirs if one[4]),
        others=tuple(sorted(calls, key=lambda call: -call.seconds)),
        pauses=len(long),
        paused_s=sum(b - a for a, b in long),
        longest_s=max((b - a for a, b in long), default=0.0),
        paused_own_s=sum(b - a - _in_calls(theirs, a, b) for a, b in long),
        steady_s=sum(b - a - _in_calls(theirs, a, b) for a, b in gaps if b - a < least),
    )
    return found, readers


def paused(reads: Reads, *, starved: float, own: float) -> float:
    """Return for how long it computed in pauses at least, knowing two things of the same time.

    What it or strace had no core for was no work. And what it has worked, but not between reads
    that follow each other, it has worked in pauses.
    """
    least = max(reads.paused_own_s - starved, own - reads.steady_s)
    return min(max(0.0, least), reads.paused_own_s)


def _in_calls(calls: Sequence[_Seen], start: float, end: float) -> float:
    """Return how much of a time was spent in calls that began in it, those that wait included."""
    first = bisect.bisect_left(calls, start, key=_AT)
    last = bisect.bisect_left(calls, end, key=_AT)
    return min(end - start, sum(min(end, one[0] + one[1]) - one[0] for one in calls[first:last]))


# ---- The account ----


def places(names: Mapping[int, str], which: Collection[int]) -> set[tuple[str, int]]:
    """Name threads so that they can be found in another run.

    Of threads that read in turn and share a name, as those of Go's runtime, all are meant.
    """
    found = {one for tid, one in waits.numbered(names).items() if tid in which}
    several = {name for name, n in Counter(name for name, _ in found).items() if n > 1}
    return {(name, _ALL) if name in several else (name, nth) for name, nth in found}


def threads_at(names: Mapping[int, str], where: Collection[tuple[str, int]]) -> set[int]:
    """Find the threads that `places` has named."""
    numbered = waits.numbered(names).items()
    return {tid for tid, (name, nth) in numbered if (name, nth) in where or (name, _ALL) in where}


_ALL = -1


def account(
    seconds: float,
    threads: Sequence[Thread],
    looks: Mapping[int, Counter[tuple[str, str]]],
    readers: Collection[int],
    reads: Reads | None,
    packets: float,
    fault_s: float,
    without: tuple[str, ...] = (),
) -> Account:
    """Make the account: what ran is known exactly, and the rest is divided as it was seen."""
    made = [
        _thread_time(seconds, one, looks.get(one.tid, Counter()), one.tid in readers, reads,
                     packets, fault_s)
        for one in threads
    ]  # fmt: skip
    made.sort(key=lambda one: (not one.sends, -sum(p.seconds for p in one.parts if p.kind in _RUN)))
    return Account(seconds, tuple(made), without)


_RUN = ("own", "sends", "calls", "faults")


def _thread_time(
    seconds: float,
    thread: Thread,
    looks: Counter[tuple[str, str]],
    is_reader: bool,
    reads: Reads | None,
    packets: float,
    fault_s: float,
) -> ThreadTime:
    ready = thread.runnable_s or 0.0
    asleep = max(0.0, seconds - thread.cpu_s - ready)
    parts = [Part("own", "", thread.user_s), Part("core", "", ready)]
    parts += _kernel(thread, is_reader, reads, packets, fault_s)
    n = looks.total()
    parts += [Part(kind, what, asleep * count / n) for (kind, what), count in looks.items()]
    if not n:
        parts.append(Part("unexplained", "", asleep))
    whole = max(seconds, sum(part.seconds for part in parts))
    found = tuple(part for part in parts if part.seconds > 0)
    return ThreadTime(thread.tid, thread.name, is_reader, whole, found)


def _kernel(
    thread: Thread, is_reader: bool, reads: Reads | None, packets: float, fault_s: float
) -> list[Part]:
    """Divide a thread's time in the kernel: faults by their price, calls by their times."""
    faults = min(thread.system_s, thread.faults * fault_s)
    left = thread.system_s - faults
    made = [Part("faults", "", faults)]
    if not is_reader or reads is None:
        return [*made, Part("sends" if is_reader else "calls", "", left)]
    worked = [call for call in reads.others if not call.waits]
    whole = reads.seconds + sum(call.seconds for call in worked) or 1.0
    per_packet = reads.calls / reads.messages
    made.append(Part("sends", reads.names[0], left * reads.seconds / whole, per_packet))
    made += [Part("calls", c.name, left * c.seconds / whole, c.per_packet) for c in worked]
    return made
