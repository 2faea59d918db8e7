# SPDX-License-Identifier: BSD-3-Clause
"""Our packets against the reference encoder, and both against the released spead2."""

import itertools
import random

import pytest
import spead2
import spead2.recv
import spead2.send

from spead_tutorial import send
from support.random_heaps import FLAVOURS, PACKET_SIZES, HeapSpec, ItemSpec, Part, random_heap

N_SEEDS = 300  # in a block
NULL_ID = 0  # of padding, which is for the receiver's eyes only


def attempt(function):
    """Return the packets, or ValueError if that is what it raises."""
    try:
        return list(function())
    except ValueError:
        return ValueError


def check(spec, cnt, size):
    """Compare the packets of a heap; say what is particular about them."""
    ours = attempt(lambda: send.PacketGenerator(spec.build_ours(), cnt, size))
    assert ours == attempt(lambda: spec.encode(cnt, size))
    seen = {"pointers repeated" if spec.repeat_pointers else "pointers once"}
    misplaced = spec.spead2_misplaces_padding(size)
    if misplaced:
        seen.add("misplaced padding")
    if misplaced or spec.spead2_refuses_pointers_that_fit(size):
        # spead2's stream stops before a heap with an end.
        if ours is not ValueError and not any(part.kind == "add_end" for part in spec.parts):
            check_received(spec, cnt, ours)
    else:
        heap = spec.build_spead2()
        assert ours == attempt(lambda: spead2.send.PacketGenerator(heap, cnt, size))
    if ours is ValueError:
        return seen | {"refused"}
    return seen | {"one packet" if len(ours) == 1 else "several packets"}


def check_received(spec, cnt, packets):
    """What spead2 receives is what was sent, also where its own padding is wrong."""
    stream = spead2.recv.Stream(spead2.ThreadPool())
    stream.add_buffer_reader(b"".join(packets))
    (heap,) = stream
    assert heap.cnt == cnt
    items = {item.id: item for item in heap.get_items()}
    sent = {part.item.id: part.item for part in spec.parts if part.kind == "add_item"}
    assert items.keys() - {NULL_ID, spead2.STREAM_CTRL_ID} <= sent.keys()
    for id, item in sent.items():
        if id not in items:
            assert not item.data  # spead2 does not report some empty items
            continue
        # The receiver cannot know how many of a pointer's bytes are meant.
        padding = len(bytes(items[id])) - len(item.data) if items[id].is_immediate else 0
        assert bytes(items[id]) == bytes(padding) + item.data


@pytest.mark.parametrize(
    "block", [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 10))]
)
def test_random_heaps_give_the_packets_of_the_reference_encoder_and_of_spead2(block):
    seen = set()
    for seed in range(N_SEEDS * block, N_SEEDS * (block + 1)):
        rng = random.Random(seed)
        spec = random_heap(rng)
        size = rng.choice(PACKET_SIZES)
        seen |= check(spec, rng.randrange(1 << spec.heap_address_bits), size)
        seen |= {f"{spec.heap_address_bits} bits", f"compatibility {spec.bug_compat}"}
    assert seen == {
        *(f"{bits} bits" for bits in FLAVOURS),
        *(f"compatibility {bits}" for bits in (0, 1, 2, 3, 4, 7)),
        *("refused", "several packets", "one packet", "pointers repeated", "pointers once"),
        "misplaced padding",
    }


@pytest.mark.parametrize("repeat_pointers", [False, True])
@pytest.mark.parametrize(
    "size", [56, 64, 80, *(pytest.param(n, marks=pytest.mark.thorough) for n in (72, 96, 200))]
)
def test_every_number_of_pointers_and_bytes_is_encoded_as_spead2_does(size, repeat_pointers):
    for n_pointers, n_payload in itertools.product(range(12), (0, 1, 7, 8, 9, 16, 100)):
        data = bytes(range(1, n_payload + 1))
        value = ItemSpec(0x1000, "", "", (None,), None, "C", (("u", 8),), bytearray(data), data)
        parts = [Part("add_item", value)] * bool(data)
        parts += [Part("add_start")] * (n_pointers - len(parts))
        check(HeapSpec(40, 0, repeat_pointers, tuple(parts)), 5, size)
