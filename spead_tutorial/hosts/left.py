# SPDX-License-Identifier: BSD-3-Clause
"""Waits until nothing is left on a host of an engine, its nanny, and what they had begun.

All of them have the engine's folder in their environment. This text goes to the host by ssh.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

__all__ = ["wait"]

_LOOK_S = 0.05


def _left(folder: str, of: bytes = b"") -> list[int]:
    """List the processes that have a folder in their environment, and a word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it has just ended
            if (
                folder.encode() in (path / "environ").read_bytes()
                and of in (path / "cmdline").read_bytes()
            ):
                found.append(int(path.name))
    return found


def _end(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def wait(folder: str, seconds: float) -> None:
    """End engines, wait for so long for what they had begun, and then end that, too."""
    until = time.monotonic() + seconds
    _end(_left(folder, b"ipyparallel"), signal.SIGTERM)
    while found := _left(folder):
        if time.monotonic() > until:
            _end(found, signal.SIGKILL)
            return
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    wait(sys.argv[1], float(sys.argv[2]))
