# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace, as one machine of a lab: sockets, programs and counters in it."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from .client import Client
from .counters import Counters
from .device import LabError
from .process import LabProcess, end_interrupted
from .streams import read_all, stream_ends

__all__ = ["LabMachine"]


class LabMachine:
    """One machine of a lab: a network namespace with a device, and a helper process in it.

    Attributes
    ----------
    kind : str
        The kind of the device.
    device : str
        Its name.
    """

    def __init__(self, helper: Client, kind: str, device: str) -> None:
        self._helper = helper
        self.kind = kind
        self.device = device

    def counters(self, device: str | None = None) -> Counters:
        """Read the counters of a device in the lab.

        Parameters
        ----------
        device : str, optional
            The lab's own device, which it is by default, or its loopback (``"lo"``).

        Returns
        -------
        Counters
            As they are now; subtract two of them to see what happened in between.

        Raises
        ------
        LabError
            For any other device.
        """
        device = device or self.device
        table = self._helper.request("read", table="dev")
        kind = "loopback" if device == "lo" else self.kind
        found = Counters.parse(table, device, kind)
        if found is None:
            raise LabError(f"the lab has no device {device!r}: it has {self.device!r} and 'lo'")
        return found

    def snmp(self) -> dict[str, dict[str, int]]:
        """Read this machine's protocol counters.

        Returns
        -------
        dict of str to dict of str to int
            By protocol and name, as in ``/proc/net/snmp`` and ``/proc/net/netstat``:
            ``["Icmp"]["OutDestUnreachs"]``, ``["IpExt"]["InOctets"]``.
        """
        counted = {}
        for table in ("snmp", "netstat"):
            text = self._helper.request("read", table=table)
            lines = [line.split() for line in text.splitlines()]
            for names, values in zip(lines[::2], lines[1::2], strict=True):
                numbers = zip(names[1:], map(int, values[1:]), strict=True)
                counted[names[0].rstrip(":")] = dict(numbers)
        return counted

    def popen(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        stdin: int | IO[Any] | None = None,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        text: bool = False,
    ) -> LabProcess:
        """Start a program in the lab.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        stdin, stdout, stderr : int or file object, optional
            As for ``subprocess.Popen``: a file, ``PIPE``, ``DEVNULL``, for stderr also
            ``STDOUT``. By default this process's own; ``/dev/null`` where it has none.
        env : mapping, optional
            The program's whole environment; by default this process's.
        cwd : path, optional
            Where it starts; by default this process's working folder.
        text : bool
            Whether pipes carry str instead of bytes.

        Returns
        -------
        LabProcess
            The program, which has been started.

        Raises
        ------
        OSError
            Where the program cannot be started, as ``subprocess.Popen`` raises it.
        """
        args = [os.fspath(arg) for arg in argv]
        if not args:
            raise ValueError("argv is empty: it must name a program")
        theirs: list[int] = []
        pipes: list[IO[Any] | None] = []
        with contextlib.ExitStack() as given, contextlib.ExitStack() as ours:
            for number, stream in enumerate((stdin, stdout, stderr)):
                is_joined = number == 2 and stream == subprocess.STDOUT
                pipe, end = stream_ends(number, theirs[1] if is_joined else stream, text)
                given.callback(os.close, end)
                theirs.append(end)
                pipes.append(pipe and ours.enter_context(pipe))
            status, end = os.pipe2(os.O_CLOEXEC)
            given.callback(os.close, end)
            process = LabProcess(self._helper, args, status, pipes)
            process._start(
                [end, *theirs],
                env=dict(os.environ if env is None else env),
                cwd=os.getcwd() if cwd is None else os.fspath(cwd),
            )
            ours.pop_all()
            return process

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        input: str | bytes | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        capture_output: bool = False,
        text: bool = False,
        check: bool = False,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a program in the lab to its end.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        input : str or bytes, optional
            What the program reads on its standard input.
        timeout : float, optional
            Seconds after which the program is killed and ``subprocess.TimeoutExpired`` is
            raised, with the output so far.
        env, cwd : optional
            As for `popen`.
        capture_output : bool
            Whether to collect stdout and stderr in the result. In a notebook one wants
            this: a program's own streams lead to the kernel's terminal.
        text : bool
            Whether the output is str instead of bytes.
        check : bool
            Whether a status other than 0 raises ``subprocess.CalledProcessError``.

        Returns
        -------
        subprocess.CompletedProcess
            Its status, and its output where that was collected.
        """
        # Files rather than pipes: nothing to pump while the program runs, so that it costs
        # no CPU beside a measurement, and no limit.
        with contextlib.ExitStack() as files:
            stdin, stdout, stderr = (
                files.enter_context(tempfile.TemporaryFile()) if wanted else None
                for wanted in (input is not None, capture_output, capture_output)
            )
            if stdin is not None and input is not None:
                stdin.write(input.encode() if isinstance(input, str) else input)
                stdin.seek(0)
            process = self.popen(argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd)
            try:
                status = process.wait(timeout)
            except subprocess.TimeoutExpired as error:
                process.kill()
                process.wait()
                error.stdout, error.stderr = read_all(stdout, text), read_all(stderr, text)
                raise
            except BaseException:
                end_interrupted(process)
                raise
            done = subprocess.CompletedProcess(
                process.args, status, read_all(stdout, text), read_all(stderr, text)
            )
        if check:
            done.check_returncode()
        return done
