# SPDX-License-Identifier: BSD-3-Clause
"""Where a sender is watched, in a lab, at an interface or where it runs, and its packets there."""

import contextlib
import dataclasses
import os
import socket
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.lab.ring import PacketRing
from spead_tutorial.tools.why.facts import UNSEEN, Packets
from spead_tutorial.tools.why.looks import family

_RING_MIB = 16
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
_IPV6_FRAGMENT = 44
#: How long a process is looked at for a socket, and how often.
_FIND_S, _LOOKS = 0.2, 100


# ---- Its packets ----


class Capture(PacketRing):
    """Notes what a device gets while there is room: no core is taken from the sender to read it."""

    def __init__(self, packet_socket: socket.socket, device: str) -> None:
        super().__init__(packet_socket, device, _RING_MIB, merged=True)

    def packets(self) -> Packets | None:
        """Return what was noted; None where no UDP was sent."""
        messages = packets = payload = fragments = 0
        sizes = Counter[int]()  # bytes by the size of their packet
        for message in self.messages():
            head, merged = message.head, message.merged
            found = _datagram(head) if message.is_sent else None
            if found is None:
                continue
            at, is_first, is_fragment = found
            n_bytes = message.n_bytes - at
            messages += 1
            payload += n_bytes
            if not is_first:
                fragments += 1
                continue
            size = struct.unpack_from("!H", head, at - 4)[0] - 8 if is_fragment else n_bytes
            packets += -(-n_bytes // merged) if merged else 1
            sizes[merged or size] += n_bytes if merged else size
        if not messages or not packets:
            return None
        return Packets(
            messages=messages,
            packets=packets,
            payload_bytes=payload,
            fragments=fragments,
            packet_bytes=max(sizes, key=sizes.__getitem__),
        )


def _datagram(head: bytes) -> tuple[int, bool, bool] | None:
    """Return where UDP's payload begins, if it is a first piece, and if one of several."""
    if len(head) < 14 + 20:
        return None
    (kind,) = struct.unpack_from("!H", head, 12)
    if kind == _IPV4 and head[14 + 9] == _UDP:
        at = 14 + 4 * (head[14] & 0xF)
        (piece,) = struct.unpack_from("!H", head, 14 + 6)
        offset, more = piece & 0x1FFF, piece & 0x2000
    elif kind == _IPV6 and len(head) >= 14 + 48:
        at, offset, more = 14 + 40, 0, 0
        following = head[14 + 6]
        if following == _IPV6_FRAGMENT:
            following = head[at]
            (piece,) = struct.unpack_from("!H", head, at + 2)
            offset, more, at = piece >> 3, piece & 1, at + 8
        if following != _UDP:
            return None
    else:
        return None
    if offset:
        return at, False, True
    return at + 8, True, bool(more)


# ---- The places ----


class Spot:
    """Where a sender sends to, and how it is seen there: at an interface of this machine."""

    # what to tell senders; None where that is their own business
    destination: tuple[str, int] | None = None
    popen: Any = subprocess.Popen  # what starts a program there
    socket: Any = socket.socket  # and what makes a socket
    unseen = "packets-forbidden"  # why packets cannot be seen there, of `UNSEEN`

    def __init__(self, device: str, text: str = "") -> None:
        self.device = device
        self.text = text or f"{device}, MTU {self.mtu()}, which others may use, too"

    @property
    def environment(self) -> dict[str, str]:
        if self.destination is None:
            return dict(os.environ)
        host, port = self.destination
        return os.environ | {"SPEAD_TUTORIAL_HOST": host, "SPEAD_TUTORIAL_PORT": str(port)}

    def counters(self) -> Counters:
        """Read the counters of the device."""
        return _counted(Path("/proc/net/dev").read_text())[self.device]

    def mtu(self) -> int:
        """Return the largest packet that the device takes, in bytes."""
        return int(Path("/sys/class/net", self.device, "mtu").read_text())

    def capture(self) -> Capture | str:
        """Begin to note packets, or say why that cannot be."""
        try:
            return Capture(self.socket(socket.AF_PACKET, socket.SOCK_RAW), self.device)
        except OSError as error:
            return UNSEEN[self.unseen].format(device=self.device, why=error.strerror or error)


class InLab(Spot):
    unseen = "packets"

    def __init__(self, lab: Lab) -> None:
        self.lab, self.popen, self.socket = lab, lab.popen, lab.socket
        self.destination = lab.address, lab.port
        super().__init__(lab.device, f"a lab's device ({lab.kind}), MTU {lab.mtu}")

    def counters(self) -> Counters:
        return self.lab.counters()

    def mtu(self) -> int:
        return self.lab.mtu


#: The kind of device that counts what is sent into it as received, and as dropped.
_SWALLOWS = "ifb"


class AtProcess(Spot):
    """A process that runs already: its device is the one that sends most, where it is."""

    def __init__(self, pid: int) -> None:
        self.pid, self._kind = pid, "loopback"
        super().__init__("lo", f"process {pid}")
        try:
            self._before = self._all()
        except OSError:
            raise click.ClickException(f"this user may see no process {pid}") from None
        self._last = self._before[self.device]

    def find(self) -> None:
        """Take the device that sends most while the process has a socket, and name it."""
        has_socket = False
        for _ in range(_LOOKS):  # one may be opened for each packet
            has_socket = has_socket or self.has_socket()
            time.sleep(_FIND_S / _LOOKS)
        try:
            there = self._all()
        except OSError:
            raise click.ClickException(f"process {self.pid} has ended") from None
        if not has_socket:
            raise click.ClickException(f"process {self.pid} sends nothing: it has no socket")
        grown = {name: now - self._before.get(name, now) for name, now in there.items()}
        if not any(counted.tx_packets for counted in grown.values()):
            taken = {name: one for name, one in grown.items() if one.rx_dropped}
            grown |= {name: dataclasses.replace(one, kind=_SWALLOWS) for name, one in taken.items()}
        self.device = max(grown, key=lambda name: grown[name].bytes)
        self._kind, self._last = grown[self.device].kind, there[self.device]
        self.text = f"{self.device}, which has sent most where process {self.pid} is"

    def _all(self) -> dict[str, Counters]:
        return _counted(Path(f"/proc/{self.pid}/net/dev").read_text())

    def counters(self) -> Counters:
        with contextlib.suppress(OSError):  # it has ended
            self._last = self._all()[self.device]
        return dataclasses.replace(self._last, kind=self._kind)

    def mtu(self) -> int:
        if self._is_here():
            with contextlib.suppress(OSError):
                return super().mtu()
        return 65536 if self.device == "lo" else 1500

    def has_socket(self) -> bool:
        """Whether the process, or one below it, has a socket; true where that is not to be seen."""
        for pid in family(self.pid):
            try:
                for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                        if os.readlink(descriptor).startswith("socket:"):
                            return True
            except OSError:
                return True
        return False

    def _is_here(self) -> bool:
        """Whether the process is in the network that this one is in."""
        theirs, ours = f"/proc/{self.pid}/ns/net", "/proc/self/ns/net"
        with contextlib.suppress(OSError):
            return os.stat(theirs).st_ino == os.stat(ours).st_ino
        return False

    def capture(self) -> Capture | str:
        return super().capture() if self._is_here() else UNSEEN["packets-elsewhere"]


def _counted(table: str) -> dict[str, Counters]:
    """Return the counters of all devices."""
    names = [line.partition(":")[0].strip() for line in table.splitlines()[2:]]
    found = {
        name: Counters.parse(table, name, "loopback" if name == "lo" else "interface")
        for name in names
    }
    return {name: one for name, one in found.items() if one is not None}
