# SPDX-License-Identifier: BSD-3-Clause
"""Where the labs are that stay, and how one gets into them."""

import contextlib
import fcntl
import json
import os
import re
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .descriptors import moved
from .refusal import LabError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_ANSWER_S = 5.0
_PEER = struct.Struct("iII")  # pid, uid, gid


class MissingError(LabError):
    """There is no lab of that name."""


class GoneError(LabError):
    """Only the socket is left of a lab: the process that kept it was killed."""


def is_name(name: str) -> bool:
    """Say whether a lab can have a name."""
    return _NAME.fullmatch(name) is not None


def check_name(name: str) -> str:
    """Return the name of a lab; a ValueError says what is wrong with it."""
    if not is_name(name):
        raise ValueError(
            f"{name!r} is no name for a lab: take up to 32 letters, digits, dots, dashes and"
            " underscores, a letter or digit first"
        )
    return name


def _place() -> Path:
    """Return the path of this user's folder of labs."""
    user = os.geteuid()
    for runtime in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}"):
        # Under sudo and su it may be another user's.
        with contextlib.suppress(OSError):
            if os.path.isabs(runtime) and _is_of_this_user_alone(os.stat(runtime)):
                return Path(runtime, "spead-tutorial")
    return Path(tempfile.gettempdir(), f"spead-tutorial-{user}")


def _is_of_this_user_alone(folder: os.stat_result) -> bool:
    return folder.st_uid == os.geteuid() and not folder.st_mode & 0o077


@contextlib.contextmanager
def folder(*, make: bool = False) -> Iterator[int]:
    """Open this user's folder of labs, in which nobody else can have put anything."""
    path = _place()
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                path.mkdir(0o700)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise MissingError("there is no lab that stays: spead-tutorial lab up") from None
    except OSError as error:
        raise LabError(f"{path}, the folder of labs: {error.strerror}") from None
    fd = moved(fd)
    try:
        found = os.fstat(fd)
        if not _is_of_this_user_alone(found):
            raise LabError(
                f"{path} is not yours alone (it is user {found.st_uid}'s, mode"
                f" {stat.S_IMODE(found.st_mode):04o}): remove it, or set XDG_RUNTIME_DIR to a"
                " folder that is"
            )
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(folder: int) -> Iterator[None]:
    """Make or end labs one at a time."""
    # Opened anew: a lock is shared by all copies of a descriptor, and a lab's keeper has one.
    fd = moved(os.open(f"/proc/self/fd/{folder}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        with contextlib.suppress(OSError):  # the file system has no locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class Door:
    """The way into a lab that stays; open while the lab is there."""

    def __init__(self, folder: int, name: str) -> None:
        self.name = name
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection = socket.socket(fileno=moved(self.connection.detach()))
        self.spaces: list[int] = []
        try:
            self.facts = self._connect(folder)
        except BaseException:
            self.close()
            raise

    def _connect(self, folder: int) -> dict[str, Any]:
        self.connection.settimeout(_ANSWER_S)
        try:
            # By way of the folder: a socket's own path can have 107 characters.
            self.connection.connect(f"/proc/self/fd/{folder}/{self.name}")
            data, given, _, _ = socket.recv_fds(
                self.connection, 1 << 16, 8, socket.MSG_CMSG_CLOEXEC
            )
        except FileNotFoundError:
            raise MissingError(
                f"there is no lab {self.name!r}: spead-tutorial lab up {self.name}"
            ) from None
        except (ConnectionRefusedError, ConnectionResetError):
            data, given = b"", []
        except (TimeoutError, BlockingIOError):
            raise LabError(
                f"the lab {self.name!r} gives no answer: let its process go on, or end it"
                f"{self._keeper()}"
            ) from None
        self.spaces = [moved(fd) for fd in given]
        if not data:
            raise GoneError(
                f"the lab {self.name!r} is gone, for its process was killed: spead-tutorial lab"
                f" down {self.name} ends what is left of it"
            )
        facts: dict[str, Any] = json.loads(data)
        return facts

    def _keeper(self) -> str:
        with contextlib.suppress(OSError):
            asked = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            return f" (kill -CONT, or kill -KILL, {_PEER.unpack(asked)[0]})"
        return ""

    @property
    def has_second_machine(self) -> bool:
        """Whether the lab has a receiver that is in a network namespace of its own."""
        return bool(self.facts["receiver"]) and self.facts["kind"] != "loopback"

    @property
    def networks(self) -> list[int]:
        """The network namespaces: the sender's, and the receiver's where it has its own."""
        return [self.spaces[0], *self.spaces[-1:]] if self.has_second_machine else self.spaces[:1]

    def descriptors(self, *, receiver: bool = False) -> list[int]:
        """What a process needs to get in: the connection, the network's and the user namespace."""
        users = self.spaces[1:2] if self.facts["rootless"] else []
        return [self.connection.fileno(), self.networks[-1 if receiver else 0], *users]

    def end_lab(self) -> None:
        """Have the lab's process end, so that nobody else gets in."""
        self.connection.settimeout(_ANSWER_S)
        try:
            self.connection.send(b"end")
            self.connection.recv(1)
        except TimeoutError:
            raise LabError(f"the lab {self.name!r} does not end{self._keeper()}") from None
        except OSError:
            return  # has ended by itself

    def close(self) -> None:
        """Close it; may be called again."""
        self.connection.close()
        while self.spaces:
            os.close(self.spaces.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextlib.contextmanager
def opened(name: str) -> Iterator[Door]:
    """Open the door of this user's lab of a name."""
    check_name(name)
    try:
        with folder() as place, Door(place, name) as door:
            yield door
    except MissingError:
        raise MissingError(f"there is no lab {name!r}: spead-tutorial lab up {name}") from None
