# SPDX-License-Identifier: BSD-3-Clause
"""What `blast` sends to a receiver, which is measured, and whether what both say adds up."""

from collections.abc import Callable, Mapping
from typing import Any

from spead_tutorial.lab import Journey
from spead_tutorial.ledger import Gap
from spead_tutorial.measure.case import Begun, Case, Step
from spead_tutorial.measure.programs import Done, ProgramError, program_path
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.verify import packet_sizes

__all__ = ["NO_ACCOUNT", "blast", "claims", "contradiction", "failure", "take"]

#: What is said of a receiver whose last line is an object of its own.
NO_ACCOUNT = "it printed no account of its packets: end it with report()"

_LOST = 1  # the status of a receiver to which heaps are missing
_OF_SENDER = ("elapsed_ns", "spead_bytes", "packets", "messages")
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
    """Return how it is started, with a rate of bytes of packets in a second, or of payload."""
    if payload is not None:
        rate = payload * _overhead(case.heap_size, case.packet_size)
    numbers = ["-n", heaps, "-H", case.heap_size, "-p", case.packet_size]
    numbers += ["-r", rate] if rate is not None else []
    return [str(program_path("blast", "c")), "--json", *map(str, [*numbers, *more])]


def _overhead(heap_size: int, packet_size: int) -> float:
    """Return how many bytes packets have for each byte of payload."""
    return sum(packet_sizes(heap_size, packet_size)[1]) / heap_size


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
    """Take a sample: have `blast` send, and a receiver receive, of a chapter if it is of one.

    Of what devices on the way have dropped, a function says how much it was, after the run.
    """
    begun = Begun(step)
    found: dict[str, Any] = {"asked_bytes_per_s": asked}
    try:
        sent, received = run()
        said = claims(received.said, step.case, warm_up) if chapter else received.said
    except ProgramError as error:
        return begun.received(heaps, chapter, way, str(error), found)
    found |= _counts(sent.said, said, searched=asked is not None)
    wrong = failure(sent, received) or contradiction(
        sent.said, said, lossless=lossless, lost_messages=lost_messages()
    )
    return begun.received(heaps, chapter, way, wrong, found)


def claims(said: Mapping[str, Any], case: Case, warm_up: int = 0) -> dict[str, Any]:
    """Return what a chapter's program claims, in the words of the receivers that are measured.

    The heap with the descriptors is not one of those that were to be received. Where heaps go into
    chunks there is no place for it, and so it is not among those that are complete.
    """
    if not said:
        return {}
    if "socket_datagrams" not in said:
        raise ProgramError(NO_ACCOUNT)
    descriptors = 0 if said["packets_no_place"] else 1
    heaps = max(0, said["heaps_complete"] - descriptors - warm_up)
    return {
        "packets": said["socket_datagrams"],
        "dropped": said["socket_dropped"],
        "heaps": heaps,
        "payload_bytes": heaps * case.heap_size,
        "not_understood": max(0, said["heaps_not_understood"] - 1),
    }


def failure(sent: Done, received: Done) -> str | None:
    """Say which of the two has failed; that heaps are missing to a receiver is no failure."""
    if not received.said or received.status not in (0, _LOST):
        return received.complaint
    return sent.complaint if sent.status or not sent.said else None


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
    """Return what a sample has of what both sides claim: the time is the sender's.

    Of a run of a search it is that of sending, and packets are those that were sent in it.
    """
    found: dict[str, Any] = {name: sent.get(name) for name in _OF_SENDER}
    found |= {name: received.get(name) for name in _OF_RECEIVER}
    if not (sent and received):
        return found
    found["received_packets"] = received["packets"]
    found["received_dropped"] = sent["packets"] - received["packets"]
    found["received_heaps"] = received["heaps"]
    if searched:
        found["elapsed_ns"] = sent["sending_ns"]
        found["spead_bytes"] -= sent["warm_up_bytes"]
        for name in ("packets", "received_packets"):
            found[name] -= sent["warm_up_packets"]
    return found
