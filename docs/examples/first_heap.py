# SPDX-License-Identifier: BSD-3-Clause
"""The first heap of a group: it has descriptors too. What points to them, and what they say."""

from itertools import pairwise

from spead_tutorial import send, wire
from spead_tutorial.measure.verify import make_group

group = make_group(16)
group["timestamp"].value = 1000
(packet,) = send.PacketGenerator(group.get_heap(), 1, 1472)

print(f"A packet of {len(packet)} bytes. Its pointers:")
names = {0x1600: "timestamp", 0x3300: "adc_samples"}
for field in wire.dissect(packet, names=names):
    if field.depth == 0 and field.field == "item pointer":
        print(f"    {field.meaning}")

parsed = wire.parse(packet)
begins = [pointer.value for pointer in parsed.items if not pointer.immediate]
for begin, end in pairwise(begins):  # all but the last are descriptors
    said = wire.parse_descriptor(parsed.payload[begin:end])
    print(f"\nA descriptor of {end - begin} bytes says:")
    print(f"    item {said.id:#x} is {said.name!r}: {said.description}")
    print(f"    shape {said.shape}, format {list(said.format)}")
    print(f"    NumPy: {said.numpy_header or 'none'}")
