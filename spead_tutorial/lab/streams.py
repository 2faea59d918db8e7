# SPDX-License-Identifier: BSD-3-Clause
"""The three standard streams, of this process and of programs in a lab."""

import os
import subprocess
from typing import IO, Any


def open_missing() -> None:
    """Open ``/dev/null`` in place of each stream that this process began without.

    Otherwise whatever is opened next would get the stream's number, and be taken for it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free


def stream_ends(
    number: int, stream: int | IO[Any] | None, text: bool
) -> tuple[IO[Any] | None, int]:
    """Return our end (if any) and the program's end of one of its three streams."""
    if stream == subprocess.PIPE:
        read, write = os.pipe2(os.O_CLOEXEC)
        ours, theirs = (write, read) if number == 0 else (read, write)
        mode = ("w" if number == 0 else "r") + ("" if text else "b")
        errors = "replace" if text else None  # a program may write anything
        return os.fdopen(ours, mode, -1 if text or number else 0, errors=errors), theirs
    # A file of ours that is not inheritable only happens to have the stream's number.
    if stream == subprocess.DEVNULL or (stream is None and not os.get_inheritable(number)):
        return None, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    return None, os.dup(
        number if stream is None else stream if isinstance(stream, int) else stream.fileno()
    )


def read_all(file: IO[bytes] | None, text: bool) -> Any:
    """Return all that a program wrote to a file of ours."""
    if file is None:
        return None
    file.seek(0)
    data = file.read()
    return data.decode(errors="replace") if text else data
