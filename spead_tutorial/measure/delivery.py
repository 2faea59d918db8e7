# SPDX-License-Identifier: BSD-3-Clause
"""A program that receives what another sends, whether what both say adds up, and a sample of it."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spead_tutorial.chapters.catalogue import Chapter, Receiver
from spead_tutorial.lab import Accounting, Arrivals, Journey, Lab, LabError, LabMachine
from spead_tutorial.ledger import Gap
from spead_tutorial.measure.case import Case, Step, take_received
from spead_tutorial.measure.place import Evidence
from spead_tutorial.measure.programs import (
    Done,
    ProgramError,
    ProgramOptions,
    command,
    program,
    program_path,
)
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.running import Listening, Running
from spead_tutorial.measure.verify import Report, checks, packet_sizes

# ---- A program next to a chapter's sender ----

_END_S = 60  # until a receiver that heard the last of its sender has ended


def receiving_lab() -> Lab:
    """Make a lab with a second machine; where there can be none, over the loopback of one."""
    try:
        return Lab(receiver=True)
    except LabError:
        return Lab("loopback", receiver=True)


def receiver_arguments(
    receiver: Receiver, heap_size: int, at: str, *more: str, text: bool
) -> list[str]:
    """Return a receiver's arguments: what heaps it is going to get, and where it is to listen."""
    sizes = ["-H", str(heap_size)] if "H" in receiver.accepted else []
    return [*sizes, *more, "--json", *["--text"] * text, at]


def listening(
    machine: LabMachine, receiver: Receiver, argv: Sequence[str], *what: Any, text: bool, **how: Any
) -> Listening:
    """Start a chapter's receiver, or a program that takes the same: for the rest as `Listening`."""
    words = receiver_arguments(receiver, *what, text=text)
    return Listening(machine.popen, Path(argv[-1]).stem, [*argv, *words], **how)


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


def _on_one_core(sender: Chapter, options: ProgramOptions) -> tuple[int | None, ProgramOptions]:
    """Return the core to keep a sender on behind a link, and its options with all its streams."""
    # From two cores packets leave a link in another order, and receivers take them in order.
    cores = os.sched_getaffinity(0)
    if options.cores is not None:
        return None, options
    if "s" in sender.accepted and options.streams is None:  # it would count one core
        options = dataclasses.replace(options, streams=len(cores))
    return min(cores), options


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
    core, options = _on_one_core(sender, options) if bits_per_s else (None, options)
    sending = command(sender, languages[1], options, destination)
    heap_size = options.heap_size or sender.heap_size
    receiving = program(receiver.name, languages[0])
    what = heap_size, str(lab.port), *to_receiver
    counted, arrived = lab.counters(device), Arrivals.of(far.snmp())
    with listening(far, receiver, receiving, *what, text=not as_json, show=show) as there:
        link = lab.limited(bits_per_s) if bits_per_s else contextlib.nullcontext()
        with link, Running(lab.popen, sender.name, sending, show, core=core) as here:
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


# ---- Receivers that are measured: they are sent to by `blast`, which keeps a rate ----

#: What is said of a receiver whose last line is an object of its own.
NO_ACCOUNT = "it printed no account of its packets: end it with report()"

_LOST = 1  # the status of a receiver to which heaps are missing
OF_SENDER = ("elapsed_ns", "spead_bytes", "packets", "messages")
_OF_RECEIVER = (
    "cpu_user_ns",
    "cpu_system_ns",
    "program_cpu_ns",
    "page_faults",
    "context_switches",
    "payload_bytes",
    "peak_memory_bytes",
)


def blast(
    case: Case, heaps: int, *more: object, rate: float | None = None, payload: float | None = None
) -> list[str]:
    """Return how `blast` is started, with a rate of bytes of packets in a second, or of payload."""
    if payload is not None:
        packets = packet_sizes(case.heap_size, case.packet_size)[1]
        rate = payload * sum(packets) / case.heap_size
    numbers = ["-n", heaps, "-H", case.heap_size, "-p", case.packet_size]
    numbers += ["-r", rate] if rate is not None else []
    return [str(program_path("blast", "c")), "--json", *map(str, [*numbers, *more])]


def failure(sent: Done, received: Done) -> str | None:
    """Say which of the two has failed; that heaps are missing to a receiver is no failure."""
    if not received.said or received.status not in (0, _LOST):
        return received.complaint
    return sent.complaint if sent.status or not sent.said else None


def claims(said: Mapping[str, Any], case: Case, warm_up: int = 0) -> dict[str, Any]:
    """Return what a chapter's program claims, in the words of the receivers that are measured."""
    if not said:
        return {}
    if "socket_datagrams" not in said:
        raise ProgramError(NO_ACCOUNT)
    # The heap with the descriptors was not to be received; in chunks it has no place.
    descriptors = 0 if said["packets_no_place"] else 1
    heaps = max(0, said["heaps_complete"] - descriptors - warm_up)
    return {
        "packets": said["socket_datagrams"],
        "dropped": said["socket_dropped"],
        "heaps": heaps,
        "payload_bytes": heaps * case.heap_size,
        "not_understood": max(0, said["heaps_not_understood"] - 1),
    }


def arrived(sent_packets: int, said: Mapping[str, int]) -> dict[str, int]:
    """Return what a sample has of what a chapter's program says of its socket and heaps."""
    return {
        "received_packets": said["socket_datagrams"],
        "received_dropped": sent_packets - said["socket_datagrams"],
        "received_heaps": said["heaps_complete"],
    }


def contradiction(
    sent: Mapping[str, Any],
    received: Mapping[str, Any],
    *,
    lossless: bool = False,
    lost_messages: int = 0,
) -> str | None:
    """Say why what was sent and received does not add up; None where it does."""
    if received.get("not_understood"):
        return f"{received['not_understood']} heaps came whole, but were not understood"
    dropped = sent["dropped"] if "dropped" in sent else received["dropped"]
    account = Journey(
        sent["packets"], received["packets"], dropped, lost_messages=lost_messages
    ).check()
    if not account.ok:
        return account.text
    if lossless and received["packets"] < sent["packets"]:
        return f"{account.text}, though the sender left room"
    most_lost, where = 0 if lossless else sent["heaps"], "between the sender and the program"
    return Gap(where, sent["heaps"], received["heaps"], 0, most_lost, "heap").complaint


def _counts(
    sent: Mapping[str, Any], received: Mapping[str, Any], *, searched: bool
) -> dict[str, Any]:
    """Return what a sample has of both sides' claims; of a search's run, that of sending alone."""
    found: dict[str, Any] = {name: sent.get(name) for name in OF_SENDER}
    found |= {name: received.get(name) for name in _OF_RECEIVER}
    if not (sent and received):
        return found
    found["received_packets"] = received["packets"]
    # None are missing where others have sent: the failure says so.
    found["received_dropped"] = max(0, sent["packets"] - received["packets"])
    found["received_heaps"] = received["heaps"]
    if searched:
        found["elapsed_ns"] = sent["sending_ns"]
        found["spead_bytes"] -= sent["warm_up_bytes"]
        for name in ("packets", "received_packets"):
            found[name] -= sent["warm_up_packets"]
    return found


def take(
    step: Step,
    heaps: int,
    run: Callable[[], tuple[Done, Done]],
    way: tuple[str, str],
    *,
    chapter: int = 0,
    asked: float | None = None,
    warm_up: int = 0,
    lossless: bool = False,
    lost_messages: Callable[[], int] = lambda: 0,
) -> Received:
    """Take a sample of `blast` and a receiver; what devices have dropped is asked after the run."""

    def observe() -> tuple[dict[str, Any], str | None]:
        sent, received = run()
        said = claims(received.said, step.case, warm_up) if chapter else received.said
        wrong = failure(sent, received) or contradiction(
            sent.said, said, lossless=lossless, lost_messages=lost_messages()
        )
        return _counts(sent.said, said, searched=asked is not None), wrong

    return take_received(step, heaps, chapter, way, observe, asked)
