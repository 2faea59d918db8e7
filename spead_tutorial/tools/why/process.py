# SPDX-License-Identifier: BSD-3-Clause
"""A program that is watched: how it is started and ended, and what is kept of its output."""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import click

from spead_tutorial.tools.why.looks import family
from spead_tutorial.tools.why.profilers import forget_names, naming

#: What is said of a program that does not know with whom to speak.
SAY_WHERE = (
    "say where in its arguments ({host} and {port} stand for it), or let it read"
    " SPEAD_TUTORIAL_HOST and SPEAD_TUTORIAL_PORT"
)
#: What is kept of the end of what a program prints; a pipe's size, and how often it is emptied.
_KEPT, _PIPE, _EVERY_S = 1 << 16, 1 << 20, 5e-3


class Output:
    """What a program prints: its last part, from a pipe emptied now and then."""

    # A file would grow without end; who reads each line as it comes takes a core from the program.

    def __enter__(self) -> Self:
        self._last = b""
        self._pipe, self.to = os.pipe()
        os.set_blocking(self._pipe, False)
        with contextlib.suppress(OSError):  # this user has too many pipes
            fcntl.fcntl(self.to, fcntl.F_SETPIPE_SZ, _PIPE)
        self._over, self._lock = threading.Event(), threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._reader.join()
        os.close(self._pipe)
        os.close(self.to)

    def _read(self) -> None:
        while not self._over.wait(_EVERY_S):
            self._take()

    def _take(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            self._last = (self._last + os.read(self._pipe, _PIPE))[-_KEPT:]

    def lines(self) -> list[str]:
        self._take()
        said = self._last.decode(errors="replace").splitlines()
        return [line.strip() for line in said if line.strip()]


def end(process: Any, patience_s: float = 1.0) -> None:
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


class Program:
    """A program that is started where it is watched, again where it has ended."""

    def __init__(
        self, argv: Sequence[str], popen: Any, environment: Mapping[str, str], name: str = ""
    ) -> None:
        self.argv, self._popen, self._environment = tuple(argv), popen, environment
        scripts = [word for word in argv if word.endswith((".py", ".sh"))]
        self.name = name or Path([*scripts, *argv][0]).name
        self.output = Output()
        self._process: Any = None
        self.pids = list[int]()  # of all that ran

    def __enter__(self) -> Self:
        self.output.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.output.__exit__()
        forget_names(self.pids)

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def start(self, under: Sequence[str] = ()) -> None:
        """Start it, below another program if one is said; or say in a line why that cannot be."""
        nothing, to = subprocess.DEVNULL, self.output.to
        argv = [*under, *self.argv]
        try:
            self._process = self._popen(
                argv, stdin=nothing, stdout=to, stderr=to, env={**self._environment, **naming()}
            )
        except OSError as error:
            reason = f"{argv[0]}: {error.strerror or error}"
            raise click.ClickException(f"it cannot be started: {reason}") from None

    def end(self, patience_s: float = 0.0) -> None:
        """End it, when it had some time to end by itself."""
        if self._process is not None:
            self.pids += family(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
            end(self._process)
            self._process = None

    def check_status(self, when: str = "") -> None:
        """Refuse one that has failed; where a time is said, also one that has only ended by it."""
        status = self._process.wait()
        how = f"was ended by signal {-status}" if status < 0 else f"failed with status {status}"
        if status or when:
            said = [f"{self.name} {how if status else 'ended'}{when}", *self.output.lines()[-1:]]
            raise click.ClickException(": ".join(said))
