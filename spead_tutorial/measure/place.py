# SPDX-License-Identifier: BSD-3-Clause
"""Where programs send to, and what bears witness of what they sent."""

import abc
import contextlib
import dataclasses
import os
import socket
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
    "Watched",
    "over_loopback",
]

#: Who listens on loopback: nobody, a sink that reads as fast as it can, or a slow one.
LISTENERS = ("none", "fast", "slow")
#: Bytes that the slow one reads in a second: well below what a sender without a limit sends, and
#: enough to empty its buffer within a moment of the end.
SLOW_BYTES_PER_S = 200_000_000
#: What a record calls the kind of a device where there can be no lab.
NO_LAB = "loopback, no lab"

_LOOPBACK, _LOOPBACK_MTU, _PORT = "127.0.0.1", 65536, 8888
_SINK_BUFFER = 1 << 26  # far more than the system allows, so that it gives all that it allows
_SINK_SILENCE_S = 60  # ends a sink whose sender never comes
_SINK_DRAIN_S = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Evidence:
    """What others than a program saw of its packets; None is what nobody counted.

    Parameters
    ----------
    counted : Counters or None
        Growth of the device's counters.
    icmp_errors : int or None
        Messages that came back, as nobody listened.
    received : dict or None
        What a receiver has to say: its ``packets``, ``bytes``, ``dropped`` and whole heaps.
    """

    counted: Counters | None = None
    icmp_errors: int | None = None
    received: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Watched:
    """A place while it is watched.

    Parameters
    ----------
    destination : tuple of str and int
        Host and port to send to.
    end : function
        Ends the watching and returns the `Evidence`; it is told whether the program ended well.
    """

    destination: tuple[str, int]
    end: Callable[[bool], Evidence]


class Place(abc.ABC):
    """Where programs send to; see `Device`, `Loopback` and `Host`.

    Attributes
    ----------
    device, kind : str
        What results and records call it.
    """

    device: str
    kind: str

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return what a record says of the place."""

    @abc.abstractmethod
    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        """Run a program there, to its end.

        Parameters
        ----------
        argv : sequence of str
            How it is started.
        **how
            As for ``subprocess.run``.
        """

    @abc.abstractmethod
    def watching(self) -> AbstractContextManager[Watched]:
        """Watch what is sent there meanwhile. Nothing else may send there."""

    def fitting(self, takes_destination: bool) -> "Place":
        """Return the place for a program: loopback, for one that always sends there.

        Parameters
        ----------
        takes_destination : bool
            Whether it can be told where to send to.
        """
        return self

    def listening(self, listener: str) -> "Place":
        """Return the loopback of this place.

        Parameters
        ----------
        listener : str
            One of `LISTENERS`.

        Raises
        ------
        ValueError
            Where there is none.
        """
        raise ValueError(f"{self.device} has no listener of ours: take a lab, or loopback")

    def limited(self, bits_per_s: int) -> "Place":
        """Return this place at the end of a link of a limited rate.

        Parameters
        ----------
        bits_per_s : int
            The rate.

        Raises
        ------
        ValueError
            Where there is none.
        """
        raise ValueError(f"{self.device} has no link of ours: take a lab")


class Device(Place):
    """The device of a lab, which counts all that is sent into it, whoever receives it.

    Parameters
    ----------
    lab : Lab
        Whose device.
    bits_per_s : int, optional
        The rate at which it sends; by default without a limit.
    """

    def __init__(self, lab: Lab, bits_per_s: int | None = None) -> None:
        self.lab, self.bits_per_s = lab, bits_per_s
        self.device, self.kind = lab.device, lab.kind

    def facts(self) -> dict[str, Any]:
        return self.lab.facts()

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        return self.lab.run(argv, **how)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        with contextlib.ExitStack() as limit:
            if self.bits_per_s is not None:
                limit.enter_context(self.lab.limited(self.bits_per_s))
            before, returned = self.lab.counters(), self._returned()

            def end(well: bool) -> Evidence:
                limit.close()  # when all that the program sent has passed: it may have ended before
                grown = self.lab.counters() - before
                return Evidence(grown, (self._returned() - returned) or None)

            yield Watched((self.lab.address, self.lab.port), end)

    def _returned(self) -> int:
        """Count messages that came back as ICMP errors to where the device counts them, too."""
        if self.lab.kind != "loopback":
            return 0
        return self.lab.snmp()["Icmp"]["OutDestUnreachs"]

    def fitting(self, takes_destination: bool) -> Place:
        return self if takes_destination else self.listening("fast")

    def listening(self, listener: str) -> Place:
        return Loopback(listener, self.lab)

    def limited(self, bits_per_s: int) -> Place:
        return Device(self.lab, bits_per_s)


class Loopback(Place):
    """Loopback: a lab's, or that of the machine where there can be no lab.

    A lab's has more witnesses than a device that throws everything away: where nobody listens,
    every message comes back as an ICMP error, and is counted; where somebody does, what was
    received and what the socket had no room for is all that was sent. The machine's own may be
    used by others meanwhile, so that its counters prove nothing: there is the receiver alone.

    Parameters
    ----------
    listener : str
        One of `LISTENERS`. A slow one reads `SLOW_BYTES_PER_S`.
    lab : Lab, optional
        Whose loopback it is; by default the machine's.
    port : int, optional
        Where to listen; by default the lab's port, and any that is free without a lab.
    """

    def __init__(self, listener: str = "fast", lab: Lab | None = None, port: int = 0) -> None:
        if listener not in LISTENERS:
            raise ValueError(f"there is no listener {listener!r}: there are {', '.join(LISTENERS)}")
        self.listener, self.lab = listener, lab
        self.port = lab.port if lab is not None else port
        self.device, self.kind = "lo", NO_LAB if lab is None else "loopback"

    def facts(self) -> dict[str, Any]:
        return {"kind": NO_LAB, "mtu": _LOOPBACK_MTU} if self.lab is None else self.lab.facts()

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        return _run(argv, **how) if self.lab is None else self.lab.run(argv, **how)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        with contextlib.ExitStack() as stack:
            sink, port = None, self.port or _free_port()
            if self.listener != "none":
                slow = ["-r", str(SLOW_BYTES_PER_S)] if self.listener == "slow" else []
                start = _start if self.lab is None else self.lab.popen
                sink = stack.enter_context(_Sink(start, self.port, *slow))
                port = sink.port
            count = self._counting()

            def end(well: bool) -> Evidence:
                counted, icmp_errors = count()
                return Evidence(counted, icmp_errors, sink.summary(well) if sink else None)

            yield Watched((_LOOPBACK, port), end)

    def _counting(self) -> Callable[[], tuple[Counters | None, int | None]]:
        lab = self.lab
        if lab is None:
            return lambda: (None, None)
        before, said = lab.counters("lo"), lab.snmp()

        def count() -> tuple[Counters, int]:
            counted, says = lab.counters("lo") - before, lab.snmp()
            return counted, says["Icmp"]["OutDestUnreachs"] - said["Icmp"]["OutDestUnreachs"]

        return count

    def fitting(self, takes_destination: bool) -> Place:
        return self if takes_destination else Loopback(self.listener, self.lab, _PORT)

    def listening(self, listener: str) -> Place:
        return Loopback(listener, self.lab)


class Host(Place):
    """A host outside a lab, where nobody counts what a program sends.

    Parameters
    ----------
    host, port : str, int
        Where to send to.
    allow_real_network : bool
        Whether packets may leave through a real interface, as the user asked by name.

    Raises
    ------
    LabError
        For a destination that is not allowed, or not known.
    """

    def __init__(self, host: str, port: int, *, allow_real_network: bool = False) -> None:
        check_destination(host, allow_real_network=allow_real_network)
        self._destination = host, port
        self.device, self.kind = host, "no lab"

    def facts(self) -> dict[str, Any]:
        return {"kind": self.kind, "mtu": None}

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        return _run(argv, **how)

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watched]:
        yield Watched(self._destination, lambda well: Evidence())


def over_loopback(lab: dict[str, Any]) -> bool:
    """Say whether a record's ``lab`` is loopback, because there could be no lab.

    Parameters
    ----------
    lab : dict
        That of a record's header.
    """
    return lab.get("kind") == NO_LAB


# ---------------------------------------------------------------------------------------
# Programs beside a lab


def _run(argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, **how)


def _start(argv: Sequence[str | os.PathLike[str]], **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, **how)


def _free_port() -> int:
    """Return a port of loopback at which nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
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
