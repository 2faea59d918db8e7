# SPDX-License-Identifier: BSD-3-Clause
"""The sockets of a receiver: which there are, and what they have room for."""

import contextlib
import ctypes
import dataclasses
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from spead_tutorial.tools.why.facts import Socket


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


def copied(pid: int, number: int) -> socket.socket:
    """Return a copy of a process's socket; who may look into it may have it, others an OSError."""
    process = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, number, 0)
    finally:
        os.close(process)
    if copy < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return socket.socket(fileno=copy)


def _asked(one: Socket, pid: int, number: int) -> Socket:
    with copied(pid, number) as its:
        merges = None
        with contextlib.suppress(OSError):  # a kernel without it
            merges = bool(its.getsockopt(socket.IPPROTO_UDP, _UDP_GRO))
        return dataclasses.replace(
            one, buffer=its.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), merges=merges
        )
