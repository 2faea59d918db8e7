# SPDX-License-Identifier: BSD-3-Clause
"""Where a sender is watched, in a lab, at an interface or where it runs, and its packets there."""

import contextlib
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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


class Spot(NamedTuple):
    device: str
    mtu: int
    text: str
    counters: Callable[[], Counters]  # of the device
    sockets: Any = None  # what makes them there; None for another network than this one
    lab: Lab | None = None
    pid: int | None = None  # of a sender that runs already

    @property
    def destination(self) -> tuple[str, int]:
        return (self.lab.address, self.lab.port) if self.lab else ("", 0)

    @property
    def environment(self) -> dict[str, str]:
        host, port = self.destination
        return {"SPEAD_TUTORIAL_HOST": host, "SPEAD_TUTORIAL_PORT": str(port)}

    def capture(self) -> Capture | str:
        """Begin to note packets, or say why that cannot be."""
        if self.sockets is None:
            return (
                "The packets were not seen, as the process is in another network than this one: run"
                " it with -- COMMAND in place of --pid."
            )
        try:
            return Capture(self.sockets(socket.AF_PACKET, socket.SOCK_RAW), self.device)
        except OSError as error:
            why = f"{self.device}: {error.strerror or error}"
            return f"The packets were not seen at {why}: run it as root, or in a lab."


def in_lab(lab: Lab) -> Spot:
    text = f"a lab's device ({lab.kind}), MTU {lab.mtu}"
    return Spot(lab.device, lab.mtu, text, lab.counters, lab.socket, lab)


def at_process(pid: int, stack: contextlib.ExitStack) -> Spot:
    """A process that runs already: its device is the one that sends most, where it is."""
    try:  # of its network, also when it has ended
        table = stack.enter_context(os.fdopen(os.open(f"/proc/{pid}/net/dev", os.O_RDONLY)))
    except OSError:
        raise click.ClickException(
            f"process {pid} has ended, or this user may not see it"
        ) from None

    def counted() -> dict[str, Counters]:
        table.seek(0)
        text, found = table.read(), dict[str, Counters]()
        for name in (line.partition(":")[0].strip() for line in text.splitlines()[2:]):
            kind = "loopback" if name == "lo" else "interface"
            if one := Counters.parse(text, name, kind):
                found[name] = one
        return found

    before = counted()
    time.sleep(_FIND_S)
    sent = {name: (one - before.get(name, one)).bytes for name, one in counted().items()}
    device, mtu, is_here = max(sent, key=sent.__getitem__), 1500, False
    with contextlib.suppress(OSError):
        is_here = os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
        if is_here:
            mtu = int(Path("/sys/class/net", device, "mtu").read_text())
    mtu = _NETWORKS if device == "lo" else mtu
    text = f"{device}, which has sent most where process {pid} is"
    sockets = socket.socket if is_here else None
    return Spot(device, mtu, text, lambda: counted()[device], sockets, None, pid)
