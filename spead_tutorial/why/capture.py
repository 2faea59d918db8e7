# SPDX-License-Identifier: BSD-3-Clause
"""Which packets a device gets: a packet socket with a ring, read when the sender has ended."""

import mmap
import socket
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Self

from spead_tutorial.why.facts import Packets

__all__ = ["Capture"]

# From linux/if_packet.h, which Python's socket module has not.
_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION, _VNET_HEADER, _V2 = 263, 5, 6, 10, 15, 1
_EVERY_PROTOCOL, _OURS, _OUTGOING = 0x0003, 0x1, 4
_HEADER = struct.Struct("=IIIHH")  # of struct tpacket2_hdr, up to where the link's header is
_KIND_AT = 32 + 10  # in a frame: of struct sockaddr_ll, behind that header
_VNET = struct.Struct("=BBHHHH")
_UDP_L4, _ECN = 5, 0x80
#: Of each message the headers, and what a SPEAD packet begins with, among that the item which says
#: how long its heap is.
_FRAME, _BLOCK, _BLOCKS = 256, 1 << 20, 16
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
_IPV6_FRAGMENT = 44
_SPEAD = b"S\x04"
_HEAP_LENGTH = 2


class Capture:
    """Notes what a device gets, from its making on, for as long as there is room.

    The ring is as long as a short run needs. Nobody reads it meanwhile, so that watching takes no
    core from the sender.

    Parameters
    ----------
    packet_socket : socket.socket
        Of ``AF_PACKET`` and ``SOCK_RAW``, not bound; it is closed with this.
    device : str
        Which.
    """

    def __init__(self, packet_socket: socket.socket, device: str) -> None:
        frames = _BLOCK * _BLOCKS // _FRAME
        self._socket = packet_socket
        try:
            self._socket.setsockopt(_SOL_PACKET, _VERSION, _V2)
            # Says how many packets a message is, which its bytes do not.
            self._socket.setsockopt(_SOL_PACKET, _VNET_HEADER, 1)
            ring = struct.pack("IIII", _BLOCK, _BLOCKS, _FRAME, frames)
            self._socket.setsockopt(_SOL_PACKET, _RX_RING, ring)
            self._ring = mmap.mmap(self._socket.fileno(), _BLOCK * _BLOCKS)
            self._socket.bind((device, _EVERY_PROTOCOL))
        except BaseException:
            self._socket.close()
            raise

    def is_full(self) -> bool:
        """Whether there is no room for more."""
        return bool(self._status(len(self._ring) - _FRAME) & _OURS)

    def is_empty(self) -> bool:
        """Whether nothing came, of whatever protocol."""
        return not self._status(0) & _OURS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ring.close()
        self._socket.close()

    def _status(self, frame: int) -> int:
        return int(_HEADER.unpack_from(self._ring, frame)[0])

    def _frames(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield each message's segment size, or 0, its length, and what it begins with."""
        for frame in range(0, len(self._ring), _FRAME):
            status, length, kept, link, _ = _HEADER.unpack_from(self._ring, frame)
            if not status & _OURS:
                return
            if self._ring[frame + _KIND_AT] != _OUTGOING:
                continue
            begin = frame + link
            _, gso_type, _, gso_size, _, _ = _VNET.unpack_from(self._ring, begin - _VNET.size)
            merged = gso_size if gso_type & ~_ECN == _UDP_L4 else 0
            yield merged, length, self._ring[begin : begin + kept]

    def packets(self) -> Packets | None:
        """Return what was noted; None where no UDP was sent."""
        counts = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8)
        _, missed = struct.unpack("II", counts)
        messages = packets = payload = fragments = 0
        sizes: Counter[int] = Counter()
        heaps: Counter[int] = Counter()
        destinations = set()
        for merged, length, head in self._frames():
            found = _datagram(head)
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
