# SPDX-License-Identifier: BSD-3-Clause
"""Observer of lateness: how long after a heap's last packet a program has told its power.

A stream of ours sends a heap, at a rate, to a program that has a core of its own, and waits for the
line that it prints of it. Between the two is the program's reading, its work, and the pipe that the
line comes through, which takes as long whatever the program. Nothing may be lost.
"""

import contextlib
import functools
import os
import queue
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from bench.receivers import Receiving, free_port, rate_of
from spead_tutorial import send
from spead_tutorial.chapters.catalogue import Receiver, find_receiver
from spead_tutorial.lab import Lab
from spead_tutorial.measure import delivery
from spead_tutorial.measure.case import Case, Step, take_received
from spead_tutorial.measure.delivery import listening
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import ProgramError, program
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.verify import make_group

_PATIENCE_S, _SILENCE_S = 30.0, "2"
_OF_PROGRAM = ("elapsed_ns", "cpu_user_ns", "cpu_system_ns", "context_switches")
_RESULT = "Timestamp:"  # begins the line of a heap


class Lateness(Receiving):
    """How late results are of heaps that are sent one by one, each after the last result."""

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        receiver = find_receiver(step.case.program)
        assert receiver is not None
        observed = functools.partial(_run, lab, step.case, receiver, heaps)
        with _on(a_core_each()[0]):
            return take_received(step, heaps, receiver.number, ("lo", "loopback"), observed)


@contextlib.contextmanager
def _on(core: int | None) -> Iterator[None]:
    """Stay on a core: this thread, and those that it starts."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if core is None else {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _run(lab: Lab, case: Case, receiver: Receiver, heaps: int) -> tuple[dict[str, Any], None]:
    told: queue.SimpleQueue[int] = queue.SimpleQueue()

    def show(_: str, line: str, is_error: bool) -> None:
        if line.startswith(_RESULT) and not is_error:
            told.put(time.monotonic_ns())

    config = send.StreamConfig(
        rate=rate_of(case) or 0, max_packet_size=case.packet_size, max_heaps=1, timeline=1
    )
    host, port = free_port(lab)
    what = case.heap_size, f"{host}:{port}", "-t", _SILENCE_S
    argv = program(case.program, case.language)
    with (
        listening(lab, receiver, argv, *what, text=True, core=a_core_each()[1], show=show) as there,
        lab.socket() as sock,
        send.UdpStream(None, sock, [(host, port)], config) as stream,
    ):
        late = [*_late(stream, case.heap_size, heaps, told)]
        received, sent = there.wait(_PATIENCE_S), stream.stats
    if received.status:
        raise ProgramError(received.complaint)
    said = received.said
    counts = {
        "payload_bytes": said["timed_bytes"],
        "spead_bytes": sent.bytes,
        "packets": sent.packets,
        "messages": sent.messages,
        "lateness_ns": round(median(late)),
    }
    counts |= {name: said[name] for name in _OF_PROGRAM}
    return counts | delivery.arrived(sent.packets, said), None


def _late(
    stream: send.UdpStream, heap_size: int, heaps: int, told: "queue.SimpleQueue[int]"
) -> Iterator[int]:
    """Send heaps and the end; yield the ns from a heap's last packet to its result."""
    group = make_group(heap_size)
    group["adc_samples"].value = np.ones(heap_size, np.int8)
    for i in range(heaps):
        group["timestamp"].value = i * heap_size
        stream.send_heap(group.get_heap(data="all"))
        sent = int(stream.timeline()["last_packet_ns"][0])
        try:
            yield told.get(timeout=_PATIENCE_S) - sent
        except queue.Empty:
            raise ProgramError(f"of heap {i} no result was printed") from None
    stream.send_heap(group.get_end())


LATENESS = Lateness()
