# SPDX-License-Identifier: BSD-3-Clause
"""Scripts that load the lab without the compiled core, as root and as an ordinary user."""

import contextlib
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from spead_tutorial import lab
from support.processes import python_for_anyone
from support.typed import Typed, run

UDP_SEGMENT = 103

#: Far more than anything here takes: to fail instead of hanging.
PATIENCE_S = 60

#: Scripts load the lab without its package: they must not depend on the compiled core.
LOAD = f"""
import os, signal, socket, subprocess, sys, types
package = sys.modules["spead_tutorial"] = types.ModuleType("spead_tutorial")
package.__path__ = [{str(Path(lab.__file__).parent.parent)!r}]
from spead_tutorial import lab as lab_module
Lab = lab_module.Lab
"""


def script(text: str) -> list[str]:
    return [sys.executable, "-c", LOAD + textwrap.dedent(text)]


def run_script(text: str, before: Sequence[str] = ()) -> Typed:
    """Run a script to its end, by another program if it is to be."""
    return run(*before, *script(text), timeout=PATIENCE_S)


@contextlib.contextmanager
def begun(text: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Start a script in a session of its own; yield it, and the words it prints first."""
    with subprocess.Popen(
        script(text),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_the_end_of(pids: list[int], act: object) -> None:
    """Call `act`, then wait until all processes have ended."""
    fds = [os.pidfd_open(pid) for pid in pids]
    try:
        act()  # type: ignore[operator]
        for pid, fd in zip(pids, fds, strict=True):
            assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} still runs"
    finally:
        for fd in fds:
            os.close(fd)


def send_gso(sock: socket.socket, segment: int, data: bytes, to: tuple[str, int]) -> None:
    try:
        sock.sendmsg([data], [(socket.SOL_UDP, UDP_SEGMENT, struct.pack("H", segment))], 0, to)
    except OSError as error:
        if error.errno == errno.EINVAL:
            pytest.skip("this kernel has no UDP_SEGMENT")
        raise


def said_to_an_ordinary_user(text: str) -> list[str]:
    """Run a script with a lab, as a user who is not root; return the words that it prints."""
    python, how = python_for_anyone()
    done = run(python, *script(text)[1:], **how)
    if "forbids this user" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.stderr == ""
    return done.stdout.split()
