# SPDX-License-Identifier: BSD-3-Clause
"""The machines of a lab, each a network namespace: sockets, programs and counters in it."""

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from .counters import Arrivals, Counters, protocols
from .device import ADDRESS, PORT, LabError
from .helper import Client, Inside
from .process import LabProcess, end_interrupted

#: Bits/s of a limited link: the kernel counts bytes/s in 32 bits.
_SLOWEST, _FASTEST = 10**6, 32 * 10**9


class LabMachine:
    """One machine of a lab: a network namespace with a device, and a helper process in it.

    Attributes
    ----------
    kind : str
        The kind of the device.
    device : str
        Its name.
    """

    def __init__(self, helper: Client | Inside, kind: str, device: str) -> None:
        self._helper = helper
        self.kind = kind
        self.device = device

    def counters(self, device: str | None = None) -> Counters:
        """Read the counters of a device as they are now; subtract two of them to see what happened.

        Parameters
        ----------
        device : str, optional
            The lab's own device, which it is by default, or its loopback (``"lo"``); for any
            other a `LabError` is raised.
        """
        device = device or self.device
        table = self._helper.request("read_table", table="dev")
        kind = "loopback" if device == "lo" else self.kind
        found = Counters.parse(table, device, kind)
        if found is None:
            raise LabError(f"the lab has no device {device!r}: it has {self.device!r} and 'lo'")
        return found

    def snmp(self) -> dict[str, dict[str, int]]:
        """Read this machine's protocol counters, by protocol and name.

        They are those of ``/proc/net/snmp`` and ``/proc/net/netstat``:
        ``["Icmp"]["OutDestUnreachs"]``, ``["IpExt"]["InOctets"]``.
        """
        tables = [self._helper.request("read_table", table=one) for one in ("snmp", "netstat")]
        return protocols("".join(tables))

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
        start_new_session: bool = False,
    ) -> LabProcess:
        """Start a program in the lab, and return it; an OSError says that it cannot be started.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        stdin, stdout, stderr : int or file object, optional
            As for ``subprocess.Popen``: a file, ``PIPE``, ``DEVNULL``, for stderr also
            ``STDOUT``. By default this process's own.
        env : mapping, optional
            The program's whole environment; by default this process's.
        cwd : path, optional
            Where it starts; by default this process's working folder.
        text : bool
            Whether pipes carry str instead of bytes.
        start_new_session : bool
            Whether it is not to get the Ctrl-C of this process's terminal.
        """
        args = [os.fspath(arg) for arg in argv]
        if not args:
            raise ValueError("argv is empty: it must name a program")
        how = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "env": env, "cwd": cwd}
        how["start_new_session"] = start_new_session
        return LabProcess(self._helper.entering(), args, text=text, **how)

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
        """Run a program in the lab to its end, and return its status, and what was collected.

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
        """
        # Files rather than pipes: nothing to pump while the program runs, so that it costs
        # no CPU during a measurement, and no limit.
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
                error.stdout, error.stderr = _read_all(stdout, text), _read_all(stderr, text)
                raise
            except BaseException:
                end_interrupted(process)
                raise
            done = subprocess.CompletedProcess(
                process.args, status, _read_all(stdout, text), _read_all(stderr, text)
            )
        if check:
            done.check_returncode()
        return done


class LabReceiver(LabMachine):
    """The machine that receives; `Lab.receiver` is one.

    Attributes
    ----------
    address, port : str, int
        Where it receives: to which programs in the lab send by default.
    """

    address, port = ADDRESS, PORT

    def __repr__(self) -> str:
        return f"<LabReceiver {self.kind} {self.address} port {self.port}>"

    def socket(
        self, port: int = PORT, *, host: str = ADDRESS, buffer_size: int | None = None
    ) -> socket.socket:
        """Make a UDP socket that receives here, for this process to use and to close.

        Parameters
        ----------
        port : int
            The port that it is bound to; 0 for one that the system chooses.
        host : str
            The address that it is bound to; that of a group it has yet to join.
        buffer_size : int, optional
            Bytes of its receive buffer. The system has a limit, see ``spead-tutorial doctor``.
        """
        made = self._helper.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if buffer_size is not None:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_size)
            made.bind((host, port))
        except BaseException:
            made.close()
            raise
        return made

    def arrivals(self) -> Arrivals:
        """Read what has arrived here until now; subtract two to see what arrived in between."""
        return Arrivals.of(self.snmp())


def check_rate(bits_per_s: int) -> None:
    """Refuse a rate that no link can be limited to."""
    if not _SLOWEST <= bits_per_s <= _FASTEST:
        raise ValueError(f"bits_per_s is {bits_per_s}: it must be in {_SLOWEST} ... {_FASTEST}")


def _read_all(file: IO[bytes] | None, text: bool) -> Any:
    if file is None:
        return None
    file.seek(0)
    data = file.read()
    return data.decode(errors="replace") if text else data
