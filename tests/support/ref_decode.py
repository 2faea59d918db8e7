# SPDX-License-Identifier: BSD-3-Clause
"""A receiver written from what packets mean, as simple as it can be made.

What goes in are packets, as bytes; what comes out are heaps, and what became of each packet. It
knows nothing of the package it checks: what has arrived of a heap is a set of bytes' places, and
every count is taken by looking at everything again. Only where a packet could be called by several
names, and in how many finished heaps are remembered, it follows ours.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from support.ref_encode import Descriptor

FATES = PLACED, MALFORMED, DUPLICATE, LATE, AFTER_LOSS, INCONSISTENT, TOO_LARGE, UNSIZED = (
    *("placed", "malformed", "duplicate", "late", "after_loss"),
    *("inconsistent", "too_large", "unsized"),
)
FAULTS = ("header", "flavour", "pointers", "missing", "payload", "beyond", "surplus")


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


@dataclass(slots=True)
class Heap:
    """What has arrived of a heap, packet by packet."""

    cnt: int
    address_bits: int
    length: int | None = None
    packets: list[Packet] = field(default_factory=list)
    evicted: bool = False
    after_loss: int = 0  # the highest end of a packet that came after a loss

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
        seen = max(highest, self.after_loss)
        return "contiguous" if self.received_length >= seen else "incomplete"

    @property
    def payload(self) -> bytes:
        """All of it. Of a heap with gaps, those are zeros."""
        whole = bytearray(max((end for _, end in self.arrived), default=0))
        for packet in self.packets:
            whole[packet.offset : packet.end] = packet.payload
        return bytes(whole)

    def sent_pointers(self) -> list[Pointer]:
        """The pointers in the order in which they were sent, of identical ones the last."""
        sent = sorted(self.packets, key=lambda packet: packet.offset)
        all_of_them = [p for packet in sent for p in packet.items]
        return list(dict.fromkeys(reversed(all_of_them)))[::-1]

    def addressed(self) -> dict[Pointer, bytes]:
        """The bytes of each pointer with an address, by that."""
        pointers = self.sent_pointers()
        addressed = sorted((p for p in pointers if not p.immediate), key=lambda p: p.value)
        payload = self.payload
        ends = [p.value for p in addressed[1:]] + [len(payload)]
        return {p: payload[p.value : end] for p, end in zip(addressed, ends, strict=False)}

    def items(self) -> list[Item]:
        """Those with an address by that, then immediates as they were sent; no padding."""
        found = self.addressed().items()
        return [Item(p.id, value) for p, value in found if p.id] + self.immediates()

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
    whole = len(packet.payload)
    if packet.offset or packet.heap_length not in (None, whole) or packet.highest_address > whole:
        return None
    heap = Heap(0, packet.address_bits, packets=[packet])
    values = heap.addressed()
    # Of one that is repeated, the one that was sent last counts, wherever its bytes are.
    fields = {p.id: values[p] for p in heap.sent_pointers() if not p.immediate}
    ids = [p.value for p in heap.sent_pointers() if p.immediate and p.id == 0x14]
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


def decode_elements(data: bytes, format: Sequence[tuple[str, int]], count: int) -> list[object]:
    """Read elements of packed fields, bit by bit: tuples where there are several fields."""
    bits = "".join(f"{byte:08b}" for byte in data)
    at = 0
    elements: list[object] = []
    for _ in range(count):
        fields = []
        for letter, width in format:
            fields.append(decode_field(letter, bits[at : at + width]))
            at += width
        elements.append(tuple(fields) if len(fields) > 1 else fields[0])
    return elements


def decode_field(letter: str, bits: str) -> object:
    number = int(bits, 2)
    if letter == "b":
        return number != 0
    if letter == "i" and bits[0] == "1":
        return number - (1 << len(bits))
    if letter in "fc":
        raw = number.to_bytes(len(bits) // 8, "big")
        code = "c" if letter == "c" else {32: ">f", 64: ">d"}[len(bits)]
        return struct.unpack(code, raw)[0]
    return number


@dataclass
class Receiver:
    """Heaps from packets: `remembered` are finished, and late packets are known by them."""

    max_heaps: int = 4
    substreams: int = 1
    allow_out_of_order: bool = False
    allow_unsized_heaps: bool = True
    stop_on_stop_item: bool = True
    max_heap_size: int = 1 << 30
    remembered: int | None = None

    def __post_init__(self) -> None:
        self.heaps: list[Heap] = []  # finished, in the order in which they are handed out
        self.live: list[Heap] = []  # oldest first
        self.ended: list[int] = []  # the counts of all that are finished
        self.begun: list[Heap] = []
        self.fates = dict.fromkeys(FATES, 0)
        self.faults: dict[str, int] = {}
        self.stopped = False
        self.complete = self.evicted = self.flushed = self.dropped = self.single_packet = 0
        self.incomplete_bytes = 0
        if self.remembered is None:
            self.remembered = max(64, 4 * self.max_heaps * self.substreams)

    def take(self, data: bytes) -> str:
        """Take what came as a datagram; say what became of it."""
        assert not self.stopped
        try:
            packet = parse(data)
            if len(data) > packet.size:
                raise BadPacketError("surplus")
        except BadPacketError as error:
            self.faults[error.args[0]] = self.faults.get(error.args[0], 0) + 1
            fate = MALFORMED
        else:
            fate = self._take(packet)
        self.fates[fate] += 1
        return fate

    def take_buffer(self, data: bytes) -> None:
        """Take packets that follow each other; the first that is malformed ends them."""
        while data and not self.stopped:
            try:
                size = parse(data).size
            except BadPacketError:
                size = len(data)
            fate = self.take(data[:size])
            data = data[size:] if fate != MALFORMED else b""
        if not self.stopped:
            self.end()

    def end(self) -> None:
        """End all live heaps as they are, oldest first."""
        self.stopped = True
        for heap in list(self.live):
            self._finish(heap)

    def account(self) -> dict[str, int]:
        """Where all heaps went, as a stream's statistics call it."""
        return {
            "heaps": self.complete + self.evicted + self.flushed,
            "heaps_begun": len(self.begun),
            "heaps_complete": self.complete,
            "incomplete_heaps_evicted": self.evicted,
            "incomplete_heaps_flushed": self.flushed,
            "heaps_dropped": self.dropped,
            "heaps_live": len(self.live),
            "single_packet_heaps": self.single_packet,
            "incomplete_bytes": self.incomplete_bytes,
        }

    def _take(self, packet: Packet) -> str:
        heap = next((heap for heap in self.live if heap.cnt == packet.cnt), None)
        if heap is None:
            refused = self._why_not_begun(packet)
            if refused:
                return refused
            heap = self._begin(packet)
        else:
            refused = self._why_not_placed(heap, packet)
            if refused == AFTER_LOSS:
                heap.after_loss = max(heap.after_loss, packet.end)
            if refused:
                return refused
        if packet.heap_length is not None:
            heap.length = packet.heap_length
        heap.packets.append(packet)
        if heap.state == "complete":
            self.single_packet += len(heap.packets) == 1
            self._finish(heap, hand_out=not self._ends(packet))
        if self._ends(packet):
            self.end()
        return PLACED

    def _ends(self, packet: Packet) -> bool:
        return packet.is_stop and self.stop_on_stop_item

    def _why_not_begun(self, packet: Packet) -> str | None:
        """Say why no heap begins with this packet, if so."""
        # Where counts soon start again, one that ended long ago says nothing.
        within = min(self.remembered or 0, 1 << packet.address_bits - 2)
        if packet.offset or self.allow_out_of_order:
            ended = self.ended[max(0, len(self.ended) - within) :]
            moment = max(16, 2 * self.max_heaps * self.substreams)  # what is older began again
            if packet.cnt in (ended if packet.offset else ended[-moment:]):
                return LATE
            if not self.allow_out_of_order:
                return AFTER_LOSS
        return self._why_not_of_its_size(packet)

    def _why_not_placed(self, heap: Heap, packet: Packet) -> str | None:
        """Say why this packet has no place in its heap, if so."""
        if self._contradicts(heap, packet):
            return INCONSISTENT
        refused = self._why_not_of_its_size(packet)
        if refused:
            return refused
        if not self.allow_out_of_order and packet.offset > heap.in_order_length:
            return AFTER_LOSS
        if not packet.payload:  # it brings items, or nothing
            last = next((p.items for p in reversed(heap.packets) if p.items), [])
            return DUPLICATE if packet.items in ([], last) else None
        for begin, end in heap.arrived:
            if begin <= packet.offset and packet.end <= end:
                return DUPLICATE
            if packet.offset < end and begin < packet.end:
                return INCONSISTENT
        return None

    def _why_not_of_its_size(self, packet: Packet) -> str | None:
        """Say whether its heap is too large, or it has to say how large that is."""
        if packet.heap_length is None and not self.allow_unsized_heaps:
            return UNSIZED
        length = packet.end if packet.heap_length is None else packet.heap_length
        return TOO_LARGE if length > self.max_heap_size else None

    def _contradicts(self, heap: Heap, packet: Packet) -> bool:
        if packet.address_bits != heap.address_bits:
            return True
        if packet.heap_length is None:
            return heap.length is not None and beyond(packet, heap.length)
        if heap.length is None:
            return any(beyond(before, packet.heap_length) for before in heap.packets)
        return heap.length != packet.heap_length

    def _begin(self, packet: Packet) -> Heap:
        pushed_out = self._pushed_out(packet.cnt % self.substreams)
        if pushed_out:
            pushed_out.evicted = True
            self._finish(pushed_out)
        heap = Heap(packet.cnt, packet.address_bits)
        self.live.append(heap)
        self.begun.append(heap)
        return heap

    def _pushed_out(self, substream: int) -> Heap | None:
        """Return the heap that has to make room for another one of this substream."""
        rivals = [heap for heap in self.live if heap.cnt % self.substreams == substream]
        return rivals[0] if len(rivals) == self.max_heaps else None

    def _finish(self, heap: Heap, *, hand_out: bool = True) -> None:
        self.live.remove(heap)
        self.ended.append(heap.cnt)
        if not hand_out:
            self.dropped += 1
            return
        if heap.state == "incomplete":
            self.evicted += heap.evicted
            self.flushed += not heap.evicted
            self.incomplete_bytes += heap.received_length
        else:
            self.complete += 1
        self.heaps.append(heap)
