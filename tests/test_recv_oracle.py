# SPDX-License-Identifier: BSD-3-Clause
"""The reference decoder, and our receiver, over thousands of seeded troubles.

The decoder is compared with spead2 where that is right, so that it is known to be one.
"""

import random

import pytest
import spead2
import spead2.recv
from ref_decode import INCONSISTENT, LATE, Heap, Packet, Pointer, Receiver, parse
from trouble import Trouble, make_trouble

N_SEEDS = 4000
N_BLOCKS = 20
BLOCKS = pytest.mark.parametrize("block", range(N_BLOCKS))


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
    return all(by_address(heap.packets) == by_address(heap.sent()) for heap in expected.heaps)


def by_address(packets: list[Packet]) -> list[Pointer]:
    """Addressed items as they come: spead2 may give an empty one the bytes of the next."""
    pointers = dict.fromkeys(p for packet in packets for p in packet.pointers if not p.immediate)
    return sorted(pointers, key=lambda p: p.value)


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
    assert compared > 50
