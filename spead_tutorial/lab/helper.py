# SPDX-License-Identifier: BSD-3-Clause
"""The process that is inside a lab, so that its caller need not be.

A `Client` starts it. It moves into namespaces, makes devices there, and serves its caller over a
Unix socket until that socket closes or the caller dies.

A message is one JSON object, with file descriptors beside it where an operation needs them.
A reply repeats the ``id`` of its request and holds either ``ok`` or an error.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import Any

from . import namespaces
from .device import RefusedError
from .namespaces import libc

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MESSAGE_BYTES = 1 << 20


class Helper:
    """Serves one caller."""

    def __init__(self, channel: socket.socket, caller: int) -> None:
        self.channel = channel
        self.caller = caller
        self.group = os.getpgid(caller)
        # By the caller's own number for each: it can name a program before it knows its pid.
        self.programs: dict[int, tuple[subprocess.Popen[bytes], int]] = {}
        # What undoes what the caller has done, and is done for one that is killed.
        self.owed: list[dict[str, Any]] = []
        # Descriptors of the request that is being answered, and of its answer.
        self.taken: list[int] = []
        self.given: list[int] = []

    def serve(self) -> None:
        """Answer requests until the caller closes its end or dies."""
        woken, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # What ends a service reaches every process. It is meant for the programs in the lab and for
        # the caller, who ends this process. A handler, unlike SIG_IGN, is not inherited.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        # Programs orphaned in the lab become ours, so that the end of the lab finds them.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        poll.register(woken, select.POLLIN)
        # A caller that forked has copies of its end: the end of file alone is not enough.
        with contextlib.suppress(OSError):
            poll.register(os.pidfd_open(self.caller), select.POLLIN)
        try:
            while os.getppid() == self.caller:
                ready = {fd for fd, _ in poll.poll()}
                if woken in ready:
                    os.read(woken, 4096)
                    self.reap()
                if self.channel.fileno() in ready and not self.answer():
                    return
        finally:
            self.end_programs()
            while self.owed:
                with contextlib.suppress(Exception):
                    self.do(self.owed[-1])

    def answer(self) -> bool:
        """Answer one request; return False at end of file."""
        try:
            data, self.taken, _, _ = socket.recv_fds(
                self.channel, MESSAGE_BYTES, 8, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:
            return False
        if not data:
            return False
        request = json.loads(data)
        reply = {"id": request.pop("id")}
        try:
            reply["ok"] = self.do(request)
        except RefusedError as error:
            reply["refused"] = error.args
        except OSError as error:
            path = error.filename if isinstance(error.filename, str) else None
            reply["os"] = error.errno or 0, error.strerror or str(error), path
        except Exception as error:
            reply["bug"] = f"{type(error).__name__}: {error}"
        try:
            socket.send_fds(self.channel, [json.dumps(reply).encode()], self.given)
        except BrokenPipeError:
            return False
        finally:
            for fd in self.taken + self.given:
                os.close(fd)
            self.given = []
        return True

    def do(self, request: dict[str, Any]) -> Any:
        """Do what is asked for; what undoes it is owed until that is asked for."""
        if request in self.owed:
            self.owed.remove(request)
        undo = request.pop("undo", None)
        done = self.operation(request.pop("op"))(**request)
        if undo is not None:
            self.owed.append(undo)
        return done

    def operation(self, name: str) -> Any:
        """Return what does it: a method here, or a function of `network`, which takes a while."""
        return getattr(self, "op_" + name, None) or getattr(
            importlib.import_module(".network", __package__), name
        )

    def op_make_namespaces(self) -> bool:
        """Move into new ones, and say whether there is one of users among them."""
        return namespaces.make()

    def op_make_namespace_beside(self, process: int) -> None:
        """Move into a new network, of the users of another helper's."""
        namespaces.make_beside(process)

    def op_enter(self) -> None:
        """Move into a lab that stays."""
        namespaces.enter(*self.taken)

    def op_socket(self, family: int, kind: int) -> None:
        """Make a socket that belongs to this namespace."""
        self.given = [socket.socket(family, kind).detach()]

    def op_read(self, table: str) -> str:
        """Read one of the kernel's tables about this namespace."""
        with open(f"/proc/self/net/{table}") as file:
            return file.read()

    def op_popen(self, token: int, argv: list[str], env: dict[str, str], cwd: str) -> int:
        """Start a program with the pipe for its status, and its three streams."""
        status, stdin, stdout, stderr = self.taken
        helper = os.getpid()

        def die_with_helper() -> None:
            with contextlib.suppress(OSError):  # the caller has another terminal since
                os.setpgid(0, self.group)  # Ctrl-C is for programs as for the caller
            libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != helper:
                os._exit(1)

        program = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=cwd,
            preexec_fn=die_with_helper,  # safe: this process has one thread
        )
        self.programs[token] = (program, os.dup(status))
        return program.pid

    def op_signal(self, token: int, number: int) -> None:
        """Send a signal to a program that has not ended yet."""
        if token in self.programs:
            os.kill(self.programs[token][0].pid, number)

    def reap(self) -> None:
        """Collect all programs that ended, and tell the caller how."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self.ended(*ended)

    def ended(self, pid: int, status: int) -> None:
        """Write a program's status into the pipe that the caller waits on."""
        for token, (program, pipe) in self.programs.items():
            if program.pid == pid:
                program.returncode = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(BrokenPipeError):
                    os.write(pipe, str(program.returncode).encode())
                os.close(pipe)
                del self.programs[token]
                return

    def end_programs(self) -> None:
        """Kill what runs in the lab, and what that leaves behind, until nothing is left."""
        while running := children():
            for pid in running:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.ended(*os.waitpid(-1, 0))


def children() -> list[int]:
    """List the processes whose parent is this one."""
    pids = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # ended meanwhile
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if int(fields[1]) == os.getpid():
                pids.append(int(name))
    return pids


def main(channel: str, caller: str) -> None:
    Helper(socket.socket(fileno=int(channel)), int(caller)).serve()
    sys.stderr.flush()
    os._exit(0)  # nothing is left to tidy, and the caller waits
