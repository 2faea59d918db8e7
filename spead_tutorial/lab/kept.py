# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: they are made, looked at and ended by one process after the other."""

import contextlib
import dataclasses
import errno
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .client import Client
from .counters import Counters
from .descriptors import moved
from .device import ADDRESS, ADDRESS6, PORT
from .door import Door, GoneError, MissingError, check_name, folder, is_name, locked, opened
from .keeper import NOTE
from .lab import Lab
from .refusal import LabError

_PATIENCE_S = 2.0  # for programs to end by themselves
_LIMIT_S = 10.0
_LOOK_S = 0.01


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A program that runs in a lab."""

    pid: int  # its process id
    name: str  # the kernel's name for it

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """What is known of a lab that stays."""

    name: str  # the lab's
    problem: str | None = None  # why nothing else is known; None where the lab is there
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)  # what it is
    programs: tuple[Program, ...] = ()  # what runs in it


@contextlib.contextmanager
def room(name: str) -> Iterator[int]:
    """Make room for a lab of a name, and yield the opened folder of labs, which is locked."""
    check_name(name)
    with folder(make=True) as place, locked(place):
        try:
            with Door(place, name):
                raise LabError(
                    f"there is a lab {name!r} already: spead-tutorial lab down {name} ends it"
                )
        except MissingError:
            pass
        except GoneError:
            with _left(place, name) as nets:
                if running := _programs(nets):
                    raise LabError(
                        f"of a lab {name!r}, whose process was killed, there is still"
                        f" {', '.join(map(str, running))}: spead-tutorial lab down {name} ends it"
                    ) from None
            _unlink(place, name)
        yield place


def make(lab: Lab, place: int, name: str) -> None:
    """Have a lab stay when its object is closed."""
    try:
        _note(place, name, lab._networks())
        lab._keep(place, name)
        with Door(place, name):
            pass  # it lets in who wants to enter
    except OSError as error:
        raise LabError(f"the lab cannot stay: {error.strerror or error}") from None
    except BaseException:
        _unlink(place, name)  # with which it ends
        raise


def names() -> list[str]:
    """Return the names of this user's labs, those that are gone as well."""
    try:
        with folder() as place:
            return sorted(name for name in os.listdir(place) if is_name(name))
    except MissingError:
        return []


def look(name: str) -> State:
    """Look at a lab."""
    try:
        with opened(name) as door:
            device = door.facts["device"]
            counters = Counters.parse(door.facts["counters"], device, door.facts["kind"])
            assert counters is not None
            facts = {
                "kind": door.facts["kind"],
                "device": device,
                "receiver": door.facts["receiver"],
                "address": ADDRESS,
                "address6": ADDRESS6 if door.facts["ipv6"] else None,
                "port": PORT,
                "mtu": door.facts["mtu"],
                "rootless": door.facts["rootless"],
                "since": door.facts["since"],
                "packets": counters.packets,
                "bytes": counters.bytes,
                "keeper": door.facts["keeper"],
            }
            return State(name, None, facts, tuple(_programs(door.networks, door.facts["keeper"])))
    except LabError as error:
        return State(name, str(error))


@dataclasses.dataclass(frozen=True, slots=True)
class Ended:
    """What became of a lab."""

    was_gone: bool  # whether its process had been killed before
    programs: tuple[Program, ...]  # what ran in it, and was ended


def end(name: str) -> Ended:
    """End a lab and all that runs in it, and return what that was.

    Of a lab that is gone, the socket is removed, and what still runs in its networks is ended.
    """
    check_name(name)
    with folder() as place, locked(place):
        try:
            door = Door(place, name)
        except GoneError:
            with _left(place, name) as nets:
                ended = _end_all(name, nets)
            _unlink(place, name)
            return Ended(True, ended)
        with door:
            ended = _end_all(name, door.networks, door)
            return Ended(False, tuple(one for one in ended if one.pid != door.facts["keeper"]))


def _end_all(name: str, nets: Sequence[int], door: Door | None = None) -> tuple[Program, ...]:
    """End what is in a lab's networks, after the process that lets others in, if there is one."""
    if _is_in(nets, "self"):
        raise LabError(f"this is the lab {name!r} itself: end it from outside")
    try:
        if door is not None:
            door.end_lab()
        return _end_programs(nets)
    except BaseException:  # Ctrl-C: later nobody could tell any more what was in the lab
        _signal_all(nets, signal.SIGKILL)
        raise


def _unlink(place: int, name: str) -> None:
    for one in (name, NOTE.format(name)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(one, dir_fd=place)


# ---------------------------------------------------------------------------------------
# What is left where the keeper was killed


def _note(place: int, name: str, networks: list[dict[str, Any]]) -> None:
    """Write down which networks a lab has."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = moved(os.open(NOTE.format(name), flags, 0o600, dir_fd=place))
    with os.fdopen(fd, "w") as file:
        json.dump(networks, file)


def _noted(place: int, name: str) -> list[dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        fd = moved(os.open(NOTE.format(name), os.O_RDONLY | os.O_NOFOLLOW, dir_fd=place))
        with os.fdopen(fd) as file:
            found: list[dict[str, Any]] = json.load(file)
        return found
    return []


@contextlib.contextmanager
def _left(place: int, name: str) -> Iterator[list[int]]:
    """Open those networks of a lab that is gone in which something still runs."""
    with contextlib.ExitStack() as stack:
        nets = []
        for noted in _noted(place, name):
            net = _found(noted)
            if net is not None:
                stack.callback(os.close, net)
                if _is_that(name, noted, net):
                    nets.append(net)
        yield nets


def _found(noted: dict[str, Any]) -> int | None:
    """Open a network that something of this user's is in, by its number."""
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            there = path.stat()
            if (there.st_dev, there.st_ino) == (noted["device"], noted["inode"]):
                net = moved(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
                if os.fstat(net).st_ino == noted["inode"]:
                    return net
                os.close(net)
    return None


def _is_that(name: str, noted: dict[str, Any], net: int) -> bool:
    """Whether a network is the lab's, and not a later one that was given its number."""
    try:
        if noted["cookie"] is None:
            raise OSError(errno.ENOPROTOOPT, "before Linux 5.14 the kernel cannot tell")
        helper = Client()
        try:
            found, _ = helper.request("network", [net])
        finally:
            helper.close()
    except OSError as error:
        if not (running := _programs([net])):
            return False  # it has ended meanwhile
        pids = " ".join(str(program.pid) for program in running)
        raise LabError(
            f"the lab {name!r} is gone, for its process was killed, and whether"
            f" {', '.join(map(str, running))} is left of it is not known"
            f" ({error.strerror or error}): if so, kill {pids}, then say it again"
        ) from None
    return bool(found["cookie"] == noted["cookie"])


# ---------------------------------------------------------------------------------------
# What runs in it


def _is_in(nets: Sequence[int], process: int | str) -> bool:
    """Say whether a process is in one of a lab's network namespaces."""
    try:
        there = os.stat(f"/proc/{process}/ns/net")
    except OSError:
        return False  # has ended, or is none of this user's
    found = map(os.fstat, nets)
    return (there.st_dev, there.st_ino) in [(one.st_dev, one.st_ino) for one in found]


def _programs(nets: Sequence[int], keeper: int = 0) -> list[Program]:
    """List what runs in a lab, besides its keeper."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        if pid != keeper and _is_in(nets, pid):
            with contextlib.suppress(OSError):
                found.append(Program(pid, (path / "comm").read_text().strip()))
    return found


def _end_programs(nets: Sequence[int]) -> tuple[Program, ...]:
    """End what runs in a lab: first it is asked to, then it has to."""
    ended: dict[Program, None] = {}
    begun = time.monotonic()
    last = None
    while found := _programs(nets):
        waited = time.monotonic() - begun
        number = signal.SIGTERM if waited < _PATIENCE_S else signal.SIGKILL
        if set(found) - ended.keys() or number != last:
            _signal_all(nets, number)
            ended |= dict.fromkeys(found)
            last = number
        if waited > _LIMIT_S:
            raise LabError(f"the lab is down, but this does not end: {', '.join(map(str, found))}")
        time.sleep(_LOOK_S)
    return tuple(ended)


def _signal_all(nets: Sequence[int], number: signal.Signals) -> None:
    for program in _programs(nets):
        _signal(program, nets, number)


def _signal(program: Program, nets: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to a program in a lab, and to no other that has its number."""
    with contextlib.suppress(OSError):
        process = moved(os.pidfd_open(program.pid))
        try:
            if _is_in(nets, program.pid):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
