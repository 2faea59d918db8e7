# SPDX-License-Identifier: BSD-3-Clause
"""Observer of an array in which one sender is slow: what a receiver gets of it, and of the others.

Chapter 19's senders send at a rate to one of its receivers, on a machine of its own. The last of
them has a tenth of the others' rate and of their heaps, so that all send for as long. Each packet
of each sender has to have been received, or to have been dropped by its full socket; no offload
makes one of several, so both are counted alike.
"""

import contextlib
import functools
from typing import Any, ClassVar

from bench.receivers import Receiving, flags
from spead_tutorial.chapters.catalogue import ARRAY
from spead_tutorial.lab import Lab
from spead_tutorial.ledger import Gap, first_complaint
from spead_tutorial.measure.case import Case, Step, take_received
from spead_tutorial.measure.delivery import listening
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import Done, ProgramError, ProgramOptions, program
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.running import Running

#: How many send as fast as they should, in MB/s, and by how much another one is slower.
FAST, MB_PER_S, SLOWER = 2, 50, 10
_PATIENCE_S, _SILENCE_S = 60.0, "1"


class OneSlow(Receiving):
    """What comes of senders while another one is slow."""

    veth = True
    lasts_s = 5.0
    settings: ClassVar = {"senders": FAST + 1, "mb_per_s": MB_PER_S, "slower": SLOWER}

    def facts(self, lab: Lab) -> dict[str, Any]:
        return super().facts(lab) | {"kind": lab.kind, "mtu": lab.mtu}

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        observed = functools.partial(_run, lab, step.case, heaps)
        return take_received(step, heaps, ARRAY[1].number, (lab.device, lab.kind), observed)


def _run(lab: Lab, case: Case, heaps: int) -> tuple[dict[str, Any], str | None]:
    """Return what became of heaps of the fast senders, and of the slow one's, which are fewer."""
    first, second = a_core_each()
    each = [heaps // FAST] * FAST + [max(1, heaps // FAST // SLOWER)]
    more = "--senders", str(len(each)), "-t", _SILENCE_S, *flags(case)
    argv = program(ARRAY[1].name, case.language)
    what = case.heap_size, str(lab.port), *more
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.plain_card())
        listens = listening(lab.receiver, ARRAY[1], argv, *what, text=False, core=second)
        receiver = stack.enter_context(listens)
        senders = [
            stack.enter_context(
                Running(lab.popen, f"sender {i}", _sender(lab, case, i, n), core=first)
            )
            for i, n in enumerate(each)
        ]
        sent = [sender.wait(_PATIENCE_S) for sender in senders]
        received = receiver.wait(_PATIENCE_S)
    return counted(sent, received, case.heap_size)


def _sender(lab: Lab, case: Case, i: int, heaps: int) -> list[str]:
    options = ProgramOptions(heaps, case.heap_size, case.packet_size).arguments(ARRAY[0])
    rate = MB_PER_S if i < FAST else MB_PER_S / SLOWER
    place = f"--sender={i}", f"--senders={FAST + 1}", f"--rate={rate:g}"
    to = f"{lab.address}:{lab.port}"
    return [*program(ARRAY[0].name, "c"), *options, *place, "--json", to]


def counted(sent: list[Done], received: Done, heap_size: int) -> tuple[dict[str, Any], str | None]:
    """Return what a sample has of what both sides counted, and what does not add up, if anything.

    That a receiver has failed says nothing, as it does where something was lost.
    """
    for done in (*sent, received):
        if not done.said or (done.status and done is not received):
            raise ProgramError(done.complaint)
    pairs = received.said["senders"]
    packets = [done.said["packets"] for done in sent]
    came = [pair["packets"] for pair in pairs]
    dropped = [pair["dropped"] for pair in pairs]
    *fast, slow = (pair["heaps"] for pair in pairs)
    measured = {
        "elapsed_ns": max(done.said["elapsed_ns"] for done in sent[:FAST]),
        "payload_bytes": sum(fast) * heap_size,
        "packets": sum(packets),
        "received_packets": sum(came),
        "received_dropped": sum(dropped),
        "received_heaps": sum(fast),
        "slow_heaps": sent[-1].said["heaps"],
        "slow_received_heaps": slow,
    }
    return measured, first_complaint(
        Gap(f"from sender {i}", packets[i], came[i] + dropped[i]) for i in range(len(sent))
    )


ONE_SLOW = OneSlow()
