# SPDX-License-Identifier: BSD-3-Clause
"""From one host to another: a program that sends, one that receives, and the account of both.

``python -m spead_tutorial.tools.crossing`` runs one of them on its host, which it is told by a line
of JSON, and prints lines of JSON: each line of the program's as it comes, and then how it ended and
what the machine counted meanwhile. When its standard input ends, so does the program: no one
listens any more, or there is nothing more to come.
"""

import contextlib
import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from spead_tutorial.chapters.catalogue import Chapter, Receiver
from spead_tutorial.lab import LabError, LabProcess, check_destination, route_device
from spead_tutorial.ledger import Gap
from spead_tutorial.measure.delivery import receiver_arguments
from spead_tutorial.measure.machine import read_text
from spead_tutorial.measure.programs import Done, ProgramError, ProgramOptions, program
from spead_tutorial.measure.running import READY, Running
from spead_tutorial.measure.verify import Report
from spead_tutorial.send import route_packet_size
from spead_tutorial.tools.hosts import Command, Host, LostError, end_all, started_whole

#: What sends where no chapter is chosen: it has a rate, and chapters send as fast as they can.
BLAST = Chapter(0, "blast", "A sender with a rate", "equal heaps at a rate", "nHpd", heaps=1000,
                packet_size=9000)  # fmt: skip

_Show: TypeAlias = Callable[[str, str, bool], None] | None  # a program's lines
_LOOK_S = 0.1
_START_S = 60  # until a receiver listens
_END_S = 10  # from the end of the sender until a receiver that has heard of it has ended
_NOWHERE = "no counter of the two machines has them, so look at the network between them"
_END = ["-P", "-m", "spead_tutorial.tools.crossing"]
_PATIENCE_S = 10  # from Ctrl-C on
_NET = Path("/proc/net")
_DEVICES = Path("/sys/class/net")

#: What is sent at most by default: as much as chapter 2 does, and half of a slower link.
_MOST, _SHARE = 100e6, 0.5
_PACKET_SIZE = 9000

#: What a machine counts of all messages that go over its devices but loopback, and of those of
#: UDP. A message may be a run of packets (segmentation and receive offload).
COUNTS = {
    "tx_packets": "messages sent by the devices of {}",
    "tx_dropped": "dropped by these",
    "rx_packets": "messages received by the devices of {}",
    "rx_dropped": "dropped by these",
    "no_port": "for a port without a socket",
    "no_room": "without room in a socket",
}
_OF_SENDER = "tx_packets", "tx_dropped"
_OF_RECEIVER = "rx_packets", "rx_dropped", "no_port", "no_room"
_COLUMNS = {"rx_packets": 1, "rx_dropped": 3, "tx_packets": 9, "tx_dropped": 11}


# ---- On each host ----


def counts(folder: Path = _NET) -> dict[str, int]:
    """Read what this machine has counted, by the names of `COUNTS`."""
    found = dict.fromkeys(COUNTS, 0)
    for line in (folder / "dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() != "lo":
            for count, column in _COLUMNS.items():
                found[count] += int(numbers.split()[column])
    udp = [line.split() for line in (folder / "snmp").read_text().splitlines() if "Udp:" in line]
    by_name = dict(zip(udp[0], udp[1], strict=True))
    found["no_port"], found["no_room"] = int(by_name["NoPorts"]), int(by_name["RcvbufErrors"])
    return found


def rate_to(host: str, folder: Path = _DEVICES) -> float:
    """Return a rate that is below that of the link to a host, in bytes/s."""
    device = route_device(host)
    said = None if device is None else read_text(folder / device / "speed")
    megabits = int(said or -1)  # which it is where the kernel does not know
    return min(_MOST, _SHARE * megabits * 1e6 / 8) if megabits > 0 else _MOST


def _paced(host: str, rate: float | None, arguments: list[str]) -> list[str]:
    """Return what a sender with a rate is told of that, and of packets that go in one piece."""
    if rate is None:
        rate = rate_to(host)
        text = f"sending at {rate / 1e6:g} MB/s, below the rate of the link (--rate)"
        _pass_on("", text, is_trouble=True)
    if "-p" in arguments:
        return ["-r", str(rate)]
    size = _PACKET_SIZE
    with contextlib.suppress(OSError, ValueError):  # the sender says it all
        size = min(size, route_packet_size(host))
    return ["-r", str(rate), "-p", str(size)]


def _write(**record: object) -> None:
    print(json.dumps(record), flush=True)


def _pass_on(_: str, line: str, is_trouble: bool) -> None:
    _write(record="line", text=line, is_trouble=is_trouble)


def _end_with_input(process: LabProcess | subprocess.Popen[str]) -> None:
    while os.read(0, 1 << 16):  # not by sys.stdin, whose lock it would have when Python ends
        pass
    process.send_signal(signal.SIGINT)  # it says what has come
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _run(what: dict[str, Any]) -> None:
    destination = what["destination"]
    if destination is not None:
        check_destination(destination, allow_real_network=what["allow_real_network"])
    arguments = what["arguments"]
    if "rate" in what:
        arguments = [*_paced(destination, what["rate"], arguments), *arguments]
    argv = [*program(what["program"], what["language"]), *arguments]
    before, start = counts(), functools.partial(subprocess.Popen, stdin=subprocess.DEVNULL)
    with Running(start, what["program"], argv, _pass_on) as running:
        threading.Thread(target=_end_with_input, args=(running.process,), daemon=True).start()
        done = running.wait()
    grown = {name: count - before[name] for name, count in counts().items()}
    _write(record="done", status=done.status, output=done.output, errors=done.errors, counted=grown)


def main() -> int:
    """Do what the first line of the standard input says."""
    try:
        _run(json.loads(sys.stdin.readline()))
    except (LabError, ProgramError, ValueError, OSError) as error:
        _write(record="failed", text=str(error))
        return 1
    return 0


# ---- From here: both ends, and the account ----


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
        """Packets that were sent, and received; None of a program that does not say."""
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
        for end, names in enumerate((_OF_SENDER, _OF_RECEIVER)):
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
    def __init__(self, host: Host, name: str, what: dict[str, Any], show: _Show) -> None:
        self._host, self._name, self._show = host, name, show
        self.listens = False
        self.done: Done | None = None
        self.counted: dict[str, int] = {}
        with _lost(host):
            self.command = Command(host, _END, json.dumps({"program": name, **what}))

    def hear(self) -> None:
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
    show: _Show = None,
) -> Crossing:
    """Have a program on one host send to a program on another."""
    (here, there), (sender, receiver) = hosts, programs
    heaps, heap_size = options.heaps or sender.heaps, options.heap_size or sender.heap_size
    words = receiver_arguments(receiver, heap_size, str(port), *to_receiver, text=not as_json)
    listening: dict[str, Any] = {"language": languages[1], "destination": None, "arguments": words}
    listening["allow_real_network"] = allow_real_network
    sending = listening | {"language": languages[0], "destination": there.destination}
    describe = ["--describe"] * (sender is BLAST)
    if sender is BLAST:
        options = dataclasses.replace(options, heaps=heaps, heap_size=heap_size)
        sending["rate"] = rate
    words = [*options.arguments(sender), *describe, "--json"]
    sending["arguments"] = [*words, "--", str(there.destination), str(port)]
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


if __name__ == "__main__":
    sys.exit(main())
