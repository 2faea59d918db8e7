# SPDX-License-Identifier: BSD-3-Clause
"""Our packets against the released spead2 and against the reference encoder."""

import random

import numpy as np
import pytest
import spead2
import spead2.recv
import spead2.send

from spead_tutorial import Flavour, Item, send
from support.random_heaps import PACKET_SIZES, random_heap

N_SEEDS = 3000
N_BLOCKS = 30

# Padding of this id is for the receiver's eyes only.
NULL_ID = 0


def attempt(function):
    """Return the packets, or ValueError if that is what it raises."""
    try:
        return list(function())
    except ValueError:
        return ValueError


def seeded(block):
    for seed in range(block, N_SEEDS, N_BLOCKS):
        rng = random.Random(seed)
        spec = random_heap(rng)
        size = rng.choice(PACKET_SIZES)
        cnt = rng.randrange(1 << spec.heap_address_bits)
        yield seed, spec, size, cnt


def our_packets(spec, cnt, size):
    return attempt(lambda: send.PacketGenerator(spec.build_ours(), cnt, size))


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_random_heaps_give_the_packets_of_the_reference_encoder(block):
    for seed, spec, size, cnt in seeded(block):
        assert our_packets(spec, cnt, size) == attempt(lambda: spec.encode(cnt, size)), seed  # noqa: B023


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_random_heaps_give_the_packets_of_spead2(block):
    for seed, spec, size, cnt in seeded(block):
        if spec.spead2_misplaces_padding(size) or spec.spead2_refuses_pointers_that_fit(size):
            continue
        heap = spec.build_spead2()
        expected = attempt(lambda: spead2.send.PacketGenerator(heap, cnt, size))  # noqa: B023
        assert our_packets(spec, cnt, size) == expected, seed


def receive(packets):
    """Return the raw items, start and end of stream left out, as spead2 receives them."""
    stream = spead2.recv.Stream(spead2.ThreadPool())
    stream.add_buffer_reader(b"".join(packets))
    (heap,) = stream
    return heap.cnt, {
        item.id: item
        for item in heap.get_items()
        if item.id not in (NULL_ID, spead2.STREAM_CTRL_ID)
    }


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_what_spead2_receives_is_what_was_sent_also_where_its_own_padding_is_wrong(block):
    for seed, spec, size, cnt in seeded(block):
        if not spec.spead2_misplaces_padding(size):
            continue
        packets = our_packets(spec, cnt, size)
        if any(part.kind == "add_end" for part in spec.parts):
            continue  # spead2's stream stops before such a heap.
        received_cnt, items = receive(packets)
        assert received_cnt == cnt, seed
        sent = {part.item.id: part.item for part in spec.parts if part.kind == "add_item"}
        assert items.keys() <= sent.keys(), seed
        for id, item in sent.items():
            if id not in items:
                assert not item.data, seed  # spead2 does not report some empty items
                continue
            raw = bytes(items[id])
            if items[id].is_immediate:
                # The receiver cannot know how many of the pointer's bytes are meant.
                padding = len(raw) - len(item.data)
                assert raw == bytes(padding) + item.data, seed
            else:
                assert raw == item.data, seed


def test_an_item_made_with_spead2_can_be_sent():
    item = spead2.Item(0x1234, "x", "an x", (3,), "<u4", value=[1, 2, 3])
    heap = send.Heap(Flavour())
    heap.add_descriptor(item)
    heap.add_item(item)
    theirs = spead2.send.Heap(spead2.Flavour())
    theirs.add_descriptor(item)
    theirs.add_item(item)
    assert list(send.PacketGenerator(heap, 1, 1472)) == list(
        spead2.send.PacketGenerator(theirs, 1, 1472)
    )


def test_a_change_in_place_is_seen_by_the_next_transmission():
    samples = np.zeros(100, np.int8)
    timestamp = np.array(5, ">u8")
    heap = send.Heap(Flavour())
    heap.add_item(Item(0x1000, "adc", "", (100,), np.int8, value=samples))
    heap.add_item(Item(0x1600, "time", "", (), format=[("u", 40)], value=timestamp))
    before = list(send.PacketGenerator(heap, 1, 1472))
    samples[3] = 7
    timestamp[()] = 0x0102030405
    after = list(send.PacketGenerator(heap, 1, 1472))
    assert before[0][48 + 3 : 48 + 8] == bytes([0, 0, 0, 0, 5])
    assert after[0][48 + 3 : 48 + 8] == bytes([1, 2, 3, 4, 5])
    assert after[0][56:] == samples.tobytes()
