# SPDX-License-Identifier: BSD-3-Clause
"""How to run a program that receives, and one that sends to it, beside each other in a lab."""

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, Self

from spead_tutorial.catalogue import Chapter, Receiver
from spead_tutorial.lab import Arrivals, Lab, LabProcess, LabSide
from spead_tutorial.lab.process import end_interrupted
from spead_tutorial.measure.programs import (
    Done,
    ProgramError,
    ProgramOptions,
    command,
    program,
)

__all__ = ["READY", "Running", "receive", "receiver_arguments"]

#: What a receiver says as soon as it listens.
READY = "listening on port"
_START_S = 60  # until a receiver listens, on a machine that has other things to do
_END_S = 60  # until one that heard the last of its sender has ended


def receive(
    lab: Lab,
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    *,
    told: Sequence[str] = (),
    as_json: bool = False,
    show: Callable[[str, str, bool], None] | None = None,
    bits_per_s: int | None = None,
) -> tuple[Done, Done]:
    """Run a receiver, then a sender to it, to the end of both."""
    machine = lab.receiver if sender.takes_destination else lab
    destination = (lab.address, lab.port) if sender.takes_destination else None
    sending = command(sender, languages[1], options, destination)
    receiving = [
        *program(receiver.name, languages[0]),
        *receiver_arguments(receiver, sender, options, told, as_json=as_json, port=lab.port),
    ]
    with Running(machine, receiver.name, receiving, show) as far:
        far.wait_until_ready()
        before = Arrivals.of(machine.snmp())
        link = lab.limited(bits_per_s) if bits_per_s else contextlib.nullcontext()
        with link, Running(lab, sender.name, sending, show) as near:
            near.wait(None)
        came = Arrivals.of(machine.snmp()) - before
        if near.process.returncode != 0 and not came.packets:
            far.process.terminate()  # it would wait for the first packet, for ever
        far.wait(_END_S)
    return far.done, near.done


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
    """A program on a machine, whose lines are kept; a context manager that leaves none behind."""

    def __init__(
        self,
        machine: LabSide,
        name: str,
        argv: Sequence[str],
        show: Callable[[str, str, bool], None] | None = None,
    ) -> None:
        self._name, self._show = name, show
        self._ready = threading.Event()
        self._lines: tuple[list[str], list[str]] = [], []
        pipe = subprocess.PIPE
        try:
            self.process: LabProcess = machine.popen(argv, stdout=pipe, stderr=pipe, text=True)
        except OSError as error:
            raise ProgramError(f"{name} cannot be started: {error.strerror or error}") from None
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

    def wait_until_ready(self) -> None:
        """Wait until it listens, or has said why it cannot."""
        self._ready.wait(_START_S)
        if not any(READY in line for line in self._lines[1]):
            self.wait(1)
            raise ProgramError(self.done.complaint if self._show is None else self.done.failure)

    def wait(self, timeout: float | None) -> None:
        """Wait for its end, and read all that it has said; it is ended where it takes too long."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join()

    @property
    def done(self) -> Done:
        """How it ended."""
        status = self.process.wait()
        return Done(self._name, status, *("".join(lines) for lines in self._lines))

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
