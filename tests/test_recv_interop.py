# SPDX-License-Identifier: BSD-3-Clause
"""Our receiver beside spead2's: the same bytes where that is right, and where it is not, ours."""

import random
import socket
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import ref_encode
import spead2
import spead2.recv
from random_heaps import PACKET_SIZES, HeapSpec, Part, random_heap
from test_interop_update import same

import spead_tutorial
from spead_tutorial import recv, send

BITS = 40
N_SEEDS = 1200
N_BLOCKS = 6

Pointers = list[tuple[bool, int, int]]


def packet(cnt: int, length: int | None, offset: int, data: bytes, items: Pointers = ()) -> bytes:
    """Encode a packet of the default flavour, whatever it says."""
    own = [(True, 1, cnt), (True, 3, offset), (True, 4, len(data))]
    own += [] if length is None else [(True, 2, length)]
    pointers = [ref_encode.pointer(*pointer, BITS) for pointer in (*own, *items)]
    return ref_encode.header(len(pointers), BITS) + b"".join(pointers) + data


def parts(cnt: int, n: int, items: Pointers = ()) -> list[bytes]:
    """Encode a heap of so many packets, 16 bytes of payload in each."""
    return [
        packet(cnt, 16 * n, 16 * i, bytes([cnt]) * 16, items if i == 0 else ()) for i in range(n)
    ]


def received(
    data: list[bytes], module: Any = recv, *, contiguous_only: bool = False, **settings: Any
) -> tuple[list[Any], Any]:
    """Return the heaps that these packets are, incomplete ones too, and what was counted."""
    package = spead2 if module is spead2.recv else spead_tutorial
    config = module.StreamConfig(**settings)
    ring = module.RingStreamConfig(
        heaps=100, contiguous_only=contiguous_only, incomplete_keep_payload_ranges=True
    )
    stream = module.Stream(package.ThreadPool(), config, ring)
    stream.add_buffer_reader(b"".join(data))
    heaps = list(stream)
    stream.stop()
    return heaps, stream.stats


def group_of(data: list[bytes], **settings: Any) -> spead_tutorial.ItemGroup:
    """Take in all of their heaps."""
    group = spead_tutorial.ItemGroup()
    for heap in received(data, **settings)[0]:
        group.update(heap)
    return group


def described(id: int = 0x1000, name: bytes = b"x", **changes: Any) -> ref_encode.Descriptor:
    fields = {"numpy_header": b"", "format": (("u", 8),), "shape": (None,)} | changes
    return ref_encode.Descriptor(id=id, name=name, description=b"", **fields)


TEXT = described(format=(("c", 8),))


def encode(cnt: int, *items: Any) -> list[bytes]:
    return ref_encode.encode_heap(items, cnt, 1472)


def value(data: bytes, id: int = 0x1000) -> ref_encode.Value:
    return ref_encode.Value(id, data, allow_immediate=False)


# ---- Where spead2 is right ----------------------------------------------------------------------


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_items_of_random_heaps_are_those_that_spead2_receives_byte_by_byte(block):
    compared = 0
    for seed in range(block, N_SEEDS, N_BLOCKS):
        rng = random.Random(seed)
        spec = random_heap(rng)
        packets = spec.encode(1, rng.choice(PACKET_SIZES) if not spec.repeat_pointers else 9000)
        settings = {"bug_compat": spec.bug_compat, "stop_on_stop_item": False}
        (theirs,), _ = received(packets, spead2.recv, **settings)
        (ours,), _ = received(packets, **settings)
        bits = theirs.flavour.heap_address_bits
        assert ours.flavour.heap_address_bits == bits, seed
        # Items without bytes are none to spead2.
        assert sorted(raw(ours)) == sorted(raw(theirs)), seed
        compared += len(raw(theirs))
    assert compared > 100


def raw(heap: Any) -> list[tuple[int, bool, bytes]]:
    return [
        (item.id, item.is_immediate, bytes(item))
        for item in heap.get_items()
        if len(memoryview(item))
    ]


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_values_of_random_heaps_are_those_that_spead2_gives(block):
    compared = 0
    for seed in range(block, N_SEEDS, N_BLOCKS):
        spec = with_descriptors(random_heap(random.Random(seed)))
        if spec.heap_address_bits < 24:
            continue  # descriptors need more
        packets = spec.encode(1, 9000)
        settings = {"bug_compat": spec.bug_compat, "stop_on_stop_item": False}
        (heap,), _ = received(packets, spead2.recv, **settings)
        theirs = spead2.ItemGroup()
        try:
            theirs.update(heap)
        except Exception:  # bits that it cannot take apart
            continue
        ours = group_of(packets, **settings)
        for name, item in theirs.items():
            if name and item.value is not None:
                assert same(ours[name].value, item.value), (seed, name)
                compared += 1
    assert compared > 100


def with_descriptors(spec: HeapSpec) -> HeapSpec:
    """Describe each item that has a value."""
    described = [Part("add_descriptor", p.item) for p in spec.parts if p.kind == "add_item"]
    return replace(spec, parts=(*described, *spec.parts), repeat_pointers=False)


def test_what_we_send_we_receive():
    pool = spead_tutorial.ThreadPool()
    stream = recv.Stream(pool)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        stream.add_udp_reader(sock)
        config = send.StreamConfig(max_packet_size=1472)
        sender = send.UdpStream(pool, [sock.getsockname()], config)
    group = send.ItemGroup()
    samples = np.arange(30000, dtype="<i2").reshape(3, 10000)
    group.add_item(0x1000, "samples", "an array", samples.shape, "<i2", value=samples)
    group.add_item(0x1001, "time", "a number", (), format=[("u", 40)], value=12345)
    sender.send_heap(group.get_heap())
    sender.send_heap(group.get_end())
    taken = spead_tutorial.ItemGroup()
    (heap,) = stream
    taken.update(heap)
    assert np.array_equal(taken["samples"].value, samples)
    assert taken["time"].value == 12345
    stream.stop()
    assert stream.stats.packets_placed == stream.stats.packets_received == 44
