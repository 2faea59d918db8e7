# SPDX-License-Identifier: BSD-3-Clause
"""How a process gets into the namespaces of a lab, and what runs in them.

Only a process with a single thread may enter a user namespace: so this is for programs that load
nothing with threads, see `helper.script`.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection
from pathlib import Path

from .device import RefusedError

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000

#: Device and inode of a network's file: no other network has them while this one is there.
Network = tuple[int, int]

libc = ctypes.CDLL(None, use_errno=True)


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


def _is_own(kind: str, namespace: int) -> bool:
    return os.path.samestat(os.stat(f"/proc/self/ns/{kind}"), os.fstat(namespace))


# ---- What runs there ----


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
    """Kill what runs in networks, and nothing else that has its process id."""
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        if is_in(networks, pid):
            with contextlib.suppress(OSError):
                process = os.pidfd_open(pid)
                try:
                    if is_in(networks, pid):
                        signal.pidfd_send_signal(process, signal.SIGKILL)
                finally:
                    os.close(process)
