# SPDX-License-Identifier: BSD-3-Clause
"""How a process gets into the namespaces of a lab, and what runs in them.

Only a process with a single thread may enter a user namespace: so this is for programs that load
nothing with threads, see `helper.script`.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from .device import RefusedError

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_END_S, _PATIENCE_S = 0.001, 5.0  # in which what was killed may end, and has to

#: Device and inode of a network's file: no other network has them while this one is there.
Network = tuple[int, int]

libc = ctypes.CDLL(None, use_errno=True)
#: Descriptors of the networks that this process has made beside its own, and folders, which end
#: with it.
held: list[int] = []
folders: list[str] = []


# ---- Getting in ----


def make_namespaces() -> bool:
    """Move into a new network namespace; return whether it also needed a user namespace."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and libc.unshare(_CLONE_NEWNET) == 0:
        return False
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        raise RefusedError("namespace", ctypes.get_errno())
    # The same ids inside as outside: programs in the lab see the user that started them.
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as error:
        raise RefusedError("namespace", error.errno or 0) from error
    return True


def make_namespace_beside(process: int) -> None:
    """Move into a new network namespace, of the same user namespace as a process's."""
    user = os.open(f"/proc/{process}/ns/user", os.O_RDONLY)
    try:
        entered = _is_own("user", user) or libc.setns(user, _CLONE_NEWUSER) == 0
    finally:
        os.close(user)
    if not entered or libc.unshare(_CLONE_NEWNET) != 0:
        raise RefusedError("namespace", ctypes.get_errno())


def hold_networks(count: int) -> list[int]:
    """Make networks beside this process's own, and return a descriptor of each."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        for _ in range(count):
            if libc.unshare(_CLONE_NEWNET) != 0:
                raise RefusedError("namespace", ctypes.get_errno())
            held.append(os.open("/proc/self/ns/net", os.O_RDONLY))
    finally:
        libc.setns(own, _CLONE_NEWNET)
        os.close(own)
    return held


@contextlib.contextmanager
def inside(network: int) -> Iterator[None]:
    """Be in a network that this process holds for a ``with`` block."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        if libc.setns(network, _CLONE_NEWNET) != 0:
            raise RefusedError("namespace", ctypes.get_errno())
        yield
    finally:
        libc.setns(own, _CLONE_NEWNET)
        os.close(own)


def _is_own(kind: str, namespace: int) -> bool:
    return os.path.samestat(os.stat(f"/proc/self/ns/{kind}"), os.fstat(namespace))


# ---- What is there ----


def open_socket(family: int, kind: int) -> socket.socket:
    return socket.socket(family, kind)


def make_folder() -> str:
    """Make a folder for the lab's programs."""
    folders.append(tempfile.mkdtemp(prefix="spead-tutorial-"))
    return folders[-1]


def remove_folders(there: Collection[str]) -> None:
    """Remove folders, once the programs are killed that write there."""
    for folder in there:
        shutil.rmtree(folder, ignore_errors=True)


def read_table(table: str) -> str:
    """Read what the kernel says of this process's network."""
    return Path("/proc/self/net", table).read_text()


def network_at(path: str | int) -> Network:
    """Return which network a path or a descriptor leads to."""
    there = os.stat(path)
    return there.st_dev, there.st_ino


def is_in(networks: Collection[Network], process: int) -> bool:
    try:
        return network_at(f"/proc/{process}/ns/net") in networks
    except OSError:
        return False  # has ended, or is none of this user's


def kill_programs(networks: Collection[Network]) -> None:
    """Kill what runs in networks, but this process, until nothing is left that can be killed."""
    until = time.monotonic() + _PATIENCE_S
    while sum(_kill(int(path.name), networks) for path in Path("/proc").glob("[0-9]*")):
        if time.monotonic() > until:
            return
        time.sleep(_END_S)


def _kill(pid: int, networks: Collection[Network]) -> bool:
    """Kill a process if it is in one of these networks, and none that has its number since."""
    if pid == os.getpid() or not is_in(networks, pid):
        return False
    with contextlib.suppress(OSError), open(os.pidfd_open(pid)) as process:
        if is_in(networks, pid):
            signal.pidfd_send_signal(process.fileno(), signal.SIGKILL)
        return True
    return False
