# SPDX-License-Identifier: BSD-3-Clause
"""Which packets a device gets: a packet socket with a ring, read when the sender has ended."""

import socket
import struct
from collections import Counter

from spead_tutorial.lab.ring import PacketRing
from spead_tutorial.tools.why.facts import Packets

__all__ = ["Capture"]

_MIB = 16
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
_IPV6_FRAGMENT = 44
_SPEAD = b"S\x04"
_HEAP_LENGTH = 2


class Capture(PacketRing):
    """Notes what a device gets, from its making on, for as long as there is room.

    The ring is as long as a short run needs. Nobody reads it meanwhile, so that watching takes no
    core from the sender.
    """

    def __init__(self, packet_socket: socket.socket, device: str) -> None:
        super().__init__(packet_socket, device, _MIB, merged=True)

    def packets(self) -> Packets | None:
        """Return what was noted; None where no UDP was sent."""
        missed = self.missed()
        messages = packets = payload = fragments = 0
        sizes: Counter[int] = Counter()
        heaps: Counter[int] = Counter()
        destinations = set()
        for message in self.messages():
            length, head, merged = message.n_bytes, message.head, message.merged
            found = _datagram(head) if message.is_sent else None
            if found is None:
                continue
            to, at, is_first, is_fragment = found
            messages += 1
            fragments += is_fragment and not is_first
            n_bytes = length - at
            payload += n_bytes
            if not is_first:
                continue
            size = struct.unpack_from("!H", head, at - 4)[0] - 8 if is_fragment else n_bytes
            n_packets = -(-n_bytes // merged) if merged else 1
            packets += n_packets
            destinations.add(to)
            sizes[merged or size] += n_bytes if merged else size
            heap = _heap_bytes(head[at:])
            if heap is not None:
                heaps[heap] += n_bytes
        if not messages or not packets:
            return None
        return Packets(
            messages=messages,
            packets=packets,
            payload_bytes=payload,
            fragments=fragments,
            packet_bytes=max(sizes, key=sizes.__getitem__),
            heap_bytes=max(heaps, key=heaps.__getitem__) if heaps else None,
            destinations=len(destinations),
            missed=missed,
        )


def _datagram(head: bytes) -> tuple[bytes, int, bool, bool] | None:
    """Take the headers of a message apart.

    Returns where it goes to, where its payload begins, whether it is the first piece of a datagram,
    and whether it is one of several; None for anything but UDP.
    """
    if len(head) < 14 + 20:
        return None
    (kind,) = struct.unpack_from("!H", head, 12)
    if kind == _IPV4 and head[14 + 9] == _UDP:
        at = 14 + 4 * (head[14] & 0xF)
        (piece,) = struct.unpack_from("!H", head, 14 + 6)
        offset, more, address = piece & 0x1FFF, piece & 0x2000, head[14 + 16 : 14 + 20]
    elif kind == _IPV6 and len(head) >= 14 + 48:
        at, offset, more, address = 14 + 40, 0, 0, head[14 + 24 : 14 + 40]
        following = head[14 + 6]
        if following == _IPV6_FRAGMENT:
            following = head[at]
            (piece,) = struct.unpack_from("!H", head, at + 2)
            offset, more, at = piece >> 3, piece & 1, at + 8
        if following != _UDP:
            return None
    else:
        return None
    if offset:
        return address, at, False, True
    return address + head[at + 2 : at + 4], at + 8, True, bool(more)


def _heap_bytes(packet: bytes) -> int | None:
    """Return how long the heap is that a SPEAD packet is of; None where it does not say."""
    if len(packet) < 8 or not packet.startswith(_SPEAD):
        return None
    address_bytes, n_items = packet[3], struct.unpack_from("!H", packet, 6)[0]
    if not 0 < address_bytes < 8:
        return None
    bits = 8 * address_bytes
    for at in range(8, min(8 + 8 * n_items, len(packet) - 7), 8):
        (pointer,) = struct.unpack_from("!Q", packet, at)
        immediate, number = pointer >> 63, (pointer >> bits) & ((1 << (63 - bits)) - 1)
        if immediate and number == _HEAP_LENGTH:
            length: int = pointer & ((1 << bits) - 1)
            return length or None
    return None
