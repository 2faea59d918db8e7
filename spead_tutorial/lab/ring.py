# SPDX-License-Identifier: BSD-3-Clause
"""What a device gets: a packet socket whose ring is read when all is over.

The kernel writes the head of each message and its time into memory. No process wakes up for it
meanwhile, and no core has more to do than to copy it
(``Documentation/networking/packet_mmap.rst``).
"""

import mmap
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple, Self

# From linux/if_packet.h, which Python's socket module has not.
_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION, _VNET_HEADER, _V2 = 263, 5, 6, 10, 15, 1
_EVERY_PROTOCOL, _OURS, _OUTGOING = 0x0003, 0x1, 4
_HEADER = struct.Struct("=IIIHHII")  # of struct tpacket2_hdr, up to its time
_KIND_AT = 32 + 10  # in a frame: of struct sockaddr_ll, behind that header
_VNET = struct.Struct("=BBHHHH")
_UDP_L4, _ECN = 5, 0x80
#: Of each message the headers, and what a SPEAD packet begins with, among that the item which says
#: how long its heap is.
_FRAME, _BLOCK = 256, 1 << 20


class Message(NamedTuple):
    """What the device got at once: a packet, or a run of them."""

    time_ns: int  # when, by the kernel's clock
    # how many, from the link's header on, or from that of IP where the socket is without it
    n_bytes: int
    head: bytes  # the first of them
    # bytes of payload in each packet of a run; 0 for a single packet, and where that is not asked
    # for
    merged: int
    is_sent: bool  # whether it went out there, rather than came in


class PacketRing:
    """Notes what a device gets, from its making on, for as long as there is room."""

    def __init__(
        self, packet_socket: socket.socket, device: str, n_mib: int, *, merged: bool = False
    ) -> None:
        self._socket, self._merged = packet_socket, merged
        #: Messages that are noted at most.
        self.room = n_mib * _BLOCK // _FRAME
        try:
            packet_socket.setsockopt(_SOL_PACKET, _VERSION, _V2)
            if merged:
                packet_socket.setsockopt(_SOL_PACKET, _VNET_HEADER, 1)
            ring = struct.pack("IIII", _BLOCK, n_mib, _FRAME, self.room)
            packet_socket.setsockopt(_SOL_PACKET, _RX_RING, ring)
            self._ring = mmap.mmap(packet_socket.fileno(), n_mib * _BLOCK)
            packet_socket.bind((device, _EVERY_PROTOCOL))
        except BaseException:
            packet_socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ring.close()
        self._socket.close()

    def missed(self) -> int:
        """Return how many messages there was no room for since this was last asked."""
        counts = self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8)
        return int(struct.unpack("II", counts)[1])

    def messages(self) -> Iterator[Message]:
        """Yield what the device got, in that order."""
        for frame in range(0, len(self._ring), _FRAME):
            status, n_bytes, kept, link, net, seconds, ns = _HEADER.unpack_from(self._ring, frame)
            if not status & _OURS:
                return
            begin = frame + (link if self._merged else net)
            yield Message(
                seconds * 10**9 + ns,
                n_bytes,
                self._ring[begin : begin + kept],
                self._merged_at(begin) if self._merged else 0,
                self._ring[frame + _KIND_AT] == _OUTGOING,
            )

    def _merged_at(self, begin: int) -> int:
        _, kind, _, size, _, _ = _VNET.unpack_from(self._ring, begin - _VNET.size)
        return int(size) if kind & ~_ECN == _UDP_L4 else 0
