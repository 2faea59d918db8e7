# SPDX-License-Identifier: BSD-3-Clause
"""A private network in which to send as fast as one likes, without root and without a cable.

A `Lab` is a network namespace of its own with one device, ``dummy1``, that throws away and
counts what is sent into it. A helper process lives in there; the calling process stays
where it is, and gets sockets and running programs from it:

>>> with Lab() as lab:  # doctest: +SKIP
...     before = lab.counters()
...     with lab.socket() as sock:
...         sock.sendto(bytes(1000), (lab.address, lab.port))
...     print((lab.counters() - before).packets)
1

This module also has what keeps the laboratory honest: `check_destination` refuses to send
out of a real interface, and `accounted` compares what a device counted with what a program
says it sent.
"""

import contextlib
import dataclasses
import errno
import fcntl
import gzip
import importlib.resources
import ipaddress
import itertools
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

__all__ = [
    "ADDRESS",
    "ADDRESS6",
    "DEVICE",
    "KINDS",
    "PORT",
    "Accounting",
    "Counters",
    "Lab",
    "LabError",
    "LabProbe",
    "LabProcess",
    "accounted",
    "check_destination",
    "icmp_error_bytes",
    "probe",
    "root_commands",
    "route_device",
    "sink_path",
]

#: Name of the device in a lab.
DEVICE = "dummy1"
#: The address to send to: on the device's network, and nobody's.
ADDRESS = "192.168.31.2"
#: The same for IPv6.
ADDRESS6 = "fd00:31::2"
#: The UDP port to send to.
PORT = 8888
#: The kinds of device a lab can have, in the order in which it tries them.
KINDS = ("dummy", "ifb", "veth")
#: How `root_commands` begin and end for each kind, for it to be quiet and to lose nothing.
_MADE_WITH = {
    "dummy": ("ip link add dummy1 type dummy", "ip link set dummy1 addrgenmode none"),
    "ifb": ("ip link add dummy1 type ifb", "ip link set dummy1 addrgenmode none"),
    "veth": (
        "ip link add dummy1 type veth peer name far0",
        "ip link set far0 addrgenmode none",
        "ip link set far0 mtu 9216 up",
        "ip link set dummy1 addrgenmode none arp off multicast off",
    ),
}
_ENDED_WITH = {"ifb": ("tc qdisc replace dev dummy1 root noqueue",)}

_ROOT = Path("/")
_SCRIPT = Path(__file__).with_name("_lab_helper.py")
_MESSAGE_BYTES = 1 << 20
_ANSWER_S = 30.0  # far more than any answer takes: after it the helper is taken for dead
_ETHERNET_HEADER, _UDP_HEADER = 14, 8
_ICMP_MOST = 576  # what every host can receive: Linux quotes no more of a message than fits


class LabError(RuntimeError):
    """A lab could not do what was asked; the text says what, and what to do about it."""


# ---------------------------------------------------------------------------------------
# What a device counted, and what it should have counted


@dataclasses.dataclass(frozen=True, slots=True)
class Counters:
    """A device's own counters; two of them subtract.

    Parameters
    ----------
    kind : str
        Kind of the device, which says where it counts what it swallowed: ``"dummy"``,
        ``"ifb"``, ``"veth"`` or ``"loopback"``.
    rx_packets, rx_bytes, rx_dropped, tx_packets, tx_bytes, tx_dropped : int
        As in ``/proc/net/dev``. Bytes include `link_header` for each packet.
    """

    kind: str
    rx_packets: int
    rx_bytes: int
    rx_dropped: int
    tx_packets: int
    tx_bytes: int
    tx_dropped: int

    @property
    def packets(self) -> int:
        """Packets that were sent into the device; a GSO message is one of them."""
        # An ifb takes every packet for one to pass on: it counts it as received, finds
        # that there is nowhere to pass it to, and drops it. Its rx_dropped says the same
        # again, less exactly where several threads send.
        return self.rx_packets if self.kind == "ifb" else self.tx_packets

    @property
    def bytes(self) -> int:
        """Bytes that were sent into the device, link headers included."""
        return self.rx_bytes if self.kind == "ifb" else self.tx_bytes

    @property
    def link_header(self) -> int:
        """Bytes of link header that the device counts for each packet; loopback's are not."""
        return 0 if self.kind == "loopback" else _ETHERNET_HEADER

    def __sub__(self, before: "Counters") -> "Counters":
        if self.kind != before.kind:
            raise ValueError(f"counters of {self.kind} less those of {before.kind}")
        return Counters(
            self.kind,
            self.rx_packets - before.rx_packets,
            self.rx_bytes - before.rx_bytes,
            self.rx_dropped - before.rx_dropped,
            self.tx_packets - before.tx_packets,
            self.tx_bytes - before.tx_bytes,
            self.tx_dropped - before.tx_dropped,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Accounting:
    """What a device counted beside what it should have counted.

    Parameters
    ----------
    ok : bool
        Whether the two agree exactly.
    text : str
        One line that says so, with the numbers.
    expected_packets, expected_bytes : int
        What was expected of the device.
    counted_packets, counted_bytes : int
        What it counted.
    """

    ok: bool
    text: str
    expected_packets: int
    expected_bytes: int
    counted_packets: int
    counted_bytes: int


def accounted(
    counted_packets: int,
    counted_bytes: int,
    *,
    packets: int,
    messages: int,
    spead_bytes: int,
    ip_header: int = 20,
    link_header: int = _ETHERNET_HEADER,
    icmp_errors: int = 0,
    icmp_bytes: int = 0,
) -> Accounting:
    """Compare a device's counters with what a sender says it sent.

    The device sees what the kernel made of the sender's messages. A GSO message, which
    holds several packets, passes a lab's device and loopback whole: it is counted once,
    with one set of headers. A device that cannot take it whole gets single packets. A
    datagram beyond the MTU arrives as several IP fragments, of which only the first has
    the UDP header; the kernel never fragments a GSO message.

    On loopback, which also carries the answers, nobody may listen: then ICMP returns every
    message that the kernel received, a GSO message as one, and each of these errors is a
    packet that the device counts too.

    Parameters
    ----------
    counted_packets, counted_bytes : int
        The growth of the device's counters, such as ``counters.packets`` and ``.bytes``.
    packets : int
        SPEAD packets sent.
    messages : int
        Messages given to the kernel; fewer than packets where GSO merged some.
    spead_bytes : int
        Bytes of those packets, the headers of UDP, IP and the link not included.
    ip_header : int
        20 for IPv4. 40 for IPv6, whose fragments (they carry a further header) are not
        accounted for: a fragmented datagram is a disagreement.
    link_header : int
        14 for Ethernet; `Counters.link_header` knows what it is.
    icmp_errors : int
        Messages that came back: none or all.
    icmp_bytes : int
        Bytes of these errors, as `icmp_error_bytes` has it for each, headers included.

    Returns
    -------
    Accounting
        Exact equality, or a text that says what was expected and what was seen.
    """
    header = link_header + ip_header
    sent_packets = counted_packets - icmp_errors
    datagrams = packets if sent_packets == packets else messages
    fragmented = messages == packets and sent_packets > packets
    expected_packets = sent_packets if fragmented else datagrams
    expected_bytes = spead_bytes + _UDP_HEADER * datagrams + header * expected_packets + icmp_bytes
    expected_packets += icmp_errors
    returned = icmp_errors in (0, datagrams)
    ok = returned and counted_packets == expected_packets and counted_bytes == expected_bytes
    claim = f"{packets} SPEAD packets of {spead_bytes} bytes in {messages} messages"
    if icmp_errors:
        claim += f" and as many ICMP errors of {icmp_bytes} bytes"
    seen = f"the device counted {counted_packets} packets and {counted_bytes} bytes"
    if ok:
        text = f"{seen}, exactly what {claim} make"
    elif not returned:
        text = f"{icmp_errors} of {datagrams} messages came back by ICMP, not all or none; {seen}"
    elif fragmented:
        text = f"{seen}, but {claim} make {expected_bytes} bytes in so many IP fragments"
    else:
        text = f"{seen}, but {claim} make {expected_packets} packets and {expected_bytes} bytes"
    return Accounting(ok, text, expected_packets, expected_bytes, counted_packets, counted_bytes)


def icmp_error_bytes(message_bytes: int) -> int:
    """Return how long the ICMP error is that returns a UDP message over IPv4.

    It quotes the message from its IP header on, as far as 576 bytes have room for: so it is
    for a message of 520 bytes and for all longer ones.

    Parameters
    ----------
    message_bytes : int
        Bytes of the message, the headers of UDP and IP not included.

    Returns
    -------
    int
        Bytes of the error, its headers of IP (20) and ICMP (8) included.
    """
    return min(_ICMP_MOST, 20 + 8 + 20 + _UDP_HEADER + message_bytes)


# ---------------------------------------------------------------------------------------
# Programs that run in a lab


class LabProcess:
    """A program that runs in a lab; made by `Lab.popen`.

    Attributes
    ----------
    args : list of str
        The program and its arguments.
    pid : int
        Its process id.
    stdin, stdout, stderr : file object or None
        Our ends of those streams that were asked for as pipes.
    returncode : int or None
        Exit status, or minus the signal that ended it; None until `poll` or `wait` saw
        the end.
    """

    def __init__(
        self,
        helper: "_Helper",
        token: int,
        args: list[str],
        status: int,
        pipes: "tuple[IO[Any] | None, IO[Any] | None, IO[Any] | None]",
    ) -> None:
        self.args = args
        self.pid = -1
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None
        self._helper = helper
        self._token = token
        self._status = status
        self._reading = threading.Lock()
        weakref.finalize(self, os.close, status)

    def __repr__(self) -> str:
        return f"<LabProcess {self.args[0]!r} pid={self.pid} returncode={self.returncode}>"

    def poll(self) -> int | None:
        """Return the exit status, or None while the program runs.

        Returns
        -------
        int or None
            The status, or minus the signal that ended it.
        """
        return self._wait(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program's end and return its exit status.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which ``subprocess.TimeoutExpired`` is raised; the program goes on.
        """
        status = self._wait(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to the program; nothing happens where it has ended.

        Parameters
        ----------
        number : int
            The signal, such as ``signal.SIGINT``.
        """
        if self.poll() is None:
            self._helper.request("signal", token=self._token, signal=int(number))

    def terminate(self) -> None:
        """Ask the program to end (SIGTERM)."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the program (SIGKILL)."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close our ends of the pipes and wait; after an exception, end the program first."""
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                # The program need not have read all that was written to it.
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if kind is not None:
            self.kill()
        self.wait()

    def _wait(self, timeout: float | None) -> int | None:
        if self.returncode is not None:
            return self.returncode
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
            return None
        with self._reading:
            if self.returncode is None:
                # Nothing in the pipe: the helper itself is gone, and its programs with it.
                self.returncode = int(os.read(self._status, 32) or -signal.SIGKILL)
        return self.returncode


# ---------------------------------------------------------------------------------------
# The lab


class Lab:
    """A network namespace with one device that swallows and counts what is sent into it.

    It takes no root, works in threads and inside a running event loop, and several can be
    open at once. It ends with `close`, with the ``with`` block, or with the calling
    process, however that ends; programs that still run in it are killed then. A socket
    taken from it keeps the namespace, but no process, alive until it is closed.

    Parameters
    ----------
    kind : str, optional
        The kind of device to make: one of `KINDS`. By default the first that the kernel
        offers.
    mtu : int
        The device's MTU in bytes, which counts from the IP header.

    Attributes
    ----------
    kind : str
        The kind of device that was made.
    device : str
        Its name.
    mtu : int
        Its MTU in bytes.
    address, port : str, int
        Where to send to, from a program or a socket in the lab.
    address6 : str or None
        The same for IPv6; None where the kernel has no IPv6.
    rootless : bool
        Whether the lab is in a user namespace of its own.

    Raises
    ------
    LabError
        Where this machine does not let one be made; the text says why.
    """

    def __init__(self, kind: str | None = None, *, mtu: int = 9216) -> None:
        _check_kind(kind)
        if not 1280 <= mtu <= 65535:
            raise ValueError(f"mtu is {mtu}: it must be in 1280 ... 65535")
        self._helper = _Helper()
        self._tokens = itertools.count()
        try:
            made, _ = self._helper.request("open", kind=kind, mtu=mtu)
        except BaseException as error:
            self._helper.close()
            if isinstance(error, _RefusedError):
                raise LabError(_explain(error, kind)) from None
            raise
        self.kind: str = made["kind"]
        self.device = DEVICE
        self.mtu = mtu
        self.address = ADDRESS
        self.address6 = ADDRESS6 if made["ipv6"] else None
        self.port = PORT
        self.rootless: bool = made["rootless"]

    def __repr__(self) -> str:
        state = "open" if self._helper.is_open else "closed"
        return f"<Lab kind={getattr(self, 'kind', None)!r} {state}>"

    def socket(self, family: int = socket.AF_INET) -> socket.socket:
        """Make an unconnected UDP socket that lives in the lab, for use by this process.

        Parameters
        ----------
        family : int
            ``socket.AF_INET`` or ``socket.AF_INET6``.

        Returns
        -------
        socket.socket
            The caller's, to be closed; not bound, so that it has no port yet.
        """
        _, fds = self._helper.request("socket", family=int(family))
        return socket.socket(fileno=fds[0])

    def counters(self, device: str = DEVICE) -> Counters:
        """Read the counters of a device in the lab.

        Parameters
        ----------
        device : str
            The lab's own device, or its loopback (``"lo"``).

        Returns
        -------
        Counters
            As they are now; subtract two of them to see what happened in between.

        Raises
        ------
        LabError
            For any other device.
        """
        answer, _ = self._helper.request("read", table="dev")
        for line in answer["text"].splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if name.strip() == device:
                n = [int(number) for number in numbers.split()]
                kind = "loopback" if device == "lo" else self.kind
                return Counters(kind, n[1], n[0], n[3], n[9], n[8], n[11])
        raise LabError(f"the lab has no device {device!r}: it has {DEVICE!r} and 'lo'")

    def facts(self) -> dict[str, Any]:
        """Return what a record says of the lab; None stands for what cannot be read.

        Returns
        -------
        dict
            ``kind``, ``mtu`` (bytes), ``rootless``; of the device ``qdisc`` (its queue's name,
            such as ``"noqueue"``), ``tx_queue_length`` (packets), ``gso_max_size`` (bytes),
            ``gso_max_segs``; and ``offloads``: which of its features are on, by the names that
            ``ethtool -k`` gives them.
        """
        found, _ = self._helper.request("facts")
        return {"kind": self.kind, "rootless": self.rootless} | found

    def set_link(self, up: bool) -> None:
        """Take the lab's device down, as when a cable is pulled, or bring it up again.

        Parameters
        ----------
        up : bool
            Whether it is to be up.
        """
        self._helper.request("link", up=up)

    def snmp(self) -> dict[str, dict[str, int]]:
        """Read the lab's protocol counters.

        Returns
        -------
        dict of str to dict of str to int
            By protocol and name, as in ``/proc/net/snmp``: ``["Icmp"]["OutDestUnreachs"]``.
        """
        answer, _ = self._helper.request("read", table="snmp")
        lines = [line.split() for line in answer["text"].splitlines()]
        return {
            names[0].rstrip(":"): dict(zip(names[1:], map(int, values[1:]), strict=True))
            for names, values in zip(lines[::2], lines[1::2], strict=True)
        }

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
        ours: list[IO[Any] | None] = []
        theirs: list[int] = []
        status_read, status_write = _pipe()
        theirs.append(status_write)
        try:
            for number, stream in enumerate((stdin, stdout, stderr)):
                if number == 2 and stream == subprocess.STDOUT:
                    theirs.append(_duplicate(theirs[2]))
                    ours.append(None)
                    continue
                our_end, their_end = _stream(number, stream, text)
                theirs.append(their_end)
                ours.append(our_end)
            token = next(self._tokens)
            process = LabProcess(
                self._helper, token, args, status_read, (ours[0], ours[1], ours[2])
            )
            status_read = -1  # the process object's now
            try:
                answer, _ = self._helper.request(
                    "popen",
                    theirs,
                    token=token,
                    argv=args,
                    env=dict(os.environ if env is None else env),
                    cwd=os.getcwd() if cwd is None else os.fspath(cwd),
                )
            except BaseException:
                # Ctrl-C may come while the answer is under way: the program runs already.
                self._helper.kill_quietly(token)
                raise
            process.pid = answer["pid"]
            return process
        except BaseException:
            for pipe in ours:
                if pipe is not None:
                    pipe.close()
            if status_read >= 0:
                os.close(status_read)
            raise
        finally:
            for fd in theirs:
                os.close(fd)

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
                files.enter_context(_temporary_file()) if wanted else None
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
                _end_interrupted(process)
                raise
            done = subprocess.CompletedProcess(
                process.args, status, _read_all(stdout, text), _read_all(stderr, text)
            )
        if check:
            done.check_returncode()
        return done

    def close(self) -> None:
        """End the lab and every program in it; may be called again."""
        self._helper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Helper:
    """The helper process and the conversation with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._serial = 0
        self._channel, theirs = (
            socket.socket(fileno=_moved(end.detach()))
            for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        )
        self._log = _temporary_file()  # the finalizer closes it
        try:
            # -P: the package's own folder must not be on the path of the script in it: a
            # module of ours could hide one of the standard library's.
            process = subprocess.Popen(
                [sys.executable, "-P", _SCRIPT, str(theirs.fileno()), str(os.getpid())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
            )
        except OSError as error:
            self._channel.close()
            self._log.close()
            raise LabError(f"the lab's helper cannot be started: {error}") from None
        finally:
            theirs.close()
        self._finalizer = weakref.finalize(
            self, _end_helper, self._channel, self._log, process, os.getpid()
        )
        self._channel.settimeout(_ANSWER_S)

    @property
    def is_open(self) -> bool:
        return self._finalizer.alive

    def close(self) -> None:
        self._finalizer()

    def request(
        self, op: str, fds: Sequence[int] = (), **fields: Any
    ) -> tuple[dict[str, Any], list[int]]:
        """Ask for something; return the answer, and the file descriptors that came with it."""
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
        if "error" in answer:
            _raise(answer["error"])
        return answer["ok"], given

    def kill_quietly(self, token: int) -> None:
        """Kill a program of which we know no more than the number we gave it."""
        with contextlib.suppress(LabError):
            self.request("signal", token=token, signal=int(signal.SIGKILL))

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
                return answer, [_moved(fd) for fd in given]
            # The answer to a request that Ctrl-C cut short: nobody waits for it any more.
            for fd in given:
                os.close(fd)

    def _last_words(self) -> str:
        """Return the last line of what the helper wrote before it ended."""
        try:
            self._log.seek(0)
            lines = self._log.read().decode(errors="replace").split("\n")
        except ValueError:  # closed meanwhile by another thread
            return ""
        last = [line for line in lines if line.strip()][-1:]
        return f" ({last[0].strip()})" if last else ""


class _RefusedError(Exception):
    """What the helper reports of a namespace or device that the kernel refused."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(what, number)
        self.what = what
        self.number = number


def _raise(error: dict[str, Any]) -> None:
    """Raise what the helper's error reply stands for."""
    if error["what"] == "os":
        if error["filename"] is None:
            raise OSError(error["errno"], error["text"])
        raise OSError(error["errno"], error["text"], error["filename"])
    if error["what"] == "bug":
        raise LabError(f"the lab's helper failed: {error['text']}")
    raise _RefusedError(error["what"], error["errno"])


def _explain(refused: _RefusedError, kind: str | None = None) -> str:
    """Say in one line why there is no lab and what to do about it."""
    why = os.strerror(refused.number)
    by_hand = "or, as root, type: " + " && ".join(root_commands())
    if refused.what == "kind":
        if kind is not None:
            return f"this kernel offers no device of kind {kind!r}: leave the choice to the lab"
        return (
            f"this kernel offers none of the devices {', '.join(KINDS)}: load one"
            " (as root: modprobe dummy)"
        )
    what = "a network namespace" if refused.what == "namespace" else "a device in its namespace"
    if refused.number == errno.EPERM and os.geteuid() != 0 and _in_chroot():
        return (
            f"this is a chroot, in which the kernel refuses {what} to all but root ({why}):"
            f" enter its folder by pivot_root, as bwrap and containers do, or be root, {by_hand}"
        )
    for name, forbidding, setting in (
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=10000"),
        ("user/max_net_namespaces", "0", "user.max_net_namespaces=10000"),
    ):
        try:
            value = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if value == forbidding:
            return (
                f"the system forbids this user {what} ({why}): allow it (as root: sysctl"
                f" -w {setting}), {by_hand}"
            )
    return (
        f"the system forbids this user {what} ({why}): in a container, start it with"
        " --cap-add SYS_ADMIN --cap-add NET_ADMIN or a seccomp profile that allows unshare;"
        f" in a chroot, be root, {by_hand}"
    )


def _in_chroot() -> bool:
    """Say whether this process's root is known not to be the root of its mounts."""
    own = _mount_points("self")
    roots = {mount for mount, place in own if place == "/"}
    if own and not roots:
        return True
    # Where a mount is our root, others may see it in its place below theirs.
    processes = (path.name for path in (_ROOT / "proc").glob("[0-9]*"))
    return any(
        mount in roots and place != "/"
        for process in processes
        for mount, place in _mount_points(process)
    )


def _mount_points(process: str) -> list[tuple[str, str]]:
    """Return the numbers of the mounts that a process sees, and where it sees them."""
    lines = _read(_ROOT / "proc" / process / "mountinfo").splitlines()
    return [(words[0], words[4]) for words in map(str.split, lines)]


def _duplicate(fd: int) -> int:
    """Return a copy of a descriptor that is none of the three standard streams.

    Where a process began without one of these, whatever it opens may get that number, and
    would be taken for the stream.
    """
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _moved(fd: int) -> int:
    """Return a descriptor, or a copy in its place where it has the number of a stream."""
    if fd > 2:
        return fd
    try:
        return _duplicate(fd)
    finally:
        os.close(fd)


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    return _moved(read), _moved(write)


def _temporary_file() -> IO[bytes]:
    with tempfile.TemporaryFile() as file:
        return os.fdopen(_duplicate(file.fileno()), "w+b")


def _hands_on(number: int) -> bool:
    """Say whether a program that this process executes would find the stream open."""
    try:
        return os.get_inheritable(number)  # not a file of ours that happens to have the number
    except OSError:
        return False


def _stream(number: int, stream: int | IO[Any] | None, text: bool) -> tuple[IO[Any] | None, int]:
    """Return our end (if any) and the program's end of one of its three streams."""
    if stream == subprocess.PIPE:
        read, write = _pipe()
        ours, theirs = (write, read) if number == 0 else (read, write)
        mode = ("w" if number == 0 else "r") + ("" if text else "b")
        return os.fdopen(ours, mode, -1 if text or number else 0), theirs
    if stream == subprocess.DEVNULL or (stream is None and not _hands_on(number)):
        return None, _moved(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    fd = number if stream is None else stream if isinstance(stream, int) else stream.fileno()
    return None, _duplicate(fd)


def _read_all(file: IO[bytes] | None, text: bool) -> Any:
    """Return all that a program wrote to a file of ours."""
    if file is None:
        return None
    file.seek(0)
    data = file.read()
    return data.decode(errors="replace") if text else data


def _end_interrupted(process: LabProcess) -> None:
    """After Ctrl-C, give a program the time to end by itself, then end it."""
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _end_helper(
    channel: socket.socket, log: IO[bytes], helper: subprocess.Popen[bytes], owner: int
) -> None:
    """End a lab: its helper sees the end of file, kills what runs there, and exits."""
    if os.getpid() != owner:
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
        log.close()


# ---------------------------------------------------------------------------------------
# Facts for `spead-tutorial doctor`


@dataclasses.dataclass(frozen=True, slots=True)
class LabProbe:
    """What this machine offers for a lab.

    Parameters
    ----------
    kinds : tuple of str
        The kinds of device that can be made here, in the order in which a lab tries them.
    namespaces : bool
        Whether this user may have network namespaces.
    rootless : bool
        Whether they come with a user namespace.
    reason : str or None
        Why there can be no lab, and what to do about it; None where there can be one.
    """

    kinds: tuple[str, ...]
    namespaces: bool
    rootless: bool
    reason: str | None


def probe() -> LabProbe:
    """Find out what this machine offers for a lab, in a namespace made and left for it.

    Returns
    -------
    LabProbe
        The kinds of device, or why there can be no lab.
    """
    try:
        helper = _Helper()
    except LabError as error:
        return LabProbe((), False, False, str(error))
    try:
        found, _ = helper.request("probe")
    except _RefusedError as refused:
        return LabProbe((), refused.what != "namespace", False, _explain(refused))
    except LabError as error:
        return LabProbe((), False, False, str(error))
    finally:
        helper.close()
    kinds = tuple(found["kinds"])
    reason = None if kinds else _explain(_RefusedError("kind", errno.EOPNOTSUPP))
    return LabProbe(kinds, True, found["rootless"], reason)


def root_commands(kind: str | None = None) -> tuple[str, ...]:
    """Return what a person with root types to get the same device without a lab.

    Parameters
    ----------
    kind : str, optional
        The kind of device: one of `KINDS`. By default the first that the kernel offers, as
        far as anybody can tell; ``"dummy"`` where nobody can.

    Returns
    -------
    tuple of str
        Commands of iproute2, to be typed one after the other.
    """
    _check_kind(kind)
    kind = kind or next(filter(_is_offered, KINDS), KINDS[0])
    up = ("ip link set dummy1 mtu 9216 up", "ip addr add 192.168.31.1/24 dev dummy1")
    return _MADE_WITH[kind] + up + _ENDED_WITH.get(kind, ())


def _check_kind(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: it must be one of {', '.join(KINDS)}")


def _is_offered(kind: str) -> bool:
    """Say whether the kernel is known to make devices of a kind, without making one."""
    release = os.uname().release
    folder = _ROOT / "lib/modules" / release
    modules = _read(folder / "modules.builtin") + _read(folder / "modules.dep")
    if modules:
        found = f"/{kind}.ko" in modules
    else:
        config = _read(_ROOT / "proc/config.gz") or _read(_ROOT / f"boot/config-{release}")
        found = re.search(rf"^CONFIG_{kind.upper()}=[my]$", config, re.MULTILINE) is not None
    return found or (_ROOT / "sys/module" / kind).is_dir()


def _read(path: Path) -> str:
    """Return the text of a file, compressed or not; none where it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return ""
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")


def sink_path() -> Path:
    """Return where the package's ``sink`` is, the receiver for experiments in a lab.

    Returns
    -------
    pathlib.Path
        A program; ``sink --help`` says what it does.

    Raises
    ------
    LabError
        Where it has not been built.
    """
    # An editable install has it in its build folder, and only importlib knows where.
    package = importlib.resources.files(__package__) if __package__ else Path(__file__).parent
    path = package.joinpath("bin", "sink")
    if not isinstance(path, Path) or not path.is_file():
        raise LabError("the package has no bin/sink: build and install it (pip install .)")
    return path


# ---------------------------------------------------------------------------------------
# Where would it go?

_RTM_GETLINK, _RTM_GETROUTE = 18, 26
_NLMSG_ERROR, _NLM_F_REQUEST = 2, 1
_RTA_DST, _RTA_OIF = 1, 4
_IFLA_IFNAME, _IFLA_LINK, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_LINK_NETNSID = 3, 5, 10, 18, 37
_IFLA_INFO_KIND = 1
_IFF_LOOPBACK = 0x8
_RTMSG = struct.Struct("=8BI")
_IFINFOMSG = struct.Struct("=BxHiII")


@dataclasses.dataclass(frozen=True, slots=True)
class _Link:
    """What the kernel says about a network device."""

    name: str
    loopback: bool
    kind: str | None
    peer: int | None
    leads_elsewhere: bool


def route_device(host: str) -> str | None:
    """Name the device out of which this process would send to a host.

    The kernel is asked for its route, in the network namespace of this process; nothing is
    sent (except to find the address of a host that is given by name).

    Parameters
    ----------
    host : str
        An address, IPv4 or IPv6, multicast too, or a name.

    Returns
    -------
    str or None
        The device's name; ``"lo"`` for this machine's own addresses; None where there is
        no route.
    """
    for address, scope in _addresses(host):
        index = _route_index(address, scope)
        if index is not None:
            return _link(index).name
    return None


def check_destination(host: str, *, allow_real_network: bool = False) -> None:
    """Refuse a host to which packets would leave through a real interface.

    Loopback is fine, and so is a device that throws everything away: a dummy, an ifb, or a
    lab's veth. A host to which there is no route passes: sending to it is an error anyway.

    Parameters
    ----------
    host : str
        The destination, as for `route_device`. Of a name every address is looked at.
    allow_real_network : bool
        Whether the user asked for it by name; then everything passes.

    Raises
    ------
    LabError
        The text names the device and the option.
    """
    if allow_real_network:
        return
    for address, scope in _addresses(host):
        index = _route_index(address, scope)
        if index is None:
            continue
        link = _link(index)
        if not _stays_inside(link):
            raise LabError(
                f"{host} is reached through {link.name}, a real network interface: send to"
                " loopback or in a lab, or say --allow-real-network"
            )


def _addresses(
    host: str,
) -> list[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]]:
    """Return the addresses of a host, each with its scope (0 where it has none)."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise LabError(f"no address is known for the host {host!r}") from None
    addresses = []
    for _, _, _, _, place in found:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        scope = int(place[3]) if len(place) == 4 else 0
        # An IPv6 socket sends to such an address by IPv4.
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        addresses.append((address, scope))
    return addresses


def _route_index(address: ipaddress.IPv4Address | ipaddress.IPv6Address, scope: int) -> int | None:
    """Return the index of the device on the route to an address, or None without a route."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    body = _RTMSG.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body += _attribute(_RTA_DST, address.packed)
    if scope:
        body += _attribute(_RTA_OIF, struct.pack("=I", scope))
    try:
        reply = _ask_kernel(_RTM_GETROUTE, body)
    except OSError:
        return None
    index = _attributes(reply[_RTMSG.size :]).get(_RTA_OIF)
    return None if index is None else int.from_bytes(index, sys.byteorder)


def _link(index: int) -> _Link:
    """Look a device up by its index."""
    reply = _ask_kernel(_RTM_GETLINK, _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0))
    flags = _IFINFOMSG.unpack_from(reply)[3]
    found = _attributes(reply[_IFINFOMSG.size :])
    info = _attributes(found.get(_IFLA_LINKINFO, b""))
    kind = info.get(_IFLA_INFO_KIND)
    peer = found.get(_IFLA_LINK)
    return _Link(
        name=found[_IFLA_IFNAME].rstrip(b"\0").decode(),
        loopback=bool(flags & _IFF_LOOPBACK),
        kind=None if kind is None else kind.rstrip(b"\0").decode(),
        peer=None if peer is None else int.from_bytes(peer, sys.byteorder),
        leads_elsewhere=_IFLA_LINK_NETNSID in found or _IFLA_MASTER in found,
    )


def _stays_inside(link: _Link) -> bool:
    """Say whether nothing that is sent into a device comes out of the machine."""
    if link.loopback or link.kind in ("dummy", "ifb"):
        return True
    # A veth is also how a container reaches the world: only a lab's own is harmless, both
    # ends of which are here, and connected to nothing.
    if link.kind != "veth" or link.name != DEVICE or link.leads_elsewhere or not link.peer:
        return False
    return not _link(link.peer).leads_elsewhere


def _ask_kernel(message: int, body: bytes) -> bytes:
    """Send a request to rtnetlink and return the one message it answers with."""
    header = struct.Struct("=IHHII")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(header.pack(header.size + len(body), message, _NLM_F_REQUEST, 1, 0) + body)
        reply = sock.recv(1 << 17)
    length, kind, *_ = header.unpack_from(reply)
    if kind == _NLMSG_ERROR:
        number = -int(struct.unpack_from("=i", reply, header.size)[0])
        raise OSError(number, os.strerror(number))
    return reply[header.size : length]


def _attribute(kind: int, value: bytes) -> bytes:
    """Encode one netlink attribute; `value` has whole words."""
    return struct.pack("=HH", 4 + len(value), kind) + value


def _attributes(data: bytes) -> dict[int, bytes]:
    """Decode a sequence of netlink attributes."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
