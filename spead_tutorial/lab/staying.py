# SPDX-License-Identifier: BSD-3-Clause
"""Labs that stay: they are made, looked at and ended by one process after the other."""

import contextlib
import json
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import registry
from .counters import Counters
from .device import ADDRESS, ADDRESS6, PORT, LabError
from .helper import script
from .lab import Lab
from .namespaces import Program, end_programs, is_in, programs, signal_programs
from .registry import GoneError, MissingError


@contextlib.contextmanager
def room(name: str) -> Iterator[int]:
    """Make room for a lab of a name, and yield the opened folder of labs, which is locked."""
    registry.check_name(name)
    with registry.folder(make=True) as place, registry.locked(place):
        try:
            with registry.opened(name, place):
                raise LabError(
                    f"there is a lab {name!r} already: spead-tutorial lab down {name} ends it"
                )
        except MissingError:
            pass
        except GoneError as gone:
            if gone.left:
                raise
            registry.forget(place, name)
        yield place


def make(lab: Lab, place: int, name: str) -> None:
    """Have a lab stay when its object is closed."""
    facts = json.dumps(lab._made | {"since": time.time()})
    helpers = [str(helper.pid) for helper in lab._helpers]
    try:
        holder = subprocess.Popen(
            script("holder", str(place), name, facts, *helpers),
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
        holder.returncode = 0  # it stays: nobody waits for it
        try:
            with registry.opened(name, place):  # it lets in who wants to enter
                problem = ""  # what was said is of something else, such as a library
        except LabError:
            if not problem:
                raise
    except OSError as error:
        problem = error.strerror
    except BaseException:
        registry.forget(place, name)  # with which it ends
        raise
    if problem:
        raise LabError(f"the lab cannot stay: {problem.splitlines()[-1]}")


def look(name: str) -> dict[str, Any]:
    """Say what is known of a lab: where it is gone or missing, only which `problem` that is."""
    state: dict[str, Any] = {"name": name, "problem": None, "facts": {}, "programs": []}
    try:
        with registry.opened(name) as lab:
            holder, device, kind = (lab.facts[one] for one in ("holder", "device", "kind"))
            table = Path(f"/proc/{holder}/net/dev").read_text()
            counters = Counters.parse(table, device, kind)
            if counters is None:
                raise LabError(
                    f"its device {device} has been removed: spead-tutorial lab down {name} ends it"
                )
            same = ("kind", "device", "receiver", "mtu", "rootless", "since", "holder")
            state["facts"] = {one: lab.facts[one] for one in same} | {
                "address": ADDRESS,
                "address6": ADDRESS6 if lab.facts["ipv6"] else None,
                "port": PORT,
                "packets": counters.packets,
                "bytes": counters.bytes,
            }
            state["programs"] = programs(lab.networks, holder)
    except (LabError, OSError) as error:
        state["problem"] = str(error)
    return state


def end(name: str) -> tuple[bool, Sequence[Program]]:
    """End a lab; return whether it was gone, and what ran in it or may be left of it."""
    registry.check_name(name)
    with registry.folder() as place, registry.locked(place):
        try:
            with registry.opened(name, place) as lab:
                if is_in(lab.networks, "self"):
                    raise LabError(f"this is the lab {name!r} itself: end it from outside")
                try:
                    with contextlib.suppress(ProcessLookupError):  # has ended meanwhile
                        signal.pidfd_send_signal(lab.holder, signal.SIGKILL)
                    select.select([lab.holder], [], [])  # nobody gets in any more
                    ended = end_programs(lab.networks)
                except BaseException:  # Ctrl-C: later nobody could tell what was in the lab
                    signal_programs(lab.networks, signal.SIGKILL)
                    registry.forget(place, name)
                    raise
                registry.forget(place, name)
                return False, ended
        except GoneError as gone:
            registry.forget(place, name)
            return True, gone.left
