# SPDX-License-Identifier: BSD-3-Clause
"""Trouble on the way to a receiver: packets that are lost, doubled or held back, and counted."""

import contextlib
import dataclasses
import itertools
import json
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

from .client import script
from .device import LabError
from .process import LabProcess
from .relay import fates

__all__ = ["Disturbance", "Disturbed", "disturbed"]


@dataclasses.dataclass(frozen=True, slots=True)
class Disturbed:
    """What became of the packets that came to a disturbance, until now.

    Parameters
    ----------
    packets : int
        Packets that came; fragments count as packets.
    lost, duplicated, held_back : int
        Those of them that were lost, that passed twice, and that passed after later ones.
    overflown : int
        Packets beyond these, that were lost because they came faster than they were read.
    """

    packets: int
    lost: int
    duplicated: int
    held_back: int
    overflown: int


class Disturbance:
    """What disturbs the way to a receiver; `Lab.disturbed` makes one.

    Attributes
    ----------
    by : str
        What does it: ``"relay"``, a process of ours.
    """

    by = "relay"

    def __init__(self, process: LabProcess, channel: socket.socket, how: dict[str, Any]) -> None:
        self._process, self._channel = process, channel
        self._how = {name: how[name] for name in ("loss", "duplicate", "reorder", "seed")}
        self._last: Disturbed | None = None

    def __repr__(self) -> str:
        return f"<Disturbance by {self.by}: {self._how}>"

    def fates(self, n: int) -> list[str]:
        """Say what becomes of the first packets.

        Parameters
        ----------
        n : int
            How many.

        Returns
        -------
        list of str
            Of each ``"passed"``, ``"lost"``, ``"duplicated"`` or ``"held back"``.
        """
        return list(itertools.islice(fates(**self._how), n))

    def counts(self) -> Disturbed:
        """Say what became of the packets until now or, after the block, of all."""
        if self._last is not None:
            return self._last
        try:
            self._channel.sendall(b"counts\n")
        except OSError:
            raise LabError("what disturbs the way has ended: leave the block") from None
        return self._read()

    def _read(self) -> Disturbed:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise LabError("what disturbs the way has ended: leave the block")
        return Disturbed(**json.loads(line))

    def _end(self) -> None:
        self._channel.close()
        self._last = self._read()


def check_shares(loss: float, duplicate: float, reorder: float, distance: int) -> None:
    """Refuse what no packets can come to."""
    shares = {"loss": loss, "duplicate": duplicate, "reorder": reorder}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is {share}: it is a share of the packets, from 0 to 1")
    if sum(shares.values()) > 1:
        raise ValueError("loss, duplicate and reorder are more than 1 together: a packet has one")
    if distance < 1:
        raise ValueError(f"distance is {distance}: at least one packet has to pass")


@contextlib.contextmanager
def disturbed(lab: Any, **how: Any) -> Iterator[Disturbance]:
    """Disturb the way of a lab to its receiver; see `Lab.disturbed`."""
    check_shares(how["loss"], how["duplicate"], how["reorder"], how["distance"])
    if lab.receiver.kind == "loopback":
        raise LabError("loopback cannot be disturbed: take Lab('veth', receiver=True)")
    sender, receiver = lab._helper, lab.receiver._helper
    with contextlib.ExitStack() as undo:
        channel, theirs = map(undo.enter_context, socket.socketpair())
        try:
            # The relay is a program like others, which may not open them where a user is not root.
            raw = [receiver.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in range(2)]
        except PermissionError as error:
            raise LabError(
                f"raw sockets are refused, which disturb the way ({error.strerror}): have the"
                " capability NET_RAW, as by --cap-add NET_RAW in a container"
            ) from None
        with raw[0], raw[1]:
            socket.send_fds(channel, [b"\n"], [one.fileno() for one in raw])
        undo.enter_context(receiver.done("make_detour", {"op": "end_detour"}, mtu=lab.mtu))
        process = undo.enter_context(
            lab.receiver.popen(
                script("relay", json.dumps(how)),
                stdin=theirs.fileno(),
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        theirs.close()
        if process.stdout.readline() != "ready\n":
            raise LabError("what was to disturb the way has ended")
        receiver.request("take_detour")
        # A run of packets in one message could only be lost as a whole.
        run = {"op": "limit_run", "device": lab.device, "packets": lab.facts()["gso_max_segs"]}
        undo.enter_context(sender.done(**run | {"packets": 1}, undo=run))
        disturbance = Disturbance(process, channel, how)
        try:
            yield disturbance
        finally:
            disturbance._end()
