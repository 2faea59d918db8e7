# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: a folder has a note of each, locked by a process that holds its networks.

That process, the holder, does nothing but be there, for as long as there is the note: it starts
nothing, and needs no right that any process has. While it has its note locked, everybody sees that
it lives; who enters the lab opens its namespaces, which the kernel lets this user alone do.
"""

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .device import LabError
from .helper import script
from .namespaces import (
    Network,
    Program,
    end_programs,
    is_in,
    libc,
    move_into,
    network_at,
    not_from_here,
    programs,
    signal_programs,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_OPEN = os.O_RDONLY | os.O_CLOEXEC
_READ = _OPEN | os.O_NOFOLLOW
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LOOK_S = 1.0


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
    """Open this user's folder of labs, in which no other user can have put anything."""
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
    """Return the names of this user's labs, also of those that are gone."""
    try:
        with folder() as place:
            return sorted(name for name in os.listdir(place) if _NAME.fullmatch(name))
    except MissingError:
        return []


def forget(place: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=place)


# ---- A lab ----


class StayingLab(NamedTuple):
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
        pid, networks = facts["holder"], [(n["device"], n["inode"]) for n in facts["networks"]]
        try:
            holder, user = kept(os.pidfd_open(pid)), kept(os.open(f"/proc/{pid}/ns/user", _OPEN))
            paths = [f"/proc/{pid}/{one['path']}" for one in facts["networks"]]
            nets = [kept(os.open(path, _OPEN)) for path in paths]
            problem = "it is not to be seen" if list(map(network_at, nets)) != networks else None
        except OSError as error:
            problem = error.strerror
        # While that process has its note locked, its number has become no other's.
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
            raise GoneError(name, programs(networks))
        if problem:
            raise LabError(not_from_here(problem))
        yield StayingLab(facts, networks, holder, user, nets)


def _read(note: int) -> dict[str, Any]:
    """Read a note; one of which this cannot be said is of no lab that there is."""
    wrong = (ValueError, TypeError, KeyError)
    with os.fdopen(os.dup(note)) as file, contextlib.suppress(*wrong):
        facts: dict[str, Any] = json.load(file)
        there = [{"device", "inode", "path"} <= set(one) for one in facts["networks"]]
        if isinstance(facts["holder"], int) and all(there):
            return facts
    return {"holder": 0, "networks": []}


# ---- From up to down ----


@contextlib.contextmanager
def room(name: str) -> Iterator[int]:
    """Make room for a lab of a name, and yield the opened folder of labs, which is locked."""
    with folder(make=True) as place, locked(place):
        try:
            with opened(name, place):
                raise LabError(
                    f"there is a lab {name!r} already: spead-tutorial lab down {name} ends it"
                )
        except MissingError:
            pass
        except GoneError as gone:
            if gone.left:
                raise
            forget(place, name)
        yield place


def make(lab: Any, place: int, name: str) -> None:
    """Have a lab stay when its object is closed."""
    facts = json.dumps(lab._made | {"since": time.time()})
    helpers = [str(helper.pid) for helper in lab._helpers]
    try:
        holder = subprocess.Popen(
            script("staying", str(place), name, facts, *helpers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[place],
            cwd="/",
            start_new_session=True,  # neither a terminal's end nor its keys reach it
            text=True,
        )
        with holder.stdout as said:  # type: ignore[union-attr]
            problem = said.read()
        holder.returncode = 0  # it stays: there is no wait for it
        try:
            with opened(name, place):  # it lets in who wants to enter
                problem = ""  # what was said is of something else, such as a library
        except LabError:
            if not problem:
                raise
    except OSError as error:
        problem = error.strerror
    except BaseException:
        forget(place, name)  # with which it ends
        raise
    if problem:
        raise LabError(f"the lab cannot stay: {problem.splitlines()[-1]}")


def end(name: str) -> tuple[bool, Sequence[Program]]:
    """End a lab; return whether it was gone, and what ran in it or may be left of it."""
    with folder() as place, locked(place):
        try:
            with opened(name, place) as lab:
                if is_in(lab.networks, "self"):
                    raise LabError(f"this is the lab {name!r} itself: end it from outside")
                try:
                    with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                        signal.pidfd_send_signal(lab.holder, signal.SIGKILL)
                    select.select([lab.holder], [], [])  # no process gets in any more
                    ended = end_programs(lab.networks)
                except BaseException:  # Ctrl-C: later it could not be told what was in the lab
                    signal_programs(lab.networks, signal.SIGKILL)
                    raise
                finally:
                    forget(place, name)
                return False, ended
        except GoneError as gone:
            forget(place, name)
            return True, gone.left


# ---- The holder ----


def shed_rights() -> None:
    """Give up every capability for good, also root's."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.capset(struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def write_note(place: int, name: str, facts: dict[str, object]) -> int:
    """Write the whole note, and only then let it be found; return it, open and locked."""
    begun = f".{os.getpid()}"
    note = os.open(begun, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600, dir_fd=place)
    try:
        fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(note, json.dumps(facts).encode())
        os.rename(begun, name, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        os.unlink(begun, dir_fd=place)
        raise
    return note


def hold(place: int, name: str, note: int) -> None:
    """Wait until the note is removed, or a signal tells to end, which then removes it."""
    while os.fstat(note).st_nlink and signal.sigtimedwait(_ENDING, _LOOK_S) is None:
        pass
    with contextlib.suppress(OSError):
        if os.path.samestat(os.stat(name, dir_fd=place), os.fstat(note)):
            os.unlink(name, dir_fd=place)


def main(place: str, name: str, facts: str, *helpers: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    paths = [f"/proc/{helpers[0]}/ns/user", *(f"/proc/{helper}/ns/net" for helper in helpers)]
    try:
        user, net, *others = (os.open(path, os.O_RDONLY) for path in paths)
        move_into(user, net)
        shed_rights()
        networks = []
        for path in ("ns/net", *(f"fd/{fd}" for fd in others)):
            device, inode = network_at(f"/proc/self/{path}")
            networks.append({"path": path, "device": device, "inode": inode})
        more = {"holder": os.getpid(), "networks": networks}
        note = write_note(int(place), name, json.loads(facts) | more)
    except OSError as error:
        sys.exit(error.strerror)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # their end says that it is there
        os.dup2(nothing, stream)
    hold(int(place), name, note)
