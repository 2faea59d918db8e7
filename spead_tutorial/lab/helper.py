# SPDX-License-Identifier: BSD-3-Clause
"""The process that is inside a lab, so that its caller need not be, and the talk with it.

A `Client` starts it. It moves into namespaces, makes devices there, and serves its caller over a
Unix socket until that socket closes or the caller dies.

A message is one JSON object. A reply repeats the ``id`` of its request, holds either ``ok`` or an
error, and may come with file descriptors.
"""

import contextlib
import importlib
import json
import os
import select
import shutil
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

from . import namespaces
from .device import LabError, RefusedError
from .namespaces import kill_programs, network_at, remove_folders

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


class Asking:
    """Whoever asks a helper process."""

    def request(self, op: str, **fields: Any) -> Any:
        raise NotImplementedError

    @contextlib.contextmanager
    def done(self, op: str, undo: dict[str, Any], **fields: Any) -> Iterator[None]:
        """Have something done for a ``with`` block, and undone at its end."""
        self.request(op, **fields)
        try:
            yield
        finally:
            self.request(**undo)


class Client(Asking):
    """The helper process and the conversation with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serial = 0
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
                process_group=0,  # what kills ours as a whole leaves it the programs to end
            )
        except OSError as error:
            self._channel.close()
            self._log.close()
            raise LabError(f"the lab's helper cannot be started: {error}") from None
        finally:
            theirs.close()
        self.pid = process.pid
        self._networks: list[int] = []  # that are its own: one, once it has made it
        self._folders: list[str] = []
        ending = (self._channel, self._log, self._networks, self._folders, process, os.getpid())
        self._finalizer = weakref.finalize(self, _end_helper, *ending)
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

    def hold_networks(self, count: int) -> list["Inside"]:
        """Have it make networks beside its own, with which all programs there end."""
        made = self.request("hold_networks", count=count)
        for fd in made:
            with contextlib.suppress(OSError):
                self._networks.append(os.open(f"/proc/{self.pid}/fd/{fd}", os.O_RDONLY))
        return [Inside(self, fd) for fd in made]

    def make_folder(self) -> str:
        """Have it make a folder, which ends with the lab, whichever of the two dies."""
        self._folders.append(self.request("make_folder"))
        return self._folders[-1]

    def entering(self, network: str = "") -> list[str]:
        """Return the words that have a program run in a network, its own or one that it holds."""
        self._check_open()
        nsenter = shutil.which("nsenter", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
        if nsenter is None:
            raise LabError("there is no nsenter, by which programs enter: install util-linux")
        words = [nsenter, f"--target={self.pid}", f"--net={network}" if network else "--net"]
        try:
            os.stat(f"/proc/{self.pid}/ns/net")  # which it has no more once it has ended
            is_in = os.path.samefile(f"/proc/{self.pid}/ns/user", "/proc/self/ns/user")
        except OSError:
            raise self._ended() from None
        # Who is in the user namespace already may not enter it again.
        return [*words, *(() if is_in else ("--user", "--preserve-credentials")), "--"]

    def _check_open(self) -> None:
        if not self.is_open:
            raise LabError("the lab is closed: open a new one")

    def socket(self, family: int, kind: int, network: int | None = None) -> socket.socket:
        fields = {"family": int(family), "kind": int(kind), "network": network}
        _, (made,) = self._ask("open_socket", fields)
        return socket.socket(fileno=made)

    def request(self, op: str, **fields: Any) -> Any:
        return self._ask(op, fields)[0]

    def _ask(self, op: str, fields: dict[str, Any]) -> tuple[Any, list[int]]:
        with self._lock:
            self._check_open()
            self._serial += 1
            try:
                answer, given = self._exchange({"id": self._serial, "op": op, **fields})
            except TimeoutError:
                raise LabError(
                    f"the lab's helper gave no answer to {op!r} in {_ANSWER_S:g} s: close the"
                    " lab and open a new one"
                ) from None
            except OSError:
                answer, given = None, []
        if answer is None:
            raise self._ended()
        if "refused" in answer:
            raise RefusedError(*answer["refused"])
        if "os" in answer:
            raise OSError(*answer["os"])
        if "bug" in answer:
            raise LabError(f"the lab's helper failed: {answer['bug']}")
        return answer["ok"], given

    def _exchange(self, request: dict[str, Any]) -> tuple[dict[str, Any] | None, list[int]]:
        self._channel.send(json.dumps(request).encode())
        while True:
            data, given, _, _ = socket.recv_fds(
                self._channel, _MESSAGE_BYTES, 8, socket.MSG_CMSG_CLOEXEC
            )
            answer: dict[str, Any] | None = json.loads(data) if data else None
            if answer is None or answer["id"] == request["id"]:
                self._wait_for_close(given)
                return answer, given
            # The answer to a request that Ctrl-C cut short: no caller waits for it any more.
            for fd in given:
                os.close(fd)

    def _wait_for_close(self, given: list[int]) -> None:
        """Wait until the helper has closed its copies of what it gave, if it gave anything."""
        try:
            if given:
                self._channel.recv(_MESSAGE_BYTES)
        except BaseException:  # Ctrl-C, or no answer: no caller gets them
            for fd in given:
                os.close(fd)
            raise

    def _ended(self) -> LabError:
        """Return what to raise where the helper has ended: with the last line that it wrote."""
        try:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").strip().splitlines()
        except ValueError:  # closed meanwhile by another thread
            lines = []
        words = f" ({lines[-1].strip()})" if lines else ""
        return LabError(f"the lab's helper has ended{words}: open a new lab")


class Inside(Asking):
    """What a `Client` does, in a network that its helper holds."""

    def __init__(self, client: Client, network: int) -> None:
        self.client, self.network = client, network

    @property
    def is_open(self) -> bool:
        return self.client.is_open

    def entering(self) -> list[str]:
        return self.client.entering(f"/proc/{self.client.pid}/fd/{self.network}")

    def socket(self, family: int, kind: int) -> socket.socket:
        return self.client.socket(family, kind, self.network)

    def request(self, op: str, **fields: Any) -> Any:
        return self.client.request(op, network=self.network, **fields)


def _end_helper(
    channel: socket.socket,
    log: IO[bytes],
    networks: list[int],
    folders: list[str],
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
            kill_programs(list(map(network_at, networks)))
            remove_folders(folders)
        for fd in networks:
            os.close(fd)
        log.close()


# ---- In the lab ----


def serve(channel: socket.socket, caller: int) -> None:
    """Answer requests until the caller closes its end or dies, and leave no program behind."""
    # What ends a service reaches every process. It is meant for the programs in the lab and for
    # the caller, who ends this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    # A caller that forked has copies of its end: the end of file alone is not enough.
    with contextlib.suppress(OSError):
        poll.register(os.pidfd_open(caller), select.POLLIN)
    before = network_at("/proc/self/ns/net")
    try:
        while os.getppid() == caller:
            ready = {fd for fd, _ in poll.poll()}
            if channel.fileno() in ready and not answer(channel):
                return
    finally:
        own = network_at("/proc/self/ns/net")
        kill_programs([*([own] if own != before else []), *map(network_at, namespaces.held)])
        remove_folders(namespaces.folders)


def answer(channel: socket.socket) -> bool:
    """Answer one request; return False at end of file."""
    try:
        data = channel.recv(_MESSAGE_BYTES)
    except ConnectionResetError:
        return False
    if not data:
        return False
    request = json.loads(data)
    reply, given = {"id": request.pop("id")}, []
    network = request.pop("network", None)
    try:
        with contextlib.nullcontext() if network is None else namespaces.inside(network):
            made = operation(request.pop("op"))(**request)
        if isinstance(made, socket.socket):
            given, made = [made.detach()], None
        reply["ok"] = made
    except RefusedError as error:
        reply["refused"] = error.args
    except OSError as error:
        reply["os"] = error.errno or 0, error.strerror or str(error)
    except Exception as error:
        reply["bug"] = f"{type(error).__name__}: {error}"
    try:
        socket.send_fds(channel, [json.dumps(reply).encode()], given)
    except BrokenPipeError:
        return False
    finally:
        for fd in given:
            os.close(fd)
    if given:  # what the caller closes is closed then, and its port free
        with contextlib.suppress(BrokenPipeError):
            channel.send(json.dumps({"id": reply["id"]}).encode())
    return True


def operation(name: str) -> Any:
    """Return what does it: a function of `namespaces`, `network` or `switch`."""
    if found := getattr(namespaces, name, None):
        return found
    # Only now: they load pyroute2, which takes a while.
    network = importlib.import_module(".network", __package__)
    if found := getattr(network, name, None):
        return found
    return getattr(importlib.import_module(".switch", __package__), name)


def main(channel: str, caller: str) -> None:
    serve(socket.socket(fileno=int(channel)), int(caller))
    sys.stderr.flush()
    os._exit(0)  # nothing is left to tidy, and the caller waits
