# SPDX-License-Identifier: BSD-3-Clause
"""The three standard streams as a command needs them, however it was started."""

import os
import sys


def open_missing() -> None:
    """Open ``/dev/null`` in place of each stream that the process began without.

    Otherwise whatever is opened next would get the stream's number, and programs that are
    started later would write into it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for good)
