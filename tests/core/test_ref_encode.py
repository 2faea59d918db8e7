# SPDX-License-Identifier: BSD-3-Clause
"""The reference encoder against the released spead2, where that is right."""

import itertools
import random

import pytest
import spead2
import spead2.recv
import spead2.send

from support import ref_encode
from support.random_heaps import PACKET_SIZES, random_heap

N_SEEDS = 2000
N_BLOCKS = 20


def attempt(function):
    """Return the packets, or ValueError if that is what it raises."""
    try:
        return list(function())
    except ValueError:
        return ValueError


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_random_heaps_are_encoded_as_spead2_does(block):
    for seed in range(block, N_SEEDS, N_BLOCKS):
        rng = random.Random(seed)
        spec = random_heap(rng)
        size = rng.choice(PACKET_SIZES)
        cnt = rng.randrange(1 << spec.heap_address_bits)
        if spec.spead2_misplaces_padding(size) or spec.spead2_refuses_pointers_that_fit(size):
            continue
        heap = spec.build_spead2()
        expected = attempt(lambda: spead2.send.PacketGenerator(heap, cnt, size))  # noqa: B023
        assert attempt(lambda: spec.encode(cnt, size)) == expected, seed  # noqa: B023


def test_random_heaps_reach_the_cases_that_matter():
    seen = set()
    for seed in range(300):
        rng = random.Random(seed)
        spec = random_heap(rng)
        size = rng.choice(PACKET_SIZES)
        packets = attempt(lambda: spec.encode(1, size))  # noqa: B023
        seen.add(f"{spec.heap_address_bits} bits")
        seen.add(f"compatibility {spec.bug_compat}")
        if packets is ValueError:
            seen.add("refused")
            continue
        seen.add("several packets" if len(packets) > 1 else "one packet")
        seen.add("pointers repeated" if spec.repeat_pointers else "pointers once")
        if spec.spead2_misplaces_padding(size):
            seen.add("misplaced padding")
    assert seen >= {
        *(f"{bits} bits" for bits in range(8, 57, 8)),
        *(f"compatibility {bits}" for bits in (0, 1, 2, 3, 4, 7)),
        *("refused", "several packets", "one packet", "pointers repeated", "pointers once"),
        "misplaced padding",
    }


def test_an_empty_heap_is_one_packet_of_49_bytes():
    (packet,) = ref_encode.encode_heap([], 1, 1472)
    assert packet.hex() == (
        "5304030500000005"
        "8000010000000001"
        "8000020000000001"
        "8000030000000000"
        "8000040000000001"
        "0000000000000000"
        "00"
    )


def received(packets):
    stream = spead2.recv.Stream(spead2.ThreadPool())
    stream.add_buffer_reader(b"".join(packets))
    (heap,) = stream
    return {item.id: bytes(item) for item in heap.get_items()}


def test_padding_follows_the_data_so_that_a_receiver_gets_what_was_sent():
    items = [
        *(ref_encode.Inline(0x1000 + i, i) for i in range(177)),
        ref_encode.Value(0x2000, b"\x01\x02\x03", allow_immediate=False),
    ]
    packets = ref_encode.encode_heap(items, 1, 1472)
    assert len(packets) == 2
    assert received(packets)[0x2000] == b"\x01\x02\x03"
    assert packets[0].endswith(b"\x01\x02\x03" + bytes(5))


def test_repeated_pointers_may_fill_a_packet_of_which_spead2_keeps_a_part_free():
    # 2 pointers and 8 bytes of payload are a packet of 64 bytes.
    value = ref_encode.Value(0x1000, bytes(range(100)), allow_immediate=False)
    items = [value, ref_encode.Inline(0x1001, 7)]
    packets = ref_encode.encode_heap(items, 1, 64, repeat_pointers=True)
    assert {len(packet) for packet in packets[:-1]} == {64}
    assert received(packets)[0x1000] == bytes(range(100))


def test_repeated_pointers_that_do_not_fit_are_refused():
    items = [ref_encode.Inline(6, 0)] * 3
    with pytest.raises(ValueError, match="do not fit"):
        ref_encode.encode_heap(items, 1, 64, repeat_pointers=True)
    with pytest.raises(ValueError, match="do not fit"):  # with the one for padding
        ref_encode.encode_heap(items[:2], 1, 64, repeat_pointers=True)


@pytest.mark.parametrize("repeat_pointers", [False, True])
@pytest.mark.parametrize("size", [56, 64, 72, 80, 96, 200])
def test_every_number_of_pointers_and_bytes_is_encoded_as_spead2_does(size, repeat_pointers):
    for n_pointers, n_payload in itertools.product(range(12), (0, 1, 7, 8, 9, 16, 100)):
        heap = spead2.send.Heap(spead2.Flavour())
        heap.repeat_pointers = repeat_pointers
        items = []
        if n_payload:
            data = bytes(range(1, n_payload + 1))
            items.append(ref_encode.Value(0x1000, data, allow_immediate=False))
            value = bytearray(data)
            heap.add_item(spead2.Item(0x1000, "", "", (None,), format=[("u", 8)], value=value))
        while len(items) < n_pointers:
            items.append(ref_encode.Inline(6, 0))
            heap.add_start()
        encoded = attempt(
            lambda: ref_encode.encode_heap(items, 5, size, repeat_pointers=repeat_pointers)  # noqa: B023
        )
        padded = ref_encode.padded_length(len(items), n_payload, size, repeat_pointers)
        if encoded is not ValueError and padded > max(n_payload, 8) and n_payload % 8:
            # spead2 misplaces the padding of this one.
            assert received(encoded)[0x1000] == data
            continue
        expected = attempt(lambda: spead2.send.PacketGenerator(heap, 5, size))  # noqa: B023
        if repeat_pointers and len(items) == (size - 48) // 8 and n_payload:
            # spead2 refuses what just fits.
            assert expected is ValueError
            assert received(encoded)[0x1000] == data
        else:
            assert encoded == expected
