# SPDX-License-Identifier: BSD-3-Clause
"""The conversation with the process that is inside a lab."""

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Self

from .device import LabError, RefusedError
from .namespaces import signal_programs

_FOLDER = str(Path(__file__).resolve().parent)
#: Takes this folder for a package by itself, without the one around it, which has threads, and a
#: compiled core, without which a lab works; and runs one of its modules.
_LOAD = """\
import importlib, sys, types
sys.modules["lab"] = types.ModuleType("lab")
sys.modules["lab"].__path__ = [sys.argv[1]]
importlib.import_module("lab." + sys.argv[2]).main(*sys.argv[3:])
"""
_MESSAGE_BYTES = 1 << 20
_ANSWER_S = 30.0  # far more than any answer takes: after it the helper is taken for dead


def script(module: str, *arguments: str, options: Sequence[str] = ("-I", "-S")) -> list[str]:
    """Return the words that run a module of this folder as a program, in a single thread."""
    return [sys.executable, *options, "-c", _LOAD, _FOLDER, module, *arguments]


def open_missing() -> None:
    """Open ``/dev/null`` in place of each stream that this process began without.

    Otherwise whatever is opened next would get the stream's number, and be taken for it.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free


class Client:
    """The helper process and the conversation with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serial = 0
        open_missing()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (the finalizer closes it)
        try:
            # It needs pyroute2, from wherever this process has it.
            process = subprocess.Popen(
                script("helper", str(theirs.fileno()), str(os.getpid()), options=("-P",)),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
                process_group=0,  # what kills ours as a whole leaves it what it has to undo
            )
        except OSError as error:
            self._channel.close()
            self._log.close()
            raise LabError(f"the lab's helper cannot be started: {error}") from None
        finally:
            theirs.close()
        self.pid = process.pid
        self._networks: list[int] = []  # that are its own: one, once it has made it
        self._finalizer = weakref.finalize(
            self, _end_helper, self._channel, self._log, self._networks, process, os.getpid()
        )
        self._channel.settimeout(_ANSWER_S)

    @property
    def is_open(self) -> bool:
        return self._finalizer.alive

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def make_network(self, op: str, **fields: Any) -> Any:
        """Have it move into a network of its own, with which all programs there end."""
        made = self.request(op, **fields)
        with contextlib.suppress(OSError):
            self._networks.append(os.open(f"/proc/{self.pid}/ns/net", os.O_RDONLY))
        return made

    def socket(self, family: int, kind: int) -> socket.socket:
        """Have a socket made there."""
        _, (made,) = self._ask("socket", (), {"family": int(family), "kind": int(kind)})
        return socket.socket(fileno=made)

    def request(self, op: str, fds: Sequence[int] = (), **fields: Any) -> Any:
        """Ask for something, and return the answer."""
        return self._ask(op, fds, fields)[0]

    @contextlib.contextmanager
    def done(self, op: str, undo: dict[str, Any], **fields: Any) -> Iterator[None]:
        """Have something done for a ``with`` block, and undone also if this process is killed."""
        self.request(op, undo=undo, **fields)
        try:
            yield
        finally:
            self.request(**undo)

    def _ask(self, op: str, fds: Sequence[int], fields: dict[str, Any]) -> tuple[Any, list[int]]:
        with self._lock:
            if not self.is_open:
                raise LabError("the lab is closed: open a new one")
            self._serial += 1
            try:
                answer, given = self._exchange({"id": self._serial, "op": op, **fields}, fds)
            except TimeoutError:
                raise LabError(
                    f"the lab's helper gave no answer to {op!r} in {_ANSWER_S:g} s: close the"
                    " lab and open a new one"
                ) from None
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise LabError(
                        "the program's arguments and environment are too large for the lab:"
                        " pass less in env"
                    ) from None
                answer, given = None, []
        if answer is None:
            raise LabError(f"the lab's helper has ended{self._last_words()}: open a new lab")
        if "refused" in answer:
            raise RefusedError(*answer["refused"])
        if "os" in answer:
            raise OSError(*answer["os"])
        if "bug" in answer:
            raise LabError(f"the lab's helper failed: {answer['bug']}")
        return answer["ok"], given

    def _exchange(
        self, request: dict[str, Any], fds: Sequence[int]
    ) -> tuple[dict[str, Any] | None, list[int]]:
        socket.send_fds(self._channel, [json.dumps(request).encode()], fds)
        while True:
            data, given, _, _ = socket.recv_fds(
                self._channel, _MESSAGE_BYTES, 8, socket.MSG_CMSG_CLOEXEC
            )
            answer: dict[str, Any] | None = json.loads(data) if data else None
            if answer is None or answer["id"] == request["id"]:
                return answer, given
            # The answer to a request that Ctrl-C cut short: nobody waits for it any more.
            for fd in given:
                os.close(fd)

    def _last_words(self) -> str:
        """Return the last line of what the helper wrote before it ended."""
        try:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
        except ValueError:  # closed meanwhile by another thread
            lines = []
        return f" ({lines[-1].strip()})" if lines else ""


def _end_helper(
    channel: socket.socket,
    log: IO[bytes],
    networks: list[int],
    helper: subprocess.Popen[bytes],
    owner: int,
) -> None:
    """End a lab: its helper sees the end of file, kills what runs there, and exits."""
    if os.getpid() != owner:
        for fd in networks:
            os.close(fd)
        channel.close()  # a fork's copy; the lab is its parent's
        return
    # Not close() alone: a fork of this process may have a copy of this end.
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()
    try:
        helper.wait(10)
    except BaseException as error:
        helper.kill()
        helper.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
    finally:
        if helper.returncode:  # it was killed before it could do so
            there = [(one.st_dev, one.st_ino) for one in map(os.fstat, networks)]
            signal_programs(there, signal.SIGKILL)
        for fd in networks:
            os.close(fd)
        log.close()
