# SPDX-License-Identifier: BSD-3-Clause
"""Observer of both ends: a program sends for minutes over a link, and another receives.

Each side has one core, as on a small machine. What was lost, what CPU time each side took, how
full the socket was at most, and whether memory stays flat on both sides come from the same run.
"""

import contextlib
import dataclasses
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bench.memory import growth, resident
from bench.receivers import (
    DROPS,
    RCVBUF,
    RECEIVING,
    RMEM_ALLOC,
    Ends,
    Receiving,
    receiver_command,
    socket_memory,
    warm_up,
)
from bench.senders import SENDING
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Journey, Lab
from spead_tutorial.measure import delivery, search
from spead_tutorial.measure.case import Case, Size, Step, take_received
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import command
from spead_tutorial.measure.records import Received, Sample
from spead_tutorial.measure.running import Listening, Running

_SECONDS = {"full": 180.0, "quick": 10.0, "tiny": 0.02}
_DRAIN_S = 30.0
#: Seconds between looks at both processes and the socket, which are to take no time of theirs.
_LOOK_S = 0.05
#: What the receivers' own drivers are called, that receive what a sender of either side sends.
_DRIVER = "receive"


def receiver_of(case: Case) -> Case:
    """Return the case of the receiver that a sender's case names."""
    (to,) = (word.removeprefix("to ") for word in case.words)
    language = "python" if case.language == "python" else "c"
    return dataclasses.replace(
        case, implementation=to, language=language, program=_DRIVER, variant="veth", link=None
    )


class BothEnds(Receiving):
    """What arrives over a link in minutes, and what both sides take for it."""

    veth, warms_up, once = True, False, True

    def missing(self, case: Case) -> str | None:
        return SENDING.missing(case) or RECEIVING.missing(receiver_of(case))

    def facts(self, lab: Lab) -> dict[str, Any]:
        return super().facts(lab) | {"kind": lab.kind, "mtu": lab.mtu}

    def heaps(self, case: Case, size: Size, known: Sample | None) -> int:
        assert case.link is not None
        return max(4, int(_SECONDS[size.name] * case.link / 8) // case.heap_size)

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        way = lab.device, lab.kind
        return take_received(step, heaps, 0, way, lambda: _run(lab, step.case, heaps))


def _run(lab: Lab, case: Case, heaps: int) -> tuple[dict[str, Any], str | None]:
    """Return what a sample has of what both sides said, and why it is none, if so."""
    first, second = a_core_each()
    receiver, chapter = receiver_of(case), find_chapter(case.program)
    assert case.link is not None
    with _bound(lab) as ends:
        argv = receiver_command(receiver, ends)
        start = SENDING.launch(case, heaps)
        to = ends.receiver.getsockname()
        sending = start(to) if start else command(chapter, case.language, case.options(heaps), to)
        counted, arrived = lab.counters(), lab.receiver.arrivals()
        with Listening(ends.start, _DRIVER, argv, core=second) as there, lab.limited(case.link):
            with Running(lab.popen, chapter.name, sending, core=first) as here:
                looks = list(_looks(here, there, ends.receiver))
                sent = here.wait()
            received = there.wait(_DRAIN_S)
        dropped = socket_memory(ends.receiver)[DROPS]
    grown, arrivals = lab.counters() - counted, lab.receiver.arrivals() - arrived
    if wrong := delivery.failure(sent, received):
        return {}, wrong
    journey = Journey(
        sent.said["packets"],
        received.said["packets"],
        dropped,
        lost_messages=grown.tx_dropped,
        arrivals=arrivals,
    )
    accounting = journey.check()
    measured = _measured(sent.said, received.said, looks)
    measured["received_heaps"] = received.said["heaps"] + warm_up(case)
    return measured, None if accounting.ok else accounting.text


@contextlib.contextmanager
def _bound(lab: Lab) -> Iterator[Ends]:
    """Yield a socket of the receiver's machine: its sender is a program that has its own."""
    with lab.receiver.socket(0, buffer_size=search.BUFFER) as receiver:
        yield Ends(receiver, receiver)


def _looks(here: Running, there: Running, sock: socket.socket) -> Iterator[tuple[int, int, float]]:
    """Yield the memory of both sides in bytes, and the share of the socket that is full."""
    while here.process.poll() is None and there.process.poll() is None:
        info = socket_memory(sock)
        sizes = [resident(one.process.pid) for one in (here, there)]
        if all(sizes):
            yield sizes[0] or 0, sizes[1] or 0, info[RMEM_ALLOC] / info[RCVBUF]
        time.sleep(_LOOK_S)


def _measured(
    sent: Mapping[str, Any], received: Mapping[str, Any], looks: list[tuple[int, int, float]]
) -> dict[str, Any]:
    """Return what a sample has: the time of the sender, the CPU time of both."""
    grown = max(growth([int(look[side]) for look in looks]) for side in (0, 1))
    return {
        "elapsed_ns": sent["elapsed_ns"],
        "spead_bytes": sent["spead_bytes"],
        "packets": sent["packets"],
        "messages": sent.get("messages"),
        "cpu_user_ns": received["cpu_user_ns"],
        "cpu_system_ns": received["cpu_system_ns"],
        "peak_memory_bytes": received["peak_memory_bytes"],
        "payload_bytes": received["payload_bytes"],
        "received_packets": received["packets"],
        "received_dropped": sent["packets"] - received["packets"],
        "sender_cpu_ns": sent["cpu_user_ns"] + sent["cpu_system_ns"],
        "growth_bytes": max(0, grown),
        "fullest_percent": round(100 * max((one[2] for one in looks), default=0.0), 2),
    }


BOTH_ENDS = BothEnds()
