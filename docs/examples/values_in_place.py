# SPDX-License-Identifier: BSD-3-Clause
"""Which arrays a heap refers to, and which it copies: change each after its heap was made."""

import numpy as np

from spead_tutorial.send import Heap, ItemGroup, PacketGenerator

INTEGER = {bits: {"shape": (), "format": [("u", bits)]} for bits in (32, 40, 64)}
SAMPLES = {"shape": (4,), "dtype": np.int8}
CASES = [
    (">u8, no dimensions", np.array(1, ">u8"), "unsigned, 40 bits", INTEGER[40]),
    ("<u8, no dimensions", np.array(1, "<u8"), "unsigned, 40 bits", INTEGER[40]),
    (">i8, no dimensions", np.array(1, ">i8"), "unsigned, 40 bits", INTEGER[40]),
    (">u4, no dimensions", np.array(1, ">u4"), "unsigned, 40 bits", INTEGER[40]),
    (">u8, no dimensions", np.array(1, ">u8"), "unsigned, 64 bits", INTEGER[64]),
    (">u8, no dimensions", np.array(1, ">u8"), "unsigned, 32 bits", INTEGER[32]),
    (">u4, no dimensions", np.array(1, ">u4"), "unsigned, 32 bits", INTEGER[32]),
    ("int8, four", np.ones(4, np.int8), "int8, four", SAMPLES),
    ("int16, four", np.ones(4, np.int16), "int8, four", SAMPLES),
    ("int8, every second of eight", np.ones(8, np.int8)[::2], "int8, four", SAMPLES),
]


def packet_of(heap: Heap) -> bytes:
    (packet,) = PacketGenerator(heap, 1, 1472)
    return packet


print(f"{'array of ones':27}  {'item':17}  sent once they are twos")
for array, value, item, described in CASES:
    group = ItemGroup()
    group.add_item(0x3300, "value", "", **described, value=value)
    heap = group.get_heap(descriptors="none", data="all")
    ones = packet_of(heap)
    value[...] = 2
    sent = "ones: a copy" if packet_of(heap) == ones else "twos: in place"
    print(f"{array:27}  {item:17}  {sent}")
