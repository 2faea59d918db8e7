# SPDX-License-Identifier: BSD-3-Clause
"""Where a sender is watched: in a lab, at a real interface, or wherever it runs already."""

import abc
import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from spead_tutorial.lab import Counters, Lab
from spead_tutorial.tools.why.capture import Capture
from spead_tutorial.tools.why.tasks import family

__all__ = ["AtInterface", "AtProcess", "InLab", "Spot", "end", "environment"]

_PACKETS_UNSEEN = (
    "The packets were not seen, as this user may not listen at {}: run it as root, or in a lab."
)


class Spot(abc.ABC):
    """Where a sender sends to, and how it is seen there."""

    text: str  # what it is called
    device: str  # the name of the device
    # what to tell senders; None where that is their own business
    destination: tuple[str, int] | None = None

    def start(self, argv: Sequence[str], **how: Any) -> Any:
        """Start a program; as ``subprocess.Popen``."""
        return subprocess.Popen(argv, **how)

    @abc.abstractmethod
    def counters(self) -> Counters:
        """Read the counters of the device."""

    @abc.abstractmethod
    def mtu(self) -> int:
        """Return the largest packet that the device takes, in bytes."""

    def capture(self) -> Capture | str:
        """Begin to note packets, or say why that cannot be."""
        try:
            return Capture(socket.socket(socket.AF_PACKET, socket.SOCK_RAW), self.device)
        except OSError:
            return _PACKETS_UNSEEN.format(self.device)


class InLab(Spot):
    """A lab of the command's own."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.device = lab.device
        self.destination = lab.address, lab.port
        self.text = f"a lab's device ({lab.kind}), MTU {lab.mtu}"

    def start(self, argv: Sequence[str], **how: Any) -> Any:
        return self.lab.popen(argv, **how)

    def counters(self) -> Counters:
        return self.lab.counters()

    def mtu(self) -> int:
        return self.lab.mtu

    def capture(self) -> Capture | str:
        try:
            raw = self.lab.socket(socket.AF_PACKET, socket.SOCK_RAW)
            return Capture(raw, self.device)
        except OSError as error:
            return f"The packets were not seen: {error.strerror or error}."


class AtInterface(Spot):
    """An interface of this machine."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.counters()  # raises where there is none
        self.text = f"{device}, MTU {self.mtu()}, which others may use, too"

    def counters(self) -> Counters:
        return _counted(Path("/proc/net/dev"), self.device)

    def mtu(self) -> int:
        return int(Path("/sys/class/net", self.device, "mtu").read_text())


#: The kind of device that counts what is sent into it as received, and as dropped.
_SWALLOWS = "ifb"


class AtProcess(Spot):
    """A process that runs already: its device is the one that sends most, where it is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._table = Path(f"/proc/{pid}/net/dev")
        self.device, self._kind = "lo", "loopback"
        try:
            self._before = self._all()
        except OSError:
            raise click.ClickException(f"this user may see no process {pid}") from None
        self.text = ""

    def settle(self) -> None:
        """Take the device that has sent most since the process was found, and name it."""
        grown = {name: now - self._before.get(name, now) for name, now in self._all().items()}
        if not any(counted.tx_packets for counted in grown.values()):
            taken = {name: one for name, one in grown.items() if one.rx_dropped}
            grown |= {name: dataclasses.replace(one, kind=_SWALLOWS) for name, one in taken.items()}
        self.device = max(grown, key=lambda name: grown[name].bytes)
        self._kind = grown[self.device].kind
        self.text = f"{self.device}, which has sent most where process {self.pid} is"

    def _all(self) -> dict[str, Counters]:
        names = [line.partition(":")[0].strip() for line in _lines(self._table)]
        return {name: _counted(self._table, name) for name in names}

    def counters(self) -> Counters:
        return dataclasses.replace(_counted(self._table, self.device), kind=self._kind)

    def mtu(self) -> int:
        if self._is_here():
            with contextlib.suppress(OSError):
                return int(Path("/sys/class/net", self.device, "mtu").read_text())
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
        if not self._is_here():
            return (
                "The packets were not seen, as the process is in another network than this one:"
                " run it with -- COMMAND in place of --pid."
            )
        return super().capture()


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[2:]


def _counted(table: Path, device: str) -> Counters:
    kind = "loopback" if device == "lo" else "interface"
    counters = Counters.parse(table.read_text(), device, kind)
    if counters is None:
        raise click.UsageError(f"there is no interface {device!r} here")
    return counters


def end(process: Any, patience_s: float = 1.0) -> None:
    """End a program and all that it started: as Ctrl-C does, then as ``kill``, then for good."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        for pid in family(process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)


def environment(destination: tuple[str, int] | None) -> Mapping[str, str]:
    """Return a sender's environment, which says where to send to."""
    if destination is None:
        return dict(os.environ)
    host, port = destination
    return {**os.environ, "SPEAD_TUTORIAL_HOST": host, "SPEAD_TUTORIAL_PORT": str(port)}
