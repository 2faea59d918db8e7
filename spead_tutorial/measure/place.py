# SPDX-License-Identifier: BSD-3-Clause
"""Where programs send to, and what bears witness of what they sent."""

import abc
import contextlib
import dataclasses
import functools
import socket as sockets
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from spead_tutorial.lab import Counters, Lab, check_destination, sink_path
from spead_tutorial.measure.running import Listening, ProgramError, Start

__all__ = [
    "LISTENERS",
    "NO_LAB",
    "SLOW_BYTES_PER_S",
    "Device",
    "Evidence",
    "Host",
    "Loopback",
    "Place",
    "Unread",
    "Watched",
    "over_loopback",
]

#: Who listens on loopback: none, a sink that reads as fast as it can, or a slow one.
LISTENERS = ("none", "fast", "slow")
#: Bytes that the slow one reads in a second: well below what a sender without a limit sends, and
#: enough to empty its buffer within a moment of the end.
SLOW_BYTES_PER_S = 200_000_000
#: What a record calls the kind of a device where there can be no lab.
NO_LAB = "loopback, no lab"

_LOOPBACK, _LOOPBACK_MTU, _PORT = "127.0.0.1", 65536, 8888
_SEED = 7
_LINK_IP_AND_UDP = 14 + 20 + 8
_SINK_BUFFER = 1 << 26  # far more than the system allows, so that it gives all that it allows
_SINK_SILENCE_S = 60  # ends a sink whose sender never comes
_SINK_DRAIN_S = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What others than a program saw of its packets; None is what was not counted."""

    counted: Counters | None = None  #: Growth of the device's counters.
    icmp_errors: int | None = None  #: Messages that came back, as there was no listener.
    #: What a receiver has to say: its ``packets``, ``bytes``, ``dropped`` and whole heaps.
    received: dict[str, Any] | None = None


#: A place that is watched: where to send to, and what says what was seen when a program has ended.
_Begun = tuple[tuple[str, int], Callable[[bool], Evidence]]


@dataclasses.dataclass(slots=True)
class Watched:
    """A place while it is watched."""

    destination: tuple[str, int]  #: Host and port to send to.
    _look: Callable[[bool], Evidence]
    _seen: Evidence | None = None

    def end(self, well: bool = True) -> Evidence:
        """End the watching, and return what was seen; it ends by itself with the ``with`` block.

        Only of a program that ended well the end of its stream is waited for.
        """
        if self._seen is None:
            self._seen = self._look(well)
        return self._seen

    @property
    def packets(self) -> int:
        """Packets that were sent; one with several in it, as offloads make them, is one."""
        seen = self.end()
        return seen.counted.packets if seen.counted else int((seen.received or {})["packets"])

    @property
    def bytes(self) -> int:
        """Their bytes, with the headers of UDP, IP and Ethernet."""
        seen = self.end()
        return seen.counted.bytes if seen.counted else int((seen.received or {})["bytes"])


class Place(abc.ABC):
    """Where programs send to; see `Device`, `Loopback`, `Unread` and `Host`."""

    address: str  #: The host to send to.
    port: int  #: The port there.
    mtu: int | None  #: Bytes, counted from the IP header; None where it is not known.
    device: str  #: What results and records call it.
    kind: str  #: What they call its kind.
    _lab: Lab | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address} port {self.port}>"

    @property
    def lab(self) -> Lab | None:
        """The lab that it is in, if any."""
        return self._lab

    @property
    def is_lab(self) -> bool:
        """Whether it is in a lab, in which nothing else is going on."""
        return self._lab is not None

    @property
    def has_receiver(self) -> bool:
        """Whether there is a second machine, which receives."""
        return self.lab is not None and "receiver" in self.lab.facts()

    def facts(self) -> dict[str, Any]:
        """Return what a record says of the place."""
        return {"kind": self.kind, "mtu": self.mtu} if self.lab is None else self.lab.facts()

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        """Run a program there, to its end; for the rest as ``subprocess.run``."""
        if self.lab is not None:
            return self.lab.run(argv, **how)
        how |= {} if "input" in how else {"stdin": subprocess.DEVNULL}
        return subprocess.run(argv, **{"check": False} | how)

    def socket(self) -> sockets.socket:
        """Make an unconnected UDP socket whose packets go to the place."""
        if self.lab is not None:
            return self.lab.socket()
        return sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)

    def receiving_socket(self, buffer_size: int) -> sockets.socket:
        """Make a UDP socket that receives: on the second machine, or by loopback without one."""
        if self.lab is not None and self.has_receiver:
            return self.lab.receiver.socket(buffer_size=buffer_size)
        sock = self.socket()
        sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, buffer_size)
        sock.bind((_LOOPBACK, 0))
        return sock

    def losing(self, share: float) -> AbstractContextManager[object]:
        """Have that share of the packets lost on the way to the second machine, by a fixed seed.

        Without a second machine, there are none.
        """
        if self.lab is None or not share or not self.has_receiver:
            return contextlib.nullcontext()
        return self.lab.disturbed(loss=share, seed=_SEED)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        """Watch what is sent there meanwhile. Nothing else may send there."""
        with contextlib.ExitStack() as stack:
            watched = Watched(*self._watch(stack))
            try:
                yield watched
            except Exception:
                watched.end(False)
                raise
            watched.end()

    @abc.abstractmethod
    def _watch(self, stack: contextlib.ExitStack) -> _Begun:
        """Begin to watch; return where to send to, and what says what was seen."""

    def fitting(self, takes_destination: bool) -> "Place":
        """Return the place for a program: loopback, for one that takes no destination."""
        return self

    def listening(self, listener: str) -> "Place":
        """Return the loopback of this place, with one of `LISTENERS`."""
        return Loopback(listener, self.lab)

    def limited(self, bits_per_s: int) -> "Place":
        """Return this place at the end of a link of a limited rate, which only a lab has."""
        raise ValueError(f"{self.device} has no link of ours: take a lab")

    def close(self) -> None:
        """End the lab, if any, and what runs in it; may be called again."""
        if self._lab is not None:
            self._lab.close()


class Device(Place):
    """The device of a lab, which counts all that is sent into it.

    Its rate may have a limit, `bits_per_s`; by default it has none.
    """

    _lab: Lab

    def __init__(self, lab: Lab, bits_per_s: int | None = None) -> None:
        self._lab, self.bits_per_s = lab, bits_per_s
        self.address, self.port, self.mtu = lab.address, lab.port, lab.mtu
        self.device, self.kind = lab.device, lab.kind

    @property
    def lab(self) -> Lab:
        """The lab that it is in."""
        return self._lab

    def _watch(self, stack: contextlib.ExitStack) -> _Begun:
        lab = self.lab
        if self.bits_per_s is not None:
            stack.enter_context(lab.limited(self.bits_per_s))
        count = _counting(lab, lab.device)

        def look(well: bool) -> Evidence:
            stack.close()  # when all that the program sent has passed: it may have ended before
            counted, came_back = count()
            # What came back is where the device also counts it, or of no interest.
            return Evidence(counted, came_back if came_back and lab.kind == "loopback" else None)

        return (lab.address, lab.port), look

    def fitting(self, takes_destination: bool) -> Place:
        return self if takes_destination else self.listening("fast")

    def limited(self, bits_per_s: int) -> Place:
        return Device(self.lab, bits_per_s)


class Loopback(Place):
    """Loopback: a lab's, or that of the machine where there can be no lab.

    A lab's has more witnesses than a device that throws everything away: without a listener,
    every message comes back as an ICMP error, and is counted; with one, what was
    received and what the socket had no room for is all that was sent. The machine's own may be
    used by others meanwhile, so that its counters prove nothing: there is the receiver alone.

    The listener is one of `LISTENERS`; a slow one reads `SLOW_BYTES_PER_S`. It is on the lab's
    loopback, at the lab's port; without a lab on the machine's, at `port`, or at any that is free.
    """

    def __init__(self, listener: str = "fast", lab: Lab | None = None, port: int = 0) -> None:
        if listener not in LISTENERS:
            raise ValueError(f"there is no listener {listener!r}: there are {', '.join(LISTENERS)}")
        self.listener, self._lab = listener, lab
        self.address, self.mtu = _LOOPBACK, _LOOPBACK_MTU
        self.port = lab.port if lab is not None else port
        self.device, self.kind = "lo", NO_LAB if lab is None else "loopback"

    def _watch(self, stack: contextlib.ExitStack) -> _Begun:
        sink, port = None, self.port or _free_port()
        if self.listener != "none":
            slow = ["-r", str(SLOW_BYTES_PER_S)] if self.listener == "slow" else []
            start = _start if self.lab is None else self.lab.popen
            sink = stack.enter_context(_Sink(start, self.port, *slow))
            port = sink.port
        count = None if self.lab is None else _counting(self.lab, "lo")

        def look(well: bool) -> Evidence:
            counted, icmp_errors = count() if count is not None else (None, None)
            return Evidence(counted, icmp_errors, sink.summary(well) if sink else None)

        return (_LOOPBACK, port), look

    def fitting(self, takes_destination: bool) -> Place:
        return self if takes_destination else Loopback(self.listener, self.lab, _PORT)


class Unread(Place):
    """The machine's loopback, with a socket that is never read but to count.

    It is for a few packets: what the socket has no room for, some hundred KiB, is thrown away, as
    by a lab's device, and nothing comes back as it does from a port without a listener.
    """

    def __init__(self) -> None:
        self._receiver = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)
        self._receiver.bind((_LOOPBACK, 0))
        self.address, self.port = _LOOPBACK, int(self._receiver.getsockname()[1])
        self.mtu, self.device, self.kind = _LOOPBACK_MTU, "lo", NO_LAB

    def _watch(self, stack: contextlib.ExitStack) -> _Begun:
        self._take()
        return (self.address, self.port), lambda well: Evidence(received=self._take())

    def _take(self) -> dict[str, int]:
        """Take from the socket what it has got: packets, and bytes with their headers."""
        packets = n_bytes = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                n_bytes += len(self._receiver.recv(1 << 16, sockets.MSG_DONTWAIT))
                packets += 1
        return {"packets": packets, "bytes": n_bytes + _LINK_IP_AND_UDP * packets}

    def close(self) -> None:
        self._receiver.close()


class Host(Place):
    """A host outside a lab, where no device counts what a program sends.

    A destination that is not known is a `LabError`, and so is one that leads through a real
    interface, unless the user has asked for that by name.
    """

    def __init__(self, host: str, port: int, *, allow_real_network: bool = False) -> None:
        check_destination(host, allow_real_network=allow_real_network)
        self.address, self.port, self.mtu = host, port, None
        self.device, self.kind = host, "no lab"

    def _watch(self, stack: contextlib.ExitStack) -> _Begun:
        return (self.address, self.port), lambda well: Evidence()

    def listening(self, listener: str) -> Place:
        raise ValueError(f"{self.device} has no listener of ours: take a lab, or loopback")


def over_loopback(lab: dict[str, Any]) -> bool:
    """Say whether the ``lab`` of a record's header is loopback, because there could be no lab."""
    return lab.get("kind") == NO_LAB


def _counting(lab: Lab, device: str) -> Callable[[], tuple[Counters, int]]:
    """Begin to count what a device gets, and the messages that come back as ICMP errors."""
    before, said = lab.counters(device), lab.snmp()["Icmp"]["OutDestUnreachs"]

    def count() -> tuple[Counters, int]:
        return lab.counters(device) - before, lab.snmp()["Icmp"]["OutDestUnreachs"] - said

    return count


# ---- Programs beside a lab ----


_start = functools.partial(subprocess.Popen, stdin=subprocess.DEVNULL, errors="replace")


def _free_port() -> int:
    with sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) as sock:
        sock.bind((_LOOPBACK, 0))
        return int(sock.getsockname()[1])


class _Sink(Listening):
    """A receiver on loopback."""

    _says_ready = "listening "

    def __init__(self, start: Start, port: int, *more: str) -> None:
        options = ["--json", "-b", str(_SINK_BUFFER), "-t", str(_SINK_SILENCE_S), *more]
        super().__init__(start, "sink", [str(sink_path()), *options, _LOOPBACK, str(port)])

    @property
    def port(self) -> int:
        """Where it listens, as its first line says."""
        return int(self.lines[0].split()[2])

    def summary(self, expect_the_end: bool) -> dict[str, Any]:
        """Return what it saw, once it saw the stream's end or had the time to."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_SINK_DRAIN_S if expect_the_end else 0.2)
        self.process.terminate()
        summary = self.wait().said
        if not summary:
            raise ProgramError("the sink ended without its summary")
        return summary
