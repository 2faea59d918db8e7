# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9's programs, measured as one runs them: beside chapter 8's sender, over a link.

What is asked is not how fast they are, but what of it arrives: they are sent to at the rate of the
link, or as fast as the sender can, and may lose heaps. So a sample holds what was lost as well.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from bench.receivers import contradiction
from bench.samples import Begun
from spead_tutorial.catalogue import find_chapter, find_receiver
from spead_tutorial.lab import Lab
from spead_tutorial.measure.case import Step
from spead_tutorial.measure.programs import Done, ProgramOptions
from spead_tutorial.measure.receiving import receive
from spead_tutorial.records import Sample

__all__ = ["take"]

_SENDER = find_chapter("8")
#: Nothing has come for so long when a receiver ends of which the stop heap is lost.
_SILENCE_S = "1"
_POOL = re.compile(r"pool of (\d+)")


def take(lab: Lab, step: Step, heaps: int) -> Sample:
    """Have chapter 9's program receive heaps."""
    case = step.case
    receiver = find_receiver(case.program)
    assert receiver is not None
    begun = Begun(step, heaps)
    options = ProgramOptions(heaps, case.heap_size, case.packet_size)
    buffers = _POOL.fullmatch(case.variant)
    told = ["-t", _SILENCE_S, *(["-b", buffers[1]] if buffers else [])]
    with lab.limited(case.link) if case.link is not None else contextlib.nullcontext():
        both = receive(
            lab, receiver, _SENDER, (case.language, "c"), options, told=told, as_json=True
        )
    received, sent = map(_said, both)
    measured = _measured(received, sent, case.heap_size)
    failure = _failure(both, received, sent)
    return begun.done(receiver.number, (lab.device, lab.kind), failure, measured)


def _said(done: Done) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(done.output)
    except ValueError:
        return {}
    return found


def _failure(
    both: tuple[Done, Done], received: Mapping[str, Any], sent: Mapping[str, Any]
) -> str | None:
    """Say why a sample does not count; that heaps were lost is none."""
    for done, said in zip(both, (received, sent), strict=True):
        if not said or done.status not in (0, 1):
            return done.complaint
    if both[1].status:
        return both[1].complaint
    fates = sum(n for name, n in received.items() if name.startswith("packets_"))
    if fates != received["socket_datagrams"]:
        return f"{received['socket_datagrams']} packets were received, and {fates} accounted for"
    return contradiction(
        {**sent, "dropped": received["socket_dropped"]},
        {"packets": received["socket_datagrams"], "heaps": received["heaps_complete"]},
        lossless=False,
    )


def _measured(
    received: Mapping[str, Any], sent: Mapping[str, Any], heap_size: int
) -> dict[str, Any]:
    if not received or not sent:
        return {}
    return {
        "elapsed_ns": sent["elapsed_ns"],
        "payload_bytes": received["heaps_complete"] * heap_size,
        "spead_bytes": sent["spead_bytes"],
        "packets": sent["packets"],
        "messages": sent["messages"],
        "page_faults": received["page_faults"],
        "received_packets": received["socket_datagrams"],
        "received_dropped": sent["packets"] - received["socket_datagrams"],
        "received_heaps": received["heaps_complete"],
        "pool_empty": received["pool_empty"],
        "pool_most_in_use": received["pool_most_in_use"],
    }
