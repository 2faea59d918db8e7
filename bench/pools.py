# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9's programs, measured as one runs them: beside chapter 8's sender, over a link.

What is asked is not how fast they are, but what of it arrives: they are sent to at the rate of the
link, or as fast as the sender can, and may lose heaps. So a sample holds what was lost as well.
"""

import re
from collections.abc import Mapping
from typing import Any

from spead_tutorial.chapters.catalogue import find_chapter, find_receiver
from spead_tutorial.lab import Lab
from spead_tutorial.measure.blast import failure
from spead_tutorial.measure.case import Begun, Step
from spead_tutorial.measure.delivery import deliver
from spead_tutorial.measure.programs import ProgramOptions
from spead_tutorial.measure.records import Received

__all__ = ["take"]

_SENDER = find_chapter("8")
#: Nothing has come for so long when a receiver ends of which the stop heap is lost.
_SILENCE_S = "1"
_POOL = re.compile(r"pool of (\d+)")


def take(lab: Lab, step: Step, heaps: int) -> Received:
    """Have chapter 9's program receive heaps."""
    case = step.case
    receiver = find_receiver(case.program)
    assert receiver is not None
    begun = Begun(step)
    options = ProgramOptions(heaps, case.heap_size, case.packet_size)
    buffers = _POOL.fullmatch(case.variant)
    to_receiver = ["-t", _SILENCE_S, *(["-b", buffers[1]] if buffers else [])]
    done = deliver(
        lab, receiver, _SENDER, (case.language, "c"), options,
        to_receiver=to_receiver, as_json=True, bits_per_s=case.link,
    )  # fmt: skip
    measured = _measured(done.received.said, done.sent.said, case.heap_size)
    wrong = failure(done.sent, done.received)
    if wrong is None and done.accounting is not None and not done.accounting.ok:
        wrong = done.accounting.text
    return begun.received(heaps, receiver.number, (lab.device, lab.kind), wrong, measured)


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
