# SPDX-License-Identifier: BSD-3-Clause
"""Which labs of this user's stay: a folder has a note of each, which the lab's `holder` locks."""

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .device import LabError
from .namespaces import Network, Program, not_from_here, programs

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_OPEN = os.O_RDONLY | os.O_CLOEXEC
_READ = _OPEN | os.O_NOFOLLOW


class MissingError(LabError):
    """There is no lab of that name."""


class GoneError(LabError):
    """Only the note is left of a lab: the process that held it was killed."""

    def __init__(self, name: str, left: Sequence[Program] = ()) -> None:
        #: What may be left in its networks; or in others, that have got their numbers since.
        self.left = left
        less = f", and may have left {', '.join(map(str, left))}" if left else ""
        super().__init__(
            f"the lab {name!r} is gone, for its process was killed{less}: spead-tutorial lab down"
            f" {name} forgets it"
        )


def check_name(name: str) -> str:
    """Return the name of a lab; a ValueError says what is wrong with it."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name for a lab: take up to 32 letters, digits, dots, dashes and"
            " underscores, a letter or digit first"
        )
    return name


# ---- The folder ----


def _path() -> Path:
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
    path = _path()
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                path.mkdir(0o700)
        fd = os.open(path, _READ | os.O_DIRECTORY)
    except FileNotFoundError:
        raise MissingError("there is no lab that stays: spead-tutorial lab up") from None
    except OSError as error:
        raise LabError(f"{path}, the folder of labs: {error.strerror}") from None
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
def locked(place: int) -> Iterator[None]:
    """Make or end labs one at a time."""
    # Opened anew: a lock is shared by all copies of a descriptor, and a lab's holder has one.
    fd = os.open(f"/proc/self/fd/{place}", _OPEN | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # the file system has no locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def names() -> list[str]:
    """Return the names of this user's labs, those that are gone as well."""
    try:
        with folder() as place:
            return sorted(name for name in os.listdir(place) if _NAME.fullmatch(name))
    except MissingError:
        return []


def forget(place: int, name: str) -> None:
    """Remove the note of a lab."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)


# ---- A lab ----


@dataclasses.dataclass(frozen=True, slots=True)
class StayingLab:
    """A lab that stays, and descriptors, so that none of it becomes another's meanwhile."""

    facts: dict[str, Any]  # what its note says
    networks: list[Network]  # the sender's, and the receiver's where that has its own
    holder: int  # the process that holds it
    user: int  # its user namespace
    nets: list[int]  # its networks

    def way_in(self, *, receiver: bool = False) -> list[int]:
        """What a process needs to enter, see `namespaces.enter`."""
        return [self.holder, self.user, self.nets[-1 if receiver else 0]]


@contextlib.contextmanager
def opened(name: str, place: int | None = None) -> Iterator[StayingLab]:
    """Open this user's lab of a name, in the folder of labs where that is open already."""
    check_name(name)
    with contextlib.ExitStack() as stack:

        def kept(fd: int) -> int:
            stack.callback(os.close, fd)
            return fd

        try:
            place = stack.enter_context(folder()) if place is None else place
            note = kept(os.open(name, _READ, dir_fd=place))
        except (MissingError, FileNotFoundError):
            raise MissingError(f"there is no lab {name!r}: spead-tutorial lab up {name}") from None
        except OSError:
            raise GoneError(name) from None  # something else has the name: a link, or a socket
        facts = _read(note)
        networks = [(one["device"], one["inode"]) for one in facts["networks"]]
        try:
            pid = facts["holder"]
            holder, user = kept(os.pidfd_open(pid)), kept(os.open(f"/proc/{pid}/ns/user", _OPEN))
            paths = [f"/proc/{pid}/{one['path']}" for one in facts["networks"]]
            nets = [kept(os.open(path, _OPEN)) for path in paths]
            found = [(one.st_dev, one.st_ino) for one in map(os.fstat, nets)]
            problem = None if found == networks else "it is not to be seen"
        except OSError as error:
            problem = error.strerror
        # While that process has its note locked, its number has become no other's.
        if not _is_locked(note):
            raise GoneError(name, programs(networks))
        if problem:
            raise LabError(not_from_here(problem))
        yield StayingLab(facts, networks, holder, user, nets)


def _read(note: int) -> dict[str, Any]:
    """Read a note; one of which this cannot be said is of no lab that there is."""
    with os.fdopen(os.dup(note)) as file, contextlib.suppress(ValueError):
        facts: dict[str, Any] = json.load(file)
        return facts
    return {"holder": 0, "networks": []}


def _is_locked(note: int) -> bool:
    try:
        fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
