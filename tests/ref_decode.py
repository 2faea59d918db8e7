# SPDX-License-Identifier: BSD-3-Clause
"""A receiver written from the wire format and its contract alone, as simple as it can be made.

What goes in are packets, as bytes; what comes out are heaps, and what became of each packet. It
knows nothing of the package it checks: what has arrived of a heap is a set of bytes' places, and
every count is taken by looking at everything again.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class BadPacketError(Exception):
    """A packet that is none by itself; the argument says what is wrong."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An item pointer, taken apart."""

    immediate: bool
    id: int
    value: int


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet, taken apart."""

    address_bits: int
    cnt: int
    heap_length: int | None
    offset: int
    payload: bytes
    pointers: tuple[Pointer, ...]
    is_stop: bool
    size: int

    @property
    def end(self) -> int:
        return self.offset + len(self.payload)

    @property
    def items(self) -> list[Pointer]:
        """All but what the packet says of itself."""
        return [p for p in self.pointers if not (p.immediate and 1 <= p.id <= 4)]

    @property
    def highest_address(self) -> int:
        return max((p.value for p in self.pointers if not p.immediate), default=0)


def parse(data: bytes) -> Packet:
    """Take apart the packet that the bytes begin with."""
    if len(data) < 8 or data[:2] != b"\x53\x04":
        raise BadPacketError("header")
    id_bytes, address_bytes = data[2], data[3]
    if id_bytes + address_bytes != 8 or not id_bytes or not address_bytes:
        raise BadPacketError("flavour")
    address_bits = 8 * address_bytes
    n_pointers = int.from_bytes(data[6:8], "big")
    begin = 8 + 8 * n_pointers
    if len(data) < begin:
        raise BadPacketError("pointers")
    words = [int.from_bytes(data[at : at + 8], "big") for at in range(8, begin, 8)]
    pointers = tuple(
        Pointer(
            bool(word >> 63),
            word >> address_bits & (1 << 63 - address_bits) - 1,
            word & (1 << address_bits) - 1,
        )
        for word in words
    )
    own = {p.id: p.value for p in pointers if p.immediate}  # the last one counts
    if not {1, 3, 4} <= own.keys():
        raise BadPacketError("missing")
    if begin + own[4] > len(data):
        raise BadPacketError("payload")
    packet = Packet(
        address_bits=address_bits,
        cnt=own[1],
        heap_length=own.get(2),
        offset=own[3],
        payload=bytes(data[begin : begin + own[4]]),
        pointers=pointers,
        is_stop=Pointer(True, 6, 2) in pointers,
        size=begin + own[4],
    )
    if packet.heap_length is not None and beyond(packet, packet.heap_length):
        raise BadPacketError("beyond")
    return packet


def beyond(packet: Packet, length: int) -> bool:
    return packet.end > length or packet.highest_address > length


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a heap: an integer that came in its pointer, or bytes."""

    id: int
    value: int | bytes


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What was said about an item."""

    id: int
    name: bytes
    description: bytes
    numpy_header: bytes
    format: tuple[tuple[str, int], ...]
    shape: tuple[int | None, ...]


@dataclass(slots=True)
class Heap:
    """What has arrived of a heap, packet by packet."""

    cnt: int
    address_bits: int
    length: int | None = None
    packets: list[Packet] = field(default_factory=list)
    not_taken: int = 0
    evicted: bool = False

    @property
    def arrived(self) -> list[tuple[int, int]]:
        """What has arrived: first byte, and the first one that is not of it; in order."""
        merged: list[tuple[int, int]] = []
        for begin, end in sorted((p.offset, p.end) for p in self.packets if p.payload):
            if merged and merged[-1][1] == begin:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((begin, end))
        return merged

    @property
    def received_length(self) -> int:
        return sum(len(p.payload) for p in self.packets)

    @property
    def in_order_length(self) -> int:
        return max((p.end for p in self.packets), default=0)

    @property
    def state(self) -> str:
        if self.length is not None:
            return "complete" if self.received_length == self.length else "incomplete"
        highest = max(max(p.end, p.highest_address) for p in self.packets)
        return "contiguous" if self.received_length >= highest else "incomplete"

    @property
    def payload(self) -> bytes:
        """All of it. Of a heap with gaps, those are zeros."""
        whole = bytearray(max((end for _, end in self.arrived), default=0))
        for packet in self.packets:
            whole[packet.offset : packet.end] = packet.payload
        return bytes(whole)

    def sent(self) -> list[Packet]:
        """The packets in the order in which they were sent."""
        return sorted(self.packets, key=lambda packet: packet.offset)

    def sent_pointers(self) -> list[Pointer]:
        """The pointers in the order in which they were sent, of identical ones the first."""
        return list(dict.fromkeys(p for packet in self.sent() for p in packet.items))

    def items(self) -> list[Item]:
        """Those with an address by that, then immediates as they were sent; no padding."""
        pointers = self.sent_pointers()
        addressed = sorted((p for p in pointers if not p.immediate), key=lambda p: p.value)
        payload = self.payload
        ends = [p.value for p in addressed[1:]] + [len(payload)]
        listed = [
            Item(p.id, payload[p.value : end])
            for p, end in zip(addressed, ends, strict=False)
            if p.id
        ]
        return listed + self.immediates()

    def immediates(self) -> list[Item]:
        return [Item(p.id, p.value) for p in self.sent_pointers() if p.immediate and p.id]

    def descriptors(self, bug_compat: int = 0) -> list[Descriptor]:
        found = [
            decode_descriptor(item.value, bug_compat)
            for item in self.items()
            if item.id == 5 and isinstance(item.value, bytes)
        ]
        return [descriptor for descriptor in found if descriptor is not None]


def decode_descriptor(data: bytes, bug_compat: int) -> Descriptor | None:
    """Read a descriptor: a packet by itself, with all of its heap."""
    try:
        packet = parse(data)
    except BadPacketError:
        return None
    if packet.offset or packet.heap_length not in (None, len(packet.payload)):
        return None
    items = Heap(0, packet.address_bits, packets=[packet]).items()
    fields = {item.id: item.value for item in items if isinstance(item.value, bytes)}
    ids = [item.value for item in items if item.id == 0x14 and isinstance(item.value, int)]
    name = fields.get(0x10, b"")
    if not ids or not name or ids[-1] <= 6:
        return None
    letter_and_bits = 8 - packet.address_bits // 8 + 1
    mark_and_size = packet.address_bits // 8 + 1
    if bug_compat & 1:
        letter_and_bits, mark_and_size = 4, 8
    variable = 2 if bug_compat & 2 else 1
    return Descriptor(
        id=ids[-1],
        name=name,
        description=fields.get(0x11, b""),
        numpy_header=fields.get(0x15, b""),
        format=tuple(
            (chr(part[0]), int.from_bytes(part[1:], "big"))
            for part in split(fields.get(0x13, b""), letter_and_bits)
        ),
        shape=tuple(
            None if part[0] & variable else int.from_bytes(part[1:], "big")
            for part in split(fields.get(0x12, b""), mark_and_size)
        ),
    )


def split(data: bytes, size: int) -> list[bytes]:
    """Cut into pieces of a size; what is left over is left out."""
    return [data[at : at + size] for at in range(0, len(data) - size + 1, size)]
