# SPDX-License-Identifier: BSD-3-Clause
"""Captures as tcpdump would write them: datagrams in frames of Ethernet, in a file of pcap."""

import struct
from collections.abc import Iterable
from pathlib import Path


def frame(payload: bytes, port: int = 8888, sender: int = 1234) -> bytes:
    """Return a frame with a UDP datagram over IPv4, without checksums; sender: its port."""
    udp = struct.pack(">HHHH", sender, port, 8 + len(payload), 0) + payload
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2"
    )
    return bytes(12) + b"\x08\0" + ip + udp


def write(path: Path, frames: Iterable[bytes]) -> str:
    """Write a capture of these frames, and return its name."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    records = (struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in frames)
    path.write_bytes(header + b"".join(records))
    return str(path)
