# SPDX-License-Identifier: BSD-3-Clause
"""A program that receives what another sends, and where every packet between them went."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spead_tutorial.chapters.catalogue import Chapter, Receiver
from spead_tutorial.lab import Accounting, Arrivals, Journey, Lab, LabError, LabMachine
from spead_tutorial.measure.place import Evidence
from spead_tutorial.measure.programs import Done, ProgramOptions, command, program
from spead_tutorial.measure.report import Report
from spead_tutorial.measure.running import Listening, Running
from spead_tutorial.measure.verify import checks

__all__ = ["Delivery", "deliver", "listening", "receiver_arguments", "receiving_lab"]

_END_S = 60  # until a receiver that heard the last of its sender has ended


@dataclasses.dataclass(frozen=True, slots=True)
class Delivery:
    """What a receiver and its sender did, and what was counted on the way."""

    received: Done  # how the receiver ended, and the sender
    sent: Done
    report: Report | None  # what the sender says it sent; None where it says nothing
    # what was counted of its packets; None where one of the two did not say
    journey: Journey | None
    # whether every packet is accounted for: by the sender's device, the receiver's machine, and
    # the receiver
    accounting: Accounting | None

    @property
    def failure(self) -> str | None:
        """Why it is no success; None where nothing is missing, and every packet accounted for."""
        for done in (self.sent, self.received):  # a receiver may fail because its sender does
            if done.status != 0:
                return done.failure
        if self.accounting is None:
            return f"{self.sent.program} or {self.received.program} did not say what it counted"
        return None if self.accounting.ok else self.accounting.text


def receiving_lab() -> Lab:
    """Make a lab with a second machine; where there can be none, over the loopback of one."""
    try:
        return Lab(receiver=True)
    except LabError:
        return Lab("loopback", receiver=True)


def deliver(
    lab: Lab,
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    *,
    to_receiver: Sequence[str] = (),
    as_json: bool = False,
    show: Callable[[str, str, bool], None] | None = None,
    bits_per_s: int | None = None,
) -> Delivery:
    """Have a program receive what another sends, and hold what both say against the counters."""
    far, device = (lab.receiver, lab.device) if sender.takes_destination else (lab, "lo")
    destination = (lab.address, lab.port) if sender.takes_destination else None
    sending = command(sender, languages[1], options, destination)
    heap_size = options.heap_size or sender.heap_size
    receiving = program(receiver.name, languages[0])
    what = heap_size, str(lab.port), *to_receiver
    counted, arrived = lab.counters(device), Arrivals.of(far.snmp())
    with listening(far, receiver, receiving, *what, text=not as_json, show=show) as there:
        link = lab.limited(bits_per_s) if bits_per_s else contextlib.nullcontext()
        with link, Running(lab.popen, sender.name, sending, show) as here:
            sent = here.wait()
        if sent.status != 0 and Arrivals.of(far.snmp()).packets == arrived.packets:
            there.process.terminate()  # it would wait for the first packet, for ever
        received = there.wait(_END_S)
    grown, arrivals = lab.counters(device) - counted, Arrivals.of(far.snmp()) - arrived
    report, seen = Report.parse(sent.output), received.said
    if report is None or not seen:
        return Delivery(received, sent, report, None, None)
    journey = Journey.of(report.packets, seen, arrivals=arrivals, device=grown)
    (claim,) = checks(report, Evidence(grown))
    return Delivery(received, sent, report, journey, journey.check() if claim.ok else claim)


def listening(
    machine: LabMachine, receiver: Receiver, argv: Sequence[str], *what: Any, text: bool, **how: Any
) -> Listening:
    """Start a chapter's receiver, or a program that takes the same: for the rest as `Listening`."""
    words = receiver_arguments(receiver, *what, text=text)
    return Listening(machine.popen, Path(argv[-1]).stem, [*argv, *words], **how)


def receiver_arguments(
    receiver: Receiver, heap_size: int, at: str, *more: str, text: bool
) -> list[str]:
    """Return a receiver's arguments: what heaps it is going to get, and where it is to listen."""
    sizes = ["-H", str(heap_size)] if "H" in receiver.accepted else []
    return [*sizes, *more, "--json", *["--text"] * text, at]
