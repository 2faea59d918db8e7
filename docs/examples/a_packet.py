# SPDX-License-Identifier: BSD-3-Clause
"""A heap with two items, and the packet that it becomes, byte by byte."""

import numpy as np

from spead_tutorial import send, wire

group = send.ItemGroup()
group.add_item(
    0x1600,
    "timestamp",
    "Index of the first sample",
    shape=(),
    format=[("u", 40)],
    value=1000,
)
group.add_item(
    0x3300,
    "adc_samples",
    "Samples of the converter",
    shape=(16,),
    dtype=np.int8,
    value=np.arange(16, dtype=np.int8),
)
heap = group.get_heap(descriptors="none", data="all")

(packet,) = send.PacketGenerator(heap, 1, 1472)
names = {0x1600: "timestamp", 0x3300: "adc_samples"}
print(wire.format_table(wire.dissect(packet, names=names)))
