# SPDX-License-Identifier: BSD-3-Clause
"""Where the cells of a notebook send to: a lab, or loopback where there can be none."""

import atexit
import contextlib
import dataclasses
import os
import socket as sockets
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from spead_tutorial.lab import Counters, Lab, LabError, probe
from spead_tutorial.measure import place as measure_place
from spead_tutorial.measure.place import NO_LAB

__all__ = ["LOOPBACK", "NotebookPlace", "Seen", "close_place", "open_place"]

#: Whether to do without a lab: ``SPEAD_TUTORIAL_LOOPBACK=1``.
LOOPBACK = os.environ.get("SPEAD_TUTORIAL_LOOPBACK", "0") not in ("", "0")

_LOOPBACK = "127.0.0.1"
_SEED = 7
_LINK_IP_AND_UDP = 14 + 20 + 8


@dataclasses.dataclass(slots=True)
class Seen:
    """What was sent to a place while it was watched; made by `NotebookPlace.watching`.

    Parameters
    ----------
    packets : int
        Packets; one with several packets in it, as segmentation offload makes them, is one.
    bytes : int
        Their bytes, with the headers of UDP, IP and Ethernet.
    """

    packets: int = 0
    bytes: int = 0


class NotebookPlace:
    """Where the cells of a notebook send to: a lab, or loopback where there can be none.

    Made by `open_place`.

    Attributes
    ----------
    address, port : str, int
        Where to send to.
    mtu : int
        Bytes, counted from the IP header.
    kind : str
        Kind of the lab's device, or ``"loopback, no lab"``.
    """

    def __init__(self, lab: Lab | None, *, two: bool = False) -> None:
        self._lab = lab
        self._two = two
        self._receiver: sockets.socket | None = None
        if lab is None:
            # It is never read but to count: what it has no room for is thrown away, as by a
            # lab's device, and nothing comes back as it does from a port where nobody listens.
            self._receiver = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)
            self._receiver.bind((_LOOPBACK, 0))
            self.address, self.port = _LOOPBACK, int(self._receiver.getsockname()[1])
            self.mtu, self.kind = 65536, NO_LAB
        else:
            self.address, self.port = lab.address, lab.port
            self.mtu, self.kind = lab.mtu, lab.kind

    def __repr__(self) -> str:
        return f"<NotebookPlace {self.address} port {self.port}>"

    @property
    def is_lab(self) -> bool:
        """Whether it is a lab, in which nothing else is going on."""
        return self._lab is not None

    @property
    def lab(self) -> Lab | None:
        """The lab, or None. One that has died, as after an interrupt, is replaced by a new one."""
        if self._lab is not None:
            try:
                self._lab.counters()
            except LabError:
                self._lab.close()
                self._lab = _lab(self._two)
        return self._lab

    def socket(self) -> sockets.socket:
        """Make an unconnected UDP socket whose packets go to the place."""
        lab = self.lab
        return sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM) if lab is None else lab.socket()

    @property
    def has_receiver(self) -> bool:
        """Whether it has a second machine, which receives."""
        return self._two

    def receiving_socket(self, buffer_size: int) -> sockets.socket:
        """Make a UDP socket that receives: on the second machine, or by loopback without one.

        Parameters
        ----------
        buffer_size : int
            Bytes that are asked for, for what waits to be read.
        """
        lab = self.lab
        if lab is not None and self._two:
            return lab.receiver.socket(buffer_size=buffer_size)
        sock = self.socket()
        sock.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, buffer_size)
        sock.bind((_LOOPBACK, 0))
        return sock

    @contextlib.contextmanager
    def losing(self, share: float) -> Iterator[None]:
        """Have that share of the packets lost on the way to the second machine, by a fixed seed.

        Parameters
        ----------
        share : float
            0 for none, as there is without a second machine.
        """
        lab = self.lab
        if lab is None or not self._two or not share:
            yield
            return
        with lab.disturbed(loss=share, seed=_SEED):
            yield

    def run(self, argv: Sequence[str], **how: Any) -> subprocess.CompletedProcess[Any]:
        """Run a program in the lab, or beside it on loopback, to its end.

        Parameters
        ----------
        argv : sequence of str
            The program and its arguments.
        **how
            As for `spead_tutorial.lab.Lab.run`; output is collected, as text, unless it says
            otherwise.
        """
        how = {"capture_output": True, "text": True, "check": False} | how
        lab = self.lab
        if lab is None:
            return subprocess.run(argv, **how)
        return lab.run(argv, **how)

    def counters(self) -> Counters | None:
        """Read the counters of the lab's device; None on loopback, which others use too."""
        lab = self.lab
        return None if lab is None else lab.counters()

    @contextlib.contextmanager
    def watching(self) -> Iterator[Seen]:
        """Count what is sent to the place meanwhile; the result has it after the ``with`` block.

        A lab's device counts exactly. On loopback it is what the receiver had room for, a few
        hundred KiB: enough for packets that a cell sends one by one.
        """
        seen = Seen()
        before = self.counters()
        if before is None:
            self._take()
        try:
            yield seen
        finally:
            after = self.counters()
            if before is None or after is None:
                seen.packets, seen.bytes = self._take()
            else:
                seen.packets, seen.bytes = (after - before).packets, (after - before).bytes

    def close(self) -> None:
        """End the lab and what runs in it; may be called again."""
        if self._lab is not None:
            self._lab.close()
        if self._receiver is not None:
            self._receiver.close()

    @property
    def measured(self) -> measure_place.Place:
        """Where programs are measured: the lab's device, or loopback with a receiver."""
        lab = self.lab
        return measure_place.Loopback() if lab is None else measure_place.Device(lab)

    def facts(self) -> dict[str, Any]:
        """Return what a record says of the place."""
        return self.measured.facts()

    def _take(self) -> tuple[int, int]:
        """Take from the receiver what it has got: packets, and bytes with their headers."""
        packets = n_bytes = 0
        assert self._receiver is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                n_bytes += len(self._receiver.recv(1 << 16, sockets.MSG_DONTWAIT))
                packets += 1
        return packets, n_bytes + _LINK_IP_AND_UDP * packets


def _lab(two: bool) -> Lab:
    return Lab(receiver=True) if two else Lab()


_open: NotebookPlace | None = None


def open_place(*, loopback: bool = LOOPBACK, receiver: bool = False) -> NotebookPlace:
    """Open a lab for this notebook, and say in a line that it works.

    Where there can be none it says why and what to do about it, and the place is loopback. A
    kernel has one place: a second call closes the first. It is closed when the kernel ends.

    Parameters
    ----------
    loopback : bool
        Whether to do without a lab also where there can be one; the environment variable
        ``SPEAD_TUTORIAL_LOOPBACK=1`` asks for it too.
    receiver : bool
        Whether the lab is to have a second machine, which receives, where there can be one.
    """
    close_place()
    lab = None
    two = receiver and not loopback and "veth" in probe().kinds
    try:
        lab = None if loopback else _lab(two)
    except LabError as error:
        print(f"There is no lab here: {error}.")
        print("All that a lab needs is looked at by: spead-tutorial doctor")
    if lab is not None and two:
        print("The lab is open: packets go to its second machine and nowhere else.")
    elif lab is not None:
        print("The lab is open: packets go to dummy1 and nowhere else.")
    else:
        print("The cells below send over loopback, and what they show is marked: it is slower")
        print("than a device that throws packets away, and others may use it meanwhile.")
    global _open
    _open = NotebookPlace(lab, two=lab is not None and two)
    return _open


@atexit.register
def close_place() -> None:
    """Close the place that is open; nothing happens where there is none."""
    global _open
    if _open is not None:
        _open.close()
        _open = None
