# SPDX-License-Identifier: BSD-3-Clause
"""Where a sender is watched, in a lab, at an interface or where it runs, and its packets there."""

import contextlib
import os
import socket
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.lab.ring import PacketRing
from spead_tutorial.tools.why.facts import Packets

_RING_MIB = 16
_IPV4, _IPV6, _UDP = 0x0800, 0x86DD, 17
_HEADERS = 128
#: How long it is seen which device sends most.
_FIND_S = 0.2
#: The largest packets that networks take: loopback's are none's.
_NETWORKS = 9216


# ---- Its packets ----


class Capture(PacketRing):
    """Notes what a device gets while there is room: no core is taken from the sender to read it."""

    def __init__(self, packet_socket: socket.socket, device: str) -> None:
        super().__init__(packet_socket, device, _RING_MIB, merged=True)

    def packets(self) -> Packets | None:
        """Return what was noted; None where no UDP with data was sent."""
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
        if not packets or not payload:
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
    kind, piece = struct.unpack_from("!H", head, 12)[0], struct.unpack_from("!H", head, 20)[0]
    at, protocol, offset, more = 14 + 4 * (head[14] & 0xF), head[23], piece & 0x1FFF, piece & 0x2000
    if kind == _IPV6:  # which cuts nothing on the way, and seldom before
        at, protocol, offset, more = 14 + 40, head[20], 0, 0
    if kind not in (_IPV4, _IPV6) or protocol != _UDP:
        return None
    return at + 8 * (not offset), not offset, bool(offset or more)


# ---- The places ----


class Spot:
    """Where a sender sends to, and how it is seen there."""

    lab: Lab | None = None
    pid: int | None = None  # of a sender that runs already
    destination: tuple[str, int] = "", 0  # what to tell senders
    popen: Any = subprocess.Popen  # what starts a program there
    socket: Any = socket.socket  # and what makes a socket
    environment: Mapping[str, str] = os.environ

    def __init__(self, device: str, mtu: int, text: str) -> None:
        self.device, self.mtu, self.text = device, mtu, text

    def counters(self) -> Counters:
        """Read the counters of the device."""
        raise NotImplementedError

    def capture(self) -> Capture | str:
        """Begin to note packets, or say why that cannot be."""
        try:
            return Capture(self.socket(socket.AF_PACKET, socket.SOCK_RAW), self.device)
        except OSError as error:
            why = f"{self.device}: {error.strerror or error}"
            return f"The packets were not seen at {why}: run it as root, or in a lab."


class InLab(Spot):
    lab: Lab

    def __init__(self, lab: Lab) -> None:
        self.lab, self.popen, self.socket = lab, lab.popen, lab.socket
        self.destination = lab.address, lab.port
        where = {"SPEAD_TUTORIAL_HOST": lab.address, "SPEAD_TUTORIAL_PORT": str(lab.port)}
        self.environment = os.environ | where
        super().__init__(lab.device, lab.mtu, f"a lab's device ({lab.kind}), MTU {lab.mtu}")

    def counters(self) -> Counters:
        return self.lab.counters()


class AtProcess(Spot):
    """A process that runs already: its device is the one that sends most, where it is."""

    def __init__(self, pid: int) -> None:
        self.pid, self._is_here = pid, False
        before = self._all()
        time.sleep(_FIND_S)
        self._last = self._all()
        sent = {name: (one - before.get(name, one)).bytes for name, one in self._last.items()}
        device = max(sent, key=sent.__getitem__)
        mtu = _NETWORKS if device == "lo" else 1500
        with contextlib.suppress(OSError):
            self._is_here = os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
            if self._is_here and device != "lo":
                mtu = int(Path("/sys/class/net", device, "mtu").read_text())
        super().__init__(device, mtu, f"{device}, which has sent most where process {pid} is")

    def _all(self) -> dict[str, Counters]:
        try:
            table = Path(f"/proc/{self.pid}/net/dev").read_text()
        except OSError:
            raise click.ClickException(
                f"process {self.pid} has ended, or this user may not see it"
            ) from None
        names = [line.partition(":")[0].strip() for line in table.splitlines()[2:]]
        kinds = {name: "loopback" if name == "lo" else "interface" for name in names}
        counted = {name: Counters.parse(table, name, kind) for name, kind in kinds.items()}
        return {name: one for name, one in counted.items() if one is not None}

    def counters(self) -> Counters:
        with contextlib.suppress(click.ClickException):  # it has ended
            self._last = self._all()
        return self._last[self.device]

    def capture(self) -> Capture | str:
        if self._is_here:
            return super().capture()
        return (
            "The packets were not seen, as the process is in another network than this one: run it"
            " with -- COMMAND in place of --pid."
        )
