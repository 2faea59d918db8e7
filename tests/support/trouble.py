# SPDX-License-Identifier: BSD-3-Clause
"""Packets of many heaps, and whatever can befall them: the same seed, the same trouble.

Heaps are encoded by `ref_encode`; what happens to them on the way, and what strangers send, is
made up here, packet by packet.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from support import ref_encode
from support.random_heaps import FLAVOURS, random_heap
from support.ref_decode import BadPacketError, Packet, Pointer, parse

PACKET_SIZES = (56, 64, 80, 104, 200, 576)
HEADER = b"{'descr': '<u4', 'fortran_order': True, 'shape': (2,)}"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What arrives at a receiver, and how that one is configured."""

    datagrams: tuple[bytes, ...]
    bug_compat: int
    max_heaps: int
    substreams: int
    allow_out_of_order: bool
    allow_unsized_heaps: bool
    stop_on_stop_item: bool
    max_heap_size: int


def encode(packet: Packet, *, n_pointers: int | None = None) -> bytes:
    """Write a packet, true or not."""
    bits = packet.address_bits
    pointers = [ref_encode.pointer(p.immediate, p.id, p.value, bits) for p in packet.pointers]
    header = ref_encode.header(len(pointers) if n_pointers is None else n_pointers, bits)
    return header + b"".join(pointers) + packet.payload


def without(packet: Packet, id: int) -> Packet:
    """Leave out what a packet says of itself by this id."""
    kept = tuple(p for p in packet.pointers if not (p.immediate and p.id == id))
    return replace(packet, pointers=kept)


def saying(packet: Packet, id: int, value: int) -> Packet:
    """Have a packet say something else."""
    said = Pointer(True, id, value % (1 << packet.address_bits))
    return replace(packet, pointers=(*without(packet, id).pointers, said))


def plain_heap(rng: random.Random, cnt: int, bits: int, bug_compat: int) -> list[bytes]:
    """Encode a heap of values, immediates, descriptors and padding; some of them are empty."""
    most = 1 << min(bits, 63 - bits, 12)
    items: list[ref_encode.Part] = []
    longest = 8 if bits == 8 else rng.choice((8, 40, 300, 2000))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6, 12 if bits > 8 else 3))):
        id = rng.randrange(7, most)
        match rng.choice(("inline", "value", "value", "empty", "null", "descriptor", "start")):
            case "inline":
                items.append(ref_encode.Inline(id, rng.randrange(1 << bits)))
            case "value":
                items.append(ref_encode.value(rng.randbytes(rng.randrange(longest)), id))
            case "empty":
                items.append(ref_encode.Value(id, b"", allow_immediate=rng.random() < 0.5))
            case "null":
                items.append(ref_encode.value(rng.randbytes(rng.randrange(9)), 0))
            case "descriptor" if bits > 8:
                items.append(random_descriptor(rng, id))
            case "start":
                items.append(ref_encode.Inline(6, rng.choice((0, 0, 1, 3))))
    size = max(72 if bits == 8 else 0, rng.choice(PACKET_SIZES))
    return ref_encode.encode_heap(items, cnt, size, address_bits=bits, bug_compat=bug_compat)


def small_heap(cnt: int, bits: int) -> list[bytes]:
    """Encode a heap of two packets, or with few bits one."""
    value = ref_encode.value(bytes([cnt % 256]) * 20, 20)
    return ref_encode.encode_heap([value], cnt, 64, address_bits=bits)


def random_descriptor(rng: random.Random, id: int) -> ref_encode.Descriptor:
    described = rng.random() < 0.5
    return ref_encode.Descriptor(
        id=id,
        name=rng.choice((b"", b"x", b"adc_samples")),
        description=rng.choice((b"", b"some words")),
        numpy_header=b"" if described else HEADER,
        format=(("u", 12), ("i", 20), ("c", 8))[: rng.randrange(1, 4)] if described else (),
        shape=tuple(rng.choice((None, 0, 1, 5)) for _ in range(rng.randrange(4))),
    )


def stop_packet(cnt: int, bits: int = 40) -> bytes:
    """Encode a heap that ends a stream: one packet."""
    return ref_encode.encode_heap([ref_encode.Inline(6, 2)], cnt, 1472, address_bits=bits)[0]


def heap_packets(rng: random.Random, cnt: int, bits: int, bug_compat: int) -> list[bytes]:
    """Encode one of all kinds of heaps."""
    if rng.random() < 0.15:
        spec = random_heap(rng)
        size = rng.choice(PACKET_SIZES)
        spec = replace(spec, bug_compat=bug_compat, repeat_pointers=False)
        if spec.fits(size):
            return spec.encode(cnt % (1 << spec.heap_address_bits), size)
    packets = plain_heap(rng, cnt, bits, bug_compat)
    if rng.random() < 0.2:  # nobody says how long it is, or only some packets do
        kept = rng.choice((0.0, 0.0, 0.3, 0.8))
        packets = [
            data if rng.random() < kept else encode(without(parse(data), 2)) for data in packets
        ]
    if rng.random() < 0.1:  # what packets say of themselves stands last
        turned = [parse(data) for data in packets]
        packets = [encode(replace(p, pointers=p.pointers[4:] + p.pointers[:4])) for p in turned]
    if rng.random() < 0.05:  # items first, in a packet without payload
        first = parse(packets[0])
        bare = saying(replace(first, payload=b""), 4, 0)
        own = tuple(p for p in first.pointers if p not in first.items)
        packets = [encode(bare), encode(replace(first, pointers=own)), *packets[1:]]
    return packets


def heap_counts(rng: random.Random, n: int, bits: int) -> list[int]:
    """Counts of heaps as senders choose them, and as they do not."""
    first = rng.choice((0, 1, 5, (1 << bits) - 3, rng.randrange(1 << bits)))
    step = rng.choice((1, 1, 1, 2, 3, 4))
    counts = [(first + i * step) % (1 << bits) for i in range(n)]
    if rng.random() < 0.1:
        counts = [rng.choice(counts) for _ in counts]
    return counts


def interleave(rng: random.Random, heaps: list[list[bytes]], at_once: int) -> list[bytes]:
    """Have several heaps on the way at a time, each with its packets in order."""
    waiting, sent = [list(heap) for heap in heaps], []
    while waiting:
        sent.append(rng.choice(waiting[:at_once]).pop(0))
        waiting = [heap for heap in waiting if heap]
    return sent


def shuffled(rng: random.Random, packets: list[bytes], far: int) -> list[bytes]:
    """Let packets overtake others, by so many at most."""
    places = [i + rng.uniform(0, far) for i in range(len(packets))]
    return [data for _, data in sorted(zip(places, packets, strict=True), key=lambda p: p[0])]


def lost_and_repeated(rng: random.Random, packets: list[bytes]) -> list[bytes]:
    lost, repeated = rng.choice((0, 0, 0.02, 0.1, 0.5)), rng.choice((0, 0, 0.05, 0.3))
    kept = [data for data in packets if rng.random() >= lost]
    for data in [data for data in kept if rng.random() < repeated]:
        kept.insert(rng.randrange(len(kept) + 1), data)
    return kept


def most(packet: Packet) -> int:
    """The largest number that fits."""
    return (1 << packet.address_bits) - 1


def somewhere(rng: random.Random, packet: Packet) -> int:
    """A place, or a length, near the edge of something."""
    whole = packet.heap_length or 0
    edges = (0, packet.offset, packet.end, whole, most(packet), most(packet) // 2, 1 << 20)
    return max(0, rng.choice(edges) + rng.choice((-8, -1, 0, 0, 1, 8))) % (most(packet) + 1)


#: What a stranger, or a fault on the way, can make of a packet that was one: not always malformed.
LIES: tuple[Callable[[random.Random, Packet], bytes], ...] = (
    lambda rng, p: encode(p)[: rng.randrange(len(encode(p)))],
    lambda rng, p: encode(p) + rng.randbytes(rng.randrange(1, 20)),
    lambda rng, p: encode(saying(p, 2, somewhere(rng, p))),
    lambda rng, p: encode(saying(p, 2, min(p.end + rng.choice((0, 1, 8)), most(p)))),
    lambda rng, p: encode(saying(p, 3, somewhere(rng, p))),
    lambda rng, p: encode(saying(p, 4, somewhere(rng, p))),
    lambda rng, p: encode(saying(p, 1, rng.randrange(1 << p.address_bits))),
    lambda rng, p: encode(without(p, rng.choice((1, 2, 3, 4)))),
    lambda rng, p: encode(replace(p, pointers=(*p.pointers, Pointer(False, 7, somewhere(rng, p))))),
    lambda rng, p: encode(replace(p, pointers=(*p.pointers, Pointer(True, 6, rng.randrange(4))))),
    lambda rng, p: encode(
        replace(p, pointers=(Pointer(True, rng.randrange(1, 5), somewhere(rng, p)), *p.pointers))
    ),
    lambda rng, p: encode(
        replace(p, pointers=(*p.pointers, Pointer(False, rng.randrange(1, 5), p.offset)))
    ),
    lambda rng, p: encode(p, n_pointers=rng.choice((0, 1, 3, len(p.pointers) + 1, 65535))),
    lambda rng, p: encode(p)[:2] + rng.randbytes(2) + encode(p)[4:],
    lambda rng, p: encode(saying(saying(replace(p, payload=b""), 4, 0), 3, somewhere(rng, p))),
    lambda rng, p: flipped(rng, encode(p)),
    lambda rng, p: rng.randbytes(rng.randrange(100)),
    lambda rng, p: stop_packet(p.cnt, p.address_bits),
)


def flipped(rng: random.Random, data: bytes) -> bytes:
    """Change a bit."""
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def lied_about(rng: random.Random, packets: list[bytes]) -> list[bytes]:
    """Change some packets, or have changed ones come besides."""
    often = rng.choice((0.02, 0.1, 0.4))
    datagrams = []
    for data in packets:
        lie = None
        if rng.random() < often:
            try:
                lie = rng.choice(LIES)(rng, parse(data))
            except BadPacketError:
                lie = rng.randbytes(20)
        if lie is None or rng.random() < 0.5:
            datagrams.append(data)
        if lie is not None:
            datagrams.append(lie)
    return datagrams


def make_trouble(rng: random.Random, *, lies: bool = False) -> Trouble:
    """Make trouble: with lies, packets are not only lost, repeated and late, but wrong."""
    bits = rng.choice((40, 40, 48, *FLAVOURS))
    bug_compat = rng.choice((0, 0, 1, 2, 4, 7))
    n_heaps = rng.choice((1, 2, 3, 8, 8, 20, 20, 200))
    counts = heap_counts(rng, n_heaps, bits)
    if n_heaps == 200:  # more than a receiver remembers
        heaps = [small_heap(cnt, bits) for cnt in counts]
    else:
        heaps = [heap_packets(rng, cnt, bits, bug_compat) for cnt in counts]
    if rng.random() < 0.1:
        heaps.insert(rng.randrange(len(heaps) + 1), [stop_packet(rng.choice(counts), bits)])
    packets = interleave(rng, heaps, rng.choice((1, 1, 2, 5)))
    packets = lost_and_repeated(rng, packets)
    packets = shuffled(rng, packets, rng.choice((0, 0, 2, 5, 50)))
    if lies:
        packets = lied_about(rng, packets)
    return Trouble(
        datagrams=tuple(packets),
        bug_compat=bug_compat,
        max_heaps=rng.choice((1, 2, 4, 4, 8)),
        substreams=rng.choice((1, 1, 1, 2, 3)),
        allow_out_of_order=rng.random() < 0.5,
        allow_unsized_heaps=rng.random() < 0.85,
        stop_on_stop_item=rng.random() < 0.85,
        max_heap_size=rng.choice((1 << 20, 1 << 20, 1000)),
    )
