# SPDX-License-Identifier: BSD-3-Clause
"""The reference decoder, and our receiver, over thousands of seeded troubles.

The decoder is compared with spead2 where that is right, so that it is known to be one.
"""

import random
import socket
from collections.abc import Iterable

import pytest
import spead2
import spead2.recv

import spead_tutorial
from spead_tutorial import recv
from support.ref_decode import (
    FATES,
    FAULTS,
    INCONSISTENT,
    LATE,
    MALFORMED,
    Heap,
    Pointer,
    Receiver,
    parse,
)
from support.sockets import udp_socket
from support.trouble import Trouble, make_trouble, stop_packet

N_SEEDS = 2400
N_BLOCKS = 20
END = stop_packet((1 << 40) - 7)
BLOCKS = pytest.mark.parametrize(
    "block",
    [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, N_BLOCKS))],
)


def settings(trouble: Trouble) -> dict[str, int | bool]:
    """What the decoder, spead2 and we call by the same names."""
    names = "max_heaps substreams allow_out_of_order allow_unsized_heaps stop_on_stop_item"
    return {name: getattr(trouble, name) for name in names.split()}


class ReceiverOfSpead2(Receiver):
    """What spead2 does otherwise, and may: heaps leave earlier, and in another order."""

    def _pushed_out(self, substream: int) -> Heap | None:
        # Heaps that are complete keep their place until others have been begun.
        begun = [heap for heap in self.begun if heap.cnt % self.substreams == substream]
        oldest = begun[-self.max_heaps] if len(begun) >= self.max_heaps else None
        return next((heap for heap in self.live if heap is oldest), None)

    def end(self) -> None:
        self.live.sort(key=lambda heap: heap.cnt % self.substreams)
        super().end()


def spead2_is_right(trouble: Trouble, expected: Receiver) -> bool:
    """Whether nothing is in this trouble that spead2 4.5.1 takes wrongly."""
    packets = [parse(data) for data in trouble.datagrams]
    if not all(packet.payload for packet in packets):
        return False  # items of packets without payload are lost
    if trouble.allow_out_of_order and expected.fates[LATE]:
        return False  # late packets begin ghosts
    read = packets[: sum(expected.fates.values())]
    if expected.single_packet < sum(len(packet.payload) == packet.heap_length for packet in read):
        return False  # a packet that is a whole heap is one beside another of its count
    if expected.fates[INCONSISTENT]:
        return False  # packets without a length may lie beyond the end of their heap
    if any(heap.length is None and heap.state == "incomplete" for heap in expected.heaps):
        return False  # what lacks packets in between may be whole
    return all(map(spead2_knows_what_is_empty, expected.heaps))


def spead2_knows_what_is_empty(heap: Heap) -> bool:
    """Whether no empty item is given the bytes of its neighbour.

    Of those at one address that is the last one that came, and of identical ones the first.
    """
    came = dict.fromkeys(item for packet in heap.packets for item in packet.items)
    return by_address(came) == by_address(heap.sent_pointers())


def by_address(pointers: Iterable[Pointer]) -> list[Pointer]:
    return sorted((p for p in pointers if not p.immediate), key=lambda p: p.value)


def from_spead2(trouble: Trouble) -> tuple[list[object], object]:
    config = spead2.recv.StreamConfig(bug_compat=trouble.bug_compat, **settings(trouble))
    ring = spead2.recv.RingStreamConfig(
        heaps=1000, contiguous_only=False, incomplete_keep_payload_ranges=True
    )
    stream = spead2.recv.Stream(spead2.ThreadPool(), config, ring)
    stream.add_buffer_reader(b"".join(trouble.datagrams))
    heaps = list(stream)
    stream.stop()  # then the last batch is counted
    return heaps, stream.stats


def told_by_spead2(heap) -> tuple[object, ...]:
    items = sorted(
        (item.id, item.is_immediate, item.immediate_value if item.is_immediate else bytes(item))
        for item in heap.get_items()
    )
    if isinstance(heap, spead2.recv.IncompleteHeap):
        return heap.cnt, heap.heap_length, heap.payload_ranges, items
    return heap.cnt, items, descriptors(heap.get_descriptors())


def descriptors(found) -> list[tuple[object, ...]]:
    """Those with a name: to spead2, the others are descriptors, too.

    It looks at a shape only where no NumPy header has one.
    """
    return sorted(
        (d.id, d.name, d.description, d.numpy_header)
        + (() if d.numpy_header else (str(tuple(d.format)), str(tuple(d.shape))))
        for d in found
        if d.name
    )


def expected_of_spead2(heap: Heap, bug_compat: int) -> tuple[object, ...]:
    """What it should tell: no empty items, and descriptors only as such."""
    incomplete = heap.state == "incomplete"
    items = sorted(
        (item.id, isinstance(item.value, int), item.value)
        for item in (heap.immediates() if incomplete else heap.items())
        if item.value != b"" and (item.id != 5 or isinstance(item.value, int))
    )
    if incomplete:
        return heap.cnt, -1 if heap.length is None else heap.length, heap.arrived, items
    return heap.cnt, items, descriptors(heap.descriptors(bug_compat))


@BLOCKS
def test_the_decoder_finds_what_spead2_finds_where_that_is_right(block):
    compared = 0
    for seed in range(block, N_SEEDS, N_BLOCKS):
        trouble = make_trouble(random.Random(seed))
        expected = ReceiverOfSpead2(**settings(trouble))
        expected.take_buffer(b"".join(trouble.datagrams))
        if not spead2_is_right(trouble, expected):
            continue
        compared += 1
        heaps, stats = from_spead2(trouble)
        assert [told_by_spead2(heap) for heap in heaps] == [
            expected_of_spead2(heap, trouble.bug_compat) for heap in expected.heaps
        ], seed
        evicted = sum(heap.evicted for heap in expected.heaps)
        assert stats.heaps == len(expected.heaps), seed
        assert stats.packets == sum(expected.fates.values()), seed
        assert stats.incomplete_heaps_evicted == evicted, seed
    assert compared > 30


# ---- Ours ---------------------------------------------------------------------------------------


def our_stream(trouble: Trouble, seed: int) -> recv.Stream:
    """Every second one is read by a thread, the others without."""
    pool = spead_tutorial.ThreadPool() if seed // N_BLOCKS % 2 else None
    config = recv.StreamConfig(
        bug_compat=trouble.bug_compat,
        max_heap_size=trouble.max_heap_size,
        **settings(trouble),
    )
    ring = recv.RingStreamConfig(
        heaps=1000, contiguous_only=False, incomplete_keep_payload_ranges=True
    )
    return recv.Stream(pool, config, ring)


def decoder(trouble: Trouble) -> Receiver:
    return Receiver(max_heap_size=trouble.max_heap_size, **settings(trouble))


def told_by_us(heap: recv.Heap | recv.IncompleteHeap) -> tuple[object, ...]:
    items = [
        (item.id, item.immediate_value if item.is_immediate else bytes(item))
        for item in heap.get_items()
    ]
    bits = heap.flavour.heap_address_bits
    if isinstance(heap, recv.IncompleteHeap):
        lengths = heap.heap_length, heap.received_length, heap.payload_ranges
        return heap.cnt, bits, items, *lengths
    return heap.cnt, bits, items, [described(d) for d in heap.get_descriptors()]


def described(d) -> tuple[object, ...]:
    return d.id, d.name, d.description, d.numpy_header, tuple(d.format), tuple(d.shape)


def expected_of_us(heap: Heap, bug_compat: int) -> tuple[object, ...]:
    incomplete = heap.state == "incomplete"
    items = [
        (item.id, item.value)
        for item in (heap.immediates() if incomplete else heap.items())
        if item.id != 5 or isinstance(item.value, int)
    ]
    if incomplete:
        length = -1 if heap.length is None else heap.length
        lengths = length, heap.received_length, heap.arrived
        return heap.cnt, heap.address_bits, items, *lengths
    found = [described(d) for d in heap.descriptors(bug_compat)]
    return heap.cnt, heap.address_bits, items, found


def expected_counts(expected: Receiver) -> dict[str, int]:
    """What the decoder's counts are called in ours."""
    counts = {f"packets_{fate}": n for fate, n in expected.fates.items()}
    counts |= {f"malformed_{fault}": expected.faults.get(fault, 0) for fault in FAULTS}
    counts["packets"] = sum(expected.fates.values()) - expected.fates[MALFORMED]
    counts["payload_bytes"] = sum(heap.received_length for heap in expected.begun)
    return counts | expected.account()


def check(trouble: Trouble, heaps: list, stats: recv.StreamStats, expected: Receiver, seed) -> None:
    assert [told_by_us(heap) for heap in heaps] == [
        expected_of_us(heap, trouble.bug_compat) for heap in expected.heaps
    ], seed
    counts = expected_counts(expected)
    assert {name: stats[name] for name in counts} == counts, seed
    add_up(stats)


def add_up(stats: recv.StreamStats) -> None:
    """Everything that came went somewhere."""
    fates = [stats[f"packets_{fate}"] for fate in (*FATES, "no_memory", "after_end")]
    assert stats.packets_received == sum(fates)
    assert stats.packets_malformed == sum(stats[f"malformed_{fault}"] for fault in FAULTS)
    ends = stats.heaps_complete, stats.incomplete_heaps_evicted, stats.incomplete_heaps_flushed
    assert stats.heaps == sum(ends)
    assert stats.heaps_begun == stats.heaps + stats.heaps_dropped + stats.heaps_live


@BLOCKS
@pytest.mark.parametrize("lies", [False, True], ids=["true", "lies"])
def test_our_receiver_finds_what_the_decoder_finds(block, lies):
    for seed in range(block, N_SEEDS, N_BLOCKS):
        trouble = make_trouble(random.Random(seed), lies=lies)
        expected = decoder(trouble)
        expected.take_buffer(b"".join(trouble.datagrams))
        stream = our_stream(trouble, seed)
        stream.add_buffer_reader(b"".join(trouble.datagrams))
        heaps = list(stream)
        stream.stop()
        check(trouble, heaps, stream.stats, expected, seed)


@BLOCKS
def test_our_receiver_finds_what_the_decoder_finds_in_datagrams(block):
    for seed in range(block, N_SEEDS // 2, N_BLOCKS):
        trouble = make_trouble(random.Random(seed), lies=True)
        # However it is configured, it ends with the last datagram: a reader of nothing ends it.
        sent = (*trouble.datagrams, END)
        expected = decoder(trouble)
        for data in sent:
            if not expected.stopped:
                expected.take(data)
        if not expected.stopped:
            continue  # the stop is not to end it, or has no place
        stream = our_stream(trouble, seed)
        with udp_socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            for data in sent:
                sock.sendto(data, sock.getsockname())
            stream.add_udp_reader(sock)
            heaps = list(stream)
        stream.stop()
        check(trouble, heaps, stream.stats, expected, seed)
        assert stream.stats.packets_received <= len(sent), seed
