# SPDX-License-Identifier: BSD-3-Clause
"""Why a receiver loses packets: where they are lost, and what the threads that read do instead."""

from spead_tutorial.results.units import bytes_text, percent, thousands
from spead_tutorial.tools.why.account import KINDS, RUNNING
from spead_tutorial.tools.why.distance import Distance
from spead_tutorial.tools.why.facts import PAGE, Receiving, Seen
from spead_tutorial.tools.why.finding import MATTERS, ONE, Finding, names, short

#: Share of the time in which it waits for packets, and loses some all the same, from which the
#: socket's room is what is missing.
_WAITS = 0.3
#: Seconds of a program's own for each read, and for each byte that it copies, of which nothing is
#: work on the data: what Python takes, and several times what C does.
_READ_S, _BYTE_S = 4e-6, 0.2e-9


def _of(seen: Seen) -> Receiving:
    assert seen.receiving is not None
    return seen.receiving


def _of_time(
    far: Distance, kind: str, takes: dict[str, float], symptom: str, check: str
) -> Finding | None:
    """Return a finding that takes some of the busy time, by kinds of it, if that is enough."""
    cost_s = sum(takes.values())
    if far.is_idle or cost_s <= 0.0 or cost_s < MATTERS * far.whole:
        return None
    for part, seconds in takes.items():
        far.take(part, seconds)
    return Finding(kind, symptom, check, cost_s)


def _each(seen: Seen, per_gb: float) -> str:
    """Say what an amount for a gigabyte is for each packet."""
    return f"{short(per_gb * _of(seen).packet_bytes / 1e9)} for each packet"


# ---- Where they are lost, beside the socket ----


def device(seen: Seen, _: Distance) -> Finding | None:
    """Find packets that a device had no room for."""
    fates = _of(seen).fates
    if 2 * fates.device <= fates.no_room or not fates.device:
        return None
    return Finding(
        "device",
        f"A device on the way dropped {thousands(fates.device)} messages: they never came to the"
        " socket.",
        "The sender is faster than the way: send more slowly, or look at the device's queue.",
    )


def no_socket(seen: Seen, _: Distance) -> Finding | None:
    """Find packets for which there was no socket (any more)."""
    fates = _of(seen).fates
    if fates.unclaimed <= fates.lost / 2:
        return None
    return Finding(
        "no-socket",
        f"{thousands(fates.unclaimed)} messages came when nothing listened at the port.",
        "Look for a socket that is closed, or made anew, while packets still come.",
    )


def ring_full(seen: Seen, _: Distance) -> Finding | None:
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


def small_buffer(seen: Seen, _: Distance) -> Finding | None:
    """Find a socket whose buffer is too small for packets that come at once."""
    its, account = _of(seen), seen.account
    if not its.fates.no_room or account is None:
        return None
    burst, waited = its.burst * its.packet_bytes, account.share("input")
    is_small = its.buffer is not None and its.buffer < 2 * burst
    stalls = its.pauses is not None and its.pauses.times > 0
    # A thread that waits for a core leaves packets in the socket, too.
    if not is_small and (waited < _WAITS or stalls or account.share("core") > MATTERS):
        return None
    return Finding(
        "small-buffer",
        f"It waits for packets for {percent(waited)} of the time, and its socket drops some all the"
        f" same: {its.burst} packets ({bytes_text(burst)}) come at once.{_room(its)}",
        "Ask for a larger one (SO_RCVBUF; net.core.rmem_max has to allow it): several MiB. The"
        " kernel counts its own structures in it, about as much again as the packets.",
        explains=None if is_small else waited,
    )


def _room(its: Receiving) -> str:
    """Say for how long the socket's buffer takes in what comes: about half of it is payload."""
    rooms = sum(one.buffer or 0 for one in its.sockets)
    if its.buffer is None or not its.fates.rate:
        return ""
    takes_in = short(rooms / 2 / its.fates.rate)
    return f" The buffer of {bytes_text(its.buffer)} takes in {takes_in} of this rate."


# ---- What the threads that read spend their time on ----


def sleeps(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that waits for a time while packets wait for it."""
    slept = far.left["sleep"]
    return _of_time(
        far,
        "sleeps",
        {"sleep": slept},
        f"It sleeps ({names(far.of('sleep')) or 'a wait with a timeout'}) while the socket is full"
        f" of packets: {_each(seen, slept)} that it reads.",
        "Look for sleeps and for timers between reads. Wait for the socket instead, with a read"
        " that blocks or with epoll, and read until nothing is left.",
    )


def pauses(seen: Seen, far: Distance) -> Finding | None:
    """Find long times in which it computes and does not read, far longer than most."""
    its, calls = _of(seen), seen.calls
    found = its.pauses
    if found is None or calls is None or not found.times:
        return None
    # As strace saw them for each message.
    own = min(far.left["own"], seen.run.per_gb(found.own_s / calls.messages * seen.run.messages))
    if own < far.left["own"] / 2:
        return None
    needed = bytes_text(round(found.longest_s * its.fates.rate * 2))
    return _of_time(
        far,
        "pauses",
        {"own": own},
        f"Most reads follow each other at once, but {found.times} times none came for up to"
        f" {short(found.longest_s)}, in which the program ran.{_room(its)}",
        "Look for what it does only now and then: collection of garbage, a file, statistics. Have"
        f" another thread do it, or ask for a buffer that takes the pause in: SO_RCVBUF of {needed},"
        " which net.core.rmem_max has to allow.",
    )


def computes(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that works on each packet for longer than the next one takes to come."""
    own = far.left["own"] - _handling(seen, far)
    return _of_time(
        far,
        "computes",
        {"own": own},
        f"The thread that reads computes for {_each(seen, own)}: its own code, not the kernel's.",
        "Read and drop the packets for once: if nothing is lost then, it is the work on them. Make"
        " it faster, or give it to other threads: a profile (perf record, py-spy) shows the lines.",
    )


def _handling(seen: Seen, far: Distance) -> float:
    """Return what a program may need to handle its reads and to copy what they bring."""
    per_call = max(1.0, seen.calls.per_call if seen.calls else 1.0)
    each_s = _READ_S / per_call + _of(seen).packet_bytes * _BYTE_S
    return min(far.left["own"], seen.run.per_gb(seen.run.messages * each_s))


def waits_for_lock(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that waits for a lock; a full ring of ours looks like one."""
    waited = 0.0 if _of(seen).told.get("worker_blocked") else far.left["lock"]
    return _of_time(
        far,
        "waits-for-lock",
        {"lock": waited},
        f"It waits for a lock{_holder(seen, far, 'lock')}: {_each(seen, waited)}.",
        "Hold the lock only to hand over, not while computing or writing; hand over many packets"
        " at once; or give each thread a socket of its own (SO_REUSEPORT). In Python, the"
        " interpreter's own lock is one of them.",
    )


def waits_for_thread(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that waits until another thread has taken what it has read."""
    told, takes, full = _of(seen).told, {"thread": far.left["thread"]}, ""
    if blocked := told.get("worker_blocked", 0):
        takes["lock"] = far.left["lock"]
        longest = short(told.get("longest_ring_wait_ns", 0) / 1e9)
        full = f" The stream's ring was full {thousands(blocked)} times, for up to {longest}."
    return _of_time(
        far,
        "waits-for-thread",
        takes,
        f"The thread that reads waits for another one{_holder(seen, far, 'thread')}.{full}",
        "It hands over faster than what it has read is taken. Make the thread that takes it"
        " faster, or have several; more room between the two (a longer queue or ring) only"
        " bridges pauses.",
    )


def _holder(seen: Seen, far: Distance, kind: str) -> str:
    """Say which thread it waits for, and what that one does."""
    others = [one for one in (seen.account.threads if seen.account else ()) if not one.sends]
    named = [one for one in others if one.name in {part.what for part in far.of(kind)}] or others
    if not named:
        return ""
    other = max(named, key=lambda one: sum(map(one.of, RUNNING)))
    does = max(other.parts, key=lambda part: part.seconds)
    share = percent(does.seconds / other.seconds)
    return f" ({other.name} is {KINDS[does.kind]} for {share} of the time)"


def fresh_memory(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that gets new memory for what it reads."""
    reads = {one.tid for one in (seen.account.senders if seen.account else ())}
    pages = sum(one.faults for one in seen.run.threads if one.tid in reads)
    return _of_time(
        far,
        "fresh-memory",
        {"faults": far.left["faults"]},
        f"It touches {pages / (seen.run.messages or 1):.2g} new pages for each packet"
        f" ({percent(pages * PAGE / seen.run.payload_bytes)} of what it reads).",
        "Make the memory once, and use it again: a buffer for the reads, and a pool for what is"
        " kept.",
    )


def other_calls(seen: Seen, far: Distance) -> Finding | None:
    """Find calls that read nothing, for each packet."""
    kinds = ("calls", "process", "spin")
    theirs = [part for part in far.parts if part.kind in kinds and part.what]
    often = [f" ({one.calls:.2g} for each packet)" if one.calls else "" for one in theirs]
    said = [one.what + times for one, times in zip(theirs, often, strict=True)]
    return _of_time(
        far,
        "other-calls",
        {kind: far.left[kind] for kind in kinds if theirs},
        f"It makes other system calls between reads: {', '.join(said[:3])}.",
        "Look for a line that is logged, a clock or a name that is asked for, or a file that is"
        " written for each packet: do it for many at once, or in another thread.",
    )


def call_per_packet(seen: Seen, far: Distance) -> Finding | None:
    """Find a reader that gets a single packet by each call."""
    calls = seen.calls
    if calls is None or calls.per_call > ONE or any(one.merges for one in _of(seen).sockets):
        return None
    takes = {"sends": far.left["sends"], "own": _handling(seen, far)}
    return _of_time(
        far,
        "call-per-packet",
        takes,
        f"Every packet takes a call ({calls.names[0]}), with what the program does for it:"
        f" {_each(seen, sum(takes.values()))}.",
        "Have the kernel merge packets (UDP_GRO), or read many at once (recvmmsg). This package's"
        " streams do both.",
    )
