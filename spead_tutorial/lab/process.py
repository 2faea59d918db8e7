# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run in a lab, as children of the process that started them."""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any


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
