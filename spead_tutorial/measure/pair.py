# SPDX-License-Identifier: BSD-3-Clause
"""Programs that run beside each other: one that receives, and what sends to it."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Self

from spead_tutorial.catalogue import Chapter, Receiver
from spead_tutorial.lab import LabProcess
from spead_tutorial.lab.process import end_interrupted
from spead_tutorial.measure.programs import QUIET, Done, ProgramError, ProgramOptions

__all__ = ["READY", "Listening", "Running", "receiver_arguments"]

#: What a receiver says as soon as it listens.
READY = "listening on"
_START_S = 60  # until a receiver listens, on a machine that has other things to do
#: How a program is started: as `LabSide.popen` does it, or ``subprocess.Popen``.
_Start = Callable[..., LabProcess | subprocess.Popen[str]]


def receiver_arguments(
    receiver: Receiver,
    sender: Chapter,
    options: ProgramOptions,
    told: Sequence[str],
    *,
    as_json: bool,
    port: int,
) -> list[str]:
    """Return a receiver's arguments, with what it is told of the heaps that it is going to get."""
    sizes = ["-H", str(options.heap_size or sender.heap_size)] if "H" in receiver.accepted else []
    return [*sizes, *told, *["--json"] * as_json, str(port)]


class Running:
    """A program whose lines are kept; a context manager that leaves none behind."""

    def __init__(
        self,
        start: _Start,
        name: str,
        argv: Sequence[str],
        show: Callable[[str, str, bool], None] | None = None,
        *,
        core: int | None = None,
    ) -> None:
        self._name, self._show = name, show
        self._ready = threading.Event()
        self._lines: tuple[list[str], list[str]] = [], []
        pipe, env = subprocess.PIPE, {**QUIET, **os.environ}
        try:
            self.process = start(argv, stdout=pipe, stderr=pipe, env=env, text=True)
        except OSError as error:
            raise ProgramError(f"{name} cannot be started: {error.strerror or error}") from None
        if core is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                os.sched_setaffinity(self.process.pid, {core})  # and so its threads to come
        streams = self.process.stdout, self.process.stderr
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in zip(streams, self._lines, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line)
            if READY in line:
                self._ready.set()
            try:
                if self._show is not None:
                    self._show(self._name, line.rstrip("\n"), lines is self._lines[1])
            except BrokenPipeError:  # nobody looks any more: `head` has seen enough
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
        for reader in self._readers:
            reader.join()
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
        if kind is not None:
            with contextlib.suppress(Exception):
                if isinstance(error, KeyboardInterrupt):  # a receiver says what has come
                    self.process.send_signal(signal.SIGINT)  # if no terminal has done so
                    end_interrupted(self.process)
                self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Listening(Running):
    """One that receives: the block begins when it listens."""

    def __enter__(self) -> Self:
        try:
            self._ready.wait(_START_S)
            if not any(READY in line for line in self._lines[1]):
                done = self.wait(1)
                raise ProgramError(done.complaint if self._show is None else done.failure)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self
