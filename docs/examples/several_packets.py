# SPDX-License-Identifier: BSD-3-Clause
"""A heap that is too long for one packet: how it is cut."""

from spead_tutorial import send, wire
from spead_tutorial.measure.verify import make_group

heap = make_group(4000).get_heap(descriptors="none", data="all")

print("#  bytes  heap  heap length  pointers  offset  length")
for i, packet in enumerate(send.PacketGenerator(heap, 7, 1472)):
    one = wire.parse(packet)
    print(
        f"{i + 1}  {len(packet):5}"
        f"  {one.heap_cnt:4}  {one.heap_length:11}  {len(one.items):8}"
        f"  {one.payload_offset:6}  {one.payload_length:6}"
    )
