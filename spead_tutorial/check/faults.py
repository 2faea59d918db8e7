# SPDX-License-Identifier: BSD-3-Clause
"""The first fault of packets that a sender made: which heap, which packet, expected and found."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from spead_tutorial import wire

__all__ = ["Wanted", "first_fault"]

_DESCRIPTOR, _CONTROL, _END = 5, 6, 2
_TIMESTAMP, _SAMPLES = 0x1600, 0x3300
_NAMES = {_TIMESTAMP: "timestamp", _SAMPLES: "adc_samples"}
_ADDRESS_BITS = 40
_LOWEST, _HIGHEST = -100, 99  # of random samples


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a sender was told."""

    heaps: int  # how many heaps, bytes of samples in each, and bytes in a packet at most
    heap_size: int
    packet_size: int
    # whether samples are random; otherwise they are the number of their heap, which wraps
    random: bool = False
    tick: int | None = None  # by how much timestamps grow; by default the samples of a heap
    whole: bool = True  # whether the stream begins with descriptors, and comes to its end


class _FaultError(Exception):
    """What is wrong, in one line."""


def first_fault(datagrams: Iterable[bytes], wanted: Wanted) -> str | None:
    """Say what is wrong first with what arrived; None where nothing is.

    Heaps may come in any order, and be cut into packets in any way: streams of several threads
    overtake each other, and chapters cut differently.
    """
    try:
        heaps = _sorted(datagrams, wanted.packet_size)
        for i in range(wanted.heaps):
            if i + 1 not in heaps:
                n = i + sum(not _is_end(packets) for packets in heaps.values())
                raise _FaultError(
                    f"heap {i + 1} is missing: expected {wanted.heaps} heaps, found {n}"
                )
            _check_heap(i, heaps.pop(i + 1), wanted)
        _check_end(heaps, wanted.whole)
    except _FaultError as fault:
        return str(fault)
    return None


def _sorted(datagrams: Iterable[bytes], packet_size: int) -> dict[int, list[wire.Packet]]:
    """Return the packets of each heap, by its count, in the order of their payload."""
    heaps: dict[int, list[wire.Packet]] = defaultdict(list)
    for number, datagram in enumerate(datagrams, 1):
        try:
            packet = wire.parse(datagram)
        except wire.WireError as error:
            raise _FaultError(f"packet {number} of all is no SPEAD packet: {error}") from None
        if len(datagram) > packet_size:
            raise _FaultError(
                f"heap {packet.heap_cnt}, byte {packet.payload_offset} of its payload: expected"
                f" packets of {packet_size} bytes at most, found one of {len(datagram)}"
            )
        heaps[packet.heap_cnt].append(packet)
    for packets in heaps.values():
        packets.sort(key=lambda packet: packet.payload_offset)
    return heaps


def _pointers(packets: Sequence[wire.Packet], id: int) -> list[wire.Pointer]:
    """Return the pointers to an item, once each though packets may repeat them."""
    found = (item for packet in packets for item in packet.items if item.id == id)
    return list(dict.fromkeys(found))


def _is_end(packets: Sequence[wire.Packet]) -> bool:
    return wire.Pointer(_CONTROL, True, _END) in _pointers(packets, _CONTROL)


def _check_heap(i: int, packets: Sequence[wire.Packet], wanted: Wanted) -> None:
    heap = f"heap {i + 1}"
    if _is_end(packets):
        raise _FaultError(
            f"{heap} ends the stream: expected {wanted.heaps} heaps before it, found {i}"
        )
    payload = _payload(heap, packets)
    if i == 0 and wanted.whole:
        _check_descriptors(packets, payload, wanted)
    timestamp = _the_only(heap, packets, _TIMESTAMP)
    if not timestamp.immediate:
        raise _FaultError(
            f"{heap}, timestamp: expected a value in the header, found one in the payload:"
            f' its format is [("u", {_ADDRESS_BITS})]'
        )
    expected = i * (wanted.tick or wanted.heap_size)
    if timestamp.value != expected:
        raise _FaultError(
            f"{heap}, packet 1, timestamp: expected {expected}, found {timestamp.value}"
        )
    begin = _the_only(heap, packets, _SAMPLES).value
    value = payload[begin : _end(packets, begin, len(payload))]
    if len(value) != wanted.heap_size:
        raise _FaultError(
            f"{heap}, adc_samples: expected {wanted.heap_size} bytes, found {len(value)}"
        )
    samples = np.frombuffer(value, np.int8)
    wrong = _wrong_sample(i, samples, wanted.random)
    if wrong is not None:
        at, value_wanted = wrong
        number = sum(packet.payload_offset <= begin + at for packet in packets)
        raise _FaultError(
            f"{heap}, packet {number}, sample {at}: expected {value_wanted}, found {samples[at]}"
        )


def _payload(heap: str, packets: Sequence[wire.Packet]) -> bytes:
    """Return a heap's payload; it is a fault where some of it came never, or twice."""
    at = 0
    for number, packet in enumerate(packets, 1):
        if packet.payload_offset != at:
            raise _FaultError(
                f"{heap}, packet {number}: expected byte {at} of its payload, found byte"
                f" {packet.payload_offset}"
            )
        at += packet.payload_length
    if at != packets[0].heap_length:
        raise _FaultError(
            f"{heap}: expected {packets[0].heap_length} bytes of payload, found {at}, in"
            f" {len(packets)} packets"
        )
    return b"".join(packet.payload for packet in packets)


def _the_only(heap: str, packets: Sequence[wire.Packet], id: int) -> wire.Pointer:
    found = _pointers(packets, id)
    if len(found) != 1:
        n = len(found) or "none"
        raise _FaultError(f"{heap}: expected one item {id:#x} ({_NAMES[id]}), found {n}")
    return found[0]


def _end(packets: Sequence[wire.Packet], begin: int, length: int) -> int:
    """Return where an item ends: where the next one begins, or the payload ends."""
    addresses = (item.value for one in packets for item in one.items if not item.immediate)
    return min((address for address in addresses if address > begin), default=length)


def _check_descriptors(packets: Sequence[wire.Packet], payload: bytes, wanted: Wanted) -> None:
    """See that a receiver learns what the items are."""
    found = {}
    for pointer in _pointers(packets, _DESCRIPTOR):
        raw = payload[pointer.value : _end(packets, pointer.value, len(payload))]
        try:
            described = wire.parse_descriptor(raw)
        except wire.WireError as error:
            raise _FaultError(f"heap 1, a descriptor: {error}") from None
        found[described.id] = described
    for id, name in _NAMES.items():
        if id not in found:
            raise _FaultError(f"heap 1: expected a descriptor of item {id:#x} ({name}), found none")
        if found[id].name != name:
            raise _FaultError(f"heap 1, item {id:#x}: expected the name {name!r}, found"
                         f" {found[id].name!r}")  # fmt: skip
    shape, expected = found[_SAMPLES].shape, (wanted.heap_size,)
    if shape != expected:
        raise _FaultError(f"heap 1, adc_samples: expected the shape {expected}, found {shape}")
    header, format = found[_SAMPLES].numpy_header, found[_SAMPLES].format
    if "i1" not in header and format != (("i", 8),):
        raise _FaultError(f"heap 1, adc_samples: expected the type int8, found {header or format}")


def _wrong_sample(i: int, samples: npt.NDArray[np.int8], random: bool) -> tuple[int, str] | None:
    """Find a sample that is wrong, and say what it should be."""
    if not random:
        expected = (i + 128) % 256 - 128
        wrong = np.flatnonzero(samples != expected)
        return (int(wrong[0]), str(expected)) if len(wrong) else None
    what = f"a random number from {_LOWEST} to {_HIGHEST}"
    wrong = np.flatnonzero((samples < _LOWEST) | (samples > _HIGHEST))
    if len(wrong):
        return int(wrong[0]), what
    if len(samples) > 1 and samples.min() == samples.max():
        return 1, f"{what}, and not always the same"
    return None


def _check_end(left: dict[int, list[wire.Packet]], whole: bool) -> None:
    """See that nothing is left but the heap that ends the stream."""
    for cnt in sorted(left):
        if not _is_end(left[cnt]):
            raise _FaultError(f"heap {cnt}: expected the end of the stream, found one more heap")
    if whole and len(left) != 1:
        n = len(left) or "none"
        raise _FaultError(f"expected one heap that ends the stream (get_end), found {n}")
