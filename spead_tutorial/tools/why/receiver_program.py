# SPDX-License-Identifier: BSD-3-Clause
"""A receiver that runs in a lab: when it listens, what its sockets have room for, what it says."""

import contextlib
import ctypes
import dataclasses
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import click

from spead_tutorial.tools.why.facts import Socket
from spead_tutorial.tools.why.places import InLab
from spead_tutorial.tools.why.process import Output, end, name_of, start
from spead_tutorial.tools.why.profilers import naming

#: What a receiver gets until it listens.
_START_S = 20.0
_LOOK_S = 0.02
_SETTLE_S = 0.2  # for a receiver to close its socket after the end of a stream
_END_S = 1.0  # until one has ended that hears nothing any more


# ---- Its sockets ----


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """A UDP socket that the kernel lists."""

    inode: int
    port: int
    queued: int  # bytes in it, with what the kernel needs besides


def bound(pid: int, port: int | None = None) -> list[Bound]:
    """List the UDP sockets in the network of a process, of all ports or one."""
    found = []
    for table in ("udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                at = int(words[1].rpartition(":")[2], 16)
                if port in (None, at):
                    found.append(Bound(int(words[9]), at, int(words[4].partition(":")[2], 16)))
    return found


_PIDFD_GETFD = 438
_UDP_GRO = 104


def sockets(pids: Sequence[int], port: int) -> tuple[Socket, ...]:
    """Ask the sockets at a port what they have room for, by copies of their descriptors."""
    wanted = {f"socket:[{one.inode}]": one.inode for one in bound(pids[0], port)}
    made = {inode: Socket(inode, port) for inode in wanted.values()}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inode = wanted.pop(os.readlink(descriptor), None)
                    if inode is not None:
                        made[inode] = _asked(made[inode], pid, int(descriptor.name))
    return tuple(made.values())


def _asked(one: Socket, pid: int, number: int) -> Socket:
    process = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, number, 0)
    finally:
        os.close(process)
    if copy < 0:  # this user may not
        return one
    with socket.socket(fileno=copy) as its:
        merges = None
        with contextlib.suppress(OSError):  # a kernel without it
            merges = bool(its.getsockopt(socket.IPPROTO_UDP, _UDP_GRO))
        return dataclasses.replace(
            one, buffer=its.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), merges=merges
        )


# ---- Running it ----


class Program:
    """A receiver in a lab: it is started when it is needed, as it may end with each stream."""

    def __init__(self, argv: Sequence[str], spot: InLab, under: Sequence[str] = ()) -> None:
        self.name, self.spot, self.lab = name_of(argv), spot, spot.lab
        self._argv = [*under, *argv]
        self._process: Any = None
        self.output = Output()

    def __enter__(self) -> Self:
        self.output.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.__exit__()

    def end(self, patience_s: float = 0.0) -> None:
        """End it, when it had some time to end by itself."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
            end(self._process)

    def listening(self) -> int:
        """Return its process, which listens; it is started where none does."""
        if self._process is not None and not bound(self._process.pid, self.lab.port):
            self.end(_END_S)
            self._process = None
        if self._process is None:
            self._start()
        return int(self._process.pid)

    def settle(self) -> None:
        """Wait until it has read what has come, and has closed its socket if that was the end."""
        until = time.monotonic() + _SETTLE_S
        while time.monotonic() < until:
            if not bound(self._process.pid, self.lab.port):
                return
            time.sleep(_LOOK_S)

    def _start(self) -> None:
        popen = self.lab.receiver.popen
        environment = self.spot.environment | naming()
        self._process = start(popen, self._argv, self.output, environment)
        late = time.monotonic() + _START_S
        while not bound(self._process.pid, self.lab.port):
            if (status := self._process.poll()) is not None:
                how = f"by signal {-status}" if status < 0 else f"with status {status}"
                said = [f"{self.name} ended {how} before it listened", *self.output.lines()[-1:]]
                raise click.ClickException(": ".join(said))
            if time.monotonic() > late:
                others = sorted({one.port for one in bound(self._process.pid)})
                where = f", but at {', '.join(map(str, others))}" if others else ""
                raise click.ClickException(
                    f"{self.name} did not listen at UDP port {self.lab.port} within"
                    f" {_START_S:g} s{where}: say where in its arguments ({{host}} and {{port}}"
                    " stand for it), or let it read SPEAD_TUTORIAL_HOST and SPEAD_TUTORIAL_PORT"
                )
            time.sleep(_LOOK_S)
