# SPDX-License-Identifier: BSD-3-Clause
"""The process that holds the networks of a lab that stays, for as long as there is a note of it.

It does nothing but be there: it starts nothing, and needs no right that any process has. It locks
its note, so that everybody sees whether it lives; who enters the lab opens this process's
namespaces, which the kernel lets this user alone do.
"""

import contextlib
import fcntl
import json
import os
import signal
import struct
import sys

from .namespaces import libc, move_into

_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LOOK_S = 1.0


def shed_rights() -> None:
    """Give up every capability for good, root's too."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.capset(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def described(path: str) -> dict[str, object]:
    """Say which network is at a path of this process."""
    there = os.stat(f"/proc/self/{path}")
    return {"path": path, "device": there.st_dev, "inode": there.st_ino}


def write_note(folder: int, name: str, facts: dict[str, object]) -> int:
    """Write the whole note, and only then let it be found; return it, open and locked."""
    begun = f".{os.getpid()}"
    note = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=folder)
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(note, json.dumps(facts).encode())
        os.rename(begun, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(begun, dir_fd=folder)
        raise
    return note


def hold(folder: int, name: str, note: int) -> None:
    """Wait until the note is removed, or a signal tells to end, which then removes it."""
    while os.fstat(note).st_nlink and signal.sigtimedwait(_ENDING, _LOOK_S) is None:
        pass
    with contextlib.suppress(OSError):
        if os.path.samestat(os.stat(name, dir_fd=folder), os.fstat(note)):
            os.unlink(name, dir_fd=folder)


def main(folder: str, name: str, facts: str, sender: str, *receiver: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        user, net, *others = (
            os.open(f"/proc/{helper}/ns/{kind}", os.O_RDONLY)
            for helper, kind in ((sender, "user"), (sender, "net"), *((r, "net") for r in receiver))
        )
        move_into(user, net)
        shed_rights()
        networks = [described(path) for path in ("ns/net", *(f"fd/{fd}" for fd in others))]
        more = {"holder": os.getpid(), "networks": networks}
        note = write_note(int(folder), name, json.loads(facts) | more)
    except OSError as error:
        sys.exit(error.strerror)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # their end says that it is there
        os.dup2(nothing, stream)
    hold(int(folder), name, note)
