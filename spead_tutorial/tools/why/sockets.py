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

_PIDFD_GETFD = 438
_UDP_GRO = 104


def bound(pid: int, port: int | None = None) -> list[Socket]:
    """List the UDP sockets in the network of a process, of all ports or one."""
    found = []
    for table in ("udp", "udp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                at, queued = (int(words[i].rpartition(":")[2], 16) for i in (1, 4))
                if port in (None, at):
                    found.append(Socket(int(words[9]), at, queued=queued))
    return found


def sockets(pids: Sequence[int], port: int) -> tuple[Socket, ...]:
    """Ask the sockets at a port what they have room for, by copies of their descriptors."""
    made = {f"socket:[{one.inode}]": one for one in bound(pids[0], port)}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    its = made.get(name := os.readlink(descriptor))
                    if its is not None and its.buffer is None:
                        made[name] = _asked(its, pid, int(descriptor.name))
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
        buffer = its.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        return dataclasses.replace(one, buffer=buffer, merges=merges)
