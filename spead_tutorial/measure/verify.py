# SPDX-License-Identifier: BSD-3-Clause
"""What a program says of its run, and whether it is so: its claims, and what others counted."""

import dataclasses
import functools
from typing import Self

import msgspec
import numpy as np

from spead_tutorial.lab import Accounting, Counters, Journey, accounted, icmp_error_bytes
from spead_tutorial.measure.place import Evidence
from spead_tutorial.send import ItemGroup, PacketGenerator

IP_UDP_HEADERS = 20 + 8  #: Bytes that a message of UDP over IPv4 has besides.
MOST_QUOTED = icmp_error_bytes(1 << 16)  #: An ICMP error of this size quotes a part of a message.


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The JSON object that a program prints."""

    program: str  # name of the program, and one of `spead_tutorial.chapters.catalogue.LANGUAGES`
    language: str
    heaps: int  # heaps of samples; the one that ends the stream is not counted
    # bytes of samples in a heap, and bytes in a packet at most (UDP and IP not counted)
    heap_size: int
    packet_size: int
    payload_bytes: int  # bytes of samples, and bytes of all SPEAD packets
    spead_bytes: int
    packets: int  # as in `spead_tutorial.send.StreamStats`
    errors: int
    elapsed_ns: int  # time from the first heap to the last, in ns
    cpu_user_ns: int  # CPU time of the process meanwhile, in ns
    cpu_system_ns: int
    page_faults: int  # what the kernel counted of the process meanwhile
    context_switches: int
    # as in `spead_tutorial.send.StreamStats`; None where a program does not know them, as the
    # peer's
    messages: int | None = None
    send_calls: int | None = None
    waits: int | None = None
    looking_ns: int | None = None
    waiting_looking_ns: int | None = None
    # the part of that CPU time that the program's own thread used; the rest is the other
    # threads', of which the stream's is one
    program_cpu_ns: int | None = None
    chapter: int = 0  # the chapter's number; 0 for what is no chapter's program
    random: bool = False  # whether its samples were random
    streams: int = 1  # how many streams sent at once; the counts are those of all of them
    # as in `spead_tutorial.send.StreamStats`; None where it does not know them
    zero_copy_messages: int | None = None
    zero_copy_copied: int | None = None

    @classmethod
    def parse(cls, output: str) -> Self | None:
        try:
            return msgspec.json.decode(output, type=cls)
        except (ValueError, RecursionError):
            return None


def make_group(heap_size: int) -> ItemGroup:
    """Make the chapters' items: ``timestamp``, and ``adc_samples`` of `heap_size` bytes; zeros."""
    group = ItemGroup()
    group.add_item(
        0x1600, "timestamp", "Index of the first sample", shape=(), format=[("u", 40)], value=0
    )
    group.add_item(
        0x3300,
        "adc_samples",
        "Samples of the converter",
        shape=(heap_size,),
        dtype=np.int8,
        value=np.zeros(heap_size, np.int8),
    )
    return group


@functools.cache
def packet_sizes(heap_size: int, packet_size: int) -> list[list[int]]:
    """Return the sizes of the packets of a program's first heap, of others, and of its end."""
    group, sizes = make_group(heap_size), []
    for make in (group.get_heap, group.get_heap, group.get_end):
        group["timestamp"].value = 0
        group["adc_samples"].value = np.zeros(heap_size, np.int8)
        sizes.append([len(packet) for packet in PacketGenerator(make(), 1, packet_size)])
    return sizes


def check_sizes(heap_size: int, packet_size: int) -> None:
    """Refuse sizes at which full packets would be quoted whole in the errors that return them."""
    for what, size in (("heaps", heap_size), ("packets", packet_size)):
        if 0 < size < MOST_QUOTED:
            raise ValueError(
                f"{what} of {size} bytes cannot be accounted for without a listener: they must"
                f" have at least {MOST_QUOTED}"
            )


def _icmp_bytes(report: Report, counted: Counters, icmp_errors: int) -> int:
    """Return how many bytes the errors have that return all of a program's messages.

    It is what was counted, where that can be, and what is most likely otherwise. A message is
    quoted as far as there is room. Small ones, which are quoted whole, are the stop heap and,
    of other heaps, last packets for which the message before had no room: how often that was,
    the report does not say.
    """
    first, other, stop = (
        MOST_QUOTED - icmp_error_bytes(packets[-1])
        for packets in packet_sizes(report.heap_size, report.packet_size)
    )
    likely = icmp_errors * MOST_QUOTED - stop
    seen = counted.bytes - report.spead_bytes - icmp_errors * IP_UDP_HEADERS
    for rest in (likely - seen, likely - seen - first):
        times, left = divmod(rest, other) if other else (0, rest)
        if left == 0 and 0 <= times < report.heaps:
            return seen
    return likely


def _accounted(report: Report, counted: Counters, icmp_errors: int) -> Accounting:
    """Compare a program's claims with a device's counters."""
    messages = report.messages
    if messages is None:  # as many as were counted: the bytes tell, as each has headers
        messages = min(counted.packets, report.packets)
    return accounted(
        counted.packets,
        counted.bytes,
        packets=report.packets,
        messages=messages,
        spead_bytes=report.spead_bytes,
        link_header=counted.link_header,
        icmp_errors=icmp_errors,
        icmp_bytes=_icmp_bytes(report, counted, icmp_errors) if icmp_errors else 0,
    )


def checks(report: Report, evidence: Evidence) -> tuple[Accounting, ...]:
    """Compare a program's claims with all that was counted of its packets."""
    found = []
    if evidence.counted is not None:
        found.append(_accounted(report, evidence.counted, evidence.icmp_errors or 0))
    if evidence.received is not None:
        journey = Journey.of(report.packets, evidence.received, sent_bytes=report.spead_bytes)
        found.append(journey.check())
    return tuple(found)


def contradiction(report: Report, evidence: Evidence, heaps: int | None = None) -> str | None:
    """Say why a program that ended well has no rate; None where it has one."""
    if heaps not in (None, report.heaps):
        return f"{report.program}: it sent {report.heaps} heaps, not {heaps}"
    if report.errors:
        return f"{report.program}: {report.errors} of its packets failed to be sent"
    if report.payload_bytes != report.heaps * report.heap_size or report.elapsed_ns <= 0:
        return f"{report.program}: its report contradicts itself: {report}"
    if report.spead_bytes <= report.payload_bytes:
        return (
            f"{report.program}: it claims {report.payload_bytes} bytes of payload, but sent"
            f" {report.spead_bytes} bytes in all"
        )
    for accounting in checks(report, evidence):
        if not accounting.ok:
            return f"{report.program}: {accounting.text}"
    if evidence.icmp_errors == 0 and evidence.received is None and evidence.counted is not None:
        return f"{report.program}: no message came back: there was a listener, and was to be none"
    return None
