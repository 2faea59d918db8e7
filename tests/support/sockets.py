# SPDX-License-Identifier: BSD-3-Clause
"""UDP sockets on loopback."""

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def udp_socket(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    """Lend a socket with much room, that is bound to a port of the system's choice."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        sock.bind((host, 0))
        yield sock


def messages(sock: socket.socket) -> list[bytes]:
    """Take what waits in a socket: on loopback, all that was sent to it."""
    found = []
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(sock.recv(1 << 16))
    return found


def has_ipv6() -> bool:
    """Whether this machine has an address of IPv6."""
    with contextlib.suppress(OSError), udp_socket("::1"):
        return True
    return False


def free_port(host: str = "127.0.0.1") -> int:
    with udp_socket(host) as sock:
        return int(sock.getsockname()[1])
