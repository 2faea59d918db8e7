# SPDX-License-Identifier: BSD-3-Clause
"""The lab itself: a network with a device that swallows and counts what is sent into it."""

import contextlib
import dataclasses
import errno
import importlib.resources
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from .device import (
    ADDRESS,
    ADDRESS6,
    FAR_DEVICE,
    KINDS,
    PORT,
    WAYS,
    LabError,
    RefusedError,
    check_kind,
)
from .disturbance import Disturbance, disturbed
from .helper import Client
from .machine import LabMachine, LabReceiver, check_rate

_LOOK_S = 0.001


class Lab(LabMachine):
    """A network namespace with one device that swallows and counts what is sent into it.

    It takes no root, works in threads and inside a running event loop, and several can be
    open at once. It ends with `close`, with the ``with`` block, or with the calling
    process, however that ends; programs that still run in it are killed then. A socket
    taken from it keeps the namespace, but no process, alive until it is closed.

    Parameters
    ----------
    kind : str, optional
        The kind of device to make: one of `KINDS`. By default the first that the kernel
        offers. With a receiver, one of `WAYS`: ``"veth"``, which it is by default, or
        ``"loopback"``.
    mtu : int
        The device's MTU in bytes, from 1280 to 65535, which counts from the IP header.
    receiver : bool
        Whether what is sent arrives somewhere: at a second machine, the `receiver`, which has
        that address. By ``"veth"`` it is a namespace of its own at the other end of the
        device. By ``"loopback"`` it is the lab itself.

    Attributes
    ----------
    mtu : int
        The device's MTU in bytes.
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

    def __init__(self, kind: str | None = None, *, mtu: int = 9216, receiver: bool = False) -> None:
        check_kind(kind, WAYS if receiver else KINDS)
        if not 1280 <= mtu <= 65535:
            raise ValueError(f"mtu is {mtu}: it must be in 1280 ... 65535")
        made: dict[str, Any] = {}
        with contextlib.ExitStack() as helpers:
            machines = [helpers.enter_context(Client())]
            made["rootless"] = machines[0].make_network("make_namespaces")
            if not receiver:
                made |= machines[0].request("make_device", kind=kind, mtu=mtu)
            elif kind == "loopback":
                made |= machines[0].request("make_loopback", mtu=mtu)
            else:
                machines.append(helpers.enter_context(Client()))
                machines[1].make_network("make_namespace_beside", process=machines[0].pid)
                machines[1].request("make_far_end", sender=machines[0].pid, mtu=mtu)
                made |= machines[0].request("make_near_end", mtu=mtu)
            helpers.pop_all()
        super().__init__(machines[0], made["kind"], made["device"])
        self._helpers = machines
        self.mtu: int = mtu
        self.address = ADDRESS
        self.address6 = ADDRESS6 if made["ipv6"] else None
        self.port = PORT
        self.rootless: bool = made["rootless"]
        self._receiver = None
        if receiver:
            device = FAR_DEVICE if len(machines) == 2 else self.device
            self._receiver = LabReceiver(machines[-1], self.kind, device)

    def __repr__(self) -> str:
        state = "open" if self._helper.is_open else "closed"
        return f"<Lab kind={self.kind!r} {state}>"

    @property
    def receiver(self) -> LabReceiver:
        """The machine that receives what is sent here; a `LabError` where there is none."""
        if self._receiver is None:
            raise LabError("in this lab no machine receives: make one with Lab(receiver=True)")
        return self._receiver

    def socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_DGRAM) -> socket.socket:
        """Make an unconnected UDP socket in the lab, not bound, for this process to use and close.

        Parameters
        ----------
        family : int
            ``socket.AF_INET`` or ``socket.AF_INET6``; or ``socket.AF_PACKET``, for one that sees
            what the device gets.
        kind : int
            ``socket.SOCK_RAW`` for one of ``AF_PACKET`` that also sees headers of the link.
        """
        return self._helper.socket(family, kind)

    def facts(self) -> dict[str, Any]:
        """Return what a record says of the lab; None stands for what cannot be read.

        It has ``kind``, ``mtu`` (bytes), ``rootless``; of the device ``qdisc`` (its queue's name,
        such as ``"noqueue"``), ``tx_queue_length`` (packets), ``gso_max_size`` (bytes),
        ``gso_max_segs``; and ``offloads``: which of its features are on, by the names that
        ``ethtool -k`` gives them. With a receiver, ``receiver`` is true.
        """
        facts: dict[str, Any] = self._helper.request("device_facts", device=self.device)
        received = {} if self._receiver is None else {"receiver": True}
        return {"kind": self.kind, "rootless": self.rootless} | received | facts

    def set_link(self, up: bool) -> None:
        """Take the lab's device down, as when a cable is pulled, or bring it up again.

        Parameters
        ----------
        up : bool
            Whether it is to be up.
        """
        self._helper.request("set_link", device=self.device, up=up)

    @contextlib.contextmanager
    def limited(self, bits_per_s: int) -> Iterator[None]:
        """Have the lab's device send at a limited rate, as a real link does, in a ``with`` block.

        A sender waits there as soon as its socket's buffer is full: nothing is lost. The block
        ends when all that has been sent has passed, so that the counters have it.

        Parameters
        ----------
        bits_per_s : int
            The rate, from 10⁶ to 32·10⁹, in which the headers of UDP, IP and the link count.

        Raises
        ------
        LabError
            Where the kernel does not offer it.
        """
        check_rate(bits_per_s)
        limit: dict[str, Any] = {"op": "limit_rate", "device": self.device}
        unlimited, limited = (limit | {"bytes_per_s": n} for n in (0, bits_per_s // 8))
        with self._helper.done(**limited, undo=unlimited):
            yield
            while self._helper.request("backlog", device=self.device):
                time.sleep(_LOOK_S)

    def plain_card(self) -> contextlib.AbstractContextManager[None]:
        """Have the kernel do what good cards do for it, in a ``with`` block.

        It cuts messages into packets, and computes the checksum of each: so it reads all that is
        sent, which the lab's device does not.

        Raises
        ------
        LabError
            Where the device's features cannot be changed.
        """
        change: dict[str, Any] = {"op": "set_features", "name": self.device}
        return self._helper.done(**change, on=False, undo=change | {"on": True})

    def disturbed(
        self,
        *,
        loss: float = 0.0,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        distance: int = 3,
        seed: int = 0,
    ) -> contextlib.AbstractContextManager[Disturbance]:
        """Have packets lost, doubled or held back on the way to the receiver, in a ``with`` block.

        Each packet is disturbed by itself, also those that a sender gives to the kernel in one
        message; those for groups are not. What becomes of them depends on the seed alone. It is
        made for tests: what comes faster than about a hundred thousand packets in a second may
        be lost besides, and is counted. The `Disturbance` says what it did, and beforehand what it
        does; the block ends when all that was sent has passed.

        Parameters
        ----------
        loss, duplicate, reorder : float
            Shares of the packets that are lost, that pass twice, and that are held back.
        distance : int
            How many packets pass one that is held back; after a fifth of a second without any it
            passes all the same.
        seed : int
            Of the random numbers that decide.

        Raises
        ------
        LabError
            Where no machine receives, or by loopback, or where not even the lab's helper may have
            raw sockets.
        """
        how = {"loss": loss, "duplicate": duplicate, "reorder": reorder}
        return disturbed(self, **how, distance=distance, seed=seed)

    def close(self) -> None:
        """End the lab and every program in it; may be called again."""
        for helper in self._helpers:
            helper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclasses.dataclass(frozen=True, slots=True)
class LabProbe:
    """What this machine offers for a lab."""

    #: The kinds of device that can be made here, in the order in which a lab tries them.
    kinds: tuple[str, ...]
    namespaces: bool  #: Whether this user may have network namespaces.
    rootless: bool  #: Whether they come with a user namespace.
    #: Why there can be no lab, and what to do about it; None where there can be one.
    reason: str | None


def probe() -> LabProbe:
    """Find out what this machine offers for a lab, in a namespace made and left for it."""
    try:
        with Client() as helper:
            rootless = helper.request("make_namespaces")
            kinds = tuple(helper.request("offered_kinds"))
    except LabError as error:
        has_namespaces = isinstance(error, RefusedError) and error.what != "namespace"
        return LabProbe((), has_namespaces, False, str(error))
    reason = None if kinds else str(RefusedError("kind", errno.EOPNOTSUPP))
    return LabProbe(kinds, True, rootless, reason)


def sink_path() -> Path:
    """Return where the package's ``sink`` is, the program that receives in experiments.

    Raises
    ------
    LabError
        Where it has not been built.
    """
    # An editable install has it in its build folder, and only importlib knows where.
    path = importlib.resources.files("spead_tutorial").joinpath("bin", "sink")
    if not isinstance(path, Path) or not path.is_file():
        raise LabError("the package has no bin/sink: build and install it (pip install .)")
    return path
