# SPDX-License-Identifier: BSD-3-Clause
"""Why a receiver loses packets: findings from facts, the largest first. No I/O, and no clock."""

from collections.abc import Callable

from spead_tutorial.results.units import bytes_text, number, percent, thousands
from spead_tutorial.tools.why.account import KINDS, Account, ThreadTime
from spead_tutorial.tools.why.facts import PAGE, Receiving, Seen
from spead_tutorial.tools.why.findings import Finding

#: Share of the time in which it is busy, from which a part of that is said.
LEAST = 0.1
#: Share of the time in which it waits for packets, and loses some all the same, from which the
#: socket's room is what is missing.
WAITS = 0.3
#: Messages in a call up to which they count as one.
ONE = 1.2
#: Seconds of a program's own for each read, and for each byte that it copies, of which nothing is
#: work on the data: what Python takes, and several times what C does.
READ_S, BYTE_S = 4e-6, 0.2e-9

#: The chapter that mends what is found.
CHAPTERS = {
    "sleeps": 7,
    "pauses": 7,
    "computes": 7,
    "waits-for-lock": 18,
    "waits-for-thread": 7,
    "fresh-memory": 9,
    "other-calls": 7,
    "small-buffer": 7,
    "call-per-packet": 3,
    "ring-full": 7,
    "no-socket": 3,
    "device": 7,
}


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return why packets are lost, what takes most of the threads' busy time first.

    Where a finding has nothing to do with their time, it comes first: it is where packets are.
    """
    if _of(seen).fates.lost == 0 and not _of(seen).told.get("ring_dropped"):
        return ()
    found = [finding for one in CHECKS if (finding := one(seen)) is not None]
    return tuple(sorted(found, key=lambda one: -(1.0 if one.explains is None else one.explains)))


def _of_time(seen: Seen, kind: str, seconds: float, symptom: str, check: str) -> Finding | None:
    """Return a finding that is a part of the busy time, if that part is large enough."""
    share = min(1.0, seconds / busy_s(seen))
    if share < LEAST or is_idle(seen):
        return None
    cost = seconds / seen.run.messages if seen.run.messages else None
    return Finding(kind, symptom, check, cost_s=cost, explains=share)


def _each(seen: Seen, seconds: float) -> str:
    return short(seconds / seen.run.messages) if seen.run.messages else "unknown"


def short(seconds: float) -> str:
    """Write a short time in its unit."""
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms" if seconds < 1 else f"{number(seconds)} s"


# ---- Where they are lost, beside the socket ----


def device(seen: Seen) -> Finding | None:
    """Find packets that a device had no room for."""
    if 2 * _of(seen).fates.device <= _of(seen).fates.no_room or not _of(seen).fates.device:
        return None
    return Finding(
        "device",
        f"A device on the way dropped {thousands(_of(seen).fates.device)} messages: they never"
        " came to the socket.",
        "The sender is faster than the way: send more slowly, or look at the device's queue.",
    )


def no_socket(seen: Seen) -> Finding | None:
    """Find packets for which there was no socket (any more)."""
    if _of(seen).fates.unclaimed <= _of(seen).fates.lost / 2:
        return None
    return Finding(
        "no-socket",
        f"{thousands(_of(seen).fates.unclaimed)} messages came when nothing listened at the port.",
        "Look for a socket that is closed, or made anew, while packets still come.",
    )


def ring_full(seen: Seen) -> Finding | None:
    """Find heaps that a stream's full ring dropped."""
    dropped = _of(seen).told.get("ring_dropped", 0)
    if not dropped:
        return None
    return Finding(
        "ring-full",
        f"The stream's ring was full, and dropped {thousands(dropped)} heaps that had come whole.",
        "Take heaps out of the ring faster: the thread that takes them is slower than packets come."
        " More room (max_heaps, or heaps of the ring) only bridges pauses.",
    )


# ---- What the threads that read spend their time on ----


def sleeps(seen: Seen) -> Finding | None:
    """Find a reader that waits for a time while packets wait for it."""
    slept = _account(seen).of("sleep")
    calls = " and ".join(
        sorted({part.what for part in _account(seen).parts if part.kind == "sleep" and part.what})
    )
    return _of_time(
        seen,
        "sleeps",
        slept,
        f"It sleeps ({calls or 'a wait with a timeout'}) while the socket is full of packets:"
        f" {_each(seen, slept)} for each packet that it reads.",
        "Look for sleeps and for timers between reads. Wait for the socket instead, with a read"
        " that blocks or with epoll, and read until nothing is left.",
    )


def pauses(seen: Seen) -> Finding | None:
    """Find long times in which it computes and does not read, far longer than most."""
    found = _of(seen).pauses
    if found is None or not found.times:
        return None
    seconds = _paused_own(seen)
    if seconds < _own(seen) / 2:
        return None
    needed = found.longest_s * _of(seen).fates.rate * 2
    return _of_time(
        seen,
        "pauses",
        seconds,
        f"Most reads follow each other at once, but {found.times} times none came for up to"
        f" {short(found.longest_s)}, in which the program ran.{_room(seen)}",
        "Look for what it does only now and then: collection of garbage, a file, statistics. Have"
        f" another thread do it, or ask for a buffer that takes the pause in: SO_RCVBUF of"
        f" {bytes_text(round(needed))}, which net.core.rmem_max has to allow.",
    )


def computes(seen: Seen) -> Finding | None:
    """Find a reader that works on each packet for longer than the next one takes to come."""
    own = _steady(seen) - _handling(seen)
    return _of_time(
        seen,
        "computes",
        own,
        f"The thread that reads computes for {_each(seen, own)} for each packet: its own code, not"
        " the kernel's.",
        "Read and drop the packets for once: if nothing is lost then, it is the work on them. Make"
        " it faster, or give it to other threads: a profile (perf record, py-spy) shows the lines.",
    )


def waits_for_lock(seen: Seen) -> Finding | None:
    """Find a reader that waits for a lock; a full ring of ours looks like one."""
    waited = 0.0 if _of(seen).told.get("worker_blocked") else _account(seen).of("lock")
    return _of_time(
        seen,
        "waits-for-lock",
        waited,
        f"It waits for a lock{_holder(seen, 'lock')}: {_each(seen, waited)} for each packet.",
        "Hold the lock only to hand over, not while computing or writing; hand over many packets"
        " at once; or give each thread a socket of its own (SO_REUSEPORT). In Python, the"
        " interpreter's own lock is one of them.",
    )


def waits_for_thread(seen: Seen) -> Finding | None:
    """Find a reader that waits until another thread has taken what it has read."""
    waited, full = _account(seen).of("thread"), ""
    if blocked := _of(seen).told.get("worker_blocked", 0):
        waited += _account(seen).of("lock")
        longest = short(_of(seen).told.get("longest_ring_wait_ns", 0) / 1e9)
        full = f" The stream's ring was full {thousands(blocked)} times, for up to {longest}."
    return _of_time(
        seen,
        "waits-for-thread",
        waited,
        f"The thread that reads waits for another one{_holder(seen, 'thread')}.{full}",
        "It hands over faster than what it has read is taken. Make the thread that takes it"
        " faster, or have several; more room between the two (a longer queue or ring) only"
        " bridges pauses.",
    )


def fresh_memory(seen: Seen) -> Finding | None:
    """Find a reader that gets new memory for what it reads."""
    calls = sum(
        part.seconds
        for part in _account(seen).parts
        if part.kind == "calls" and part.what in _MEMORY_CALLS
    )
    packets = seen.run.messages
    pages = packets * _of(seen).packet_bytes / PAGE
    return _of_time(
        seen,
        "fresh-memory",
        _account(seen).of("faults") + calls,
        f"It touches {_faults(seen) / (packets or 1):.2g} new pages for each packet"
        f" ({percent(_faults(seen) / (pages or 1))} of what it reads).",
        "Make the memory once, and use it again: a buffer for the reads, and a pool for what is"
        " kept.",
    )


_MEMORY_CALLS = ("mmap", "munmap", "brk", "madvise", "mremap")


def other_calls(seen: Seen) -> Finding | None:
    """Find calls that read nothing, for each packet."""
    theirs = [
        part
        for part in _account(seen).parts
        if part.kind in ("calls", "process", "spin")
        and part.what
        and part.what not in _MEMORY_CALLS
    ]
    if not theirs:
        return None
    names = [
        part.what if part.calls is None else f"{part.what} ({part.calls:.2g} for each packet)"
        for part in theirs[:3]
    ]
    seconds = sum(part.seconds for part in theirs)
    return _of_time(
        seen,
        "other-calls",
        seconds,
        f"It makes other system calls between reads: {', '.join(names)}.",
        "Look for a line that is logged, a clock or a name that is asked for, or a file that is"
        " written for each packet: do it for many at once, or in another thread.",
    )


def small_buffer(seen: Seen) -> Finding | None:
    """Find a socket whose buffer is too small for packets that come at once."""
    if not _of(seen).fates.no_room:
        return None
    its, waited = _of(seen), _account(seen).share("input")
    rooms = [one.buffer for one in its.sockets if one.buffer is not None]
    stalls = its.pauses is not None and its.pauses.times > 0
    burst = its.burst * its.packet_bytes
    is_small = bool(rooms) and max(rooms) < 2 * burst
    # A thread that waits for a core leaves packets in the socket, too.
    starved = _account(seen).share("core") > LEAST
    if not is_small and (waited < WAITS or stalls or starved):
        return None
    return Finding(
        "small-buffer",
        f"It waits for packets for {percent(waited)} of the time, and its socket drops some"
        f" all the same: {its.burst} packets ({bytes_text(burst)}) come at once.{_room(seen)}",
        "Ask for a larger one (SO_RCVBUF; net.core.rmem_max has to allow it): several MiB."
        " The kernel counts its own structures in it, about as much again as the packets.",
        explains=None if is_small else waited,
    )


def call_per_packet(seen: Seen) -> Finding | None:
    """Find a reader that gets a single packet by each call."""
    calls = seen.calls
    if calls is None or calls.per_call > ONE or any(one.merges for one in _of(seen).sockets):
        return None
    seconds = _account(seen).of("sends") + _handling(seen)
    return _of_time(
        seen,
        "call-per-packet",
        seconds,
        f"Every packet takes a call ({calls.names[0]}), with what the program does for each:"
        f" {_each(seen, seconds)} together.",
        "Have the kernel merge packets (UDP_GRO), or read many at once (recvmmsg). This package's"
        " streams do both.",
    )


#: Every kind that there is, in the order that those of the same share are said in.
CHECKS: tuple[Callable[[Seen], Finding | None], ...] = (
    device,
    no_socket,
    small_buffer,
    sleeps,
    pauses,
    waits_for_lock,
    waits_for_thread,
    computes,
    fresh_memory,
    other_calls,
    call_per_packet,
    ring_full,
)


# ---- Of facts ----

#: The share of the time below which what is done in it loses no packets.
_IDLE = 0.05


def _of(seen: Seen) -> Receiving:
    assert seen.receiving is not None
    return seen.receiving


def _account(seen: Seen) -> Account:
    return seen.account or Account(0.0, ())


def busy_s(seen: Seen) -> float:
    """Return how long those that read waited neither for packets nor for a core."""
    account = _account(seen)
    whole = sum(one.seconds for one in account.senders)
    return max(1e-9, whole - account.of("input") - account.of("core"))


def is_idle(seen: Seen) -> bool:
    """Whether they had next to nothing to do while they had a core."""
    whole, cores = _account(seen).seconds, _account(seen).of("core")
    return busy_s(seen) < _IDLE * max(0.1 * whole, whole - cores)


def _faults(seen: Seen) -> int:
    """Return how many pages they touched for the first time."""
    tids = {one.tid for one in _account(seen).senders}
    return sum(one.faults for one in seen.run.threads if one.tid in tids)


def _buffer_s(seen: Seen) -> float | None:
    """Return for how long the buffers take in what comes: about half of them is payload."""
    rooms = [one.buffer for one in _of(seen).sockets if one.buffer is not None]
    return sum(rooms) / 2 / _of(seen).fates.rate if rooms and _of(seen).fates.rate else None


def _own(seen: Seen) -> float:
    return _account(seen).of("own")


def _steady(seen: Seen) -> float:
    """Return what of its own time is no pause that is said."""
    return _own(seen) - (_paused_own(seen) if pauses(seen) is not None else 0.0)


def _handling(seen: Seen) -> float:
    """Return what a program may need to handle its reads and to copy what they bring."""
    per_call = max(1.0, seen.calls.per_call if seen.calls else 1.0)
    allowed = seen.run.messages * (READ_S / per_call + _of(seen).packet_bytes * BYTE_S)
    return min(_steady(seen), allowed)


def _paused_own(seen: Seen) -> float:
    """Return what of its own time are pauses, as strace saw them for each message."""
    found = _of(seen).pauses
    if found is None or seen.calls is None:
        return 0.0
    return min(_own(seen), found.own_s / seen.calls.messages * seen.run.messages)


def _room(seen: Seen) -> str:
    """Say what the socket's buffer takes in."""
    rooms = [one.buffer for one in _of(seen).sockets if one.buffer is not None]
    takes_in = _buffer_s(seen)
    if not rooms or takes_in is None:
        return ""
    return f" The buffer of {bytes_text(max(rooms))} takes in {short(takes_in)} of this rate."


def _holder(seen: Seen, kind: str) -> str:
    """Say which thread it waits for, and what that one does."""
    others = [one for one in _account(seen).threads if not one.sends]
    names = {part.what for part in _account(seen).parts if part.kind == kind and part.what}
    named = [one for one in others if one.name in names] or others
    if not named:
        return ""
    other = max(named, key=_awake)
    what = max(other.parts, key=lambda part: part.seconds, default=None)
    if what is None:
        return f" that {other.name} has"
    does = KINDS[what.kind]
    name = other.name
    return f" ({name} is {does} for {percent(what.seconds / (other.seconds or 1))} of the time)"


def _awake(one: ThreadTime) -> float:
    return sum(part.seconds for part in one.parts if part.kind in ("own", "calls", "faults"))
