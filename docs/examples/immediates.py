# SPDX-License-Identifier: BSD-3-Clause
"""Values, and the item pointers that they are sent with: which of them are immediate."""

import numpy as np

from spead_tutorial import send, wire

five, six = np.arange(1, 6, dtype=np.int8), np.arange(1, 7, dtype=np.int8)
CASES = [
    ("1000, 40 bits", {"shape": (), "format": [("u", 40)], "value": 1000}),
    ("7, 12 bits", {"shape": (), "format": [("u", 12)], "value": 7}),
    ("7, big-endian", {"shape": (), "dtype": ">u4", "value": 7}),
    ("7, little-endian", {"shape": (), "dtype": "<u4", "value": 7}),
    ("five bytes", {"shape": (5,), "dtype": np.int8, "value": five}),
    ("six bytes", {"shape": (6,), "dtype": np.int8, "value": six}),
    ("as many as there are", {"shape": (None,), "format": [("i", 8)], "value": five}),
]

print(f"{'value':20}  {'item pointer':23}  mode")
for name, item in CASES:
    group = send.ItemGroup()
    group.add_item(0x1600, "value", "", **item)
    heap = group.get_heap(descriptors="none", data="all")
    (packet,) = send.PacketGenerator(heap, 1, 1472)
    pointer = wire.parse(packet).items[4]  # the first four are every packet's
    mode = "immediate" if pointer.immediate else "addressed"
    print(f"{name:20}  {packet[40:48].hex(' ')}  {mode}")
