# SPDX-License-Identifier: BSD-3-Clause
"""What runs in the networks of a lab that stays, whoever started it."""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from .device import LabError

_PATIENCE_S = 2.0  # for programs to end by themselves
_LIMIT_S = 10.0
_LOOK_S = 0.01

#: Device and inode of a network's file: no other network has them while this one is there.
Network = tuple[int, int]


class Program(NamedTuple):
    """A program that runs in a lab."""

    pid: int  # its process id
    name: str  # the kernel's name for it

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def is_in(networks: Collection[Network], process: int | str) -> bool:
    try:
        there = os.stat(f"/proc/{process}/ns/net")
    except OSError:
        return False  # has ended, or is none of this user's
    return (there.st_dev, there.st_ino) in networks


def programs(networks: Collection[Network], besides: int = 0) -> tuple[Program, ...]:
    """List what runs in networks, besides the process that holds them."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        if path.name != str(besides) and is_in(networks, path.name):
            with contextlib.suppress(OSError):
                # The kernel cuts a name after 15 bytes, in the middle of a letter, too.
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
