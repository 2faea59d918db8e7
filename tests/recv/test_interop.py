# SPDX-License-Identifier: BSD-3-Clause
"""Our receiver beside spead2's: the same bytes where that is right, and where it is not, ours."""

import errno
import logging
import os
import random
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spead2
import spead2.recv

import spead_tutorial
from spead_tutorial import recv, send
from support import ref_encode
from support.heaps import same
from support.random_heaps import PACKET_SIZES, HeapSpec, Part, random_heap
from support.trouble import stop_packet

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


# ---- Where it is not ----------------------------------------------------------------------------


def test_a_heap_whose_first_packet_is_lost_is_counted_as_never_begun():
    sent = [data for cnt in range(1, 6) for data in parts(cnt, 2)]
    del sent[4]  # the first packet of heap 3
    heaps, stats = received(sent)
    assert [heap.cnt for heap in heaps] == [1, 2, 4, 5]
    assert (stats.heaps_never_begun, stats.packets_after_loss) == (1, 1)
    heaps, stats = received(sent, spead2.recv)
    assert [heap.cnt for heap in heaps] == [1, 2, 4, 5]
    assert (stats.heaps, stats.packets) == (4, 9), "spead2 has nothing that says so"


def test_a_heap_without_a_length_is_incomplete_where_packets_came_after_a_loss():
    sent = [packet(1, None, at, bytes(16)) for at in (0, 32)]
    (heap,), _ = received(sent)
    assert isinstance(heap, recv.IncompleteHeap)
    assert (heap.heap_length, heap.received_length) == (-1, 16)
    (heap,), _ = received(sent, spead2.recv)
    assert isinstance(heap, spead2.recv.Heap), "16 of 48 bytes, and nothing says so"


def test_bytes_that_arrived_behind_a_gap_are_in_what_was_received():
    sent = parts(1, 4)
    del sent[2]
    (heap,), stats = received(sent, allow_out_of_order=True)
    assert (heap.received_length, heap.heap_length) == (48, 64)
    assert heap.payload_ranges == [(0, 32), (48, 64)]
    assert stats.incomplete_bytes == 48


def test_packets_that_have_no_place_are_counted_by_what_is_the_matter():
    first, second, third = parts(1, 3)
    other = packet(1, 100, 32, bytes(16))
    _, stats = received([first, first, third, other, second, third, first[:-4]])
    fates = {name: n for name, n in stats.items() if name.startswith("packets_") and n}
    assert fates == {
        "packets_received": 7,
        "packets_placed": 3,
        "packets_duplicate": 1,
        "packets_after_loss": 1,
        "packets_inconsistent": 1,
        "packets_malformed": 1,
    }
    assert stats.malformed_payload == 1
    _, stats = received([first, second, third, second])
    assert (stats.packets_placed, stats.packets_late) == (3, 1)


def test_what_the_kernel_dropped_is_counted_and_all_that_was_sent_is_accounted_for():
    ring = recv.RingStreamConfig(heaps=1)
    stream = recv.Stream(spead_tutorial.ThreadPool(), ring_config=ring)
    n_sent = 3000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10000)
        sock.bind(("127.0.0.1", 0))
        stream.add_udp_reader(sock)
        for cnt in range(n_sent):
            sock.sendto(packet(cnt, 1000, 0, bytes(1000)), sock.getsockname())
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


def test_equal_packets_come_in_runs_where_the_kernel_can_merge_them():
    pool = spead_tutorial.ThreadPool()
    stream = recv.Stream(pool)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        stream.add_udp_reader(sock)
        sender = send.UdpStream(pool, [sock.getsockname()])
    group = send.ItemGroup()
    data = np.zeros(60000, np.int8)
    group.add_item(0x1000, "x", "", data.shape, data.dtype, value=data)
    sender.send_heap(group.get_heap())
    if not sender.stats.gso_messages:
        pytest.skip("the kernel has no segmentation offload")
    assert stream.get().cnt == 1
    stream.stop()
    assert stream.stats.socket_messages < stream.stats.socket_datagrams


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_heap_that_claims_to_be_large_takes_no_memory_before_it_arrives():
    claims = [packet(cnt, 1 << 29, 0, bytes(8)) for cnt in range(4)]
    received(claims)
    before = resident_bytes()
    _, stats = received(claims)
    assert stats.packets_placed == 4
    assert resident_bytes() - before < 1 << 27


def test_a_heap_larger_than_allowed_is_dropped_and_counted_and_others_are_received():
    sent = [packet(1, (1 << 40) - 1, 0, bytes(8)), packet(2, 1001, 0, bytes(8)), *parts(3, 2)]
    heaps, stats = received(sent, max_heap_size=1000)
    assert [heap.cnt for heap in heaps] == [3]
    assert stats.packets_too_large == 2


def test_late_packets_begin_no_ghosts_and_push_out_no_heap():
    old, new = parts(1, 2), parts(2, 2)
    heaps, stats = received([*old, new[0], *old, new[1]], allow_out_of_order=True, max_heaps=1)
    assert [type(heap) for heap in heaps] == [recv.Heap] * 2
    assert (stats.packets_late, stats.incomplete_heaps_evicted) == (2, 0)
    heaps, _ = received([*old, new[0], *old[1:], new[1]], spead2.recv, allow_out_of_order=True)
    assert len(heaps) == 3, "spead2 has a ghost"


def test_text_that_has_become_empty_is_empty():
    sent = encode(1, TEXT, value(b"on")) + encode(2, value(b""))
    assert group_of(sent)["x"].value == ""


def test_of_an_immediate_that_is_repeated_the_last_one_sent_counts():
    number = described(shape=(), format=(("u", 40),))
    repeated = [ref_encode.Inline(0x1000, n) for n in (7, 9, 8)]
    assert group_of(encode(1, number, *repeated))["x"].value == 8


def test_an_item_beyond_the_end_of_its_heap_makes_a_packet_malformed():
    beyond = packet(1, 64, 0, bytes(64), [(False, 0x1000, 65)])
    heaps, stats = received([beyond])
    assert heaps == []
    assert (stats.packets_malformed, stats.malformed_beyond) == (1, 1)
    (theirs,), _ = received([beyond], spead2.recv)
    assert theirs.received_length == theirs.heap_length == 64, "incomplete, to spead2"


def test_items_in_a_packet_without_payload_are_those_of_its_heap():
    sent = [packet(1, 8, 0, b"", [(True, 0x1001, 5)]), packet(1, 8, 0, bytes(8))]
    (heap,), stats = received(sent)
    assert [(item.id, item.immediate_value) for item in heap.get_items()] == [(0x1001, 5)]
    assert stats.packets_placed == 2
    theirs, _ = received(sent, spead2.recv)
    assert len(theirs) == 2, "spead2 has a ghost"


def test_bytes_that_are_more_than_an_item_takes_are_left_out_and_said(caplog):
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}"
    sent = encode(1, described(numpy_header=header, format=(), shape=(4,)), value(b"abcdef"))
    with caplog.at_level(logging.WARNING):
        assert group_of(sent)["x"].value.tolist() == list(b"abcd")
    assert "2 bytes are more" in caplog.text


def test_an_item_group_takes_in_the_immediates_of_an_incomplete_heap():
    number = described(shape=(), format=(("u", 40),))
    group = spead_tutorial.ItemGroup()
    (heap,), _ = received(encode(1, number))
    group.update(heap)
    (heap,), _ = received(parts(2, 2, [(True, 0x1000, 77)])[:1])
    assert isinstance(heap, recv.IncompleteHeap)
    assert list(group.update(heap)) == ["x"]
    assert group["x"].value == 77


def test_a_heap_with_a_bad_item_leaves_a_group_as_it_was():
    group = group_of(encode(1, TEXT, value(b"good"), described(0x1001, b"y"), value(b"1", 0x1001)))
    before = {name: (item.value, item.version) for name, item in group.items()}
    (heap,), _ = received(encode(2, value(b"2", 0x1001), value(b"\xff")))
    with pytest.raises(UnicodeDecodeError):
        group.update(heap)
    after = {name: (item.value, item.version) for name, item in group.items()}
    assert list(after) == list(before)
    assert all(after[name][0] is before[name][0] for name in before)
    assert [version for _, version in after.values()] == [version for _, version in before.values()]


def test_a_port_in_use_is_an_os_error_too():
    pool = spead_tutorial.ThreadPool()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        with pytest.raises(OSError, match=str(port)) as raised:
            recv.Stream(pool).add_udp_reader(port, bind_hostname="127.0.0.1")
    assert isinstance(raised.value, RuntimeError)
    assert raised.value.errno == errno.EADDRINUSE


def test_a_reader_that_comes_after_the_stop_is_refused():
    stream = recv.Stream(spead_tutorial.ThreadPool())
    stream.stop()
    with pytest.raises(spead_tutorial.Stopped):
        stream.add_buffer_reader(stop_packet(1))
    with pytest.raises(spead_tutorial.Stopped):
        stream.add_udp_reader(0, bind_hostname="127.0.0.1")


def test_descriptors_without_a_name_or_of_the_protocols_own_items_are_none():
    nameless, protocols = described(0x1000, b""), described(3, b"offset")
    sent = encode(1, nameless, protocols, described(0x1001, b"y"))
    (heap,), _ = received(sent)
    assert [d.name for d in heap.get_descriptors()] == [b"y"]
    (theirs,), _ = received(sent, spead2.recv)
    assert len(theirs.get_descriptors()) == 3


def test_descriptors_of_more_fields_or_dimensions_than_any_array_has_are_none():
    many = 65537
    fields = ref_encode.Descriptor(0x1000, b"x", b"", b"", (("u", 8),) * many, ())
    sizes = ref_encode.Descriptor(0x1001, b"y", b"", b"", (("u", 8),), (1,) * many)
    (heap,), _ = received(encode(1, fields, sizes, described(0x1002, b"z")))
    assert [d.name for d in heap.get_descriptors()] == [b"z"]


def test_a_warning_of_what_is_missing_names_the_heap_and_advises_nothing_that_is_set(caplog):
    with caplog.at_level(logging.WARNING):
        received(parts(7, 3)[:2], contiguous_only=True)
    (record,) = caplog.records
    assert "heap 7, 32 of 48 bytes" in record.getMessage()
    assert "allow_out_of_order" not in record.getMessage()


# ---- What spead2 does otherwise, and nothing forbids ---------------------------------------------


def test_heaps_that_are_complete_make_room_for_others():
    begun = parts(1, 2)
    between = [data for cnt in range(2, 10) for data in parts(cnt, 1)]
    heaps, stats = received([begun[0], *between, begun[1]], max_heaps=2)
    assert [heap.cnt for heap in heaps] == [*range(2, 10), 1]
    assert stats.incomplete_heaps_evicted == 0
    _, stats = received([begun[0], *between, begun[1]], spead2.recv, max_heaps=2)
    assert stats.incomplete_heaps_evicted == 1


def test_items_without_bytes_stay_so_when_packets_overtake_each_other():
    first = packet(1, 32, 0, b"a" * 16, [(False, 0x1000, 0)])
    second = packet(1, 32, 16, b"a" * 16, [(False, 0x1001, 0)])
    (heap,), _ = received([second, first], allow_out_of_order=True)
    assert [(item.id, len(bytes(item))) for item in heap.get_items()] == [(0x1000, 0), (0x1001, 32)]
    (heap,), _ = received([second, first], spead2.recv, allow_out_of_order=True)
    assert [(item.id, len(bytes(item))) for item in heap.get_items()] == [(0x1000, 32)]


def test_live_heaps_of_all_substreams_end_in_the_order_in_which_they_were_begun():
    sent = [parts(cnt, 2)[0] for cnt in (5, 2, 4, 3)]
    heaps, _ = received(sent, substreams=2)
    assert [heap.cnt for heap in heaps] == [5, 2, 4, 3]


def test_a_heap_without_a_length_that_is_whole_at_the_end_is_counted_as_complete():
    sent = [packet(1, None, 0, bytes(16)), packet(1, None, 16, bytes(16))]
    (heap,), stats = received(sent)
    assert isinstance(heap, recv.Heap)
    assert (stats.heaps_complete, stats.incomplete_heaps_flushed) == (1, 0)
    _, stats = received(sent, spead2.recv)
    assert stats.incomplete_heaps_flushed == 1, "counted as incomplete, and handed out as whole"


def test_a_packet_that_is_a_whole_heap_is_none_beside_another_of_its_count():
    sent = [packet(1, 32, 0, bytes(16)), packet(1, 16, 0, bytes(16)), packet(1, 32, 16, bytes(16))]
    heaps, stats = received(sent)
    assert [heap.cnt for heap in heaps] == [1]
    assert (stats.packets_placed, stats.packets_inconsistent) == (2, 1)
    assert len(received(sent, spead2.recv)[0]) == 2
