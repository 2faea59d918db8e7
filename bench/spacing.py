# SPDX-License-Identifier: BSD-3-Clause
"""When the packets of chapters 4 and 5 leave: each message's time, as the kernel has it."""

import dataclasses
import socket
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import ClassVar

from msgspec.structs import replace

from bench.peers import TIMEOUT_S
from bench.senders import Sending
from bench.tables import grouped, medians
from spead_tutorial.lab import Lab
from spead_tutorial.lab.ring import Message, PacketRing
from spead_tutorial.ledger import Gap, first_complaint
from spead_tutorial.measure.analysis import burst, silence
from spead_tutorial.measure.case import Size, Step, take
from spead_tutorial.measure.machine import two_cores
from spead_tutorial.measure.place import Device
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import Recording, Sample, Spacing, joined

#: Heaps of a run; and those that count: before them memory is new and threads sleep.
HEAPS = 24
STEADY = range(8, 24)
#: Bytes of the headers of IP and UDP.
_HEADERS = 20 + 8
#: Of a ring, which has room for more packets than a run has, were each a message.
_MIB = 8


class Capture(PacketRing):
    """Notes what a lab's device gets, from its making on, from the header of IP on."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.socket(socket.AF_PACKET), lab.device, _MIB)

    def messages(self) -> Iterator[Message]:
        """Yield what the device got, in that order."""
        lost = self.missed()
        if lost:
            raise ProgramError(f"spacing: there was no room to note {lost} messages")
        return super().messages()


class Spacings(Sending):
    """When each message leaves; the program's threads are pinned where there are cores."""

    warms_up = False
    settings: ClassVar = {"heaps": HEAPS, "first": STEADY[0]}

    def asked(self, step: Step) -> Spacing:
        case, cores = step.case, two_cores() or ()
        what = case.program, case.language, case.makes_random, case.different, step.number
        return Spacing(*what, case.heap_size, case.packet_size, cores)

    def observe(self, lab: Lab, size: Size, step: Step, known: Sample | None) -> Iterable[Spacing]:
        asked = self.asked(step)
        case = dataclasses.replace(step.case, pinned="pinned" if asked.cores else "")
        pinned = dataclasses.replace(step, case=case)
        with Capture(lab) as capture:
            sample = take(Device(lab), pinned, HEAPS, timeout=TIMEOUT_S)
            messages = list(capture.messages())
        if sample.failure is not None:
            raise ProgramError(sample.failure)
        header = lab.counters().link_header
        noted = sum(one.n_bytes + header for one in messages)
        wrong = first_complaint((
            Gap("in the capture", sample.counted_packets or 0, len(messages), unit="message"),
            Gap("in the capture", sample.counted_bytes or 0, noted, unit="byte"),
        ))  # fmt: skip
        if wrong is not None:
            raise ProgramError(f"spacing: {wrong}")
        first = _heap_count(messages[0])
        steady = [one for one in messages if _heap_count(one) - first in STEADY]
        time_ns = tuple(one.time_ns - steady[0].time_ns for one in steady)
        if any(after < before for before, after in pairwise(time_ns)):
            raise ProgramError("spacing: time went backwards: the clock was set meanwhile")
        return [
            replace(
                asked,
                heaps=tuple(_heap_count(one) - first for one in steady),
                time_ns=time_ns,
                message_bytes=tuple(one.n_bytes - _HEADERS for one in steady),
            )
        ]

    def table(self, recording: Recording) -> str:
        return grouped(
            recording.spacings,
            _name,
            [("messages of", _name)],
            lambda ends: [
                *medians(("silent us", ends), lambda one: silence(one) / 1e3),
                *medians(("burst KiB", ends), lambda one: burst(one) / 1024),
            ],
        )


def _name(one: Spacing) -> str:
    return joined(f"{one.program} {'random' if one.random else 'fill'}", one.variant)


def _heap_count(message: Message) -> int:
    """Return what the first item pointer says of a message's first packet."""
    return int.from_bytes(message.head[_HEADERS + 11 : _HEADERS + 16])


SPACINGS = Spacings()
