# SPDX-License-Identifier: BSD-3-Clause
"""A heap that is too long for one packet: how it is cut."""

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
    shape=(4000,),
    dtype=np.int8,
    value=np.zeros(4000, np.int8),
)
heap = group.get_heap(descriptors="none", data="all")

print("#  bytes  heap  heap length  pointers  offset  length")
for i, packet in enumerate(send.PacketGenerator(heap, 7, 1472)):
    one = wire.parse(packet)
    print(
        f"{i + 1}  {len(packet):5}"
        f"  {one.heap_cnt:4}  {one.heap_length:11}  {len(one.items):8}"
        f"  {one.payload_offset:6}  {one.payload_length:6}"
    )
