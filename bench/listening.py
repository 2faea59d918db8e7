# SPDX-License-Identifier: BSD-3-Clause
"""Chapters' programs that receive, to be measured: they run in the lab, and lend their socket.

They listen at a port of their own, as whoever runs them has them do. What their socket holds and
drops is seen in a copy of its descriptor, which the kernel gives to whoever may look into them.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spead_tutorial.catalogue import find_receiver
from spead_tutorial.lab import Lab, LabProcess
from spead_tutorial.measure.case import Case
from spead_tutorial.measure.programs import Done, ProgramError, program

__all__ = ["claims", "ended", "is_chapter", "listening"]

_HOST = "127.0.0.1"
#: From this chapter on, they are told the size of heaps.
_TOLD_FROM = 9
#: After so much silence they end, should they not have seen that the stream has ended.
_SILENCE_S = 2
_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


def is_chapter(case: Case) -> bool:
    """Return whether a case's program is a chapter's that receives."""
    return find_receiver(case.program) is not None


@contextlib.contextmanager
def listening(lab: Lab, case: Case, core: int) -> Iterator[tuple[LabProcess, socket.socket]]:
    """Have a chapter's program listen, on a core; it does not outlive the block."""
    pipe = subprocess.PIPE
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    try:
        process = lab.popen(
            _words(lab, case),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            text=True,
        )
    except OSError as error:
        raise ProgramError(f"{case.program} cannot be started: {error.strerror}") from None
    with process:
        try:
            _wait_until_ready(process, case.program)
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), {core})
            with _socket_of(process.pid, case.program) as sock:
                yield process, sock
        finally:
            process.kill()


def _words(lab: Lab, case: Case) -> list[str]:
    receiver = find_receiver(case.program)
    assert receiver is not None
    with lab.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    told = ["-H", str(case.heap_size)] if receiver.number >= _TOLD_FROM else []
    silence = ["-t", str(_SILENCE_S)]
    return [*program(case.program, case.language), *told, *silence, "--json", f"{_HOST}:{port}"]


def _wait_until_ready(process: LabProcess, name: str) -> None:
    assert process.stderr is not None
    said = ""
    while line := process.stderr.readline():
        said += line
        if "listening on port" in line:
            return
    raise ProgramError(Done(name, process.wait(), "", said).complaint)


def _socket_of(pid: int, name: str) -> socket.socket:
    """Return the UDP socket that a process has."""
    with open(os.pidfd_open(pid), "rb") as process:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if not os.readlink(link).startswith("socket:"):
                continue
            fd = _libc.syscall(_PIDFD_GETFD, process.fileno(), int(link.name), 0)
            if fd < 0:
                why = os.strerror(ctypes.get_errno())
                raise ProgramError(f"the socket of {name} cannot be looked at: {why}")
            sock = socket.socket(fileno=fd)
            if (sock.family, sock.type) == (socket.AF_INET, socket.SOCK_DGRAM):
                return sock
            sock.close()
    raise ProgramError(f"{name} listens, but has no UDP socket")


def ended(name: str, process: LabProcess, timeout: float) -> Done:
    """Return what a program said that has ended, or is to end by itself now.

    That heaps are missing, of which its status tells, is no failure here.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        return Done(name, 1, "", f"{name}: it did not end within {timeout:g} s")
    output = process.stdout.read()
    return Done(name, 0 if status == 1 and output else status, output, process.stderr.read())


def claims(done: Done, case: Case, warm_up: int) -> dict[str, Any]:
    """Return what a chapter's program claims, in the words of the receivers that are measured.

    The heap with the descriptors is not one of those that were to be received. Where heaps go into
    chunks there is no place for it, and so it is not among those that are complete.
    """
    try:
        said = json.loads(done.output)
    except ValueError:
        return {}
    descriptors = 0 if said.get("packets_no_place") else 1
    heaps = max(0, said["heaps_complete"] - descriptors - warm_up)
    return {
        "packets": said["socket_datagrams"],
        "heaps": heaps,
        "payload_bytes": heaps * case.heap_size,
        "not_understood": max(0, said["heaps_not_understood"] - 1),
    }
