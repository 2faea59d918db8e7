# SPDX-License-Identifier: BSD-3-Clause
"""The heap that ends a stream, byte by byte."""

from spead_tutorial import send, wire

(packet,) = send.PacketGenerator(send.ItemGroup().get_end(), 11, 1472)
print(wire.format_table(wire.dissect(packet)))
