# SPDX-License-Identifier: BSD-3-Clause
"""Why a receiver loses packets: where they are lost, and what the threads that read do instead."""

from spead_tutorial.results.units import bytes_text, percent, thousands
from spead_tutorial.tools.why.distance import Distance
from spead_tutorial.tools.why.facts import Receiving, Seen
from spead_tutorial.tools.why.finding import MATTERS, ONE, Finding, short

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


# ---- Where they are lost, other than in the socket ----


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
        " another thread do it, or ask for a buffer that takes the pause in: SO_RCVBUF of"
        f" {needed}, which net.core.rmem_max has to allow.",
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
