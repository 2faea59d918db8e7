# SPDX-License-Identifier: BSD-3-Clause
"""A program that receives what another sends, and where every packet between them went."""

import dataclasses
import json
import re
from typing import Any

from spead_tutorial.catalogue import Chapter, Receiver
from spead_tutorial.lab import Accounting, Arrivals, Journey, Lab
from spead_tutorial.measure.believe import hold
from spead_tutorial.measure.place import Evidence
from spead_tutorial.measure.programs import Done, ProgramOptions
from spead_tutorial.measure.receiving import receive
from spead_tutorial.measure.report import Report

__all__ = ["Delivery", "deliver", "seen_by"]


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


def deliver(
    lab: Lab,
    receiver: Receiver,
    sender: Chapter,
    languages: tuple[str, str],
    options: ProgramOptions,
    **how: Any,
) -> Delivery:
    """Have a program receive what another sends, and hold what both say against the counters."""
    far, device = (lab.receiver, lab.device) if sender.takes_destination else (lab, "lo")
    counted, arrived = lab.counters(device), Arrivals.of(far.snmp())
    received, sent = receive(lab, receiver, sender, languages, options, **how)
    grown, arrivals = lab.counters(device) - counted, Arrivals.of(far.snmp()) - arrived
    report, seen = Report.parse(sent.output), seen_by(received.output)
    if report is None or seen is None:
        return Delivery(received, sent, report, None, None)
    journey = Journey(report.packets, *seen, lost_messages=grown.tx_dropped, arrivals=arrivals)
    (claim,) = hold(report, Evidence(grown))
    return Delivery(received, sent, report, journey, journey.check() if claim.ok else claim)


def seen_by(output: str) -> tuple[int, int] | None:
    """Find the packets that a receiver got, and the messages that its socket had no room for."""
    if output.startswith("{"):
        said: dict[str, Any] = json.loads(output)
        return said["socket_datagrams"], said["socket_dropped"]
    found = re.search(r"^packets: (\d+) received .*^socket: (\d+) dropped$", output, re.M | re.S)
    return (int(found[1]), int(found[2])) if found else None
