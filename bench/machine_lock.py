# SPDX-License-Identifier: BSD-3-Clause
"""One measurement at a time on a machine, whoever measures, and in whatever folder.

The lock is on a file that everybody can read, and ends with the process that has it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LOCK", "alone"]

#: Not where ``TMPDIR`` says: that may differ from user to user.
LOCK = Path("/tmp/spead-tutorial-measures")


@contextlib.contextmanager
def alone(path: Path = LOCK) -> Iterator[None]:
    """Have the machine for one sample; wait until nobody else has it."""
    fd = _opened(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a child may have the file open still
        os.close(fd)


def _opened(path: Path) -> int:
    while True:
        # Kernels refuse O_CREAT for what is another user's, in a folder that is everybody's.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC)
            os.fchmod(fd, 0o644)  # whatever the umask
            return fd
