# SPDX-License-Identifier: BSD-3-Clause
"""Many machines in a lab, which a switch joins: an array's."""

import contextlib
import ipaddress
import time
from collections.abc import Iterator
from typing import Any, Self

from .helper import Client
from .machine import LabMachine, check_rate

#: The networks of an array's machines: one for data, and one for all else.
DATA, CONTROL = map(ipaddress.IPv4Network, ("10.10.0.0/16", "10.11.0.0/16"))
#: What a machine's devices in them are called; on the switch's side the latter joins all.
DATA_DEVICE, CONTROL_DEVICE = "data0", "control0"
SWITCH = "switch0"
_MOST = 256
_LOOK_S = 0.001


def address(network: ipaddress.IPv4Network, machine: int | None = None) -> str:
    """Return a machine's address in a network; the last one is the switch's."""
    return str(network[-2 if machine is None else machine + 1])


def port(machine: int) -> str:
    """Return what the device on the switch is called that leads to a machine's data device."""
    return f"port{machine}"


class ArrayMachine(LabMachine):
    """One of the machines of a `LabArray`.

    Attributes
    ----------
    name : str
        Such as ``"machine0"``.
    address, control : str
        Where it receives data, and all else.
    """

    def __init__(self, switch: Client, inside: Any, number: int) -> None:
        super().__init__(inside, "veth", DATA_DEVICE)
        self._switch, self._port = switch, port(number)
        self.name = f"machine{number}"
        self.address, self.control = address(DATA, number), address(CONTROL, number)

    @contextlib.contextmanager
    def limited(self, bits_per_s: int) -> Iterator[None]:
        """Have its link pass no more than a rate, in each direction, in a ``with`` block.

        What it sends waits for that, as before a real card. What comes for it waits in the switch,
        which drops what its buffer has no room for.

        Parameters
        ----------
        bits_per_s : int
            The rate, from 10⁶ to 32·10⁹, in which the headers of UDP, IP and the link count.
        """
        check_rate(bits_per_s)
        try:
            self._limit(bits_per_s // 8)
            yield
            while self._helper.request("backlog", device=self.device):
                time.sleep(_LOOK_S)
        finally:
            self._limit(0)

    def _limit(self, bytes_per_s: int) -> None:
        self._helper.request("limit_rate", device=self.device, bytes_per_s=bytes_per_s)
        self._switch.request("limit_port", device=self._port, bytes_per_s=bytes_per_s)

    @contextlib.contextmanager
    def losing(self, share: float) -> Iterator[None]:
        """Have packets for it lost on the switch by chance, in a ``with`` block.

        Parameters
        ----------
        share : float
            Which share of them, in millionths; more than none needs the package nftables.
        """
        if not 0 < share <= 1:
            raise ValueError(f"share is {share}: it is a share of the packets, above 0, up to 1")
        lose: dict[str, Any] = {"op": "lose", "device": self._port}
        with self._switch.done(**lose, share=share, undo=lose | {"share": 0}):
            yield

    def lost(self) -> int:
        """Count the packets that were lost by chance in the block of `losing`."""
        return int(self._switch.request("lost", device=self._port))

    def dropped(self) -> int:
        """Count the packets for it that the switch's buffer had no room for since `limited`."""
        return int(self._switch.request("queue_drops", device=self._port))


class LabArray:
    """Machines that a switch joins, each a network namespace; without root, and without a cable.

    The switch sends a multicast group only to those who have joined it (IGMP snooping, with a
    querier). A second network, without limits, is for control: nothing of it is counted on the
    first. Like a `Lab`, it ends with the calling process at the latest, with all programs in it.

    Parameters
    ----------
    machines : int
        How many, from 1 to 256.
    mtu : int
        The MTU of the network for data, in bytes, which counts from the IP header.

    Attributes
    ----------
    machines : tuple of ArrayMachine
    switch : LabMachine
        Where the ports are.
    control : str
        Its address in the network for control; in the other one it has none.

    Raises
    ------
    LabError
        Where this machine does not let one be made; the text says why.
    """

    def __init__(self, machines: int, *, mtu: int = 9216) -> None:
        if not 1 <= machines <= _MOST:
            raise ValueError(f"machines is {machines}: it must be in 1 ... {_MOST}")
        with contextlib.ExitStack() as undo:
            helper = undo.enter_context(Client())
            helper.make_network("make_namespaces")
            inside = helper.hold_networks(machines)
            helper.request("join_machines", mtu=mtu)
            undo.pop_all()
        self._helper = helper
        self.switch = LabMachine(helper, "veth", SWITCH)
        self.control = address(CONTROL)
        self.machines = tuple(ArrayMachine(helper, one, i) for i, one in enumerate(inside))

    def folder(self) -> str:
        """Make a folder for its programs, which ends with it."""
        return self._helper.make_folder()

    def close(self) -> None:
        """End it and every program in it; may be called again."""
        self._helper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
