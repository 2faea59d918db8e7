# SPDX-License-Identifier: BSD-3-Clause
"""File descriptors that are none of the three standard streams."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any


def duplicate(fd: int) -> int:
    """Return a copy of a descriptor that is none of the three standard streams.

    Where a process began without one of these, whatever it opens may get that number, and
    would be taken for the stream.
    """
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def moved(fd: int) -> int:
    """Return a descriptor, or a copy in its place where it has the number of a stream."""
    if fd > 2:
        return fd
    try:
        return duplicate(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def closing(fds: Sequence[int]) -> Iterator[None]:
    """Close descriptors at the end of a block."""
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


def pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return moved(read), moved(write)


def temporary_file() -> IO[bytes]:
    with tempfile.TemporaryFile() as file:
        return os.fdopen(duplicate(file.fileno()), "w+b")


def _hands_on(number: int) -> bool:
    """Say whether a program that this process executes would find the stream open."""
    try:
        return os.get_inheritable(number)  # not a file of ours that happens to have the number
    except OSError:
        return False


def stream_ends(
    number: int, stream: int | IO[Any] | None, text: bool
) -> tuple[IO[Any] | None, int]:
    """Return our end (if any) and the program's end of one of its three streams."""
    if stream == subprocess.PIPE:
        read, write = pipe()
        ours, theirs = (write, read) if number == 0 else (read, write)
        mode = ("w" if number == 0 else "r") + ("" if text else "b")
        return os.fdopen(ours, mode, -1 if text or number else 0), theirs
    if stream == subprocess.DEVNULL or (stream is None and not _hands_on(number)):
        return None, moved(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    fd = number if stream is None else stream if isinstance(stream, int) else stream.fileno()
    return None, duplicate(fd)


def read_all(file: IO[bytes] | None, text: bool) -> Any:
    """Return all that a program wrote to a file of ours."""
    if file is None:
        return None
    file.seek(0)
    data = file.read()
    return data.decode(errors="replace") if text else data
