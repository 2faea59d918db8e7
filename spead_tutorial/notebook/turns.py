# SPDX-License-Identifier: BSD-3-Clause
"""Notebooks that measure take turns: two at once would measure each other."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from spead_tutorial._shown import shown

_OTHER = "another notebook"


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Have no other notebook of this user measure, for the time of a ``with`` block.

    While another one does, this says which, and waits. The lock ends with its process, however that
    ends. Where no file can be locked, nobody waits.
    """
    name = Path(os.environ.get("JPY_SESSION_NAME", _OTHER)).stem  # as Jupyter's server calls it
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    path = Path(folder, f"spead-tutorial-{os.getuid()}-measures")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            file = stack.enter_context(open(os.open(path, flags, 0o600), "r+", encoding="utf-8"))
            _lock(file.fileno(), path)
            file.truncate(0)
            file.write(name)
            file.flush()
        yield


def _lock(fd: int, path: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = shown(path.read_text(encoding="utf-8", errors="replace"), 60) or _OTHER
        words = f"Waiting for {who}, which measures: two at once would disturb each other."
        print(words, flush=True)
        fcntl.flock(fd, fcntl.LOCK_EX)
