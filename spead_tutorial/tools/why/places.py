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
from spead_tutorial.tools.why.facts import Packets
from spead_tutorial.tools.why.looks import family

_RING_MIB = 16
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
_IPV6_FRAGMENT, _HEADERS = 44, 128
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
    head = head.ljust(_HEADERS, b"\0")
    (kind,) = struct.unpack_from("!H", head, 12)
    at, protocol, offset, more = 14 + 40, head[20], 0, 0
    if kind == _IPV4:
        at, protocol = 14 + 4 * (head[14] & 0xF), head[23]
        (piece,) = struct.unpack_from("!H", head, 20)
        offset, more = piece & 0x1FFF, piece & 0x2000
    elif protocol == _IPV6_FRAGMENT:
        protocol = head[at]
        (piece,) = struct.unpack_from("!H", head, at + 2)
        offset, more, at = piece >> 3, piece & 1, at + 8
    if kind not in (_IPV4, _IPV6) or protocol != _UDP:
        return None
    return at + 8 * (not offset), not offset, bool(offset or more)


# ---- The places ----


class Spot:
    """Where a sender sends to, and how it is seen there: at an interface of this machine."""

    # what to tell senders; None where that is their own business
    destination: tuple[str, int] | None = None
    popen: Any = subprocess.Popen  # what starts a program there
    socket: Any = socket.socket  # and what makes a socket

    def __init__(self, device: str, mtu: int | None = None, text: str = "") -> None:
        self.device = device
        #: The largest packet that the device takes, in bytes.
        self.mtu = mtu or int(Path("/sys/class/net", device, "mtu").read_text())
        self.text = text or f"{device}, MTU {self.mtu}, which others may use, too"

    @property
    def environment(self) -> dict[str, str]:
        if self.destination is None:
            return dict(os.environ)
        host, port = self.destination
        return os.environ | {"SPEAD_TUTORIAL_HOST": host, "SPEAD_TUTORIAL_PORT": str(port)}

    def counters(self) -> Counters:
        """Read the counters of the device."""
        return _counted(Path("/proc/net/dev").read_text())[self.device]

    def capture(self) -> Capture | str:
        """Begin to note packets, or say why that cannot be."""
        try:
            return Capture(self.socket(socket.AF_PACKET, socket.SOCK_RAW), self.device)
        except OSError as error:
            why = f"{self.device}: {error.strerror or error}"
            return f"The packets were not seen at {why}: run it as root, or in a lab."


class InLab(Spot):
    def __init__(self, lab: Lab) -> None:
        self.lab, self.popen, self.socket = lab, lab.popen, lab.socket
        self.destination = lab.address, lab.port
        super().__init__(lab.device, lab.mtu, f"a lab's device ({lab.kind}), MTU {lab.mtu}")

    def counters(self) -> Counters:
        return self.lab.counters()


class AtProcess(Spot):
    """A process that runs already: its device is the one that sends most, where it is."""

    def __init__(self, pid: int) -> None:
        """Take the device that sends most while the process has a socket."""
        self.pid = pid
        before, has_socket = self._all(), False
        for _ in range(_LOOKS):  # one may be opened for each packet
            has_socket = has_socket or self.has_socket()
            time.sleep(_FIND_S / _LOOKS)
        if not has_socket:
            raise click.ClickException(f"process {pid} sends nothing: it has no socket")
        there = self._all()
        grown = {name: now - before.get(name, now) for name, now in there.items()}
        if not any(one.tx_packets for one in grown.values()):
            taken = {name: one for name, one in grown.items() if one.rx_dropped}
            grown |= {name: dataclasses.replace(one, kind="ifb") for name, one in taken.items()}
        device = max(grown, key=lambda name: grown[name].bytes)
        self._last = dataclasses.replace(there[device], kind=grown[device].kind)
        self._is_here = False  # in the network that this process is in, as far as that is known
        with contextlib.suppress(OSError):
            self._is_here = os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
        mtu = None if self._is_here else 65536 if device == "lo" else 1500
        super().__init__(device, mtu, f"{device}, which has sent most where process {pid} is")

    def _all(self) -> dict[str, Counters]:
        try:
            return _counted(Path(f"/proc/{self.pid}/net/dev").read_text())
        except OSError:
            raise click.ClickException(
                f"process {self.pid} has ended, or this user may not see it"
            ) from None

    def counters(self) -> Counters:
        with contextlib.suppress(click.ClickException):  # it has ended
            there = self._all()[self.device]
            self._last = dataclasses.replace(there, kind=self._last.kind)
        return self._last

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

    def capture(self) -> Capture | str:
        if self._is_here:
            return super().capture()
        return (
            "The packets were not seen, as the process is in another network than this one: run it"
            " with -- COMMAND in place of --pid."
        )


def _counted(table: str) -> dict[str, Counters]:
    """Return the counters of all devices."""
    names = [line.partition(":")[0].strip() for line in table.splitlines()[2:]]
    kinds = {name: "loopback" if name == "lo" else "interface" for name in names}
    return {name: one for name, kind in kinds.items() if (one := Counters.parse(table, name, kind))}
