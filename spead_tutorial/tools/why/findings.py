# SPDX-License-Identifier: BSD-3-Clause
"""What the facts mean: findings, those first that explain most. No I/O, and no clock."""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable

from spead_tutorial.results.units import number, percent, size
from spead_tutorial.tools.why.account import Part
from spead_tutorial.tools.why.distance import Distance, distance, small_packets_s
from spead_tutorial.tools.why.facts import PAGE, Seen
from spead_tutorial.tools.why.remedies import Gain, gains_of

#: Packets in a message, and messages in a call, up to which they count as one.
ONE = 1.2
#: Packets that have to be seen before anything is said of them.
ENOUGH_PACKETS = 16
#: Share of the payload's pages that are new, from which memory counts as fresh.
FRESH = 0.2
#: Share of the time of the threads that send, from which what it goes into counts.
MATTERS = 0.1
#: Calls of a lock for each packet, from which threads take it in turns. One that is taken more
#: seldom, as Python's once for each heap, counts only if most of the time goes into it: on a busy
#: machine, others wait for who has it and has no core.
CONTENDED, MOSTLY = 0.01, 0.5
#: Seconds of CPU time that have to be seen: the kernel divides them by looking now and then.
ENOUGH_CPU_S = 0.05
#: Share of the time of what sends that clearing huge pages takes, from which it counts.
CLEARED = 0.02
#: Packets smaller than this share of what the device takes count as small.
SMALL = 0.5
#: Share of the messages that are fragments, from which they count.
FRAGMENTED = 0.01
#: Share of the CPU time from which a thread counts as busy.
BUSY = 0.02
#: Seconds of CPU time for a gigabyte below which no data is called slow: main memory takes about as
#: long to be written and read a few times.
SLOW_S = 0.4
#: Seconds of a program's own for each call and for each heap, of which nothing is making data: what
#: Python takes, and several times what C does.
CALL_S, HEAP_S = 5e-6, 50e-6
#: Heaps smaller than this count as small.
SMALL_HEAP = 32 << 10
#: Calls for each small heap, and seconds of the program's own time, from which heaps share too
#: little.
CALLS_PER_HEAP, OWN_S_PER_HEAP = 0.2, 3e-6
#: Bytes in the largest message.
_MESSAGE = 65000
_MOST_NAMES = 4
#: What strace calls the file without a name that a sender's output is written to.
_OUTPUT = re.compile(r"/#\d+( \(deleted\))?$")
#: Of what sending takes some is needed: what can go is known beside a bare loop alone.
SENDING = ("fragments", "small-packets", "small-heaps", "call-per-packet",
           "no-segmentation-offload")  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a sender slow."""

    kind: str  # what it is called in JSON
    symptom: str  # what was seen, in a sentence with its numbers
    check: str  # what to look at, and to change
    # seconds that it costs for a gigabyte of payload, about; None where it is not known
    cost_s: float | None = None
    # which part that is of what the sender takes longer than the bare loop; None where one of the
    # two is not known
    explains: float | None = None
    gain: Gain | None = None  # what mending it gains by itself
    with_others: tuple[Gain, ...] = ()  # and with what else this sender lacks, or that alone


#: What finds one kind: it takes what it explains from the distance.
Check = Callable[[Seen, Distance], Finding | None]


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return what makes a sender slow, what explains most first; nothing for one that is fast.

    Where no calls were seen, what explains most may be missing: then nothing is weighed, and the
    order is that of `CHECKS`.
    """
    far = distance(seen)
    made = (check(seen, far) for check in CHECKS)
    found = [_gaining(seen, finding) for finding in made if finding is not None]
    if seen.calls is None or seen.account is None:
        return tuple(dataclasses.replace(finding, cost_s=None) for finding in found)
    weighed = [_weighed(finding, far, seen) for finding in found]
    return tuple(sorted(weighed, key=lambda finding: -(finding.cost_s or 0.0)))


def _gaining(seen: Seen, finding: Finding) -> Finding:
    gain, others = gains_of(finding.kind, seen.tried)
    return dataclasses.replace(finding, gain=gain, with_others=others)


def _weighed(finding: Finding, far: Distance, seen: Seen) -> Finding:
    cost = finding.cost_s
    if cost is None:
        return finding
    explains = None
    if far.longer:
        explains = min(1.0, cost / far.longer)
    gain = finding.gain
    is_known = explains is not None or finding.kind not in SENDING
    if gain is None and is_known and 0 < cost < far.whole:
        gain = _gain(finding.kind, cost / far.whole, seen)
    return dataclasses.replace(finding, explains=explains, gain=gain)


def _gain(kind: str, share: float, seen: Seen) -> Gain:
    """Return what it gains if a share of the time goes, which was seen so many times."""
    looks = sum(thread.looks for thread in seen.run.threads if thread.waits) or 100
    error = 2 * math.sqrt(share * (1 - share) / looks)

    def times(gone: float) -> float:
        return 1 / (1 - min(max(gone, 0.0), 0.999))

    return Gain(times(share), times(share - error), times(share + error), (kind,), measured=False)


# ---- What threads wait for ----


def sleeps(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that waits for time to pass."""
    share = far.share("sleep")
    if seen.calls is None or share < MATTERS:
        return None
    waits = sum(thread.voluntary for thread in seen.run.threads if _sends(seen, thread.tid))
    slept = seen.account.of("sleep") if seen.account else 0.0
    each = f", {_short(slept / waits)} each on average" if waits else ""
    return Finding(
        "sleeps",
        f"{_percent(share)} of the time of what sends goes by in waits that end when a time has"
        f" come ({_names(far.of('sleep'))}){each}.",
        "Look for sleeps between heaps, for timers that flush, for waits with a timeout and for a"
        " rate that was asked for. A limit that is wanted is no fault; without one, wait for the"
        " heap that is on its way instead of the clock.",
        far.take("sleep"),
    )


def spins(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that reads the clock until a time has come."""
    share = far.share("spin")
    if share < MATTERS:
        return None
    return Finding(
        "spins",
        f"{_percent(share)} of the time of what sends goes into reading the clock until a time has"
        " come: it waits, and burns a core.",
        "Look for a loop around the clock: a rate that is kept by spinning. A limit that is wanted"
        " is no fault; without one, send as soon as there is something to send.",
        far.take("spin"),
    )


def waits_for_lock(_: Seen, far: Distance) -> Finding | None:
    """Find threads that send in turns, as they share a lock."""
    share = far.share("lock")
    often = sum(part.calls or 0.0 for part in far.of("lock"))
    if share < (MATTERS if often >= CONTENDED else MOSTLY):
        return None
    return Finding(
        "waits-for-lock",
        f"{_percent(share)} of the time of the threads that send goes by in waits for each other,"
        f" {_names(far.of('lock'))}: they share a lock.",
        "Give each thread a socket, buffers and a stream of its own. Some languages have a lock for"
        " every socket (Java), or for all threads (Python): what several threads send through one"
        " of those, one thread sends as fast.",
        far.take("lock"),
    )


def waits_for_thread(seen: Seen, far: Distance) -> Finding | None:
    """Find a thread that sends, and waits for one that makes the data."""
    share = far.share("thread")
    if share < MATTERS:
        return None
    names = [part.what for part in far.of("thread") if part.what]
    who = names[0] if names else "another thread"
    does = ""
    if seen.account is not None:
        others = (one for one in seen.account.threads if f"{one.name} ({one.tid})" == who)
        for other in others:
            kinds = [part for part in other.parts if part.kind not in ("core", "thread", "lock")]
            if kinds:
                does = f", which is {_does(kinds[0])} most of that time"
    return Finding(
        "waits-for-thread",
        f"{_percent(share)} of the time of what sends goes by in waits for {who}{does}.",
        "The thread that makes the data is the slow one. Look at what it computes, and at how heaps"
        " are handed over: have the next one ready while one is sent.",
        far.take("thread"),
    )


def _does(part: Part) -> str:
    words = {"own": "in its own code", "sleep": "asleep", "calls": "in other calls",
             "faults": "in page faults", "input": "waiting for input"}  # fmt: skip
    where = f" ({part.what})" if part.what else ""
    return f"{words.get(part.kind, 'busy')}{where}"


def waits_for_input(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that waits for what it reads, or for another process."""
    share = far.share("input") + far.share("process")
    if share < MATTERS:
        return None
    names = _names((*far.of("input"), *far.of("process")))
    return Finding(
        "waits-for-input",
        f"{_percent(share)} of the time of what sends goes by in waits for input or for another"
        f" process ({names}).",
        "What it reads from is the slow one: a pipe, a file, a socket or a device. Read ahead while"
        " heaps are sent, and see what the other side does.",
        far.take("input") + far.take("process"),
    )


def waits_for_room(_: Seen, far: Distance) -> Finding | None:
    """Find a sender whose socket has no room."""
    share = far.share("room")
    if share < MATTERS:
        return None
    return Finding(
        "waits-for-room",
        f"{_percent(share)} of the time of what sends goes by in calls that wait for room in the"
        f" socket ({_names(far.of('room'))}).",
        "The link or its queue is the limit, or the socket's buffer is small: look for SO_SNDBUF,"
        " and for a limit of the device (tc qdisc).",
        far.take("room"),
    )


# ---- What they do ----


def other_calls(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that calls the kernel for other things than sending, for each packet."""
    share = far.share("calls")
    if seen.calls is None or share < MATTERS:
        return None
    parts = far.of("calls")
    named = [f"{part.what}{_often(part)}{_file(seen, part.what)}" for part in parts if part.what]
    return Finding(
        "other-calls",
        f"{_percent(share)} of the time of what sends goes into calls that do not send:"
        f" {', '.join(named[:_MOST_NAMES])}.{_guess(seen, parts)}",
        "Do for each packet only what has to be done for each: look up addresses once, before the"
        " first packet; write a line for many packets, or none; take random numbers from a"
        " generator of the program's own.",
        far.take("calls"),
    )


def _often(part: Part) -> str:
    if part.calls is None:
        return ""
    times = f"{part.calls:.2g}" if part.calls < 10 else f"{part.calls:.0f}"
    return f" ({times} for each packet)"


def _files(seen: Seen, name: str) -> list[str]:
    callers = seen.calls.callers if seen.calls else ()
    return [call.on for caller in callers for call in caller.calls if call.name == name and call.on]


def _file(seen: Seen, name: str) -> str:
    files = _files(seen, name)
    if files and _OUTPUT.search(files[0]):
        return " on its output"
    return f" on {files[0]}" if files else ""


def _guess(seen: Seen, parts: Iterable[Part]) -> str:
    """Say what such calls are probably for."""
    names = {part.what for part in parts}
    files = {file for name in names for file in _files(seen, name)}
    looked_up = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
                 "/etc/host.conf", "/run/nscd", "/var/run/nscd")  # fmt: skip
    if any(file.startswith(looked_up) for file in files) or names >= {"socket", "recvmsg", "close"}:
        return " So it looks up an address: getaddrinfo."
    if "getrandom" in names or "/dev/urandom" in files:
        return " So its data is the kernel's random numbers: os.urandom."
    if names & {"write", "writev"} and any(file.startswith("/") for file in files):
        return " So it writes a log."
    return ""


def slow_data(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that takes longer to make its data than to send it."""
    run = seen.run
    own_s = far.left["own"] - _handling_s(seen)
    share = own_s / far.whole if far.whole else 0.0
    if run.cpu_s < ENOUGH_CPU_S or own_s < SLOW_S or share < MATTERS or _has_small_heaps(seen):
        return None
    where = _names(far.of("own"))
    doubt = " Without perf it is not known whether it only reads the clock."
    return Finding(
        "slow-data",
        f"The program computes for {own_s:.2f} s for each gigabyte that it sends:"
        f" {_percent(share)} of the time of what sends is its own code"
        f"{f' ({where})' if where else ''}.{doubt if seen.sampled is None else ''}",
        "Send constant samples for once: if that is much faster, it is not the sender that is slow,"
        " but what makes the samples. A profiler shows which lines.",
        far.take("own", own_s) if seen.sampled is not None else None,
    )


def _handling_s(seen: Seen) -> float:
    """Return what a program may need to handle its calls and heaps, for a gigabyte."""
    packets, calls = seen.packets, seen.calls
    if packets is None:
        return seen.run.per_gb(seen.run.messages) * CALL_S
    messages = packets.per_gb(packets.messages)
    n_calls = messages / calls.per_call if calls and calls.messages else messages
    heaps = 1e9 / packets.heap_bytes if packets.heap_bytes else 0.0
    return n_calls * CALL_S + heaps * HEAP_S


def fresh_memory(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that gets new memory for its data again and again."""
    run = seen.run
    faults = run.per_gb(run.faults)
    share = faults * PAGE / 1e9
    mapped = _mapped(seen)
    if share >= FRESH:
        symptom = (
            f"{faults:.0f} page faults for each gigabyte, which has {1e9 / PAGE:.0f} pages: new"
            " memory again and again."
        )
    elif mapped >= FRESH and far.share("faults") >= CLEARED:
        # Huge pages have few faults, and each of them clears as much memory as 512 others.
        symptom = (
            f"New memory for {percent(mapped)} of what is sent, in huge pages: only"
            f" {faults:.0f} page faults for each gigabyte, but all of it is cleared first."
        )
    else:
        return None
    return Finding(
        "fresh-memory",
        symptom,
        "Look for memory that is allocated and freed for every heap, and for NumPy expressions that"
        " make a new array. Fill the same buffers in turn.",
        far.take("faults"),
    )


# ---- How packets are sent ----


def _sending_s(seen: Seen, far: Distance, share: float = 1.0) -> float | None:
    """Take a share of what sending takes longer, with what the program does for each call.

    None where another finding has taken it all: then this one is a part of that.
    """
    sends = far.take("sends", share * far.left["sends"])
    own = far.take("own", share * min(far.left["own"], _handling_s(seen)))
    return sends + own if sends + own > 1e-6 else None


def call_per_packet(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that makes a system call for each packet."""
    packets, calls = seen.packets, seen.calls
    if packets is None or calls is None or packets.packets < ENOUGH_PACKETS:
        return None
    if calls.per_call > ONE or packets.per_message > ONE or _one_packet_heaps(seen):
        return None
    if packets.packet_bytes > _MESSAGE / 2:
        return None  # it is as large as a message that holds several
    return Finding(
        "call-per-packet",
        f"{calls.names[0]} is called for every packet: {packets.per_gb(packets.packets):.0f} times"
        " for each gigabyte.",
        "Give the kernel many packets in a call: sendmmsg, and segmentation offload, by which one"
        " message holds up to 64 KiB of packets. In Python, a stream of this package does both.",
        _sending_s(seen, far),
    )


def no_segmentation_offload(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender whose every packet is a message of its own."""
    packets = seen.packets
    if packets is None or packets.packets < ENOUGH_PACKETS or packets.per_message > ONE:
        return None
    if _one_packet_heaps(seen) or packets.fragments / packets.messages >= FRAGMENTED:
        return None  # the kernel merges none that it has to cut
    return Finding(
        "no-segmentation-offload",
        f"{packets.per_message:.1f} packets in a message: no segmentation offload, and"
        f" {packets.per_gb(packets.messages):.0f} messages for each gigabyte.",
        "See that the sender sets UDP_SEGMENT, that its packets are of one size, and that"
        " spead-tutorial doctor finds the offload here. A library may be built without it, as"
        " spead2's wheel is.",
        _sending_s(seen, far),
    )


def fragments(seen: Seen, far: Distance) -> Finding | None:
    """Find packets that are larger than the MTU."""
    packets = seen.packets
    if packets is None or packets.fragments / packets.messages < FRAGMENTED:
        return None
    per_gb = packets.per_gb(packets.fragments)
    return Finding(
        "fragments",
        f"Packets of {packets.packet_bytes} bytes are larger than the MTU of {seen.mtu}"
        f" allows ({seen.largest_packet} bytes): {per_gb:.0f} IP fragments for each gigabyte.",
        f"Take packets of {seen.largest_packet} bytes at most, or what the route takes"
        " (route_packet_size), *and* send them with segmentation offload: cut alone, each takes a"
        " call of its own. A fragment that is lost costs the whole packet.",
        _sending_s(seen, far),
    )


def small_packets(seen: Seen, far: Distance) -> Finding | None:
    """Find packets far smaller than the MTU allows."""
    packets = seen.packets
    if packets is None or packets.packets < ENOUGH_PACKETS:
        return None
    if packets.packet_bytes >= SMALL * seen.largest_packet or _one_packet_heaps(seen):
        return None
    if packets.per_message <= ONE:
        # Each costs the same, so that larger ones cost as much less as there are fewer.
        cost = _sending_s(seen, far, 1 - packets.packet_bytes / seen.largest_packet)
    else:
        cost = far.take("sends", small_packets_s(seen)) or None
    return Finding(
        "small-packets",
        f"Packets of {packets.packet_bytes} bytes, though the device takes"
        f" {seen.largest_packet}: {packets.per_gb(packets.packets):.0f} packets for each gigabyte.",
        "Take larger packets, as large as the smallest MTU on the way allows, less 28 bytes for IP"
        " and UDP. If the real network has an MTU of 1500, give the lab that one (--mtu 1500).",
        cost,
    )


def shared_core(seen: Seen, far: Distance) -> Finding | None:
    """Find busy threads that are kept to a single core, though there are others."""
    run = seen.run
    busy = [thread for thread in run.threads if run.cpu_s and thread.cpu_s >= BUSY * run.cpu_s]
    kept = [thread for thread in busy if len(thread.cpus) == 1]
    cores = {thread.cpus[0] for thread in kept}
    together = max(
        ([one for one in kept if one.cpus[0] == core] for core in sorted(cores)),
        key=len, default=[],
    )  # fmt: skip
    if len(together) < 2 or seen.cores < 2:
        return None
    names = " and ".join(f"{thread.name} ({thread.tid})" for thread in together)
    return Finding(
        "shared-core",
        f"{names} may only use core {together[0].cpus[0]}, though there are {seen.cores}"
        " cores: one waits while the other works.",
        "Look for sched_setaffinity, pthread_setaffinity_np and taskset. Give each thread a core"
        " of its own, or leave it to the kernel.",
        _together_s(seen, far, min(thread.cpu_s for thread in together)),
    )


def small_heaps(seen: Seen, far: Distance) -> Finding | None:
    """Find small heaps, each of which costs a message or a call."""
    packets = seen.packets
    if packets is None or packets.heap_bytes is None or not _has_small_heaps(seen):
        return None
    heaps = 1e9 / packets.heap_bytes
    n_calls, own_s = _of_each_heap(seen)
    heap = size(packets.heap_bytes).replace("\N{NO-BREAK SPACE}", " ")
    return Finding(
        "small-heaps",
        f"Heaps of {heap}, for each of which there are {n_calls:.1f} calls and {own_s * 1e6:.1f} µs"
        " of the program's own time: little is shared between heaps.",
        "Keep several heaps on their way and build their objects once (chapter 10), then send"
        " batches of them in one call (chapter 11). With small heaps, what is done once for each is"
        " what counts, above all in Python, where one lock is for all threads.",
        far.take("sends") + far.take("own", heaps * HEAP_S),
    )


#: Every kind that there is, in the order that those of the same cost are said in. What each takes
#: is no longer there for the next.
CHECKS: tuple[Check, ...] = (
    sleeps,
    spins,
    waits_for_lock,
    shared_core,
    waits_for_thread,
    waits_for_input,
    waits_for_room,
    other_calls,
    slow_data,
    fresh_memory,
    fragments,
    small_packets,
    small_heaps,
    call_per_packet,
    no_segmentation_offload,
)


# ---- Of facts ----


def _one_packet_heaps(seen: Seen) -> bool:
    """Whether a heap is a packet, so that each message is as large as its heap lets it be."""
    packets = seen.packets
    return packets is not None and packets.per_heap is not None and packets.per_heap <= 1.0


def _has_small_heaps(seen: Seen) -> bool:
    """Whether heaps are small, and each takes a call, or time of the program's own."""
    packets = seen.packets
    if packets is None or packets.heap_bytes is None or packets.heap_bytes >= SMALL_HEAP:
        return False
    n_calls, own_s = _of_each_heap(seen)
    return n_calls >= CALLS_PER_HEAP or OWN_S_PER_HEAP <= own_s < HEAP_S


def _of_each_heap(seen: Seen) -> tuple[float, float]:
    """Return how many calls a heap takes, and how many seconds of the program's own."""
    run, packets, calls = seen.run, seen.packets, seen.calls
    assert packets is not None
    assert packets.heap_bytes is not None
    heaps, n_calls = 1e9 / packets.heap_bytes, 0.0
    if calls is not None and calls.messages:
        n_calls = packets.per_gb(packets.messages) / heaps / calls.per_call
    return n_calls, run.per_gb(run.user_s) / heaps


def _together_s(seen: Seen, far: Distance, cpu_s: float) -> float:
    """Take what threads wait for each other that share a core: that wait is their own."""
    most = seen.run.per_gb(cpu_s)
    taken = far.take("core", most)  # the rest of it is for others
    far.whole += taken
    far.longer = None if far.longer is None else far.longer + taken
    for kind in ("thread", "lock", "own"):
        taken += far.take(kind, most - taken)
    return taken


def _sends(seen: Seen, tid: int) -> bool:
    account = seen.account
    return account is not None and any(one.tid == tid for one in account.senders)


def _mapped(seen: Seen) -> float:
    """Return how much new memory a sender got, as a share of what it sent meanwhile."""
    if seen.calls is None or seen.packets is None or not seen.calls.messages:
        return 0.0
    packets = seen.packets
    each = packets.payload_bytes / (packets.messages - packets.fragments)
    return seen.calls.mapped_bytes / (seen.calls.messages * each)


def _names(parts: Iterable[Part]) -> str:
    return ", ".join([part.what for part in parts if part.what][:_MOST_NAMES])


def _percent(share: float) -> str:
    return percent(min(1.0, share))


def _short(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms"
