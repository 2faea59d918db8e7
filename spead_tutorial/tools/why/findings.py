# SPDX-License-Identifier: BSD-3-Clause
"""What the facts mean: findings, those first that explain most. No I/O, and no clock."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from spead_tutorial.results.units import bytes_text, percent, size, thousands
from spead_tutorial.tools.why.account import KINDS
from spead_tutorial.tools.why.calls import OUTPUT
from spead_tutorial.tools.why.distance import Distance, distance, small_packets_s
from spead_tutorial.tools.why.facts import PAGE, Packets, Receiving, Seen
from spead_tutorial.tools.why.finding import (
    ENOUGH_PACKETS,
    FRAGMENTED,
    FRESH,
    HEAP_S,
    MATTERS,
    ONE,
    SMALL,
    Finding,
    found,
    handling_s,
    has_small_heaps,
    mapped_share,
    names,
    of_each_heap,
    of_time,
    short,
)
from spead_tutorial.tools.why.remedies import Gain

#: Bytes in the largest message.
_MESSAGE = 65000
_MOST_NAMES = 4
#: Calls of a lock for each packet, from which threads take it in turns. One that is taken more
#: seldom, as Python's once for each heap, counts only if most of the time goes into it: on a busy
#: machine, others wait for who has it and has no core.
_CONTENDED, _MOSTLY = 0.01, 0.5
#: Seconds of CPU time that have to be seen: the kernel divides them by looking now and then.
_ENOUGH_CPU_S = 0.05
#: Seconds of CPU time for a gigabyte below which no data is called slow: main memory takes about as
#: long to be written and read a few times.
_SLOW_S = 0.4
#: Share of the time of what sends that clearing huge pages takes, from which it counts.
_CLEARED = 0.02
#: Share of the CPU time from which a thread counts as busy.
_BUSY = 0.02
#: Share of the time in which a receiver waits for packets, and loses some all the same, from which
#: the socket's room is what is missing.
_WAITS = 0.3
#: Seconds of a program's own for each read, and for each byte that it copies, of which nothing is
#: work on the data: what Python takes, and several times what C does.
_READ_S, _BYTE_S = 4e-6, 0.2e-9
#: Files that are read to look up an address.
_LOOKED_UP = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
              "/etc/host.conf", "/run/nscd", "/var/run/nscd")  # fmt: skip


# ---- What threads wait for that send, or read ----


def _sleeps(kind: str, seen: Seen, far: Distance) -> Finding | None:
    senders, each = seen.account.senders if seen.account else (), ""
    if seen.receiving is None:
        if seen.calls is None:
            return None
        tids = {one.tid for one in senders}
        waits = sum(thread.voluntary for thread in seen.run.threads if thread.tid in tids)
        if waits:
            slept = sum(one.of("sleep") for one in senders)
            each = f", {short(slept / waits)} each on average"
    return of_time(kind, seen, far, each=each)


def _waits_for_lock(kind: str, seen: Seen, far: Distance) -> Finding | None:
    least = MATTERS
    if seen.receiving is None:
        often = sum(part.calls or 0.0 for part in far.of("lock"))
        least = MATTERS if often >= _CONTENDED else _MOSTLY
    elif seen.receiving.told.get("worker_blocked"):  # a full ring of ours looks like a lock
        return None
    return of_time(kind, seen, far, least=least, other=_other(seen, far, "lock"))


def _waits_for_thread(kind: str, seen: Seen, far: Distance) -> Finding | None:
    told, full = seen.receiving.told if seen.receiving else {}, ""
    takes = {"thread": far.left["thread"]}
    if blocked := told.get("worker_blocked", 0):
        takes["lock"] = far.left["lock"]
        longest = short(told.get("longest_ring_wait_ns", 0) / 1e9)
        full = f" The stream's ring was full {thousands(blocked)} times, for up to {longest}."
    return of_time(kind, seen, far, takes, other=_other(seen, far, "thread"), full=full)


def _other(seen: Seen, far: Distance, kind: str) -> str:
    """Name the thread that is waited for most, and say what it does."""
    who = names(far.of(kind)[:1]) or "another thread"
    # The one that is waited for may have the name of who waits.
    threads = sorted(seen.account.threads if seen.account else (), key=lambda one: one.sends)
    for one in threads:
        does = [part for part in one.parts if part.kind not in ("core", "thread", "lock")]
        if who in (one.name, f"{one.name} ({one.tid})") and does:
            most = max(does, key=lambda part: part.seconds)
            share = percent(most.seconds / one.seconds)
            return f"{who}, which is {KINDS[most.kind]} for {share} of the time"
    return who


# ---- What they do ----


def _other_calls(kind: str, seen: Seen, far: Distance) -> Finding | None:
    if seen.calls is None and seen.receiving is None:
        return None
    kinds = ("calls",) if seen.receiving is None else ("calls", "process", "spin")
    parts = [part for part in far.parts if part.kind in kinds]
    files: dict[str, list[str]] = defaultdict(list)  # that calls are about
    for caller in seen.calls.callers if seen.calls else ():
        for call in caller.calls:
            files[call.name] += [call.on] * bool(call.on)
    named = []
    for part in [part for part in parts if part.what][:_MOST_NAMES]:
        n = part.calls or 0.0
        often = f" ({n:{'.2g' if n < 10 else '.0f'}} for each packet)"
        on = [f" on {file}" for file in files[part.what][:1]]
        named.append("".join([part.what, often * (part.calls is not None), *on]))
    takes, its = {one: far.left[one] for one in kinds}, {part.what for part in parts}
    guess = _guess(its, {file for name in its for file in files[name]})
    return of_time(kind, seen, far, takes, named=", ".join(named), guess=guess)


def _guess(names: set[str], files: set[str]) -> str:
    """Say what such calls are probably for."""
    looks_up = any(file.startswith(_LOOKED_UP) for file in files)
    if looks_up or names >= {"socket", "recvmsg", "close"}:
        return " So it looks up an address: getaddrinfo."
    if "getrandom" in names or "/dev/urandom" in files:
        return " So its data is the kernel's random numbers: os.urandom."
    if names & {"write", "writev"} and any(file.startswith(("/", OUTPUT)) for file in files):
        return " So it writes a log."
    return ""


def _slow_data(kind: str, seen: Seen, far: Distance) -> Finding | None:
    own_s = far.left["own"] - handling_s(seen)
    share = own_s / far.whole if far.whole else 0.0
    is_small = seen.run.cpu_s < _ENOUGH_CPU_S or own_s < _SLOW_S or share < MATTERS
    if is_small or has_small_heaps(seen):
        return None
    where, cost_s, doubt = names(far.of("own")), None, ""
    if seen.sampled is None:
        doubt = " Without perf it is not known whether it only reads the clock."
    else:
        cost_s = far.take("own", own_s)
    in_library = f" ({where})" if where else ""
    return found(
        kind, seen, cost_s, own_s=own_s, share=percent(share), in_library=in_library, doubt=doubt
    )


def _fresh_memory(kind: str, seen: Seen, far: Distance) -> Finding | None:
    faults, share = seen.run.per_gb(seen.run.faults), far.share("faults")
    mapped = mapped_share(seen.packets, seen.calls)
    is_receiver = seen.receiving is not None
    in_pages = is_receiver or faults * PAGE / 1e9 >= FRESH
    if is_receiver and share < MATTERS:
        return None
    # Huge pages have few faults, and each of them clears as much memory as 512 others.
    if not in_pages and (mapped < FRESH or share < _CLEARED):
        return None
    numbers: dict[str, Any] = {"faults": faults, "pages": 1e9 / PAGE, "mapped": percent(mapped)}
    return found(kind, seen, far.take("faults"), otherwise=not in_pages, **numbers)


def _shared_core(kind: str, seen: Seen, far: Distance) -> Finding | None:
    """Find busy threads that are kept to a single core, though there are others."""
    run = seen.run
    busy = [thread for thread in run.threads if run.cpu_s and thread.cpu_s >= _BUSY * run.cpu_s]
    kept = [thread for thread in busy if len(thread.cpus) == 1]
    cores = {thread.cpus[0] for thread in kept}
    together = max(
        ([one for one in kept if one.cpus[0] == core] for core in sorted(cores)),
        key=len, default=[],
    )  # fmt: skip
    if len(together) < 2 or seen.cores < 2:
        return None
    them = " and ".join(f"{thread.name} ({thread.tid})" for thread in together)
    cost_s = _together_s(seen, far, min(thread.cpu_s for thread in together))
    return found(kind, seen, cost_s, them=them, core=together[0].cpus[0])


def _together_s(seen: Seen, far: Distance, cpu_s: float) -> float:
    """Take what threads wait for each other that share a core: that wait is their own."""
    most = seen.run.per_gb(cpu_s)
    taken = far.take("core", most)  # the rest of it is for others
    far.whole += taken
    far.longer = None if far.longer is None else far.longer + taken
    for kind in ("thread", "lock", "own"):
        taken += far.take(kind, most - taken)
    return taken


# ---- How packets are sent ----


def _sending_s(seen: Seen, far: Distance, share: float = 1.0) -> float | None:
    """Take a share of sending and of handling calls; None where another finding has taken it."""
    sends = far.take("sends", share * far.left["sends"])
    own = far.take("own", share * min(far.left["own"], handling_s(seen)))
    return sends + own if sends + own > 1e-6 else None


def _one_packet_heaps(packets: Packets) -> bool:
    """Whether a heap is a packet, so that each message is as large as its heap lets it be."""
    return packets.per_heap is not None and packets.per_heap <= 1.0


def _call_per_packet(kind: str, seen: Seen, far: Distance) -> Finding | None:
    packets, calls = seen.packets, seen.calls
    if packets is None or calls is None or packets.packets < ENOUGH_PACKETS:
        return None
    if calls.per_call > ONE or packets.per_message > ONE or _one_packet_heaps(packets):
        return None
    if packets.packet_bytes > _MESSAGE / 2:
        return None  # it is as large as a message that holds several
    per_gb, cost_s = packets.per_gb(packets.packets), _sending_s(seen, far)
    return found(kind, seen, cost_s, call=calls.names[0], per_gb=per_gb)


def _no_segmentation_offload(kind: str, seen: Seen, far: Distance) -> Finding | None:
    packets = seen.packets
    if packets is None or packets.packets < ENOUGH_PACKETS or packets.per_message > ONE:
        return None
    if _one_packet_heaps(packets) or packets.fragments / packets.messages >= FRAGMENTED:
        return None  # the kernel merges none that it has to cut
    return found(kind, seen, _sending_s(seen, far), per_gb=packets.per_gb(packets.messages))


def _fragments(kind: str, seen: Seen, far: Distance) -> Finding | None:
    packets = seen.packets
    if packets is None or packets.fragments / packets.messages < FRAGMENTED:
        return None
    return found(kind, seen, _sending_s(seen, far), per_gb=packets.per_gb(packets.fragments))


def _small_packets(kind: str, seen: Seen, far: Distance) -> Finding | None:
    packets = seen.packets
    if packets is None or packets.packets < ENOUGH_PACKETS:
        return None
    if packets.packet_bytes >= SMALL * seen.largest_packet or _one_packet_heaps(packets):
        return None
    if packets.per_message <= ONE:
        # Each costs the same, so that larger ones cost as much less as there are fewer.
        cost_s = _sending_s(seen, far, 1 - packets.packet_bytes / seen.largest_packet)
    else:
        cost_s = far.take("sends", small_packets_s(seen)) or None
    return found(kind, seen, cost_s, per_gb=packets.per_gb(packets.packets))


def _small_heaps(kind: str, seen: Seen, far: Distance) -> Finding | None:
    packets = seen.packets
    if packets is None or packets.heap_bytes is None or not has_small_heaps(seen):
        return None
    n_calls, own_s = of_each_heap(seen)
    heap = size(packets.heap_bytes).replace("\N{NO-BREAK SPACE}", " ")
    cost_s = far.take("sends") + far.take("own", 1e9 / packets.heap_bytes * HEAP_S)
    return found(kind, seen, cost_s, heap=heap, calls=n_calls, own_us=own_s * 1e6)


# ---- Where a receiver's packets are lost, other than in the socket ----


def _of(seen: Seen) -> Receiving:
    assert seen.receiving is not None
    return seen.receiving


def _lost_elsewhere(kind: str, seen: Seen, _: Distance) -> Finding | None:
    fates, ring = _of(seen).fates, _of(seen).told.get("ring_dropped", 0)
    dropped, least = {
        "device": (fates.device, fates.no_room / 2),
        "no-socket": (fates.unclaimed, fates.lost / 2),
        "ring-full": (ring, 0),
    }[kind]
    return found(kind, seen, dropped=thousands(dropped)) if dropped > least else None


def _small_buffer(kind: str, seen: Seen, _: Distance) -> Finding | None:
    its, account = _of(seen), seen.account
    if not its.fates.no_room or account is None:
        return None
    burst, waited = its.burst * its.packet_bytes, account.share("input")
    is_small = its.buffer is not None and its.buffer < 2 * burst
    stalls = its.pauses is not None and its.pauses.times > 0
    # A thread that waits for a core leaves packets in the socket, too.
    if not is_small and (waited < _WAITS or stalls or account.share("core") > MATTERS):
        return None
    return found(
        kind,
        seen,
        explains=None if is_small else waited,
        waited=percent(waited),
        burst=bytes_text(burst),
        room=_room(its),
    )


def _room(its: Receiving) -> str:
    """Say for how long the socket's buffer takes in what comes: about half of it is payload."""
    rooms = sum(one.buffer or 0 for one in its.sockets)
    if its.buffer is None or not its.fates.rate:
        return ""
    takes_in = short(rooms / 2 / its.fates.rate)
    return f" The buffer of {bytes_text(its.buffer)} takes in {takes_in} of this rate."


# ---- What the threads that read spend their time on ----


def _each(seen: Seen, per_gb: float) -> str:
    return f"{short(per_gb * _of(seen).packet_bytes / 1e9)} for each packet"


def _pauses(kind: str, seen: Seen, far: Distance) -> Finding | None:
    """Find long times in which it computes and does not read, far longer than most."""
    its, calls = _of(seen), seen.calls
    if its.pauses is None or calls is None or not its.pauses.times:
        return None
    # As strace saw them for each message.
    own = seen.run.per_gb(its.pauses.own_s / calls.messages * seen.run.messages)
    own = min(far.left["own"], own)
    if own < far.left["own"] / 2:
        return None
    longest_s = its.pauses.longest_s
    needed = bytes_text(round(longest_s * its.fates.rate * 2))
    longest, room = short(longest_s), _room(its)
    return of_time(kind, seen, far, {"own": own}, longest=longest, room=room, needed=needed)


def _computes(kind: str, seen: Seen, far: Distance) -> Finding | None:
    own = far.left["own"] - _reading_s(seen, far)
    return of_time(kind, seen, far, {"own": own}, each=_each(seen, own))


def _reading_s(seen: Seen, far: Distance) -> float:
    """Return what a program may need to handle its reads and to copy what they bring."""
    per_call = max(1.0, seen.calls.per_call if seen.calls else 1.0)
    each_s = _READ_S / per_call + _of(seen).packet_bytes * _BYTE_S
    return min(far.left["own"], seen.run.per_gb(seen.run.messages * each_s))


def _read_per_packet(kind: str, seen: Seen, far: Distance) -> Finding | None:
    calls = seen.calls
    if calls is None or calls.per_call > ONE or any(one.merges for one in _of(seen).sockets):
        return None
    takes = {"sends": far.left["sends"], "own": _reading_s(seen, far)}
    each = _each(seen, sum(takes.values()))
    return of_time(kind, seen, far, takes, otherwise=True, call=calls.names[0], each=each)


# ---- All of them ----

#: What finds one kind: it takes what it explains from the distance.
Check = Callable[[str, Seen, Distance], Finding | None]
#: Every kind that there is, in the order that those of the same cost are said in. What each takes
#: is no longer there for the next.
CHECKS: dict[str, Check] = {
    "sleeps": _sleeps,
    "spins": of_time,
    "waits-for-lock": _waits_for_lock,
    "shared-core": _shared_core,
    "waits-for-thread": _waits_for_thread,
    "waits-for-input": of_time,
    "waits-for-room": of_time,
    "other-calls": _other_calls,
    "slow-data": _slow_data,
    "fresh-memory": _fresh_memory,
    "fragments": _fragments,
    "small-packets": _small_packets,
    "small-heaps": _small_heaps,
    "call-per-packet": _call_per_packet,
    "no-segmentation-offload": _no_segmentation_offload,
}
RECEIVER_CHECKS: dict[str, Check] = {
    "device": _lost_elsewhere,
    "no-socket": _lost_elsewhere,
    "small-buffer": _small_buffer,
    "sleeps": _sleeps,
    "pauses": _pauses,
    "waits-for-lock": _waits_for_lock,
    "waits-for-thread": _waits_for_thread,
    "computes": _computes,
    "fresh-memory": _fresh_memory,
    "other-calls": _other_calls,
    "call-per-packet": _read_per_packet,
    "ring-full": _lost_elsewhere,
}
#: Of what sending takes some is needed: what can go is known from a bare loop alone.
_SENDING = ("fragments", "small-packets", "small-heaps", "call-per-packet",
            "no-segmentation-offload")  # fmt: skip


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return what makes a sender slow, or a receiver lose packets, what explains most first."""
    its = seen.receiving
    if its is not None and not its.fates.lost and not its.told.get("ring_dropped"):
        return ()
    far, checks = distance(seen), CHECKS if its is None else RECEIVER_CHECKS
    made = (check(kind, seen, far) for kind, check in checks.items())
    there = [finding for finding in made if finding is not None]
    # What explains most may be missing: the order is that of `CHECKS`.
    if its is None and (seen.calls is None or seen.account is None):
        return tuple(dataclasses.replace(finding, cost_s=None) for finding in there)
    weighed = [_weighed(finding, far, seen) for finding in there]
    if its is not None:  # what has nothing to do with its time is where they are lost
        return tuple(sorted(weighed, key=lambda x: -(1.0 if x.explains is None else x.explains)))
    return tuple(sorted(weighed, key=lambda finding: -(finding.cost_s or 0.0)))


def _weighed(finding: Finding, far: Distance, seen: Seen) -> Finding:
    cost, gain = finding.cost_s, finding.gain
    if cost is None:
        return finding
    explains = min(1.0, cost / far.longer) if far.longer else None
    is_known = explains is not None or finding.kind not in _SENDING
    if gain is None and is_known and 0 < cost < far.whole:
        gain = _gain(finding.kind, cost / far.whole, seen)
    return dataclasses.replace(finding, explains=explains, gain=gain)


def _gain(kind: str, share: float, seen: Seen) -> Gain:
    """Return what it gains if a share of the time goes, which was seen so many times."""
    looks = sum(thread.looks for thread in seen.run.threads if thread.waits) or 100
    error, most = 2 * math.sqrt(share * (1 - share) / looks), 1000.0
    if kind == "waits-for-lock" and seen.receiving is None and seen.account is not None:
        # Threads that no longer wait still need cores.
        most = max(1.0, min(seen.cores, len(seen.account.senders)))

    def times(gone: float) -> float:
        return min(most, 1 / (1 - min(max(gone, 0.0), 0.999)))

    return Gain(times(share), times(share - error), times(share + error), (kind,), measured=False)
