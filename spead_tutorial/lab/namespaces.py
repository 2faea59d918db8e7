# SPDX-License-Identifier: BSD-3-Clause
"""How a process gets into the namespaces of a lab, new or kept ones, and what runs in them.

Only a process with a single thread may enter a user namespace: so this is for programs that load
nothing with threads, see `helper.script`. As a program itself it becomes a command in a lab.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from .device import LabError, RefusedError

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PATIENCE_S = 2.0  # for programs to end by themselves
_LIMIT_S = 10.0
_LOOK_S = 0.01

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


def enter(holder: int, user: int, net: int) -> None:
    """Move into a lab that stays, by descriptors of the process that holds it and of these."""
    move_into(user, net)
    # To end a lab, that process is ended first; then it is seen who is inside.
    if select.select([holder], [], [], 0)[0]:
        raise OSError(errno.ENOENT, "the lab has been ended meanwhile")


def move_into(user: int, net: int) -> None:
    if _is_own("net", net):
        return
    for kind, namespace, number in (("user", user, _CLONE_NEWUSER), ("net", net, _CLONE_NEWNET)):
        if not _is_own(kind, namespace) and libc.setns(namespace, number) != 0:
            raise OSError(ctypes.get_errno(), not_from_here(os.strerror(ctypes.get_errno())))


def not_from_here(why: str) -> str:
    return (
        f"the lab cannot be entered from here ({why}): do it where it was made, in no other lab or"
        " container"
    )


# ---- What runs there ----


class Program(NamedTuple):
    """A program that runs in a lab."""

    pid: int  # its process id
    name: str  # the kernel's name for it

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def network_at(path: str | int) -> Network:
    """Return which network a path or a descriptor leads to."""
    there = os.stat(path)
    return there.st_dev, there.st_ino


def is_in(networks: Collection[Network], process: int | str) -> bool:
    try:
        return network_at(f"/proc/{process}/ns/net") in networks
    except OSError:
        return False  # has ended, or is none of this user's


def programs(networks: Collection[Network], besides: int = 0) -> tuple[Program, ...]:
    """List what runs in networks, besides the process that holds them."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        if path.name != str(besides) and is_in(networks, path.name):
            with contextlib.suppress(OSError):
                # The kernel cuts a name after 15 bytes, even in the middle of a letter.
                name = (path / "comm").read_bytes().decode(errors="replace").strip()
                found.append(Program(int(path.name), name))
    return tuple(found)


def end_programs(networks: Collection[Network]) -> tuple[Program, ...]:
    """End what runs in networks, and return what that was: first it is asked to, then it has to."""
    ended: dict[Program, None] = {}
    begun = time.monotonic()
    last = None
    while found := programs(networks):
        waited = time.monotonic() - begun
        number = signal.SIGTERM if waited < _PATIENCE_S else signal.SIGKILL
        if set(found) - ended.keys() or number != last:
            signal_programs(networks, number)
            ended |= dict.fromkeys(found)
            last = number
        if waited > _LIMIT_S:
            raise LabError(f"the lab is down, but this does not end: {', '.join(map(str, found))}")
        time.sleep(_LOOK_S)
    return tuple(ended)


def signal_programs(networks: Collection[Network], number: signal.Signals) -> None:
    """Send a signal to what runs in networks, and to nothing else that has its process id."""
    for program in programs(networks):
        with contextlib.suppress(OSError):
            process = os.pidfd_open(program.pid)
            try:
                if is_in(networks, program.pid):
                    signal.pidfd_send_signal(process, number)
            finally:
                os.close(process)


# ---- As a program ----


def main(fds: str, *command: str) -> None:
    """Become a command in a lab that stays; end the process with a line where that cannot be."""
    entered = [int(fd) for fd in fds.split(",")]
    try:
        enter(*entered)
    except OSError as error:
        sys.exit(f"spead-tutorial: {error.strerror}")
    for fd in entered:
        os.close(fd)
    # What Python ignores or takes for itself is none of the command's business.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        if number != signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"spead-tutorial: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
