# SPDX-License-Identifier: BSD-3-Clause
"""Observer of losses: each place is made the bottleneck, and every packet is accounted for.

A stream of ours sends at a rate, over a pair of devices, to a program that has a core of its own
(``peer/receive.py``). What is sent has to be what was lost on the way, what the socket had no
room for, what is in heaps that the program got or that the full ring dropped, and what came of
heaps that something is missing of. Where this does not add up, there is no sample.
"""

import contextlib
import functools
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import spead_tutorial
from bench.receivers import (
    RMEM_ALLOC,
    Ends,
    Receiving,
    connected,
    flags,
    number,
    rate_of,
    socket_memory,
)
from spead_tutorial import send
from spead_tutorial.lab import Journey, Lab
from spead_tutorial.ledger import Gap, first_complaint
from spead_tutorial.measure.case import Case, Step, take_received
from spead_tutorial.measure.machine import a_core_each
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Received
from spead_tutorial.measure.running import Listening
from spead_tutorial.recv._stats import sums

PROGRAM = Path(__file__).resolve().parent / "peer" / "receive.py"
_DRAIN_S = 30.0
_SEED = 1
#: The stop heap is a packet with a byte in it.
_STOP_PACKETS = _STOP_BYTES = 1


#: Bytes that are sent at once, as fast as they can be, and that are asked for, for the receiver's
#: socket, where a case's words do not say so.
_BURST, _BUFFER_KIB = 1 << 16, 1 << 12


class Losing(Receiving):
    """Where packets are lost that are sent into a bottleneck, and that every one is found."""

    veth = True

    def facts(self, lab: Lab) -> dict[str, Any]:
        return super().facts(lab) | {"kind": lab.kind, "mtu": lab.mtu}

    def take(self, lab: Lab, step: Step, heaps: int, asked: float | None = None) -> Received:
        buffer = int(number(step.case, "buffer of N KiB") or _BUFFER_KIB) << 10
        with connected(lab, buffer, veth=True) as ends:
            observed = functools.partial(_run, lab, step.case, heaps, ends)
            return take_received(step, heaps, 7, (lab.device, lab.kind), observed)


# ---- Sending, while a program receives ----


def _run(lab: Lab, case: Case, heaps: int, ends: Ends) -> tuple[dict[str, Any], str | None]:
    """Return what a sample has of what both sides counted, and why it has no rate, if so."""
    first, second = a_core_each()
    assert first is not None
    burst = number(case, "bursts of N KiB")
    config = send.StreamConfig(
        rate=rate_of(case) or 0,
        burst_size=int(burst) << 10 if burst is not None else _BURST,
        max_packet_size=case.packet_size,
        max_heaps=2,
    )
    group = send.ItemGroup()
    samples = np.zeros(case.heap_size, np.int8)
    group.add_item(0x3300, "adc_samples", "", samples.shape, np.int8, value=samples)
    heap = group.get_heap(descriptors="none", data="all")
    of_heap = sum(1 for _ in send.PacketGenerator(heap, 1, case.packet_size))
    percent = number(case, "N % lost")
    lossy = lab.disturbed(loss=percent / 100, seed=_SEED) if percent else None
    sizes = ["-H", str(case.heap_size), "-p", str(case.packet_size)]
    argv = [sys.executable, str(PROGRAM), spead_tutorial.__name__, *sizes, "--no-pool", "--account",
            *flags(case), "--socket", str(ends.receiver.fileno())]  # fmt: skip
    with Listening(ends.start, PROGRAM.stem, argv, core=second) as process:
        before = lab.receiver.arrivals()
        with (
            spead_tutorial.ThreadPool(1, [first]) as pool,
            send.UdpStream(pool, ends.sender, [ends.receiver.getsockname()], config) as stream,
        ):
            with lossy or contextlib.nullcontext() as way:
                start = time.monotonic_ns()
                for _ in range(heaps):
                    stream.send_heap(heap)
                elapsed_ns = time.monotonic_ns() - start
            _wait_until_read(ends.receiver)
            stream.send_heap(group.get_end())  # when nothing is in the way any more
            sent = stream.stats
        done = process.wait(_DRAIN_S)
    if done.status:
        raise ProgramError(done.complaint)
    received, arrivals = done.said, lab.receiver.arrivals() - before
    lost = way.counts() if way is not None else None
    journey = Journey.of(sent.packets, received, arrivals=arrivals, way=lost)
    measured = {
        "elapsed_ns": elapsed_ns,
        "spead_bytes": sent.bytes,
        "messages": sent.messages,
    } | _counted(journey, received, case.heap_size, of_heap)
    accounting = journey.check()
    failure = None if accounting.ok else accounting.text
    return measured, failure or contradiction(received, heaps, case.heap_size, of_heap)


def _wait_until_read(receiver: socket.socket) -> None:
    """Wait until nothing is left in the receiver's socket, so that the next packet has room."""
    until = time.monotonic() + _DRAIN_S
    while socket_memory(receiver)[RMEM_ALLOC]:
        if time.monotonic() > until:
            raise ProgramError("the receiver has not emptied its socket")
        time.sleep(0.001)


# ---- The account ----


def _counted(
    journey: Journey, received: Mapping[str, int], heap_size: int, packets_of_heap: int
) -> dict[str, Any]:
    """Return where the packets were, in the words of a sample."""
    whole = (received["got"] + received["ring_dropped"]) * packets_of_heap + _STOP_PACKETS
    return {
        "payload_bytes": received["got"] * heap_size,
        "packets": journey.sent,
        "received_packets": received["packets_received"],
        "received_dropped": journey.dropped_packets,
        "received_heaps": received["got"],
        "lost_packets": journey.lost_on_the_way,
        "incomplete_packets": received["packets_received"] - whole,
        "ring_dropped_packets": received["ring_dropped"] * packets_of_heap,
        "ring_waits": received["worker_blocked"],
        "longest_ring_wait_ns": received["longest_ring_wait_ns"],
        "socket_buffer_bytes": received["socket_buffer"],
    }


def contradiction(
    received: Mapping[str, int], heaps: int, heap_size: int, packets_of_heap: int
) -> str | None:
    """Say why a receiver's counts do not add up; None where they do."""
    handed = received["got"] + received["ring_dropped"]
    partly = received["incomplete_heaps_evicted"] + received["incomplete_heaps_flushed"]
    whole_packets = handed * packets_of_heap + _STOP_PACKETS
    counted_bytes = handed * heap_size + received["incomplete_bytes"] + _STOP_BYTES
    whole, bytes_there = received["heaps_complete"], received["payload_bytes"]
    packets = received["packets_received"]
    return sums(received) or first_complaint((
        Gap("between the stream and the program", whole, handed, unit="complete heap"),
        Gap("in heaps, complete or not", bytes_there, counted_bytes, unit="byte"),
        Gap("in heaps of which something came", heaps, handed + partly, 0, heaps, unit="heap"),
        Gap("in complete heaps", packets, whole_packets, 0, packets),
    ))  # fmt: skip


LOSING = Losing()
