# SPDX-License-Identifier: BSD-3-Clause
"""Our receiver beside spead2's, where that is right; and what is told of what did not arrive.

What becomes of packets, and of heaps that lack some, is tested in C, and by `test_oracle`.
"""

import os
import random
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spead2
import spead2.recv

import spead_tutorial
from spead_tutorial import recv
from support import ref_encode
from support.heaps import same
from support.random_heaps import PACKET_SIZES, HeapSpec, Part, random_heap
from support.sockets import udp_socket


def received(data: list[bytes], package: Any = spead_tutorial, **settings: Any) -> tuple[Any, Any]:
    """Return the heaps that these packets are, incomplete ones too, and what was counted."""
    ring = package.recv.RingStreamConfig(heaps=100, contiguous_only=False)
    config = package.recv.StreamConfig(**settings)
    stream = package.recv.Stream(package.ThreadPool(), config, ring)
    stream.add_buffer_reader(b"".join(data))
    heaps = list(stream)
    stream.stop()
    return heaps, stream.stats


def with_descriptors(spec: HeapSpec) -> HeapSpec:
    """Describe each item that has a value."""
    described = [Part("add_descriptor", p.item) for p in spec.parts if p.kind == "add_item"]
    return replace(spec, parts=(*described, *spec.parts), repeat_pointers=False)


def raw(heap: Any) -> list[tuple[int, bool, bytes]]:
    """Items with bytes: to spead2, others are none."""
    return sorted(
        (item.id, item.is_immediate, bytes(item))
        for item in heap.get_items()
        if len(memoryview(item))
    )


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 12))]
)
def test_items_of_random_heaps_and_their_values_are_those_that_spead2_receives(block):
    compared, values = 0, 0
    for seed in range(100 * block, 100 * block + 100):
        rng = random.Random(seed)
        spec = random_heap(rng)
        settings = {"bug_compat": spec.bug_compat, "stop_on_stop_item": False}
        packets = spec.encode(1, rng.choice(PACKET_SIZES) if not spec.repeat_pointers else 9000)
        described = spec.heap_address_bits >= 24  # that descriptors need
        for sent in (packets, *([with_descriptors(spec).encode(1, 9000)] if described else [])):
            (theirs,), _ = received(sent, spead2, **settings)
            (ours,), _ = received(sent, **settings)
            assert ours.flavour.heap_address_bits == theirs.flavour.heap_address_bits, seed
            assert raw(ours) == raw(theirs), seed
            compared += len(raw(theirs))
        group, of_spead2 = spead_tutorial.ItemGroup(), spead2.ItemGroup()
        try:
            of_spead2.update(theirs)
        except Exception:  # bits that it cannot take apart
            continue
        group.update(ours)
        for name, item in of_spead2.items():
            if name and item.value is not None:
                assert same(group[name].value, item.value), (seed, name)
                values += 1
    assert compared > 100
    assert values > 50


def test_what_the_kernel_dropped_is_counted_and_all_that_was_sent_is_accounted_for():
    ring = recv.RingStreamConfig(heaps=1)
    stream = recv.Stream(spead_tutorial.ThreadPool(), ring_config=ring)
    n_sent = 3000
    with udp_socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10000)
        stream.add_udp_reader(sock)
        for cnt in range(n_sent):
            sock.sendto(ref_encode.packet(cnt, 1000, 0, bytes(1000)), sock.getsockname())
    got = 0
    while stream.stats.packets_received + stream.stats.socket_dropped < n_sent:
        try:
            stream.get_nowait()
            got += 1
        except spead_tutorial.Empty:
            os.sched_yield()
    stream.stop()
    got += len(list(stream))
    stats = stream.stats
    assert stats.socket_dropped > 0
    assert stats.packets_received + stats.socket_dropped == n_sent
    assert got == stats.heaps == stats.packets_placed
    assert stats.worker_blocked > 0


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_heap_that_claims_to_be_large_takes_no_memory_before_it_arrives():
    claims = [ref_encode.packet(cnt, 1 << 29, 0, bytes(8)) for cnt in range(4)]
    received(claims)
    before = resident_bytes()
    _, stats = received(claims)
    assert stats.packets_placed == 4
    assert resident_bytes() - before < 1 << 27


def test_an_item_group_takes_in_the_immediates_of_an_incomplete_heap():
    number = ref_encode.Descriptor(0x1000, b"x", b"", b"", (("u", 40),), ())
    group = spead_tutorial.ItemGroup()
    (heap,), _ = received(ref_encode.encode_heap([number], 1, 1472))
    group.update(heap)
    (heap,), _ = received([ref_encode.packet(2, 32, 0, bytes(16), [(True, 0x1000, 77)])])
    assert isinstance(heap, recv.IncompleteHeap)
    assert list(group.update(heap)) == ["x"]
    assert group["x"].value == 77
