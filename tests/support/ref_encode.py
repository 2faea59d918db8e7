# SPDX-License-Identifier: BSD-3-Clause
"""A heap encoder written from the wire format alone, as simple as it can be made.

It knows nothing of the package it checks, nor of NumPy: what goes in are bytes and integers.
"""

from __future__ import annotations

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


def pointer(immediate: bool, id: int, value: int, address_bits: int) -> bytes:
    assert 0 <= id < 1 << (63 - address_bits)
    assert 0 <= value < 1 << address_bits
    return (immediate << 63 | id << address_bits | value).to_bytes(8, "big")


def header(n_pointers: int, address_bits: int) -> bytes:
    widths = bytes([8 - address_bits // 8, address_bits // 8])
    return b"\x53\x04" + widths + b"\0\0" + n_pointers.to_bytes(2, "big")


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

    length = sum(len(data) for _, data in fields)
    pointers = [
        pointer(True, 1, 1, address_bits),
        pointer(True, 2, length, address_bits),
        pointer(True, 3, 0, address_bits),
        pointer(True, 4, length, address_bits),
        pointer(True, 0x14, descriptor.id, address_bits),
    ]
    offset = 0
    for id, data in fields:
        pointers.append(pointer(False, id, offset, address_bits))
        offset += len(data)
    payload = b"".join(data for _, data in fields)
    return header(len(pointers), address_bits) + b"".join(pointers) + payload


def lay_out(
    items: Sequence[Inline | Value | Descriptor], address_bits: int, bug_compat: int
) -> tuple[list[bytes], bytes]:
    """Return the item pointers and the payload, both without padding."""
    pointers = []
    payload = b""
    for item in items:
        if isinstance(item, Inline):
            pointers.append(pointer(True, item.id, item.value, address_bits))
        elif isinstance(item, Descriptor):
            pointers.append(pointer(False, 5, len(payload), address_bits))
            payload += encode_descriptor(item, address_bits, bug_compat)
        elif item.allow_immediate and len(item.data) <= address_bits // 8:
            value = int.from_bytes(item.data, "big")
            pointers.append(pointer(True, item.id, value, address_bits))
        else:
            pointers.append(pointer(False, item.id, len(payload), address_bits))
            payload += item.data
    return pointers, payload


def padded_length(n_pointers: int, n_payload: int, max_packet_size: int, repeat: bool) -> int:
    """Length of the payload that gives each packet at least one byte."""
    pointers_per_packet = (max_packet_size // 8 * 8 - 48) // 8
    n_packets = 1 if repeat else n_pointers // pointers_per_packet + 1
    return max(n_payload, 8 * (n_packets - 1) + 1)


def encode_heap(
    items: Sequence[Inline | Value | Descriptor],
    cnt: int,
    max_packet_size: int,
    *,
    address_bits: int = 40,
    bug_compat: int = 0,
    repeat_pointers: bool = False,
) -> list[bytes]:
    """Encode a heap.

    Parameters
    ----------
    items : sequence of Inline, Value and Descriptor
    cnt : int
        The heap's count.
    max_packet_size : int
        Bytes, 56 or more.

    Returns
    -------
    list of bytes
        The packets in the order in which they are sent.

    Raises
    ------
    ValueError
        If `repeat_pointers` is true and the pointers do not fit in one packet.
    """
    size = max_packet_size // 8 * 8
    pointers_per_packet = (size - 48) // 8
    pointers, payload = lay_out(items, address_bits, bug_compat)

    length = padded_length(len(pointers), len(payload), size, repeat_pointers)
    if length > len(payload):
        pointers.append(pointer(False, 0, len(payload), address_bits))
        payload += bytes(length - len(payload))
    if repeat_pointers and len(pointers) > pointers_per_packet:
        raise ValueError("the item pointers do not fit in one packet")

    packets: list[bytes] = []
    unsent = pointers
    offset = 0
    while not packets or unsent or offset < len(payload):
        if repeat_pointers:
            here = pointers
        else:
            here, unsent = unsent[:pointers_per_packet], unsent[pointers_per_packet:]
        chunk = payload[offset : offset + size - 40 - 8 * len(here)]
        assert chunk
        fixed = [
            pointer(True, 1, cnt, address_bits),
            pointer(True, 2, len(payload), address_bits),
            pointer(True, 3, offset, address_bits),
            pointer(True, 4, len(chunk), address_bits),
        ]
        packets.append(header(4 + len(here), address_bits) + b"".join(fixed + here) + chunk)
        offset += len(chunk)
        if repeat_pointers:
            unsent = []
    return packets
