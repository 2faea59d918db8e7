# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run in a lab, as children of the process that started them."""

import contextlib
import ctypes
import errno
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PIDFD_GETFD = 438


class LabProcess(subprocess.Popen[Any]):
    """A program that runs in a lab; made by `Lab.popen`.

    It is a ``subprocess.Popen``, with its streams as text where they are to be, but for one thing:
    where an exception leaves its ``with`` block, the program is killed rather than waited for.

    Attributes
    ----------
    args : list of str
        The program and its arguments.
    """

    args: list[str]

    def __init__(self, entering: list[str], args: list[str], **how: Any) -> None:
        check_program(args[0], how["env"], how["cwd"])
        super().__init__([*entering, *args], errors="replace" if how["text"] else None, **how)
        self.args = args

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:
            self.kill()
        # The program need not have read all that was written to it.
        with contextlib.suppress(BrokenPipeError):
            super().__exit__(kind, *rest)


def check_program(
    name: str, env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None
) -> None:
    """Raise what ``subprocess`` does without a program: what enters a lab finds out too late."""
    place = os.path.join(cwd or "", name) if os.path.dirname(name) else name
    path = (os.environ if env is None else env).get("PATH", os.defpath)
    if shutil.which(place, path=path) is None:
        number = errno.EACCES if os.path.exists(place) else errno.ENOENT
        raise OSError(number, os.strerror(number), name)


def end_interrupted(process: "subprocess.Popen[Any]", patience_s: float = 1.0) -> None:
    """After Ctrl-C, give a program the time to end by itself, then end it."""
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def family(pid: int) -> list[int]:
    """Return a process and all that it started, directly or not, as far as they still run."""
    found, unseen = [], [pid]
    while unseen:
        one = unseen.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                text = Path(f"/proc/{one}/task/{thread}/children").read_text()
                unseen += [int(child) for child in text.split()]
    return found


def end_family(process: "subprocess.Popen[Any]", patience_s: float = 1.0) -> None:
    """End a program and all that it started: as Ctrl-C does, then as ``kill``, then for good."""
    if process.poll() is not None:
        return
    # All are held from the beginning: those whose parent has ended are nobody's children then.
    held = []
    for pid in family(process.pid):
        with contextlib.suppress(OSError):
            held.append(os.pidfd_open(pid))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        for one in held:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(one, number)
        until = time.monotonic() + patience_s
        while len(select.select(held, [], [], 0)[0]) < len(held):  # one can be read that ended
            process.poll()  # which only ends when it has been asked for
            if time.monotonic() > until:
                break
            time.sleep(0.01)
    for one in held:
        os.close(one)
    with contextlib.suppress(subprocess.TimeoutExpired):  # another user's cannot be ended
        process.wait(patience_s)


def udp_sockets(pid: int) -> list[socket.socket]:
    """Return copies of the UDP sockets of a process; who may look into it may have them."""
    found, process = list[socket.socket](), os.pidfd_open(pid)
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has just been closed
                if not os.readlink(link).startswith("socket:"):
                    continue
                call = ctypes.CDLL(None, use_errno=True).syscall
                if (copy := call(_PIDFD_GETFD, process, int(link.name), 0)) < 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                one = socket.socket(fileno=copy)
                if one.type == socket.SOCK_DGRAM and one.family in (
                    socket.AF_INET,
                    socket.AF_INET6,
                ):
                    found.append(one)
                else:
                    one.close()
    finally:
        os.close(process)
    return found
