# SPDX-License-Identifier: BSD-3-Clause
"""Captures as other programs write them: datagrams in frames of Ethernet, in pcap or pcapng."""

import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path

HOSTS = ("10.0.0.1", "10.0.0.2")


def frame(
    payload: bytes, port: int = 8888, source: int = 1234, addresses: Sequence[str] = HOSTS
) -> bytes:
    """Return a frame with a UDP datagram over IPv4 or IPv6, without checksums."""
    udp = struct.pack(">HHHH", source, port, 8 + len(payload), 0) + payload
    packed = [ip_address(one).packed for one in addresses]
    if len(packed[0]) == 16:
        ip = struct.pack(">IHBB16s16s", 6 << 28, len(udp), 17, 64, *packed)
        return bytes(12) + b"\x86\xdd" + ip + udp
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *packed)
    return bytes(12) + b"\x08\0" + ip + udp


def write(path: Path, frames: Iterable[bytes]) -> str:
    """Write a capture of these frames, and return its name."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    records = (struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in frames)
    path.write_bytes(header + b"".join(records))
    return str(path)


# ---- pcapng ----


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block, with its two lengths around it."""
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(f"{order}II", kind, size) + body + struct.pack(f"{order}I", size)


def section(n_interfaces: int = 1, order: str = "<", options: bytes = b"") -> bytes:
    """Return the beginning of a section, and so many interfaces of Ethernet."""
    header = struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)
    interface = struct.pack(f"{order}HHI", 1, 0, 0) + options
    return block(0x0A0D0D0A, header, order) + n_interfaces * block(1, interface, order)


def frame_block(one: bytes, kind: int = 6, interface: int = 0, order: str = "<") -> bytes:
    """Return a frame in a block: enhanced (6), simple (3), or as it was once (2)."""
    lengths = struct.pack(f"{order}II", len(one), len(one))
    before = {
        2: struct.pack(f"{order}HHII", interface, 0, 0, 0) + lengths,
        3: lengths[:4],
        6: struct.pack(f"{order}III", interface, 0, 0) + lengths,
    }
    return block(kind, before[kind] + one, order)
