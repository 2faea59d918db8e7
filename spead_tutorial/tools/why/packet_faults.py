# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with how packets are sent. No I/O, no clock."""

from spead_tutorial.results.units import size
from spead_tutorial.tools.why.distance import Distance, small_packets_s
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.finding import (
    ENOUGH_PACKETS,
    FRAGMENTED,
    HEAP_S,
    ONE,
    SMALL,
    Finding,
    handling_s,
    has_small_heaps,
    of_each_heap,
)

#: Bytes in the largest message.
_MESSAGE = 65000


def _sending_s(seen: Seen, far: Distance, share: float = 1.0) -> float | None:
    """Take a share of what sending takes longer, with what the program does for each call.

    None where another finding has taken it all: then this one is a part of that.
    """
    sends = far.take("sends", share * far.left["sends"])
    own = far.take("own", share * min(far.left["own"], handling_s(seen)))
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


def small_heaps(seen: Seen, far: Distance) -> Finding | None:
    """Find small heaps, each of which costs a message or a call."""
    packets = seen.packets
    if packets is None or packets.heap_bytes is None or not has_small_heaps(seen):
        return None
    heaps = 1e9 / packets.heap_bytes
    n_calls, own_s = of_each_heap(seen)
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


def _one_packet_heaps(seen: Seen) -> bool:
    """Whether a heap is a packet, so that each message is as large as its heap lets it be."""
    packets = seen.packets
    return packets is not None and packets.per_heap is not None and packets.per_heap <= 1.0
