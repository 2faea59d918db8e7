# SPDX-License-Identifier: BSD-3-Clause
"""The process that keeps a lab which stays, and lets its user's programs in.

`helper.py` starts this file as a script, in the lab, and ends; this process does nothing but be
there. Whoever connects to its socket is told what the lab is, and given its namespaces, to enter
them by itself. So this process starts nothing, and needs no right that any process has.

The lab ends when it is told so, by a message or a signal, and when its socket is removed, as the
system does when its user has left for good.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
CAPABILITY_VERSION_3 = 0x20080522
IN_MOVED_FROM, IN_DELETE = 0x40, 0x200
PEER = struct.Struct("iII")  # pid, uid, gid
NOTE = ".{}"  # the file that says which networks a lab has

libc = ctypes.CDLL(None)


def shed_rights() -> None:
    """Give up every capability for good, root's too."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.capset(struct.pack("Ii", CAPABILITY_VERSION_3, 0), bytes(24))


class Keeper:
    """Keeps the lab that it is in."""

    def __init__(
        self,
        listener: socket.socket,
        folder: int,
        name: str,
        facts: dict[str, object],
        others: list[int],
    ) -> None:
        self.listener, self.folder, self.name, self.facts = listener, folder, name, facts
        self.inode = self.socket_inode()
        spaces = ["net", "user"] if facts["rootless"] else ["net"]
        self.spaces = [os.open(f"/proc/self/ns/{space}", os.O_RDONLY) for space in spaces] + others
        self.guests: dict[int, socket.socket] = {}

    def socket_inode(self) -> int:
        """Return the number of the file that has the socket's name; 0 where there is none."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False).st_ino
        except OSError:
            return 0

    def keep(self) -> None:
        """Let everybody in who may, until the lab is to end."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        # Where the system has no watch left to give, the lab is there until it is told to end.
        watch = libc.inotify_init1(os.O_CLOEXEC)
        libc.inotify_add_watch(watch, b"/proc/self/fd/%d" % self.folder, IN_MOVED_FROM | IN_DELETE)
        if watch >= 0:
            poll.register(watch, select.POLLIN)
        while self.socket_inode() == self.inode:
            for fd, _ in poll.poll():
                if fd == watch:
                    os.read(watch, 4096)
                elif fd == self.listener.fileno():
                    self.greet(poll)
                else:
                    guest = self.guests.pop(fd)
                    poll.unregister(fd)
                    with guest, contextlib.suppress(OSError):
                        if guest.recv(16) == b"end":
                            return

    def greet(self, poll: select.poll) -> None:
        """Tell a guest what the lab is, and hand it over."""
        try:
            guest, _ = self.listener.accept()
        except OSError:
            return  # has left again
        guest.setblocking(False)  # who does not listen is not waited for
        asked = guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        with contextlib.suppress(OSError):
            if PEER.unpack(asked)[1] == os.geteuid():
                with open("/proc/self/net/dev") as file:
                    said = self.facts | {"keeper": os.getpid(), "counters": file.read()}
                socket.send_fds(guest, [json.dumps(said).encode()], self.spaces)
                self.guests[guest.fileno()] = guest
                poll.register(guest, select.POLLIN)
                return
        guest.close()

    def leave(self) -> None:
        """Take the socket away, if it is still ours, and what is noted of the lab."""
        if self.socket_inode() == self.inode != 0:
            for name in (self.name, NOTE.format(self.name)):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=self.folder)


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    shed_rights()
    listener, folder, name, facts, *others = sys.argv[1:]
    keeper = Keeper(
        socket.socket(fileno=int(listener)),
        int(folder),
        name,
        json.loads(facts),
        [int(fd) for fd in others],
    )
    keeper.listener.listen()  # again: the kernel tells who connects which process did so last
    try:
        keeper.keep()
    finally:
        keeper.leave()


if __name__ == "__main__":
    main()
