# SPDX-License-Identifier: BSD-3-Clause
"""A heap with nothing but the descriptor of one item, byte by byte."""

from spead_tutorial import send, wire

group = send.ItemGroup()
group.add_item(0x1600, "timestamp", "Index of the first sample", shape=(), format=[("u", 40)])
(packet,) = send.PacketGenerator(group.get_heap(), 1, 1472)
print(wire.format_table(wire.dissect(packet)))
