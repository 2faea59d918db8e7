# SPDX-License-Identifier: BSD-3-Clause
"""A heap encoder written from the wire format alone, as simple as it can be made.

It knows nothing of the package it checks, nor of NumPy: what goes in are bytes and integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Inline:
    """An integer that is sent in its item pointer."""

    id: int
    value: int


@dataclass(frozen=True, slots=True)
class Value:
    """An item's value. Whether it may go into the pointer is a matter of its descriptor."""

    id: int
    data: bytes
    allow_immediate: bool


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The description of an item, which becomes a packet within the packet."""

    id: int
    name: bytes
    description: bytes
    numpy_header: bytes
    format: tuple[tuple[str, int], ...]
    shape: tuple[int | None, ...]


Part = Inline | Value | Descriptor


def pointer(immediate: bool, id: int, value: int, address_bits: int) -> bytes:
    assert 0 <= id < 1 << (63 - address_bits)
    assert 0 <= value < 1 << address_bits
    return (immediate << 63 | id << address_bits | value).to_bytes(8, "big")


def header(n_pointers: int, address_bits: int) -> bytes:
    widths = bytes([8 - address_bits // 8, address_bits // 8])
    return b"\x53\x04" + widths + b"\0\0" + n_pointers.to_bytes(2, "big")


def packet(
    cnt: int,
    length: int | None,
    offset: int,
    payload: bytes,
    items: Sequence[tuple[bool, int, int]] = (),
    address_bits: int = 40,
) -> bytes:
    """Encode a packet, whatever it says; it may leave out how long its heap is."""
    own = ((1, cnt), (2, length), (3, offset), (4, len(payload)))
    pointers = [(True, id, value) for id, value in own if value is not None]
    words = [pointer(*one, address_bits) for one in (*pointers, *items)]
    return header(len(words), address_bits) + b"".join(words) + payload


def encode_descriptor(descriptor: Descriptor, address_bits: int, bug_compat: int) -> bytes:
    format_bytes, shape_bytes = 8 - address_bits // 8, address_bits // 8
    if bug_compat & 1:
        format_bytes, shape_bytes = 3, 7
    variable = 2 if bug_compat & 2 else 1

    encoded_format = b"".join(
        letter.encode("ascii") + bits.to_bytes(format_bytes, "big")
        for letter, bits in descriptor.format
    )
    encoded_shape = b"".join(
        bytes([variable]) + bytes(shape_bytes)
        if size is None
        else b"\0" + size.to_bytes(shape_bytes, "big")
        for size in descriptor.shape
    )
    fields = [
        (0x10, descriptor.name),
        (0x11, descriptor.description),
        (0x13, encoded_format),
        (0x12, encoded_shape),
    ]
    if descriptor.numpy_header:
        fields.append((0x15, descriptor.numpy_header))

    payload = b"".join(data for _, data in fields)
    items = [(True, 0x14, descriptor.id)]
    offset = 0
    for id, data in fields:
        items.append((False, id, offset))
        offset += len(data)
    return packet(1, len(payload), 0, payload, items, address_bits)


def lay_out(
    items: Sequence[Part], address_bits: int, bug_compat: int
) -> tuple[list[tuple[bool, int, int]], bytes]:
    """Return the item pointers and the payload, both without padding."""
    pointers = []
    payload = b""
    for item in items:
        if isinstance(item, Inline):
            pointers.append((True, item.id, item.value))
        elif isinstance(item, Descriptor):
            pointers.append((False, 5, len(payload)))
            payload += encode_descriptor(item, address_bits, bug_compat)
        elif item.allow_immediate and len(item.data) <= address_bits // 8:
            pointers.append((True, item.id, int.from_bytes(item.data, "big")))
        else:
            pointers.append((False, item.id, len(payload)))
            payload += item.data
    return pointers, payload


def padded_length(n_pointers: int, n_payload: int, max_packet_size: int, repeat: bool) -> int:
    """Length of the payload that gives each packet at least one byte."""
    pointers_per_packet = (max_packet_size // 8 * 8 - 48) // 8
    n_packets = 1 if repeat else n_pointers // pointers_per_packet + 1
    return max(n_payload, 8 * (n_packets - 1) + 1)


def encode_heap(
    items: Sequence[Part],
    cnt: int,
    max_packet_size: int,
    *,
    address_bits: int = 40,
    bug_compat: int = 0,
    repeat_pointers: bool = False,
) -> list[bytes]:
    """Encode a heap, as packets of 56 bytes or more, in the order in which they are sent."""
    size = max_packet_size // 8 * 8
    pointers_per_packet = (size - 48) // 8
    pointers, payload = lay_out(items, address_bits, bug_compat)

    length = padded_length(len(pointers), len(payload), size, repeat_pointers)
    if length > len(payload):
        pointers.append((False, 0, len(payload)))
        payload += bytes(length - len(payload))
    if repeat_pointers and len(pointers) > pointers_per_packet:
        raise ValueError("the item pointers do not fit in one packet")

    packets: list[bytes] = []
    unsent, offset = pointers, 0
    while not packets or unsent or offset < len(payload):
        here, unsent = unsent[:pointers_per_packet], unsent[pointers_per_packet:]
        chunk = payload[offset : offset + size - 40 - 8 * len(here)]
        assert chunk
        packets.append(packet(cnt, len(payload), offset, chunk, here, address_bits))
        offset += len(chunk)
        if repeat_pointers:
            unsent = pointers if offset < len(payload) else []
    return packets


def value(data: bytes, id: int = 0x1000) -> Value:
    """A value that is never sent in its pointer."""
    return Value(id, data, allow_immediate=False)


def one_packet(cnt: int, data: bytes = b"abc", *more: Part) -> bytes:
    """Encode a heap of one packet, whose item 0x1000 is these bytes."""
    (encoded,) = encode_heap([value(data), *more], cnt, 9000)
    return encoded


def described(id: int = 0x1000, name: bytes = b"x", letter: str = "u") -> Descriptor:
    """Describe a row of bytes, or of characters, of any length."""
    return Descriptor(id, name, b"an x", b"", ((letter, 8),), (None,))
