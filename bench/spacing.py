# SPDX-License-Identifier: BSD-3-Clause
"""When the packets of chapters 4 and 5 leave: each message's time, as the kernel has it."""

import itertools
import socket
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from bench.peers import TIMEOUT_S
from spead_tutorial.chapters.catalogue import find_chapter
from spead_tutorial.lab import Lab
from spead_tutorial.lab.ring import Message, PacketRing
from spead_tutorial.ledger import Gap, first_complaint
from spead_tutorial.measure.machine import two_cores
from spead_tutorial.measure.place import Device, Place
from spead_tutorial.measure.programs import ProgramError, ProgramOptions, run
from spead_tutorial.measure.records import Spacing

#: Heaps of a run; and those that count: before them memory is new and threads sleep.
HEAPS = 24
STEADY = range(8, 24)
#: Bytes of the headers of IP and UDP.
_HEADERS = 20 + 8
#: Of a ring, which has room for more packets than a run has, were each a message.
_MIB = 8
#: What the variant is called in which the device sends no faster than that.
LINK, LINK_BITS_PER_S = "link of 10 Gb/s", 10**10
#: Programs, and whether their samples are random: in turns, and overlapped.
RUNS = (
    ("tut_4_send_perf", True),
    ("tut_5_send_pipeline", True),
    ("tut_4_send_constant", False),
    ("tut_5_send_pipeline", False),
)


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


def spacings(number: int, variants: Iterable[str]) -> list[Spacing]:
    """Return what the round of some number has: the threads are pinned where there are cores."""
    cores = tuple(map(int, filter(None, (two_cores() or "").split(","))))
    runs = []
    for (name, is_random), variant in itertools.product(RUNS, variants):
        chapter = find_chapter(name)
        sizes = chapter.heap_size, chapter.packet_size
        runs.append(Spacing(name, "python", is_random, variant, number, *sizes, cores))
    return runs


def take_spacing(lab: Lab, asked: Spacing) -> Spacing:
    """Run a program that sends to the lab's device, and note what the device gets."""
    chapter = find_chapter(asked.program)
    options = ProgramOptions(
        heaps=HEAPS,
        random=asked.random and "r" in chapter.accepted,
        cores=",".join(map(str, asked.cores)) or None,
    )
    place: Place = Device(lab)
    if asked.variant == LINK:
        place = place.limited(LINK_BITS_PER_S)
    with Capture(lab) as capture:
        done = run(place, chapter, asked.language, options, timeout=TIMEOUT_S)
        messages = list(capture.messages())
    counted = done.evidence.counted
    if done.failure is not None or counted is None:
        raise ProgramError(done.failure or "spacing: nothing was counted")
    noted = sum(one.n_bytes + counted.link_header for one in messages)
    wrong = first_complaint((
        Gap("in the capture", counted.packets, len(messages), unit="message"),
        Gap("in the capture", counted.bytes, noted, unit="byte"),
    ))  # fmt: skip
    if wrong is not None:
        raise ProgramError(f"spacing: {wrong}")
    first = _heap_count(messages[0])
    steady = [one for one in messages if _heap_count(one) - first in STEADY]
    time_ns = tuple(one.time_ns - steady[0].time_ns for one in steady)
    if any(after < before for before, after in pairwise(time_ns)):
        raise ProgramError("spacing: time went backwards: the clock was set meanwhile")
    return replace(
        asked,
        heaps=tuple(_heap_count(one) - first for one in steady),
        time_ns=time_ns,
        message_bytes=tuple(one.n_bytes - _HEADERS for one in steady),
    )


def _heap_count(message: Message) -> int:
    """Return what the first item pointer says of a message's first packet."""
    return int.from_bytes(message.head[_HEADERS + 11 : _HEADERS + 16])
