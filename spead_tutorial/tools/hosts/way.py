# SPDX-License-Identifier: BSD-3-Clause
"""From one host to another: a program that sends, one that receives, and the account of both."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from spead_tutorial.chapters.catalogue import Chapter, Receiver
from spead_tutorial.ledger import Gap
from spead_tutorial.measure.delivery import receiver_arguments
from spead_tutorial.measure.programs import Done, ProgramError, ProgramOptions
from spead_tutorial.measure.report import Report
from spead_tutorial.measure.running import READY
from spead_tutorial.tools.hosts.end import COUNTS
from spead_tutorial.tools.hosts.file import Host
from spead_tutorial.tools.hosts.remote import Command, LostError, end_all, started_whole

__all__ = ["BLAST", "Crossing", "cross"]

#: What sends where no chapter is chosen: it has a rate, and chapters send as fast as they can.
BLAST = Chapter(
    0,
    "blast",
    "A sender with a rate",
    "equal heaps at a rate",
    "nHpd",
    heaps=1000,
    packet_size=9000,
)

_LOOK_S = 0.1
_START_S = 60  # until a receiver listens
_END_S = 10  # from the end of the sender until a receiver that has heard of it has ended
_COUNTED_BY_SENDER = "tx_packets", "tx_dropped"
_COUNTED_BY_RECEIVER = "rx_packets", "rx_dropped", "no_port", "no_room"
_NOWHERE = "no counter of the two machines has them, so look at the network between them"
_END = ["-P", "-m", "spead_tutorial.tools.hosts.end"]


@dataclasses.dataclass(frozen=True, slots=True)
class Crossing:
    """What a sender and a receiver on two hosts did, and what their machines counted."""

    hosts: tuple[str, str]  # names of the sender's host, and of the receiver's
    sent: Done  # how the two ended
    received: Done
    # by how much the counts of `COUNTS` grew on each
    counted: tuple[dict[str, int], dict[str, int]]

    @property
    def packets(self) -> tuple[int | None, int | None]:
        """Packets that were sent, and received; None of whoever does not say."""
        report = Report.parse(self.sent.output)
        return None if report is None else report.packets, self._seen("socket_datagrams")

    def _seen(self, name: str) -> int | None:
        """Return what the receiver counted; a program of another version may count other things."""
        count = self.received.said.get(name)
        return count if isinstance(count, int) else None

    @property
    def rows(self) -> list[tuple[str, int]]:
        """What was counted along the way of the packets: where, and how many."""
        sent, received = self.packets
        points = [(f"packets sent by {self.sent.program}", sent)]
        for end, names in enumerate((_COUNTED_BY_SENDER, _COUNTED_BY_RECEIVER)):
            counted = self.counted[end]
            points += [(COUNTS[name].format(self.hosts[end]), counted[name]) for name in names]
        points.append((f"packets received by {self.received.program}", received))
        return [(where, count) for where, count in points if count is not None]

    @property
    def is_whole(self) -> bool | None:
        """Whether all that was sent has been received; None where one of them does not say."""
        sent, received = self.packets
        return None if sent is None or received is None else sent == received

    @property
    def account(self) -> str:
        """What became of all packets, in one line."""
        sent, received = self.packets
        if sent is None or received is None:
            return f"{self.sent.program} or {self.received.program} did not say what it counted"
        said = f"{sent} packets sent by {self.hosts[0]}, {received} received by {self.hosts[1]}"
        lost = "; ".join(where for count, where in self._drops() if count)
        stranger = "something else sends there"
        gap = Gap("on the way", sent, received, surplus=stranger, shortage=lost or _NOWHERE)
        return f"{said}; {gap.difference}" if gap.difference else said

    def _drops(self) -> Iterator[tuple[int, str]]:
        here, there = self.counted
        sender, receiver = self.hosts
        no_room = self._seen("socket_dropped") or 0
        yield here["tx_dropped"], f"the devices of {sender} dropped {here['tx_dropped']}"
        yield there["rx_dropped"], f"those of {receiver} dropped {there['rx_dropped']}"
        yield no_room, f"the receiver's socket had no room for {no_room} messages (rmem_max, cores)"
        yield there["no_port"], f"{there['no_port']} messages came to a port without a socket"

    @property
    def failure(self) -> str | None:
        """Why it is no success; None where nothing is missing."""
        if self.sent.status != 0:
            return self.sent.failure
        if self.is_whole is None and self.received.status != 0:
            return self.received.failure
        if not self.is_whole:
            return self.account
        return None if self.received.status == 0 else self.received.failure

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "receiver": self.received.said or None,
            "sender": self.sent.said or None,
            "hosts": {"sender": self.hosts[0], "receiver": self.hosts[1]},
            "counted": {"sender": self.counted[0], "receiver": self.counted[1]},
            "statuses": [self.received.status, self.sent.status],
            "whole": self.is_whole,
            "account": self.account,
        }


@contextlib.contextmanager
def _lost(host: Host) -> Iterator[None]:
    """Say which host it is that is lost."""
    try:
        yield
    except LostError as error:
        raise ProgramError(f"{host.name} is lost: {error}") from None


class _End:
    """One of the two programs, on its host."""

    def __init__(
        self,
        host: Host,
        name: str,
        what: dict[str, Any],
        show: Callable[[str, str, bool], None] | None,
    ) -> None:
        self._host, self._name, self._show = host, name, show
        self.listens = False
        self.done: Done | None = None
        self.counted: dict[str, int] = {}
        with _lost(host):
            self.command = Command(host, _END, json.dumps({"program": name, **what}))

    def hear(self) -> None:
        """Take in what it has said."""
        with _lost(self._host):
            for record in self.command.lines():
                self._take(record)
        if self.command.over and self.done is None:
            raise ProgramError(f"{self._host.name} did not say how {self._name} ended")

    def _take(self, record: dict[str, Any]) -> None:
        match record:
            case {"record": "line", "text": str(text), "is_trouble": bool(is_trouble)}:
                self.listens = self.listens or READY in text
                if self._show is not None:
                    self._show(self._name, text, is_trouble)
            case {
                "record": "done",
                "status": int(status),
                "output": str(output),
                "errors": str(errors),
                "counted": dict(counted),
            } if COUNTS.keys() == counted.keys() and {*map(type, counted.values())} == {int}:
                self.done, self.counted = Done(self._name, status, output, errors), counted
            case {"record": "failed", "text": str(text)}:
                raise ProgramError(f"{self._host.name}: {text}")
            case _:
                raise LostError(
                    "it says what is not understood here: have the same version of the package on"
                    " both machines"
                )

    def wait(self, seconds: float | None = None, *, until_it_listens: bool = False) -> bool:
        """Listen for so long, or to the end; return whether what was waited for has come."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            self.hear()
            if self.done is not None:
                return not until_it_listens
            if until_it_listens and self.listens:
                return True
            if until is not None and time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """Interrupt it, and take in its last words."""
        self.command.end()
        self.wait()


def _sender_arguments(sender: Chapter, options: ProgramOptions) -> list[str]:
    if sender is not BLAST:
        return [*options.arguments(sender), "--json"]
    heaps, heap_size = options.heaps or sender.heaps, options.heap_size or sender.heap_size
    options = dataclasses.replace(options, heaps=heaps, heap_size=heap_size)
    return [*options.arguments(sender), "--describe", "--json"]


def cross(
    hosts: tuple[Host, Host],
    programs: tuple[Chapter, Receiver],
    languages: tuple[str, str],
    options: ProgramOptions,
    *,
    port: int,
    to_receiver: Sequence[str] = (),
    rate: float | None = None,
    allow_real_network: bool = False,
    as_json: bool = False,
    show: Callable[[str, str, bool], None] | None = None,
) -> Crossing:
    """Have a program on one host send to a program on another."""
    (here, there), (sender, receiver) = hosts, programs
    listening = {
        "language": languages[1],
        "destination": None,
        "allow_real_network": allow_real_network,
        "arguments": receiver_arguments(
            receiver,
            options.heap_size or sender.heap_size,
            str(port),
            *to_receiver,
            text=not as_json,
        ),
    }
    to = [*_sender_arguments(sender, options), "--", str(there.destination), str(port)]
    sending: dict[str, Any] = listening | {
        "language": languages[0],
        "destination": there.destination,
        "arguments": to,
    }
    sending |= {"rate": rate} if sender is BLAST else {}
    begun: list[Command] = []
    try:
        with started_whole():
            far = _End(there, receiver.name, listening, show)
            begun.append(far.command)
        if not far.wait(_START_S, until_it_listens=True):
            why = far.done.complaint if far.done else f"it does not listen after {_START_S} s"
            raise ProgramError(f"{there.name}: {why}")
        with started_whole():
            near = _End(here, sender.name, sending, show)
            begun.append(near.command)
        while not near.wait(_LOOK_S):
            far.hear()  # what it says is shown as it comes
        if not far.wait(_END_S):
            far.end()  # the end of the stream has not come
    finally:
        end_all(begun)
    assert near.done is not None
    assert far.done is not None
    counted = near.counted, far.counted
    return Crossing((here.name, there.name), near.done, far.done, counted)
