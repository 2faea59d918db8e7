# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run in a lab, as objects of the process that had them started."""

import contextlib
import itertools
import os
import select
import signal
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import IO, Any, Self

from .device import LabError
from .helper import Client

#: By which programs are known, to helpers, before they know process ids.
_TOKENS = itertools.count()


class LabProcess:
    """A program that runs in a lab; made by `Lab.popen`.

    Attributes
    ----------
    args : list of str
        The program and its arguments.
    pid : int
        Its process id.
    stdin, stdout, stderr : file object or None
        Our ends of those streams that were asked for as pipes.
    returncode : int or None
        Exit status, or minus the signal that ended it; None until `poll` or `wait` saw
        the end.
    """

    def __init__(
        self,
        helper: Client,
        args: list[str],
        ours: Sequence[IO[Any] | None],
        theirs: Sequence[int],
        **how: Any,
    ) -> None:
        self.args = args
        self.pid = -1
        self.stdin, self.stdout, self.stderr = ours
        self.returncode: int | None = None
        self._helper = helper
        self._token = next(_TOKENS)
        self._reading = threading.Lock()
        self._status, end = os.pipe2(os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._status)
        try:
            fds = end, *theirs
            self.pid = helper.request("popen", fds, token=self._token, argv=args, **how)
        except BaseException:
            # Ctrl-C may come while the answer is under way: the program runs already.
            with contextlib.suppress(LabError):
                self._signal(signal.SIGKILL)
            raise
        finally:
            os.close(end)

    def __repr__(self) -> str:
        return f"<LabProcess {self.args[0]!r} pid={self.pid} returncode={self.returncode}>"

    def poll(self) -> int | None:
        """Return the exit status, or minus the signal that ended it; None while it runs."""
        return self._wait(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program's end and return its exit status.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which ``subprocess.TimeoutExpired`` is raised; the program goes on.
        """
        status = self._wait(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to the program; nothing happens where it has ended.

        Parameters
        ----------
        number : int
            The signal, such as ``signal.SIGINT``.
        """
        if self.poll() is None:
            self._signal(number)

    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program (SIGKILL)."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close our ends of the pipes and wait; after an exception, end the program first."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                # The program need not have read all that was written to it.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if kind is not None:
            self.kill()
        self.wait()

    def _signal(self, number: int) -> None:
        self._helper.request("signal", token=self._token, number=int(number))

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
            return None
        with self._reading:
            if self.returncode is None:
                # Nothing in the pipe: the helper itself is gone, and its programs with it.
                self.returncode = int(os.read(self._status, 32) or -signal.SIGKILL)
        return self.returncode


def end_interrupted(process: "LabProcess | subprocess.Popen[str]") -> None:
    """After Ctrl-C, give a program the time to end by itself, then end it."""
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
