# SPDX-License-Identifier: BSD-3-Clause
"""What arrives on a tour: heaps of a chapter that sends, at one that receives.

Every packet is accounted for. It has a lab of its own, with a machine that receives, and takes a
few seconds. It is no measurement: the link between the two is slow enough for both.
"""

import dataclasses
from collections.abc import Sequence

import msgspec

from spead_tutorial.chapters.catalogue import MEASURED, find_chapter, find_receiver
from spead_tutorial.lab import Journey, Lab, LabError
from spead_tutorial.measure.delivery import Delivery, deliver, receiving_lab
from spead_tutorial.measure.programs import ProgramError, ProgramOptions
from spead_tutorial.measure.records import Count, RecordError, Recording
from spead_tutorial.measure.units import number, thousands
from spead_tutorial.results.tables import Column, Table, plain

__all__ = [
    "PROVED",
    "SETTING",
    "Arrival",
    "read_arrivals",
    "receive_some",
    "shown_values",
    "summary",
    "table",
    "text",
]

#: What the settings of a tour's record call it.
SETTING = "arrivals"
_RECEIVER, _SENDER = "7", "6"
_BITS_PER_S = 800_000_000
_HEAPS = {"tiny": 4}
_USUAL_HEAPS = 100  # of 1 MiB: about a second
_FIRST_VALUES = 3
_NAMES = {"python": "Python", "c": "C"}
#: What a mark in the table says.
PROVED = "the sender's device, the receiver's machine and its socket agree on every packet"


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """What arrived in one language, and what did not."""

    sender: Count  # chapters
    receiver: Count
    language: str  # that of both programs
    way: str  # kind of the link: `"veth"` or `"loopback"`
    bits_per_s: Count  # its rate, headers included
    heaps: Count  # heaps that were sent
    complete: Count = 0  # heaps that arrived whole
    # packets that were sent; received; lost on the way; without room in the receiver's socket
    sent: Count = 0
    received: Count = 0
    lost: Count = 0
    dropped: Count = 0
    values: tuple[str, ...] = ()  # the receiver's lines about the first heaps, and the last one
    # why this is not to be believed, or a program's complaint; None where all packets are
    # accounted for
    failure: str | None = None

    @property
    def by(self) -> str:
        """The language, as tables have it."""
        return _NAMES[self.language]


def receive_some(size: str) -> tuple[list[Arrival], list[str]]:
    """Have a chapter receive what another sends, in all languages, or say why not."""
    try:
        with receiving_lab() as lab:
            return [
                _one(lab, language, _HEAPS.get(size, _USUAL_HEAPS)) for language in MEASURED
            ], []
    except LabError as error:
        return [], [f"Without data that arrives: {error}."]


def _one(lab: Lab, language: str, heaps: int) -> Arrival:
    sender, receiver = find_chapter(_SENDER), find_receiver(_RECEIVER)
    assert receiver is not None
    it = Arrival(sender.number, receiver.number, language, lab.kind, _BITS_PER_S, heaps)
    options = ProgramOptions(heaps=heaps)
    both = (language, language)
    try:
        done = deliver(lab, receiver, sender, both, options, bits_per_s=_BITS_PER_S)
    except ProgramError as error:
        return dataclasses.replace(it, failure=str(error))
    if done.journey is None or done.accounting is None or not done.accounting.ok:
        return dataclasses.replace(it, failure=done.failure)
    values = [line for line in done.received.output.splitlines() if line.startswith("Timestamp")]
    return dataclasses.replace(
        it,
        complete=len(values),
        sent=done.journey.sent,
        received=done.journey.received,
        lost=done.journey.lost_on_the_way,
        dropped=done.journey.dropped_packets,
        values=(*values[:_FIRST_VALUES], *values[_FIRST_VALUES:][-1:]),
        failure=_complaint(done, done.journey),
    )


def _complaint(done: Delivery, journey: Journey) -> str | None:
    """Say what went wrong; packets of which is known where they were lost are no failure."""
    for ended in (done.sent, done.received):
        if ended.status != 0 and (ended is done.sent or journey.received == journey.sent):
            return ended.complaint
    return None


def read_arrivals(recording: Recording) -> list[Arrival]:
    """Return what arrived on a tour; nothing where nothing could."""
    try:
        return msgspec.convert(recording.header.settings.get(SETTING, []), list[Arrival])
    except msgspec.ValidationError as error:
        raise RecordError(f"{recording.header.experiment}: {SETTING}: {error}") from None


# ---------------------------------------------------------------------------------------
# In words


def summary(one: Arrival) -> str:
    """Say who received from whom, and over what."""
    return (
        f"chapter {one.receiver} receives {one.heaps} heaps of 1 MiB from chapter {one.sender},"
        f" over a link ({one.way}) of {number(one.bits_per_s / 8e6)} MB/s"
    )


def table(found: Sequence[Arrival]) -> Table[Arrival]:
    """Return what arrived in each language."""
    values: list[Column[Arrival]] = [
        Column("heaps whole", lambda one: one.complete, thousands),
        Column("packets sent", lambda one: one.sent, thousands),
        Column("received", lambda one: one.received, thousands),
        Column("lost on the way", lambda one: one.lost, thousands),
        Column("no room in the socket", lambda one: f"{thousands(one.dropped)} ✓"),
    ]
    names: list[Column[Arrival]] = [Column("by", lambda one: one.by, is_words=True)]
    return Table(names, values, found, lambda one: one.failure and f"✗ failed: {one.failure}")


def text(found: Sequence[Arrival]) -> str:
    """Write what arrived for a terminal; nothing where nothing could."""
    if not found:
        return ""
    values = [f"  {plain(value)}" for value in shown_values(found[0])]
    lines = [f"What arrives: {plain(summary(found[0]))}", str(table(found)), "", *values]
    return "\n".join([*lines, *[""] * bool(values), f"✓: {PROVED}."])


def shown_values(one: Arrival) -> list[str]:
    """Return the receiver's lines, with a mark where some are left out."""
    *first, last = one.values or ("",)
    return [*first, "…", last] if first else [*one.values]
