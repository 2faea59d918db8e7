# SPDX-License-Identifier: BSD-3-Clause
"""Takes the bytes of a packet apart into a table.

Written from the specification of the protocol and independent of the code that makes packets, so
that each can be checked against the other. It does not know what the values of items mean.
Anything with a SPEAD header is taken apart, and what is missing or odd is said in words.

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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
# What packets say of themselves, and what follows if one does not.
_OF_PACKETS = {
    _HEAP_CNT: "receivers do not know its heap",
    _HEAP_LENGTH: "the heap ends where its payload does",
    _PAYLOAD_OFFSET: "receivers do not know its place, here shown as 0",
    _PAYLOAD_LENGTH: "receivers do not know its end",
}
_OF_ANOTHER = "of an item that another packet points to"
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
    """Bytes that do not begin with a SPEAD header, or are no descriptor, or not of one heap.

    The message says where, what was expected and what was seen.
    """


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
    """A packet in parts, as a receiver reads it: of an immediate that is repeated, the last counts.

    Parameters
    ----------
    heap_address_bits : int
        Bits of a pointer that hold a value or an address.
    heap_cnt : int or None
        Heap count: which heap it is a part of. None where the packet does not say.
    heap_length : int or None
        Bytes of payload in the whole heap. None where the packet does not say, as it need not.
    payload_offset : int or None
        Where this packet's payload belongs in the heap's, in bytes. None where it does not say.
    payload_length : int or None
        Bytes of payload in this packet. None where it does not say.
    items : tuple of Pointer
        All pointers in their order, those that tell of the packet itself included. None of them
        where they are not of 8 bytes.
    payload : bytes
        The packet's own part of the heap's payload, as far as it is there.
    faults : tuple of str
        Why a receiver counts the packet as malformed, each with the byte at which that is seen;
        empty for one that it takes.
    """

    heap_address_bits: int
    heap_cnt: int | None
    heap_length: int | None
    payload_offset: int | None
    payload_length: int | None
    items: tuple[Pointer, ...]
    payload: bytes
    faults: tuple[str, ...] = ()


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
    """Take a packet apart, and find what is wrong with it.

    Parameters
    ----------
    packet : bytes-like
        The whole packet and nothing else: the payload of one UDP datagram.

    Returns
    -------
    Packet
        Its parts, copied, and its faults.

    Raises
    ------
    WireError
        If the bytes do not begin with a SPEAD header.
    """
    return _read(bytes(packet)).packet


@dataclass(frozen=True, slots=True)
class _Reading:
    """A packet, and what is missing in it or odd, by the byte at which that is seen."""

    packet: Packet
    n_pointers: int  # as its header says
    payload_at: int
    size: int  # of what it says that it has; what follows is not of it
    notes: Mapping[int, Sequence[str]]

    def of(self, meaning: str, offset: int) -> str:
        """Add to what a row means what was noted at its first byte."""
        return "; ".join([meaning, *self.notes.get(offset, ())])


class _Notes:
    """Gathers what is missing or odd, and which of it are faults to a receiver."""

    def __init__(self) -> None:
        self.at: dict[int, list[str]] = defaultdict(list)
        self.faults: list[str] = []

    def odd(self, offset: int, text: str) -> None:
        self.at[offset].append(text)

    def fault(self, offset: int, text: str) -> None:
        self.odd(offset, text)
        self.faults.append(f"byte {offset}: {text}")


def _read(data: bytes, *, may_go_on: bool = False) -> _Reading:
    """Read the packet at the start of `data`; what follows it is a fault, unless it may go on."""
    _check_header(data)
    notes = _Notes()
    if any(data[4:6]):
        notes.odd(4, "receivers pass over it")
    n_pointers = int.from_bytes(data[6:8], "big")
    items, payload_at = _read_pointers(data, n_pointers, notes)
    said = {item.id: item.value for item in items if item.immediate and item.id in _OF_PACKETS}
    follows = data[payload_at:]
    length = len(follows) if _PAYLOAD_LENGTH not in said else said[_PAYLOAD_LENGTH]
    payload = follows[:length]
    if len(items) == n_pointers:
        _check_places(items, said, len(payload), notes)
    size = payload_at + len(payload)
    if size < len(data) and not may_go_on:
        notes.fault(size, f"{_bytes(len(data) - size)} more than the packet says that it has")
    cnt, heap_length, offset, payload_length = map(said.get, _OF_PACKETS)
    packet = Packet(
        heap_address_bits=8 * data[3],
        heap_cnt=cnt,
        heap_length=heap_length,
        payload_offset=offset,
        payload_length=payload_length,
        items=items,
        payload=payload,
        faults=tuple(notes.faults),
    )
    return _Reading(packet, n_pointers, payload_at, size, notes.at)


def _check_header(data: bytes) -> None:
    if len(data) < _HEADER_SIZE:
        raise WireError(
            f"byte {len(data)}: expected a SPEAD header of {_HEADER_SIZE} bytes, "
            "saw the end of the packet"
        )
    if data[0] != 0x53:
        raise WireError(
            f"byte 0: expected 0x53, with which every SPEAD header begins, saw {data[0]:#04x}"
        )
    if data[1] != 4:
        raise WireError(f"byte 1: expected version 4 of SPEAD, saw {data[1]}")


def _has_odd_widths(data: bytes) -> bool:
    return data[2] == 0 or data[3] == 0 or data[2] + data[3] != _POINTER_SIZE


def _read_pointers(data: bytes, n_pointers: int, notes: _Notes) -> tuple[tuple[Pointer, ...], int]:
    """Read those that are there; return them, and where the payload begins."""
    if _has_odd_widths(data):
        notes.fault(
            3,
            f"with byte 2 an item pointer has {_bytes(data[2] + data[3])}, and receivers take those"
            f" of {_POINTER_SIZE} alone, with 1 to 7 for the address",
        )
        return (), len(data)
    there = min(n_pointers, len(data) // _POINTER_SIZE - 1)
    start = _HEADER_SIZE + _POINTER_SIZE * there
    items = tuple(
        _parse_pointer(data[offset : offset + _POINTER_SIZE], 8 * data[3])
        for offset in range(_HEADER_SIZE, start, _POINTER_SIZE)
    )
    _check_pointers(items, notes)
    if there < n_pointers:
        notes.fault(6, f"the packet ends after {there} of them")
        return items, len(data)
    immediates = {item.id for item in items if item.immediate}
    for id, consequence in _OF_PACKETS.items():
        if id not in immediates:
            note = notes.odd if id == _HEAP_LENGTH else notes.fault
            note(6, f"no {_NAMES[id]} ({id:#x}): {consequence}")
    return items, start


def _check_pointers(items: Sequence[Pointer], notes: _Notes) -> None:
    """Note which pointers say nothing, or not what they seem to."""
    counts = {item.id: i for i, item in enumerate(items) if item.immediate}
    for i, item in enumerate(items):
        offset = _HEADER_SIZE + _POINTER_SIZE * i
        if not item.immediate and item.id in (*_OF_PACKETS, _CONTROL):
            notes.odd(offset, f"that is no {_NAMES[item.id]}, which is immediate")
        elif item.immediate and item.id == _DESCRIPTOR:
            notes.odd(offset, "that is no descriptor, which has an address")
        elif item.immediate and item.id not in (_NULL, _CONTROL) and counts[item.id] > i:
            notes.odd(offset, "it is repeated, and the last one counts")


def _check_places(
    items: Sequence[Pointer], said: Mapping[int, int], n_bytes: int, notes: _Notes
) -> None:
    """Note what is not there, or beyond the heap; `n_bytes` of payload are there."""
    length = said.get(_PAYLOAD_LENGTH, n_bytes)
    end = said.get(_PAYLOAD_OFFSET, 0) + length
    heap_length = said.get(_HEAP_LENGTH)
    own = [i for i, item in enumerate(items) if item.immediate and item.id == _PAYLOAD_LENGTH]
    at = _HEADER_SIZE + _POINTER_SIZE * own[-1] if own else 6
    if n_bytes < length:
        notes.fault(at, f"the packet ends after {_bytes(n_bytes)} of its payload")
    if heap_length is None:
        return
    beyond = f"beyond the heap's {_bytes(heap_length)}"
    if end > heap_length:
        notes.fault(at, f"the payload ends at byte {end}, {beyond}")
    for i, item in enumerate(items):
        if not item.immediate and item.value > heap_length:
            notes.fault(_HEADER_SIZE + _POINTER_SIZE * i, f"its address {item.value} is {beyond}")


def _parse_pointer(raw: bytes, address_bits: int) -> Pointer:
    number = int.from_bytes(raw, "big")
    return Pointer(
        id=(number & ~_MODE_BIT) >> address_bits,
        immediate=bool(number & _MODE_BIT),
        value=number & ((1 << address_bits) - 1),
    )


def _bytes(n: int) -> str:
    return "1 byte" if n == 1 else f"{n} bytes"


def dissect(
    packet: bytes | bytearray | memoryview,
    *,
    names: Mapping[int, str] | None = None,
    bug_compat: int = 0,
) -> list[Field]:
    """Take a packet apart into rows that cover each of its bytes once, in order.

    Descriptors that are in the packet as a whole are taken apart in turn. A row says in words
    what is odd about it, and that of the number of pointers also what the packet lacks. Where in
    its payload the items start that other packets point to is not known: the bytes then seem to
    belong to the item before.

    Parameters
    ----------
    packet : bytes-like
        One whole packet, well-formed or not.
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
        If the bytes do not begin with a SPEAD header.

    See Also
    --------
    dissect_heap : does this for all packets of a heap, and knows.
    """
    data = bytes(packet)
    reading = _read(data)
    return _rows(data, reading, _Places.of([reading.packet]), _known(names), bug_compat)


def _known(names: Mapping[int, str] | None) -> Mapping[int, str]:
    """Return the names of ids that are shown."""
    return {**_NAMES, **{id: repr(name) for id, name in (names or {}).items() if id > _CONTROL}}


def _rows(
    data: bytes, reading: _Reading, places: _Places, names: Mapping[int, str], bug_compat: int
) -> list[Field]:
    rows = _header_rows(data, reading, names)
    packet = reading.packet
    start = reading.payload_at - (packet.payload_offset or 0)
    for piece in _pieces(packet, places):
        offset = start + piece.first
        raw = data[offset : start + piece.last + 1]
        if piece.owner is not None and piece.owner.id == _DESCRIPTOR and piece.whole:
            rows += _descriptor_rows(raw, offset, piece, bug_compat)
        else:
            rows.append(_piece_row(raw, offset, piece, names))
    if reading.size < len(data):
        meaning = reading.of("after the packet's end", reading.size)
        rows.append(Field(reading.size, data[reading.size :], "surplus", meaning))
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
        If one of them does not begin with a SPEAD header, or is not of the same heap as the first.
    """
    whole = [bytes(packet) for packet in packets]
    readings = [_read(packet) for packet in whole]
    for i, reading in enumerate(readings):
        expected, seen = readings[0].packet.heap_cnt, reading.packet.heap_cnt
        if seen != expected:
            raise WireError(f"packet {i}: expected heap count {expected}, saw {seen}")
    places = _Places.of([reading.packet for reading in readings])
    known = _known(names)
    return [
        _rows(data, reading, places, known, bug_compat)
        for data, reading in zip(whole, readings, strict=True)
    ]


def _header_rows(data: bytes, reading: _Reading, names: Mapping[int, str]) -> list[Field]:
    items, n = reading.packet.items, reading.n_pointers
    is_odd = _has_odd_widths(data)
    reserved = int.from_bytes(data[4:6], "big")
    flavour = "" if is_odd else f": SPEAD-64-{8 * data[3]}"
    width = f"{_bytes(data[3])} of value or address{flavour}"
    zero = "not zero" if reserved else "zero"
    rows = [
        Field(0, data[0:1], "magic", "SPEAD", data[0]),
        Field(1, data[1:2], "version", str(data[1]), data[1]),
        Field(2, data[2:3], "pointer width", f"{_bytes(data[2])} of mode and id", data[2]),
        Field(3, data[3:4], "address width", reading.of(width, 3), data[3]),
        Field(4, data[4:6], "reserved", reading.of(zero, 4), reserved),
        Field(6, data[6:8], "number of pointers", reading.of(str(n), 6), n),
    ]
    for i, item in enumerate(items):
        offset = _HEADER_SIZE + _POINTER_SIZE * i
        raw = data[offset : offset + _POINTER_SIZE]
        meaning = reading.of(_pointer_meaning(item, names), offset)
        rows.append(Field(offset, raw, "item pointer", meaning, item.value))
    start = _HEADER_SIZE + _POINTER_SIZE * len(items)
    if start < reading.payload_at:
        rest, cut = data[start : reading.payload_at], f"cut off: it has {_POINTER_SIZE} bytes"
        field, meaning = ("rest", "item pointers and payload") if is_odd else ("item pointer", cut)
        rows.append(Field(start, rest, field, meaning))
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
class _Places:
    """Where the items of a heap begin, and where its payload ends, as far as that is known."""

    owners: Mapping[int, Pointer]
    starts: Sequence[int]
    end: int
    end_is_said: bool

    @classmethod
    def of(cls, packets: Sequence[Packet]) -> _Places:
        # Of several items at one address all but the last are empty.
        items = itertools.chain(*(packet.items for packet in packets))
        owners = {item.value: item for item in items if not item.immediate}
        said = [packet.heap_length for packet in packets if packet.heap_length is not None]
        seen = ((packet.payload_offset or 0) + len(packet.payload) for packet in packets)
        return cls(owners, sorted(owners), said[-1] if said else max(seen, default=0), bool(said))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Part of a packet's payload that belongs to one item; `first` and `last` are in the heap's."""

    first: int
    last: int
    owner: Pointer | None
    whole: bool
    why: str  # there is no owner; or where the heap ends, if no packet says that


def _pieces(packet: Packet, places: _Places) -> list[_Piece]:
    """Cut the payload where items are known to start, and where the heap ends."""
    starts, end = places.starts, places.end
    begin = packet.payload_offset or 0
    after = begin + len(packet.payload)
    inside = starts[bisect.bisect_right(starts, begin) : bisect.bisect_left(starts, after)]
    cuts = sorted({begin, after, *inside, *([end] if begin < end < after else [])})
    pieces = []
    for first, stop in itertools.pairwise(cuts):
        i = bisect.bisect_right(starts, first)
        if first >= end:
            pieces.append(_Piece(first, stop - 1, None, whole=False, why="beyond the heap's end"))
        elif i == 0:
            pieces.append(_Piece(first, stop - 1, None, whole=False, why=_OF_ANOTHER))
        else:
            known = min(starts[i], end) if i < len(starts) else end
            whole = starts[i - 1] == first and stop == known
            why = "as far as it is here" if stop == end and not places.end_is_said else ""
            pieces.append(_Piece(first, stop - 1, places.owners[starts[i - 1]], whole, why))
    return pieces


def _piece_row(raw: bytes, offset: int, piece: _Piece, names: Mapping[int, str]) -> Field:
    where = f"bytes {piece.first} to {piece.last} of the heap's payload"
    if piece.owner is not None and piece.owner.id == _NULL:
        return Field(offset, raw, "padding", where, raw)
    if piece.why:
        where += f", {piece.why}"
    if piece.owner is None:
        return Field(offset, raw, "payload", where, raw)
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
        reading = _read(raw, may_go_on=True)
    except WireError as error:
        return [Field(offset, raw, "descriptor", f"cannot be read: {error}", raw)]
    rows = [
        Field(offset + row.offset, row.raw, row.field, row.meaning, row.value, 1)
        for row in _nested_rows(raw[: reading.size], reading, bug_compat)
    ]
    surplus = len(raw) - reading.size
    if surplus:
        rest = _Piece(piece.last + 1 - surplus, piece.last, None, whole=False, why=_OF_ANOTHER)
        rows.append(_piece_row(raw[reading.size :], offset + reading.size, rest, _NAMES))
    return rows


def _nested_rows(raw: bytes, reading: _Reading, bug_compat: int) -> list[Field]:
    packet = reading.packet
    notes = defaultdict(list, reading.notes)
    notes[6] = [*notes[6], *_why_left_out(packet)]
    rows = _header_rows(raw, replace(reading, notes=notes), _DESCRIPTOR_NAMES)
    start = reading.payload_at - (packet.payload_offset or 0)
    for piece in _pieces(packet, _Places.of([packet])):
        offset = start + piece.first
        part = raw[offset : start + piece.last + 1]
        id = None if piece.owner is None else piece.owner.id
        text = _nested_text(id, part, packet.heap_address_bits, bug_compat)
        name = "payload" if id is None else _DESCRIPTOR_NAMES.get(id, f"item {id:#x}")
        rows.append(Field(offset, part, name, text, text))
    return rows


def _why_left_out(packet: Packet) -> list[str]:
    """Say why receivers leave a descriptor out, if they do."""
    if packet.faults:
        why = "as it is malformed"
    elif packet.payload_offset or _reaches_beyond(packet):
        why = "as it is only a part of one"
    elif not _described_ids(packet):
        why = f"as it has no id ({_ID:#x})"
    elif _described_ids(packet)[-1] <= _CONTROL:
        why = "as its id is one of the protocol's own"
    elif not _nested_values(packet).get(_NAME):
        why = f"as it has no name ({_NAME:#x})"
    else:
        return []
    return [f"receivers leave this descriptor out, {why}"]


def _reaches_beyond(packet: Packet) -> bool:
    """Whether an address of a descriptor is beyond the payload that came with it."""
    return any(not item.immediate and item.value > len(packet.payload) for item in packet.items)


def _described_ids(packet: Packet) -> list[int]:
    found = (item.value for item in packet.items if item.immediate and item.id == _ID)
    return [id for id in found if id]


def _nested_values(packet: Packet) -> dict[int, bytes]:
    """Return the values of a descriptor's addressed items: of those repeated, the last counts."""
    addressed = [item for item in packet.items if not item.immediate]
    ends = sorted({*(item.value for item in addressed), len(packet.payload)})
    # Of several items at one address all but the last are empty.
    last_at = {item.value: i for i, item in enumerate(addressed)}
    values = {}
    for i, item in enumerate(addressed):
        following = bisect.bisect_right(ends, item.value)
        has_bytes = last_at[item.value] == i and following < len(ends)
        values[item.id] = packet.payload[item.value : ends[following] if has_bytes else item.value]
    return values


def _nested_text(id: int | None, raw: bytes, address_bits: int, bug_compat: int) -> str:
    if id not in (_FORMAT, _SHAPE):
        return _text(raw)
    if id == _FORMAT:
        text = str(list(_parse_format(raw, address_bits, bug_compat)))
        surplus = len(raw) % _format_size(address_bits, bug_compat)
    else:
        text = str(_parse_shape(raw, address_bits, bug_compat))
        surplus = len(raw) % _dimension_size(address_bits, bug_compat)
    return f"{text}; {_bytes(surplus)} are left over" if surplus else text


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
    parsed = _read(bytes(packet), may_go_on=True).packet
    if parsed.faults:
        raise WireError(parsed.faults[0])
    if parsed.payload_offset or _reaches_beyond(parsed):
        raise WireError("expected a descriptor as a whole, saw a part of one")
    ids = _described_ids(parsed)
    if not ids:
        raise WireError(f"expected an immediate item {_ID:#x} (id) in it, saw none")
    values = _nested_values(parsed)
    bits = parsed.heap_address_bits
    return Description(
        id=ids[-1],
        name=_text(values.get(_NAME, b"")),
        description=_text(values.get(_DESCRIPTION, b"")),
        format=_parse_format(values.get(_FORMAT, b""), bits, bug_compat),
        shape=_parse_shape(values.get(_SHAPE, b""), bits, bug_compat),
        numpy_header=_text(values.get(_DTYPE, b"")),
    )


def _format_size(address_bits: int, bug_compat: int) -> int:
    return 4 if bug_compat & 1 else 9 - address_bits // 8


def _dimension_size(address_bits: int, bug_compat: int) -> int:
    return 8 if bug_compat & 1 else 1 + address_bits // 8


def _parse_format(raw: bytes, address_bits: int, bug_compat: int) -> tuple[tuple[str, int], ...]:
    parts = _split(raw, _format_size(address_bits, bug_compat))
    return tuple((_text(part[:1]), int.from_bytes(part[1:], "big")) for part in parts)


def _parse_shape(raw: bytes, address_bits: int, bug_compat: int) -> tuple[int | None, ...]:
    variable = 2 if bug_compat & 2 else 1
    return tuple(
        None if part[0] & variable else int.from_bytes(part[1:], "big")
        for part in _split(raw, _dimension_size(address_bits, bug_compat))
    )


def _split(raw: bytes, size: int) -> list[bytes]:
    """Cut into pieces of a size; what is left over is left out, as receivers do."""
    return [raw[i : i + size] for i in range(0, len(raw) - size + 1, size)]


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
