# SPDX-License-Identifier: BSD-3-Clause
"""What the facts mean: findings, those first that explain most. No I/O, and no clock."""

import dataclasses
from collections.abc import Callable

from spead_tutorial.results.units import number, percent, size
from spead_tutorial.tools.why.facts import PAGE, Bare, Packets, Seen
from spead_tutorial.tools.why.remedies import Gain, gains_of

#: Packets in a message, and messages in a call, up to which they count as one.
ONE = 1.2
#: Packets that have to be seen before anything is said of them.
ENOUGH_PACKETS = 16
#: Share of the payload's pages that are new, from which memory counts as fresh.
FRESH = 0.2
#: Share of the time that is asked for in sleeping, and spent idle, from which it counts.
ASLEEP = 0.2
#: Share of the time without any thread that wants a core, below which it may be chance on a busy
#: machine, unless most of the sender's own time is so.
IDLE = 0.1
#: Seconds of CPU time that have to be seen: the kernel divides them by looking now and then.
ENOUGH_CPU_S = 0.05
#: Share of the time at rest above which a sender is slow for other reasons than what it computes.
AT_REST = 0.5
#: Packets smaller than this share of what the device takes count as small.
SMALL = 0.5
#: Share of the messages that are fragments, from which they count.
FRAGMENTED = 0.01
#: Share of the CPU time from which a thread counts as busy.
BUSY = 0.02
#: Share of the CPU time that is the program's own, from which it is taken to make its data.
OWN = 0.5
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


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return what makes a sender slow, what explains most first; nothing for one that is fast.

    Where no calls were seen, what explains most may be missing: then nothing is weighed, and the
    order is that of `CHECKS`.
    """
    found = [_gaining(seen, finding) for one in CHECKS if (finding := one(seen)) is not None]
    if seen.calls is None:
        return tuple(dataclasses.replace(finding, cost_s=None) for finding in found)
    longer = None
    if seen.bare is not None:
        longer = seen.run.per_gb(seen.run.seconds) - 1e9 / seen.bare.rate
    weighed = [_weighed(finding, longer) for finding in found]
    return tuple(sorted(weighed, key=lambda finding: -(finding.cost_s or 0.0)))


def _gaining(seen: Seen, finding: Finding) -> Finding:
    gain, others = gains_of(finding.kind, seen.tried)
    return dataclasses.replace(finding, gain=gain, with_others=others)


def _weighed(finding: Finding, longer: float | None) -> Finding:
    if finding.cost_s is None or longer is None or longer <= 0:
        return finding
    return dataclasses.replace(finding, explains=min(1.0, finding.cost_s / longer))


# ---- One kind each ----


def sleeps(seen: Seen) -> Finding | None:
    """Find a sender that waits for time to pass."""
    run, calls, packets = seen.run, seen.calls, seen.packets
    if calls is None or packets is None or not calls.sleeps:
        return None
    if run.resting < (ASLEEP if run.idle >= IDLE else AT_REST):
        return None
    # Of the run under strace only what was asked for counts, as strace and others take time.
    asked_s = calls.asked_s * 1e9 / (_bytes_of(calls.messages, packets) or 1.0)
    if asked_s < ASLEEP * (asked_s + run.per_gb(run.cpu_s)):
        return None
    return Finding(
        "sleeps",
        f"For {percent(run.idle)} of the time no thread wanted a core, and {calls.sleeps} calls"
        f" asked to sleep, for {_short(calls.asked_s / calls.sleeps)} each on average.",
        "Look for sleeps between heaps, and for a rate that was asked for. A limit that is wanted"
        " is no fault; without one, wait for the heap that is on its way instead of the clock.",
        min(asked_s, run.per_gb(run.seconds)),
    )


def slow_data(seen: Seen) -> Finding | None:
    """Find a sender that takes longer to make its data than to send it."""
    run = seen.run
    if run.cpu_s < ENOUGH_CPU_S or run.user_s / run.cpu_s < OWN or run.resting > AT_REST:
        return None
    own_s = run.per_gb(run.user_s) - _handling_s(seen)
    if own_s < SLOW_S:
        return None
    return Finding(
        "slow-data",
        f"The program computes for {own_s:.2f} s for each gigabyte that it sends:"
        f" {percent(run.user_s / run.cpu_s)} of its CPU time is its own code, and only"
        f" {percent(1 - run.user_s / run.cpu_s)} the kernel's.",
        "Send constant samples for once: if that is much faster, it is not the sender that is slow,"
        " but what makes the samples. A profiler shows which lines.",
        own_s,
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


def fresh_memory(seen: Seen) -> Finding | None:
    """Find a sender that gets new memory for its data again and again."""
    run, bare = seen.run, seen.bare
    faults = run.per_gb(run.faults)
    share = faults * PAGE / 1e9
    mapped = _mapped(seen)
    if share >= FRESH:
        symptom = (
            f"{faults:.0f} page faults for each gigabyte, which has {1e9 / PAGE:.0f} pages: new"
            " memory again and again."
        )
    elif mapped >= FRESH:
        # Huge pages have few faults, and each of them clears as much memory as 512 others.
        symptom = (
            f"New memory for {percent(mapped)} of what is sent, in huge pages: only"
            f" {faults:.0f} page faults for each gigabyte, but all of it is cleared first."
        )
        faults = mapped * 1e9 / PAGE
    else:
        return None
    return Finding(
        "fresh-memory",
        symptom,
        "Look for memory that is allocated and freed for every heap, and for NumPy expressions that"
        " make a new array. Fill the same buffers in turn.",
        None if bare is None else faults * bare.fault_s,
    )


def call_per_packet(seen: Seen) -> Finding | None:
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
        # A call has its own price beside the message's, of which it is a small part.
        _unmerged_s(packets, seen.bare, 1.25),
    )


def no_segmentation_offload(seen: Seen) -> Finding | None:
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
        _unmerged_s(packets, seen.bare, 1.0),
    )


def fragments(seen: Seen) -> Finding | None:
    """Find packets that are larger than the MTU."""
    packets, bare = seen.packets, seen.bare
    if packets is None or packets.fragments / packets.messages < FRAGMENTED:
        return None
    per_gb = packets.per_gb(packets.fragments)
    return Finding(
        "fragments",
        f"Packets of {packets.packet_bytes} bytes are larger than the MTU of {seen.mtu}"
        f" allows ({seen.largest_packet} bytes): {per_gb:.0f} IP fragments for each gigabyte.",
        f"Take packets of {seen.largest_packet} bytes at most, or what the route takes"
        " (route_packet_size). A fragment that is lost costs the whole packet, and nothing is"
        " merged.",
        None if bare is None else packets.per_gb(packets.messages) * bare.message_s,
    )


def small_packets(seen: Seen) -> Finding | None:
    """Find packets far smaller than the MTU allows."""
    packets, bare = seen.packets, seen.bare
    if packets is None or packets.packets < ENOUGH_PACKETS:
        return None
    if packets.packet_bytes >= SMALL * seen.largest_packet or _one_packet_heaps(seen):
        return None
    more = packets.per_gb(packets.packets) - 1e9 / seen.largest_packet
    each = None
    if bare is not None:
        each = bare.message_s if packets.per_message <= ONE else bare.packet_s
    return Finding(
        "small-packets",
        f"Packets of {packets.packet_bytes} bytes, though the device takes"
        f" {seen.largest_packet}: {packets.per_gb(packets.packets):.0f} packets for each gigabyte.",
        "Take larger packets, as large as the smallest MTU on the way allows, less 28 bytes for IP"
        " and UDP. If the real network has an MTU of 1500, give the lab that one (--mtu 1500).",
        None if each is None else more * each,
    )


def shared_core(seen: Seen) -> Finding | None:
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
        run.per_gb(min(thread.cpu_s for thread in together)),
    )


def small_heaps(seen: Seen) -> Finding | None:
    """Find small heaps, each of which costs a message or a call."""
    run, packets, calls = seen.run, seen.packets, seen.calls
    if packets is None or packets.heap_bytes is None or packets.heap_bytes >= SMALL_HEAP:
        return None
    heaps = 1e9 / packets.heap_bytes
    own_s = run.per_gb(run.user_s) / heaps
    n_calls = 0.0
    if calls is not None and calls.messages:
        n_calls = packets.per_gb(packets.messages) / heaps / calls.per_call
    if n_calls < CALLS_PER_HEAP and not OWN_S_PER_HEAP <= own_s < HEAP_S:
        return None
    heap = size(packets.heap_bytes).replace("\N{NO-BREAK SPACE}", " ")
    return Finding(
        "small-heaps",
        f"Heaps of {heap}, for each of which there are {n_calls:.1f} calls and {own_s * 1e6:.1f} µs"
        " of the program's own time: little is shared between heaps.",
        "Keep several heaps on their way and build their objects once (chapter 10), then send"
        " batches of them in one call (chapter 11). With small heaps, what is done once for each is"
        " what counts, above all in Python, where one lock is for all threads.",
        min(run.per_gb(run.cpu_s), heaps * HEAP_S),
    )


#: Every kind that there is, in the order that those of the same cost are said in.
CHECKS: tuple[Callable[[Seen], Finding | None], ...] = (
    sleeps,
    slow_data,
    call_per_packet,
    fragments,
    no_segmentation_offload,
    fresh_memory,
    shared_core,
    small_packets,
    small_heaps,
)


# ---- Of facts ----


def _one_packet_heaps(seen: Seen) -> bool:
    """Whether a heap is a packet, so that each message is as large as its heap lets it be."""
    packets = seen.packets
    return packets is not None and packets.per_heap is not None and packets.per_heap <= 1.0


def _bytes_of(messages: float, packets: Packets) -> float:
    """Return what so many messages carry."""
    return messages * packets.payload_bytes / (packets.messages - packets.fragments)


def _mapped(seen: Seen) -> float:
    """Return how much new memory a sender got, as a share of what it sent meanwhile."""
    if seen.calls is None or seen.packets is None or not seen.calls.messages:
        return 0.0
    return seen.calls.mapped_bytes / _bytes_of(seen.calls.messages, seen.packets)


def _unmerged_s(packets: Packets, bare: Bare | None, each: float) -> float | None:
    """Return what messages of one packet cost beside full ones, for a gigabyte."""
    if bare is None:
        return None
    whole = packets.per_gb(packets.messages - packets.fragments)
    return each * max(0.0, whole - 1e9 / _MESSAGE) * bare.message_s


def _short(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms"
