# SPDX-License-Identifier: BSD-3-Clause
"""The socket of another process, to see in it what a chapter's program holds and drops."""

import ctypes
import os
import socket
from pathlib import Path

from spead_tutorial.measure.programs import ProgramError

__all__ = ["socket_of"]

_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


def socket_of(pid: int, name: str) -> socket.socket:
    """Return a copy of the UDP socket that a process has; who may look into it may have that."""
    with open(os.pidfd_open(pid), "rb") as process:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if not os.readlink(link).startswith("socket:"):
                continue
            fd = _libc.syscall(_PIDFD_GETFD, process.fileno(), int(link.name), 0)
            if fd < 0:
                why = os.strerror(ctypes.get_errno())
                raise ProgramError(f"the socket of {name} cannot be looked at: {why}")
            sock = socket.socket(fileno=fd)
            if (sock.family, sock.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                return sock
            sock.close()
    raise ProgramError(f"{name} listens, but has no UDP socket")
