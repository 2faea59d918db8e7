# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run, to their end or at the same time, and what they said."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, Self

from spead_tutorial.lab import LabProcess
from spead_tutorial.lab.process import end_interrupted

READY = "listening on"  #: What a receiver says as soon as it listens.
_REST_S = 5  # for what a program that has ended had written
_START_S = 60  # until a receiver listens, on a machine that has other things to do
_ON_CORE = """import os, signal, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])"""
#: How a program is started: as `LabMachine.popen` does it, or ``subprocess.Popen``.
Start = Callable[..., LabProcess | subprocess.Popen[str]]


class ProgramError(RuntimeError):
    """A program cannot be run; the text says why and what to do about it."""


def signal_name(number: int) -> str:
    """Return what a signal is called; those of real time have no names."""
    names = {one.value: one.name for one in signal.Signals}
    return names.get(number, f"signal {number}")


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """A program that has ended."""

    program: str  #: What complaints call it.
    status: int  #: Exit status, or minus the signal that ended it.
    output: str  #: What it wrote to its standard output.
    errors: str  #: What it wrote to its standard error.

    @property
    def said(self) -> dict[str, Any]:
        """The JSON object that it printed last; empty where it printed none."""
        lines = [line for line in self.output.splitlines() if line.startswith("{")]
        try:
            return dict(json.loads(lines[-1])) if lines else {}
        except (ValueError, RecursionError):
            return {}

    @property
    def failure(self) -> str:
        """How it ended, for those who have seen what it had to say."""
        if self.status < 0:
            return f"{self.program}: it was ended by {signal_name(-self.status)}"
        return f"{self.program} has failed, with status {self.status}"

    @property
    def complaint(self) -> str:
        """What it has to say of its failure, in one line."""
        if self.status < 0:
            return self.failure
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        if self.status == 0:
            return f"{self.program}: it printed no report, but {self.output.strip()[:200]!r}"
        if not lines:
            return f"{self.program}: it ended with status {self.status} and said nothing"
        last = lines[-1]
        return last if last.startswith(self.program) else f"{self.program}: {last}"


def _environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a program's environment: this process's, and what is given besides."""
    # NumPy's linear algebra would start threads, which look for work for a tenth of a second: on a
    # core that is to send or to receive.
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, **(more or {})}


def finish(
    run: Callable[..., subprocess.CompletedProcess[Any]],
    name: str,
    argv: Sequence[str],
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
    **how: Any,
) -> Done:
    """Run a program to its end by a function such as a place's, and keep what it said.

    After the timeout, in seconds, it is ended, and has failed. Its environment has what is given
    besides this process's.
    """
    env = _environment(environment)
    try:
        done = run(argv, capture_output=True, text=True, timeout=timeout, env=env, **how)
    except subprocess.TimeoutExpired:
        return Done(name, 1, "", f"it did not end within {timeout:g} s")
    except OSError as error:
        raise ProgramError(f"{name} cannot be started: {error.strerror or error}") from None
    return Done(name, done.returncode, done.stdout, done.stderr)


class Running:
    """A program whose lines are kept; a context manager that leaves none behind."""

    _says_ready = READY

    def __init__(
        self,
        start: Start,
        name: str,
        argv: Sequence[str],
        show: Callable[[str, str, bool], None] | None = None,
        *,
        core: int | None = None,
    ) -> None:
        self._name, self._show = name, show
        self._ready = threading.Event()
        self._lines: tuple[list[str], list[str]] = [], []
        pipe = subprocess.PIPE
        if core is not None:  # before it begins: threads that have begun stay where they are
            argv = [sys.executable, "-I", "-S", "-c", _ON_CORE, str(core), *argv]
        try:
            self.process = start(argv, stdout=pipe, stderr=pipe, text=True, env=_environment())
        except OSError as error:
            raise ProgramError(f"{name} cannot be started: {error.strerror or error}") from None
        streams = self.process.stdout, self.process.stderr
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in zip(streams, self._lines, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def lines(self) -> list[str]:
        """What it has written to its standard output so far."""
        return self._lines[0]

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line)
            if self._says_ready in line:
                self._ready.set()
            try:
                if self._show is not None:
                    self._show(self._name, line.rstrip("\n"), lines is self._lines[1])
            except OSError:  # no reader is left, as `head` has seen enough, or no room
                self._show = None
        self._ready.set()  # or else it has ended

    def wait(self, timeout: float | None = None) -> Done:
        """Wait for its end, and return what it has said; it is ended where it takes too long."""
        late = ""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            late = f"{self._name}: it did not end within {timeout:g} s\n"
            self.process.kill()
        status = self.process.wait()
        self._finish_reading()
        output, errors = ("".join(lines) for lines in self._lines)
        return Done(self._name, 1 if late else status, output, errors + late)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None or self.process.poll() is None:
            with contextlib.suppress(Exception):
                if isinstance(error, KeyboardInterrupt):  # a receiver says what has come
                    self.process.send_signal(signal.SIGINT)  # if no terminal has done so
                    end_interrupted(self.process)
                self.process.kill()
            self.process.wait()
        self._finish_reading()
        streams = self.process.stdout, self.process.stderr
        for stream, reader in zip(streams, self._readers, strict=True):
            if stream is not None and not reader.is_alive():
                stream.close()

    def _finish_reading(self) -> None:
        """Read what is left; a program that it has started and left behind may never end it."""
        for reader in self._readers:
            reader.join(_REST_S)


class Listening(Running):
    """One that receives: the block begins when it listens."""

    def __enter__(self) -> Self:
        try:
            self._ready.wait(_START_S)
            if not any(self._says_ready in line for lines in self._lines for line in lines):
                done = self.wait(1)
                raise ProgramError(done.complaint if self._show is None else done.failure)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self
