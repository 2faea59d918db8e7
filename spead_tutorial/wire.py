# SPDX-License-Identifier: BSD-3-Clause
"""Takes the bytes of a packet apart into a table.

Written from the specification of the protocol and independent of the code that makes packets, so
that each can be checked against the other. It does not know what the values of items mean.

>>> packet = bytes.fromhex(
...     "53040305 00000005 8000010000000001 8000020000000001 8000030000000000"
...     "8000040000000001 0000000000000000 00"
... )
>>> parse(packet).heap_cnt
1
>>> print(format_table(dissect(packet)))
offset  bytes                    field               meaning
     0  53                       magic               SPEAD
     1  04                       version             4
     2  03                       pointer width       3 bytes of mode and id
     3  05                       address width       5 bytes of value or address: SPEAD-64-40
     4  00 00                    reserved            zero
     6  00 05                    number of pointers  5
     8  80 00 01 00 00 00 00 01  item pointer        heap count (0x1), immediate: 1
    16  80 00 02 00 00 00 00 01  item pointer        heap length (0x2), immediate: 1
    24  80 00 03 00 00 00 00 00  item pointer        payload offset (0x3), immediate: 0
    32  80 00 04 00 00 00 00 01  item pointer        payload length (0x4), immediate: 1
    40  00 00 00 00 00 00 00 00  item pointer        padding (0x0), at byte 0 of the payload
    48  00                       padding             bytes 0 to 0 of the heap's payload
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spead_tutorial._shown import shown

__all__ = [
    "Description",
    "Field",
    "Packet",
    "Pointer",
    "WireError",
    "dissect",
    "dissect_heap",
    "format_table",
    "parse",
    "parse_descriptor",
]

_HEADER_SIZE = 8
_POINTER_SIZE = 8
_MODE_BIT = 1 << 63

_NULL, _HEAP_CNT, _HEAP_LENGTH, _PAYLOAD_OFFSET, _PAYLOAD_LENGTH, _DESCRIPTOR, _CONTROL = range(7)
_NAME, _DESCRIPTION, _SHAPE, _FORMAT, _ID, _DTYPE = range(0x10, 0x16)

_NAMES = {
    _NULL: "padding",
    _HEAP_CNT: "heap count",
    _HEAP_LENGTH: "heap length",
    _PAYLOAD_OFFSET: "payload offset",
    _PAYLOAD_LENGTH: "payload length",
    _DESCRIPTOR: "descriptor",
    _CONTROL: "stream control",
}
# These ids have a meaning only inside a descriptor.
_DESCRIPTOR_NAMES = {
    **_NAMES,
    _NAME: "name",
    _DESCRIPTION: "description",
    _SHAPE: "shape",
    _FORMAT: "format",
    _ID: "id",
    _DTYPE: "dtype",
}
_CONTROLS = {
    0: "start of stream",
    1: "descriptors are sent again",
    2: "end of stream",
    3: "descriptors have changed",
}


class WireError(ValueError):
    """Bytes that are not a SPEAD packet. The message says where, what was expected and seen."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """An item pointer.

    Parameters
    ----------
    id : int
        The item's id.
    immediate : bool
        Whether `value` is the item's value, rather than its address.
    value : int
        The value, or the offset of the item in the heap's payload in bytes.
    """

    id: int
    immediate: bool
    value: int


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet in parts.

    Parameters
    ----------
    heap_address_bits : int
        Bits of a pointer that hold a value or an address.
    heap_cnt : int
        Heap count: which heap it is a part of.
    heap_length : int
        Bytes of payload in the whole heap.
    payload_offset : int
        Where this packet's payload belongs in the heap's, in bytes.
    payload_length : int
        Bytes of payload in this packet.
    items : tuple of Pointer
        All pointers in their order, the four that every packet has included.
    payload : bytes
        The packet's own part of the heap's payload.
    """

    heap_address_bits: int
    heap_cnt: int
    heap_length: int
    payload_offset: int
    payload_length: int
    items: tuple[Pointer, ...]
    payload: bytes


@dataclass(frozen=True, slots=True)
class Field:
    """One row of the table.

    Parameters
    ----------
    offset : int
        Of the first byte, from the start of the packet.
    raw : bytes
        The bytes that the row is about; never empty.
    field : str
        What it is.
    meaning : str
        What it says, in words.
    value : int, str, bytes or None
        What it says: a pointer's value or address, the text of a name, the bytes of a value.
    depth : int
        1 inside a descriptor, else 0.
    """

    offset: int
    raw: bytes
    field: str
    meaning: str
    value: int | str | bytes | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Description:
    """What a descriptor says about an item.

    Parameters
    ----------
    id : int
        The item's id.
    name, description : str
        Bytes that are not ASCII are written as backslash escapes.
    format : tuple of (str, int)
        Letter and width in bits of every field.
    shape : tuple of (int or None)
        None is the dimension that varies.
    numpy_header : str
        Empty for an item with a format.
    """

    id: int
    name: str
    description: str
    format: tuple[tuple[str, int], ...]
    shape: tuple[int | None, ...]
    numpy_header: str


def parse(packet: bytes | bytearray | memoryview) -> Packet:
    """Take a packet apart and check that its lengths agree.

    Parameters
    ----------
    packet : bytes-like
        The whole packet and nothing else: the payload of one UDP datagram.

    Returns
    -------
    Packet
        Its parts, copied.

    Raises
    ------
    WireError
        If the bytes are not a SPEAD packet.
    """
    data = bytes(packet)
    parsed = _parse_first(data)
    end = len(data) - _surplus(data, parsed)
    if end < len(data):
        raise WireError(
            f"byte {end}: expected the end of the packet, as its payload length is "
            f"{parsed.payload_length}, saw {_bytes(len(data) - end)} more"
        )
    return parsed


def _surplus(data: bytes, parsed: Packet) -> int:
    """Bytes that follow the packet at the start of `data`."""
    return len(data) - _HEADER_SIZE - _POINTER_SIZE * len(parsed.items) - parsed.payload_length


def _parse_first(data: bytes) -> Packet:
    """Parse the packet at the start of `data`, and leave what follows."""
    _check_header(data)
    address_bits = 8 * data[3]
    start = _HEADER_SIZE + _POINTER_SIZE * int.from_bytes(data[6:8], "big")
    if len(data) < start:
        n_pointers = (start - _HEADER_SIZE) // _POINTER_SIZE
        raise WireError(
            f"byte {len(data)}: expected {n_pointers} item pointers, which end at byte {start}, "
            "saw the end of the packet"
        )
    items = tuple(
        _parse_pointer(data[offset : offset + _POINTER_SIZE], address_bits)
        for offset in range(_HEADER_SIZE, start, _POINTER_SIZE)
    )
    cnt, length, payload_offset, payload_length = (
        _mandatory(items, id) for id in (_HEAP_CNT, _HEAP_LENGTH, _PAYLOAD_OFFSET, _PAYLOAD_LENGTH)
    )
    if len(data) - start < payload_length:
        raise WireError(
            f"byte {len(data)}: expected {_bytes(payload_length)} of payload from byte {start} on, "
            f"saw {len(data) - start}"
        )
    if payload_offset + payload_length > length:
        raise WireError(
            f"bytes {_HEADER_SIZE} to {start - 1}: expected a payload inside the heap's "
            f"{_bytes(length)}, saw offset {payload_offset} and length {payload_length}"
        )
    for i, item in enumerate(items):
        if not item.immediate and item.value > length:
            raise WireError(
                f"byte {_HEADER_SIZE + _POINTER_SIZE * i}: expected an address inside the heap's "
                f"{_bytes(length)}, saw {item.value} for item {item.id:#x}"
            )
    payload = data[start : start + payload_length]
    return Packet(address_bits, cnt, length, payload_offset, payload_length, items, payload)


def _check_header(data: bytes) -> None:
    if len(data) < _HEADER_SIZE:
        raise WireError(
            f"byte {len(data)}: expected a header of {_HEADER_SIZE} bytes, "
            "saw the end of the packet"
        )
    if data[0] != 0x53:
        raise WireError(f"byte 0: expected 0x53, which every SPEAD packet has, saw {data[0]:#04x}")
    if data[1] != 4:
        raise WireError(f"byte 1: expected version 4, saw {data[1]}")
    if not 1 <= data[2] <= 7:
        raise WireError(f"byte 2: expected 1 to 7 bytes for mode and id, saw {data[2]}")
    if data[3] != 8 - data[2]:
        raise WireError(
            f"byte 3: expected {_bytes(8 - data[2])} for the address, so that with byte 2 they are "
            f"8, saw {data[3]}"
        )
    for i in (4, 5):
        if data[i] != 0:
            raise WireError(f"byte {i}: expected 0, as it is reserved, saw {data[i]:#04x}")


def _parse_pointer(raw: bytes, address_bits: int) -> Pointer:
    number = int.from_bytes(raw, "big")
    return Pointer(
        id=(number & ~_MODE_BIT) >> address_bits,
        immediate=bool(number & _MODE_BIT),
        value=number & ((1 << address_bits) - 1),
    )


def _mandatory(items: Sequence[Pointer], id: int) -> int:
    values = [item.value for item in items if item.id == id and item.immediate]
    if len(values) != 1:
        end = _HEADER_SIZE + _POINTER_SIZE * len(items)
        raise WireError(
            f"bytes {_HEADER_SIZE} to {end - 1}: expected one immediate item {id:#x} "
            f"({_NAMES[id]}), saw {len(values)}"
        )
    return values[0]


def _bytes(n: int) -> str:
    return "1 byte" if n == 1 else f"{n} bytes"


def dissect(
    packet: bytes | bytearray | memoryview,
    *,
    pointers: Iterable[Pointer] = (),
    names: Mapping[int, str] | None = None,
    bug_compat: int = 0,
) -> list[Field]:
    """Take a packet apart into rows that cover each of its bytes once, in order.

    Descriptors that are in the packet as a whole are taken apart in turn.

    Parameters
    ----------
    packet : bytes-like
        One whole packet.
    pointers : iterable of Pointer
        All pointers of the heap, in their order. Without them it is not known where in this
        packet's payload the items start that other packets point to: the bytes then seem to
        belong to the item before.
    names : mapping from int to str, optional
        Names of items by their id.
    bug_compat : int
        Compatibility bits of the sender's flavour, of which the packet itself says nothing.

    Returns
    -------
    list of Field
        The rows; laid end to end, their bytes are the packet.

    Raises
    ------
    WireError
        If the bytes are not a SPEAD packet. A descriptor that cannot be read is not an error:
        its row says so.

    See Also
    --------
    dissect_heap : does this for all packets of a heap.
    """
    data = bytes(packet)
    parsed = parse(data)
    known = {**_NAMES, **{id: repr(name) for id, name in (names or {}).items() if id > _CONTROL}}
    rows = _header_rows(data, parsed, known)
    start = len(data) - parsed.payload_length
    for piece in _pieces(parsed, pointers):
        offset = start + piece.first - parsed.payload_offset
        raw = data[offset : offset + piece.last + 1 - piece.first]
        if piece.owner is not None and piece.owner.id == _DESCRIPTOR and piece.whole:
            rows += _descriptor_rows(raw, offset, piece, bug_compat)
        else:
            rows.append(_piece_row(raw, offset, piece, known))
    return rows


def dissect_heap(
    packets: Iterable[bytes | bytearray | memoryview],
    *,
    names: Mapping[int, str] | None = None,
    bug_compat: int = 0,
) -> list[list[Field]]:
    """Take all packets of one heap apart, so that the owner of each byte is known.

    Parameters
    ----------
    packets : iterable of bytes-like
        All packets of the heap, in any order.
    names, bug_compat
        As in `dissect`.

    Returns
    -------
    list of list of Field
        One list for each packet.

    Raises
    ------
    WireError
        If one of them is not a SPEAD packet, or not of the same heap as the first.
    """
    whole = [bytes(packet) for packet in packets]
    parsed = [parse(packet) for packet in whole]
    for i, packet in enumerate(parsed):
        if packet.heap_cnt != parsed[0].heap_cnt:
            raise WireError(
                f"packet {i}: expected heap count {parsed[0].heap_cnt}, saw {packet.heap_cnt}"
            )
    pointers = [item for packet in parsed for item in packet.items]
    return [
        dissect(packet, pointers=pointers, names=names, bug_compat=bug_compat) for packet in whole
    ]


def _header_rows(data: bytes, parsed: Packet, names: Mapping[int, str]) -> list[Field]:
    flavour = f"SPEAD-64-{parsed.heap_address_bits}"
    rows = [
        Field(0, data[0:1], "magic", "SPEAD", data[0]),
        Field(1, data[1:2], "version", str(data[1]), data[1]),
        Field(2, data[2:3], "pointer width", f"{_bytes(data[2])} of mode and id", data[2]),
        Field(
            3,
            data[3:4],
            "address width",
            f"{_bytes(data[3])} of value or address: {flavour}",
            data[3],
        ),
        Field(4, data[4:6], "reserved", "zero", 0),
        Field(6, data[6:8], "number of pointers", str(len(parsed.items)), len(parsed.items)),
    ]
    for i, item in enumerate(parsed.items):
        offset = _HEADER_SIZE + _POINTER_SIZE * i
        raw = data[offset : offset + _POINTER_SIZE]
        rows.append(Field(offset, raw, "item pointer", _pointer_meaning(item, names), item.value))
    return rows


def _pointer_meaning(item: Pointer, names: Mapping[int, str]) -> str:
    name = names.get(item.id)
    label = f"item {item.id:#x}" if name is None else f"{name} ({item.id:#x})"
    if not item.immediate:
        return f"{label}, at byte {item.value} of the payload"
    if item.id == _CONTROL and item.value in _CONTROLS:
        return f"{label}, immediate: {item.value}, {_CONTROLS[item.value]}"
    return f"{label}, immediate: {item.value}"


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a packet's payload that belongs to one item; `first` and `last` are in the heap's."""

    first: int
    last: int
    owner: Pointer | None
    whole: bool


def _pieces(parsed: Packet, pointers: Iterable[Pointer] = ()) -> list[_Piece]:
    """Cut the payload where items are known to start."""
    # Of several items at one address all but the last are empty.
    owners: dict[int, Pointer] = {}
    for item in (*parsed.items, *pointers):
        if not item.immediate:
            owners[item.value] = item
    starts = sorted(owners)
    begin, end = parsed.payload_offset, parsed.payload_offset + parsed.payload_length
    cuts = sorted({begin, end, *(start for start in starts if begin < start < end)})
    pieces = []
    for first, after in itertools.pairwise(cuts):
        i = bisect.bisect_right(starts, first)
        stop = starts[i] if i < len(starts) else parsed.heap_length
        if i == 0:
            pieces.append(_Piece(first, after - 1, None, whole=False))
        else:
            whole = starts[i - 1] == first and after == stop
            pieces.append(_Piece(first, after - 1, owners[starts[i - 1]], whole))
    return pieces


def _piece_row(raw: bytes, offset: int, piece: _Piece, names: Mapping[int, str]) -> Field:
    where = f"bytes {piece.first} to {piece.last} of the heap's payload"
    if piece.owner is None:
        meaning = f"{where}, of an item that another packet points to"
        return Field(offset, raw, "payload", meaning, raw)
    if piece.owner.id == _NULL:
        return Field(offset, raw, "padding", where, raw)
    name = names.get(piece.owner.id)
    label = f"item {piece.owner.id:#x}" + ("" if name is None else f" {name}")
    part = "value" if piece.whole else "part of the value"
    if piece.owner.id == _DESCRIPTOR:
        label, part = "descriptor", "descriptor" if piece.whole else "part of a descriptor"
    if not piece.whole:
        skipped = piece.first - piece.owner.value
        where += f", the item's own from {skipped} on"
    return Field(offset, raw, part, f"{label}: {where}", raw)


def _descriptor_rows(raw: bytes, offset: int, piece: _Piece, bug_compat: int) -> list[Field]:
    """Take a descriptor apart, with what follows it where its end was not known before."""
    try:
        parsed = _parse_first(raw)
        rows = _nested_rows(raw[: len(raw) - _surplus(raw, parsed)], parsed, bug_compat)
    except WireError as error:
        return [Field(offset, raw, "descriptor", f"cannot be read: {error}", raw)]
    rows = [
        Field(offset + row.offset, row.raw, row.field, row.meaning, row.value, 1) for row in rows
    ]
    surplus = _surplus(raw, parsed)
    if surplus:
        rest = _Piece(piece.last + 1 - surplus, piece.last, None, whole=False)
        start = len(raw) - surplus
        rows.append(_piece_row(raw[start:], offset + start, rest, _NAMES))
    return rows


def _nested_rows(raw: bytes, parsed: Packet, bug_compat: int) -> list[Field]:
    rows = _header_rows(raw, parsed, _DESCRIPTOR_NAMES)
    start = len(raw) - parsed.payload_length
    for piece in _pieces(parsed):
        offset = start + piece.first - parsed.payload_offset
        part = raw[offset : offset + piece.last + 1 - piece.first]
        id = None if piece.owner is None else piece.owner.id
        text = _nested_text(id, part, parsed.heap_address_bits, bug_compat)
        name = "payload" if id is None else _DESCRIPTOR_NAMES.get(id, f"item {id:#x}")
        rows.append(Field(offset, part, name, text, text))
    return rows


def _nested_text(id: int | None, raw: bytes, address_bits: int, bug_compat: int) -> str:
    if id == _FORMAT:
        return str(list(_parse_format(raw, address_bits, bug_compat)))
    if id == _SHAPE:
        return str(_parse_shape(raw, address_bits, bug_compat))
    return _text(raw)


def _text(raw: bytes) -> str:
    return raw.decode("ascii", "backslashreplace")


def parse_descriptor(packet: bytes | bytearray | memoryview, bug_compat: int = 0) -> Description:
    """Read a descriptor.

    Parameters
    ----------
    packet : bytes-like
        The value of an item 5, which is a packet of its own.
    bug_compat : int
        Compatibility bits of the sender's flavour.

    Returns
    -------
    Description
        What it says of its item.

    Raises
    ------
    WireError
        If it is not a descriptor.
    """
    parsed = parse(packet)
    if parsed.payload_length != parsed.heap_length:
        raise WireError(
            f"expected a descriptor of {_bytes(parsed.heap_length)}, saw {parsed.payload_length} "
            "of them"
        )
    values: dict[int, bytes] = {}
    for piece in _pieces(parsed):
        if piece.owner is not None:
            values[piece.owner.id] = parsed.payload[piece.first : piece.last + 1]
    ids = [item.value for item in parsed.items if item.id == _ID and item.immediate]
    if len(ids) != 1:
        raise WireError(f"expected one immediate item {_ID:#x} (id) in it, saw {len(ids)}")
    bits = parsed.heap_address_bits
    return Description(
        id=ids[0],
        name=_text(values.get(_NAME, b"")),
        description=_text(values.get(_DESCRIPTION, b"")),
        format=_parse_format(values.get(_FORMAT, b""), bits, bug_compat),
        shape=_parse_shape(values.get(_SHAPE, b""), bits, bug_compat),
        numpy_header=_text(values.get(_DTYPE, b"")),
    )


def _parse_format(raw: bytes, address_bits: int, bug_compat: int) -> tuple[tuple[str, int], ...]:
    size = 4 if bug_compat & 1 else 9 - address_bits // 8
    return tuple((_text(part[:1]), int.from_bytes(part[1:], "big")) for part in _split(raw, size))


def _parse_shape(raw: bytes, address_bits: int, bug_compat: int) -> tuple[int | None, ...]:
    size = 8 if bug_compat & 1 else 1 + address_bits // 8
    variable = 2 if bug_compat & 2 else 1
    return tuple(
        None if part[0] & variable else int.from_bytes(part[1:], "big")
        for part in _split(raw, size)
    )


def _split(raw: bytes, size: int) -> list[bytes]:
    if len(raw) % size:
        raise WireError(f"expected fields of {_bytes(size)} in a descriptor, saw {len(raw)} bytes")
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def format_table(fields: Iterable[Field]) -> str:
    """Lay rows out as plain text.

    Parameters
    ----------
    fields : iterable of Field
        The rows, as `dissect` returns them.

    Returns
    -------
    str
        A heading and one line for every row, without a newline at the end. The bytes of long rows
        are cut after the first eight; rows inside a descriptor are indented. What a terminal could
        take for a command, and what it would not show, is written as an escape.
    """
    lines = [("offset", "bytes", "field", "meaning")]
    for row in fields:
        first = row.raw[:7] if len(row.raw) > 8 else row.raw
        raw = first.hex(" ") + (" …" if len(row.raw) > 8 else "")
        lines.append(
            (str(row.offset), raw, "  " * row.depth + shown(row.field), shown(row.meaning))
        )
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        f"{offset:>{widths[0]}}  {raw:<{widths[1]}}  {field:<{widths[2]}}  {meaning}".rstrip()
        for offset, raw, field, meaning in lines
    )
