# SPDX-License-Identifier: BSD-3-Clause
"""What a sender sent that a reader wrote: the first packet that is not as it should be."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from spead_tutorial import wire
from spead_tutorial.flavour import CTRL_STREAM_STOP, DESCRIPTOR_ID, STREAM_CTRL_ID

_TIMESTAMP, _SAMPLES = 0x1600, 0x3300
_NAMES = {_TIMESTAMP: "timestamp", _SAMPLES: "adc_samples"}
_ADDRESS_BITS = 40
_LOWEST, _HIGHEST = -100, 99  # of random samples

#: What one of an array's senders is told: its place, the rate of all its packets, in MB/s, and
#: where receivers are.
SENDER, SENDERS, RATE = 1, 4, 10
RECEIVERS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
_TOO_FAST = 1.5  # times the rate that it was told: a stream has bursts, and catches up


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """What a sender was told."""

    heaps: int  # how many heaps, bytes of samples in each, and bytes in a packet at most
    heap_size: int
    packet_size: int
    # whether samples are random; otherwise they are the number of their heap, which wraps
    random: bool = False
    # the count of its first heap, and the step to the next; the samples of the first
    first: int = 1
    step: int = 1
    value: int = 0
    apart: bool = False  # whether descriptors have a heap of their own, which comes first


@dataclasses.dataclass(frozen=True, slots=True)
class Arrived:
    """A packet that came; where to, and when by the kernel's clock, if that is asked for."""

    datagram: bytes
    to: str = ""
    at_ns: int = 0


class _FaultError(Exception):
    """What is wrong, in one line."""


def _fault(place: str, expected: object, found: object) -> _FaultError:
    return _FaultError(f"{place}: expected {expected}, found {found}")


def first_fault(datagrams: Iterable[bytes], wanted: Wanted) -> str | None:
    """Say what is wrong first with what arrived, in any order and cut; None where nothing is."""
    try:
        heaps = _sorted(datagrams, wanted.packet_size)
        for cnt in sorted(heaps):
            if (cnt - wanted.first) % wanted.step:
                expected = f"a count such as {wanted.first} or {wanted.first + wanted.step}"
                raise _fault(f"heap {cnt}", expected, "one of another sender's")
        n_heaps = wanted.heaps + wanted.apart
        for i in range(n_heaps):
            cnt = wanted.first + i * wanted.step
            if cnt not in heaps:
                n = i + sum(not _is_end(packets) for packets in heaps.values())
                raise _fault(f"heap {cnt} is missing", f"{n_heaps} heaps", n)
            _check_heap(i, cnt, heaps.pop(cnt), wanted)
        # Nothing is left but the heap that ends the stream.
        for cnt in sorted(heaps):
            if not _is_end(heaps[cnt]):
                raise _fault(f"heap {cnt}", "the end of the stream", "one more heap")
        if len(heaps) != 1:
            return f"expected one heap that ends the stream (get_end), found {len(heaps) or 'none'}"
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
        if packet.faults:
            raise _FaultError(f"packet {number} of all is malformed: {packet.faults[0]}")
        assert packet.heap_cnt is not None  # as nothing is wrong with it
        if len(datagram) > packet_size:
            place = f"heap {packet.heap_cnt}, byte {packet.payload_offset} of its payload"
            most = f"packets of {packet_size} bytes at most"
            raise _fault(place, most, f"one of {len(datagram)}")
        heaps[packet.heap_cnt].append(packet)
    for packets in heaps.values():
        packets.sort(key=_offset)
    return heaps


def _offset(packet: wire.Packet) -> int:
    return packet.payload_offset or 0


def _pointers(packets: Sequence[wire.Packet], id: int) -> list[wire.Pointer]:
    """Return the pointers to an item, once each though packets may repeat them."""
    found = (item for packet in packets for item in packet.items if item.id == id)
    return list(dict.fromkeys(found))


def _is_end(packets: Sequence[wire.Packet]) -> bool:
    return wire.Pointer(STREAM_CTRL_ID, True, CTRL_STREAM_STOP) in _pointers(
        packets, STREAM_CTRL_ID
    )


def _check_heap(i: int, cnt: int, packets: Sequence[wire.Packet], wanted: Wanted) -> None:
    heap = f"heap {cnt}"
    if _is_end(packets):
        before = f"{wanted.heaps + wanted.apart} heaps before it"
        raise _fault(f"{heap} ends the stream", before, i)
    payload = _payload(heap, packets)
    if i == 0:
        _check_descriptors(heap, packets, payload, wanted)
    if wanted.apart:
        if i == 0:
            if _pointers(packets, _TIMESTAMP):
                raise _fault(heap, "descriptors and nothing else", "a timestamp")
            return
        i -= 1
        if len(payload) != wanted.heap_size:
            raise _fault(heap, "the samples and nothing else", f"{len(payload)} bytes of payload")
    timestamp = _the_only(heap, packets, _TIMESTAMP)
    if not timestamp.immediate:
        found = f'one in the payload: its format is [("u", {_ADDRESS_BITS})]'
        raise _fault(f"{heap}, timestamp", "a value in the header", found)
    expected = i * wanted.heap_size
    if timestamp.value != expected:
        raise _fault(f"{heap}, packet 1, timestamp", expected, timestamp.value)
    begin = _the_only(heap, packets, _SAMPLES).value
    value = payload[begin : _end(packets, begin, len(payload))]
    if len(value) != wanted.heap_size:
        raise _fault(f"{heap}, adc_samples", f"{wanted.heap_size} bytes", len(value))
    samples = np.frombuffer(value, np.int8)
    wrong = _wrong_sample(i + wanted.value, samples, wanted.random)
    if wrong is not None:
        at, value_wanted = wrong
        number = sum(_offset(packet) <= begin + at for packet in packets)
        raise _fault(f"{heap}, packet {number}, sample {at}", value_wanted, samples[at])


def _payload(heap: str, packets: Sequence[wire.Packet]) -> bytes:
    """Return a heap's payload; it is a fault where some of it came never, or twice."""
    at = 0
    for number, packet in enumerate(packets, 1):
        if packet.payload_offset != at:
            found = f"byte {packet.payload_offset}"
            raise _fault(f"{heap}, packet {number}", f"byte {at} of its payload", found)
        at += len(packet.payload)
        if packet.heap_length is None:
            raise _fault(f"{heap}, packet {number}", "a heap length", "none")
    if at != packets[0].heap_length:
        expected = f"{packets[0].heap_length} bytes of payload"
        raise _fault(heap, expected, f"{at}, in {len(packets)} packets")
    return b"".join(packet.payload for packet in packets)


def _the_only(heap: str, packets: Sequence[wire.Packet], id: int) -> wire.Pointer:
    found = _pointers(packets, id)
    if len(found) != 1:
        raise _fault(heap, f"one item {id:#x} ({_NAMES[id]})", len(found) or "none")
    return found[0]


def _end(packets: Sequence[wire.Packet], begin: int, length: int) -> int:
    """Return where an item ends: where the next one begins, or the payload ends."""
    addresses = (item.value for packet in packets for item in packet.items if not item.immediate)
    return min((address for address in addresses if address > begin), default=length)


def _check_descriptors(
    heap: str, packets: Sequence[wire.Packet], payload: bytes, wanted: Wanted
) -> None:
    """See that a receiver learns what the items are."""
    found = {}
    for pointer in _pointers(packets, DESCRIPTOR_ID):
        raw = payload[pointer.value : _end(packets, pointer.value, len(payload))]
        try:
            described = wire.parse_descriptor(raw)
        except wire.WireError as error:
            raise _FaultError(f"{heap}, a descriptor: {error}") from None
        found[described.id] = described
    for id, name in _NAMES.items():
        if id not in found:
            raise _fault(heap, f"a descriptor of item {id:#x} ({name})", "none")
        if found[id].name != name:
            place = f"{heap}, item {id:#x}"
            raise _fault(place, f"the name {name!r}", repr(found[id].name))
    shape, expected = found[_SAMPLES].shape, (wanted.heap_size,)
    if shape != expected:
        raise _fault(f"{heap}, adc_samples", f"the shape {expected}", shape)
    header, format = found[_SAMPLES].numpy_header, found[_SAMPLES].format
    if "i1" not in header and format != (("i", 8),):
        raise _fault(f"{heap}, adc_samples", "the type int8", header or format)


def _wrong_sample(
    value: int, samples: npt.NDArray[np.int8], random: bool
) -> tuple[int, str] | None:
    """Find a sample that is wrong, and say what it should be."""
    if not random:
        expected = (value + 128) % 256 - 128
        wrong = np.flatnonzero(samples != expected)
        return (int(wrong[0]), str(expected)) if len(wrong) else None
    what = f"a random number from {_LOWEST} to {_HIGHEST}"
    wrong = np.flatnonzero((samples < _LOWEST) | (samples > _HIGHEST))
    if len(wrong):
        return int(wrong[0]), what
    if len(samples) > 1 and samples.min() == samples.max():
        return 1, f"{what}, and not always the same"
    return None


# ---- To several receivers ----


def array_fault(arrived: Sequence[Arrived], wanted: Wanted) -> str | None:
    """Say what is wrong first with what came, in this order, to all receivers of an array."""
    wanted = dataclasses.replace(wanted, first=SENDER + 1, step=SENDERS, apart=True)
    for j, host in enumerate(RECEIVERS):
        its = [one.datagram for one in arrived if one.to == host]
        wrong = first_fault(its, dataclasses.replace(wanted, value=SENDER + j))
        if wrong is not None:
            return f"receiver {j}: {wrong}"
    n = len(RECEIVERS)
    for at in range(0, len(arrived), n):
        came = [one.to for one in arrived[at : at + n]]
        if len({*came}) < n:
            place = f"packets {at + 1} to {at + n} of all"
            return f"{place}: expected one to each receiver, found {', '.join(came)}"
    elapsed_ns = max(1, arrived[-1].at_ns - arrived[0].at_ns)
    rate = sum(len(one.datagram) for one in arrived) / elapsed_ns * 1e3
    if rate > RATE * _TOO_FAST:
        return f"the rate of all packets together: expected {RATE} MB/s, found {rate:.0f}"
    return None
