# SPDX-License-Identifier: BSD-3-Clause
"""Looking at a program in ``/proc``: what its threads did and wait in now, and its sockets."""

import contextlib
import importlib.resources
import os
import platform
import socket
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from spead_tutorial.lab import Counters
from spead_tutorial.lab.process import family, udp_sockets
from spead_tutorial.measure.verify import IP_UDP_HEADERS
from spead_tutorial.tools.why.facts import Run, Socket, Thread, Waited, Watched
from spead_tutorial.tools.why.stacks import IDLE, INPUT, LOCK, LOOP, MUTEX, READS, WAITS

#: What is counted of a thread from its beginning on.
_COUNTED = ("user_s", "system_s", "runnable_s", "voluntary", "faults")
_TICKS = os.sysconf("SC_CLK_TCK")
#: How often threads are asked what they do, and after how many of those looks what they did.
LOOK_S, _PER_SCAN = 0.004, 12
#: Threads that are asked at most.
_MOST_THREADS = 64


# ---- What threads did ----


def threads(pids: Sequence[int]) -> dict[int, Thread]:
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
    runnable, tracer = 0.0, ""
    with contextlib.suppress(OSError, ValueError):
        ran_ns, waited_ns, _ = map(int, read("schedstat").split())
        runnable = waited_ns / 1e9
        # Exact, where the two others are whole ticks: they say how it is divided.
        share = user / (user + system) if user + system else 0.5
        user, system = ran_ns / 1e9 * share, ran_ns / 1e9 * (1 - share)
    if (by := status["TracerPid"]) != "0":
        with contextlib.suppress(OSError):  # it may have ended
            tracer = Path(f"/proc/{by}/comm").read_text(errors="replace").strip()
    voluntary, name = int(status["voluntary_ctxt_switches"]), before.partition("(")[2]
    return Thread(tid, pid, name, user, system, runnable, voluntary, int(fields[7]), tracer)


def between(before: Mapping[int, Thread], after: Mapping[int, Thread]) -> dict[int, Thread]:
    """Return what threads did between two looks; one that was not there before began at nothing."""

    def since(then: Thread | None, now: Thread) -> Thread:
        done = {name: max(0, getattr(now, name) - getattr(then, name, 0)) for name in _COUNTED}
        return replace(now, **done)

    return {tid: since(before.get(tid), now) for tid, now in after.items()}


# ---- What they do now ----


class Blocked(NamedTuple):
    call: str
    timed: bool  # whether a time ends it by itself


#: What a receiver waits in while nothing is in its socket, in calls of these kinds; in the others
#: it may hold a packet.
NOTHING_THERE, _FOR_PACKETS = Blocked("packets", timed=False), (READS, LOOP, INPUT)
#: What threads do at a moment; None where one runs, or could.
Doing = dict[int, Blocked | None]

#: The calls that programs wait in here, by their numbers.
_FILE = importlib.resources.files(__package__).joinpath("syscalls.toml")
_NUMBERS = tomllib.loads(_FILE.read_text()).get(platform.machine(), "")
_HERE = {int(number): name for name, _, number in (one.partition("=") for one in _NUMBERS.split())}
#: Which argument says until when, by an address or in milliseconds, and what is said for ever.
_UNTIL = {"futex": 3, "poll": 2, "ppoll": 2, "select": 4, "pselect6": 4, "epoll_wait": 3,
          "epoll_pwait": 3, "epoll_pwait2": 3}  # fmt: skip
_FOR_EVER = (0, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
#: How futex waits for a mutex, without a time: by commands for mutexes alone, or by those for all
#: where the value is 2, which a mutex of glibc, Go or Rust has while others want it.
_COMMAND, _LOCK, _WAIT, _WANTED = 0x7F, (6, 13), (0, 9), 2


def doing(text: str, numbers: Mapping[int, str] = _HERE) -> Blocked | None:
    words = text.split()
    if not words or words[0] == "running":
        return None
    number, arguments = int(words[0]), [int(word, 16) for word in words[1:7]]
    name = numbers.get(number, f"call {number}" if number >= 0 else "")
    timed = name.endswith("nanosleep")
    if len(arguments) == 6:
        if name == "futex" and _is_mutex(*arguments[1:4]):
            return Blocked(MUTEX, timed=False)
        if name in _UNTIL:
            timed = arguments[_UNTIL[name]] not in _FOR_EVER
    return Blocked(name, timed)


def _is_mutex(operation: int, value: int, until: int) -> bool:
    command = operation & _COMMAND
    return until == 0 and (command in _LOCK or (command in _WAIT and value == _WANTED))


def now(tids: Mapping[int, int]) -> Doing:
    """Return what some threads do now, as far as this user may see it; they have processes."""
    found: Doing = {}
    for tid, pid in tids.items():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{tid}/syscall") as file:
            found[tid] = doing(file.read())
    return found


# ---- Its sockets ----

_UDP_GRO = 104


def bound(pid: int, port: int | None = None) -> list[Socket]:
    """List the UDP sockets in the network of a process, of all ports or one."""
    found = []
    for table in ("udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                at, queued = (int(words[i].rpartition(":")[2], 16) for i in (1, 4))
                if port in (None, at):
                    found.append(Socket(int(words[9]), at, queued=queued))
    return found


def sockets(pids: Sequence[int], port: int) -> tuple[Socket, ...]:
    """Ask the sockets at a port what they have room for, by copies of them."""
    found = {one.inode: one for one in bound(pids[0], port)}
    for pid in pids:
        with contextlib.suppress(OSError):
            for its in udp_sockets(pid):
                with its:
                    one, merges = found.get(os.fstat(its.fileno()).st_ino), None
                    with contextlib.suppress(OSError):  # a kernel without it
                        merges = bool(its.getsockopt(socket.IPPROTO_UDP, _UDP_GRO))
                    if one is not None:
                        buffer = its.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
                        found[one.inode] = replace(one, buffer=buffer, merges=merges)
    return tuple(found.values())


# ---- Following it ----


def followed(
    pid: int,
    counters: Callable[[], Counters],
    seconds: float,
    has_ended: Callable[[], bool],
    queued: Callable[[], bool] = lambda: True,
) -> Run | None:
    """Look at a program and all that it starts, for some time or to its end; None if it is short.

    Of a receiver it is asked whether something is queued in its socket.
    """
    scans, looks = list[tuple[float, Counters, dict[int, Thread]]](), list[Doing]()
    until, n_crowded, tids = time.monotonic() + seconds, 0, dict[int, int]()

    def scan() -> None:
        if found := threads(family(pid)):
            scans.append((time.monotonic(), counters(), found))
        # The busiest, and no more than there is time for: there may be thousands.
        busiest = sorted(found.values(), key=lambda one: -one.cpu_s)[:_MOST_THREADS]
        tids.clear()
        tids.update({one.tid: one.pid for one in busiest})

    while time.monotonic() < until and not has_ended():
        if len(looks) % _PER_SCAN == 0:
            scan()
        # How many threads of this machine run, or could, but for this one.
        n_ready = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0]) - 1
        found = now(tids)
        if not queued():
            for tid, what in found.items():
                if what and WAITS.get(what.call) in _FOR_PACKETS:
                    found[tid] = NOTHING_THERE
        n_crowded += n_ready > (os.cpu_count() or 1)
        looks.append(found)
        time.sleep(LOOK_S)
    scan()
    counted = scans[-1][1] - scans[0][1] if len(scans) > 1 else None
    if counted is None or not counted.packets or not looks:
        return None
    # The last that is known of each: it may have ended before the program has.
    latest = {tid: one for _, _, its in scans for tid, one in its.items()}
    done = between(scans[0][2], latest)
    waited = _waited([one | {_ALL: together(one)} for one in looks if one])
    sums = {name: sum(getattr(one, name) for one in done.values()) for name in _COUNTED}
    everything = replace(next(iter(done.values())), **sums)
    header = counted.link_header + IP_UDP_HEADERS
    return Run(
        seconds=max(scans[-1][0] - scans[0][0], 1e-6),
        messages=counted.packets,
        payload_bytes=max(1, counted.bytes - header * counted.packets),
        looks=len(looks),
        crowded=n_crowded / len(looks),
        threads=tuple(Watched(one, *waited.get(tid, ())) for tid, one in done.items()),
        whole=Watched(everything, *waited.get(_ALL, ())),
    )


def _waited(looks: Sequence[Doing]) -> dict[int, tuple[int, tuple[Waited, ...]]]:
    """Return how often each thread was looked at, and what it and others did then."""
    n_looks, waits = Counter[int](), defaultdict[int, dict[Blocked, Waited]](dict)
    for one in looks:
        n_looks.update(one.keys())
        for tid, what in one.items():
            if what is None:
                continue
            its = waits[tid].setdefault(what, Waited(*what, 0))
            its.seen += 1
            for other, does in one.items():
                if other not in (tid, _ALL) and (does is None or does.timed):
                    beside = its.running if does is None else its.asleep
                    beside[other] = beside.get(other, 0) + 1
    return {tid: (n, tuple(waits[tid].values())) for tid, n in n_looks.items()}


#: What threads that stand in for each other do goes on where one of them does the first of these:
#: Go has one that sleeps now and then, whatever the others do. And the number that all of them have
#: as one, which waits while none of them runs.
_FIRST = (IDLE, "waits-for-room", "logs", "starts", "sleeps", LOOP, INPUT, "", LOCK)
_ALL = 0


def together(doing: Doing) -> Blocked | None:
    """Return what threads do that stand in for each other."""

    def rank(what: Blocked) -> int:
        kind = WAITS.get(what.call, "")
        return _FIRST.index(kind if kind in _FIRST and (kind != LOOP or what.timed) else "")

    blocked = [what for what in doing.values() if what is not None]
    return min(blocked, key=rank) if len(blocked) == len(doing) else None
