# SPDX-License-Identifier: BSD-3-Clause
"""Other machines: the file that says which there are, and commands on them.

``hosts.toml`` names the hosts. ssh starts commands there, or this machine does, and their lines of
JSON come back.
"""

import contextlib
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from spead_tutorial.measure.records import RecordError
from spead_tutorial.measure.running import signal_name

_Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^\0]+\Z")]
_GONE_S = 15  # longer than any command takes that has been told to end
#: It asks for no password, and ends when the other machine has not answered for 20 s.
_SSH = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
        "-o", "ServerAliveCountMax=4",
        # A connection of its own, without a terminal: it ends where its standard input does.
        "-o", "ControlPath=none", "-o", "RequestTTY=no"]  # fmt: skip


# ---- Which there are ----


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # what it is called in lines and in names of files
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")]
    # of the repository, there; None where we are
    folder: Annotated[str, msgspec.Meta(pattern=r"^/[^\0]*\Z")] | None = None
    python: _Text | None = None  # its Python; from the folder, if it is no whole path
    address: _Text | None = None  # what ssh is told; None for this machine
    # what goes before the command, such as `("ip", "netns", "exec", "a")`
    prefix: tuple[_Text, ...] = ()
    # the address to which packets for it are sent; None for that of `address`
    receives_at: _Text | None = None

    def __post_init__(self) -> None:
        if self.address and not self.folder:
            raise ValueError(f"{self.name} needs folder, the whole path of the repository there, or"
                             " of any folder where the package is installed")  # fmt: skip

    @property
    def destination(self) -> str | None:
        """Where packets for it are sent to; None where the file does not say."""
        if self.receives_at or self.address is None:
            return self.receives_at
        return self.address.rpartition("@")[2]

    @property
    def python_path(self) -> str:
        python = self.python or (".venv/bin/python" if self.address else sys.executable)
        return str(Path(self.folder or "", python))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    host: Annotated[list[Host], msgspec.Meta(min_length=1)]


def read_hosts(path: Path) -> list[Host]:
    try:
        hosts = msgspec.toml.decode(path.read_bytes(), type=_File).host
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} names no hosts as it should: {error}") from None
    names = [host.name for host in hosts]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RecordError(f"{path} has two hosts of the name {min(twice)}")
    return hosts


# ---- Commands on them ----


class LostError(Exception):
    """A host is not there any more, or cannot do what it was asked for."""


@contextlib.contextmanager
def started_whole() -> Iterator[None]:
    """Have Ctrl-C and the like wait until what is started has been handed to what ends it."""
    held = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {n: handler for n in held if callable(handler := signal.getsignal(n))}
    came: list[int] = []
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class Command:
    """A command on a host: it ends with its standard input, and so with us and the connection."""

    def __init__(self, host: Host, argv: Sequence[str], first: str) -> None:
        words = [*host.prefix, host.python_path, *argv]
        folder = host.folder
        if host.address and folder:
            if shutil.which("ssh") is None:
                raise RecordError("--hosts reaches other machines by ssh: apt install"
                                  " openssh-client")  # fmt: skip
            there = f"cd {shlex.quote(folder)} && exec {shlex.join(words)}"
            words, folder = [*_SSH, host.address, there], None
        try:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C is for us, who end it
            )
        except OSError as error:
            raise LostError(f"{error.strerror}: {error.filename}") from None
        self.over = False
        self._complaint = ""  # the last line that is no record
        self._heard: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._process.stdin is not None
        to = os.dup(self._process.stdin.fileno())
        threading.Thread(target=_write, args=(to, first), daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._heard.put(line)
        self._process.wait()

    def lines(self) -> list[dict[str, Any]]:
        """Return the records that it has printed since the last call, one for each line."""
        ended = not self._reader.is_alive()
        found = []
        while not self._heard.empty():
            line = self._heard.get()
            record = None
            with contextlib.suppress(ValueError, RecursionError):
                record = msgspec.json.decode(line)
            if isinstance(record, dict) and "record" in record:
                found.append(record)
            else:
                self._complaint = line.strip() or self._complaint
        self.over = ended and not found
        if self.over and self._process.returncode:
            status = self._process.returncode
            how = f"ended with status {status}"
            if status < 0:
                how = f"was ended by {signal_name(-status)}"
            raise LostError(self._complaint or f"its command {how}")
        return found

    def end(self) -> None:
        """Ask it to end; its last words are still to be heard."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> None:
        """Wait until nothing of it is left."""
        self._reader.join(_GONE_S)
        if self._reader.is_alive():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._reader.join()


def end_all(commands: Iterable[Command]) -> None:
    listed = list(commands)
    for command in listed:
        command.end()
    for command in listed:
        command.wait()


def _write(to: int, first: str) -> None:
    """Write a command's first line, which it may be slow to read, or end without."""
    with contextlib.suppress(OSError), open(to, "w") as pipe:
        pipe.write(first + "\n")
