# SPDX-License-Identifier: BSD-3-Clause
"""A packet that says neither how long its heap is nor where its payload belongs, byte by byte."""

from spead_tutorial import wire

PACKET = bytes.fromhex(
    "53040206 00000004"
    "8001000000000007 8004000000000008"  # heap count, payload length
    "96000000000003e8 3300000000000000"  # a timestamp, and where the samples are
    "0102030405060708"
)

print(wire.format_table(wire.dissect(PACKET, names={0x1600: "timestamp", 0x3300: "samples"})))
