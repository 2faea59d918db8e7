# SPDX-License-Identifier: BSD-3-Clause
"""Our packets against the reference encoder, and both against the released spead2."""

import itertools
import random

import pytest
import spead2.send

from spead_tutorial import send
from support.random_heaps import FLAVOURS, PACKET_SIZES, HeapSpec, ItemSpec, Part, random_heap

N_SEEDS = 300  # in a block


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
    if spec.spead2_misplaces_padding(size):
        seen.add("misplaced padding")
    elif not spec.spead2_refuses_pointers_that_fit(size):
        heap = spec.build_spead2()
        assert ours == attempt(lambda: spead2.send.PacketGenerator(heap, cnt, size))
    if ours is ValueError:
        return seen | {"refused"}
    return seen | {"one packet" if len(ours) == 1 else "several packets"}


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
