# SPDX-License-Identifier: BSD-3-Clause
"""What a finding is, from where on something counts as one, and what several kinds ask of facts."""

import dataclasses
import importlib.resources
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from spead_tutorial.results.units import number, percent
from spead_tutorial.tools.why.account import Part
from spead_tutorial.tools.why.distance import Distance
from spead_tutorial.tools.why.facts import Calls, Packets, Seen
from spead_tutorial.tools.why.remedies import Gain, gains_of

#: Packets in a message, and messages in a call, up to which they count as one.
ONE = 1.2
#: Packets that have to be seen before anything is said of them.
ENOUGH_PACKETS = 16
#: Share of the payload's pages that are new, from which memory counts as fresh.
FRESH = 0.2
#: Share of the time of the threads that send, from which what it goes into counts.
MATTERS = 0.1
#: Packets smaller than this share of what the device takes count as small.
SMALL = 0.5
#: Share of the messages that are fragments, from which they count.
FRAGMENTED = 0.01
#: Seconds of a program's own for each call and for each heap, of which nothing is making data: what
#: Python takes, and several times what C does.
CALL_S, HEAP_S = 5e-6, 50e-6
#: Heaps smaller than this count as small.
SMALL_HEAP = 32 << 10
#: Calls for each small heap, and seconds of the program's own time, from which heaps share too
#: little.
CALLS_PER_HEAP, OWN_S_PER_HEAP = 0.2, 3e-6
_MOST_NAMES = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a sender slow, or a receiver lose packets."""

    kind: str  # what it is called in JSON
    symptom: str  # what was seen, in a sentence with its numbers
    check: str  # what to look at, and to change
    # seconds that it costs for a gigabyte of payload, about; None where it is not known
    cost_s: float | None = None
    # which part that is of what the sender takes longer than the bare loop, or of a receiver's busy
    # time; None where one of the two is not known
    explains: float | None = None
    gain: Gain | None = None  # what mending it gains by itself
    with_others: tuple[Gain, ...] = ()  # and with what else this sender lacks, or that alone


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said of a kind of finding: `findings.toml` has them all, and says what is in them."""

    does: str
    symptom: str
    check: str
    where: str = ""
    takes: tuple[str, ...] = ()
    chapter: int | None = None
    receivers: int | None = None
    otherwise: dict[str, str] = {}  # a symptom, or a check, of the same fault seen in another way


_FILE = importlib.resources.files(__package__).joinpath("findings.toml")
ROWS = msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, Row])


def found(
    kind: str,
    seen: Seen,
    cost_s: float | None = None,
    *,
    explains: float | None = None,
    otherwise: bool = False,
    **numbers: Any,
) -> Finding:
    """Return a finding: its row, with the numbers that stand in it."""
    row = ROWS[kind]
    said = {"symptom": row.symptom, "check": row.check} | (row.otherwise if otherwise else {})
    numbers |= {"seen": seen, "packets": seen.packets, "its": seen.receiving}
    symptom, check = (said[one].format(**numbers) for one in ("symptom", "check"))
    return Finding(kind, symptom, check, cost_s, explains, *gains_of(kind, seen.tried))


def of_time(
    kind: str,
    seen: Seen,
    far: Distance,
    takes: Mapping[str, float] | None = None,
    least: float = MATTERS,
    **numbers: Any,
) -> Finding | None:
    """Return a finding of what is left of its kinds of time, or of some, if that is enough."""
    takes = takes or {one: far.left[one] for one in ROWS[kind].takes}
    cost_s = sum(takes.values())
    if far.is_idle or cost_s <= 0.0 or cost_s < least * far.whole:
        return None
    goes = "The time of what reads goes"
    if not far.receives:
        goes = f"{percent(cost_s / far.whole)} of the time of what sends goes"
    parts = names(part for one in takes for part in far.of(one))
    cost_s = sum(far.take(one, seconds) for one, seconds in takes.items())
    return found(kind, seen, cost_s, goes=goes, parts=parts, **numbers)


def names(parts: Iterable[Part]) -> str:
    return ", ".join([part.what for part in parts if part.what][:_MOST_NAMES])


def short(seconds: float) -> str:
    """Write a short time in its unit."""
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms" if seconds < 1 else f"{number(seconds)} s"


def handling_s(seen: Seen) -> float:
    """Return what a program may need to handle its calls and heaps, for a gigabyte."""
    packets, calls = seen.packets, seen.calls
    if packets is None:
        return seen.run.per_gb(seen.run.messages) * CALL_S
    messages = packets.per_gb(packets.messages)
    n_calls = messages / calls.per_call if calls and calls.messages else messages
    heaps = 1e9 / packets.heap_bytes if packets.heap_bytes else 0.0
    return n_calls * CALL_S + heaps * HEAP_S


def mapped_share(packets: Packets | None, calls: Calls | None) -> float:
    """Return how much memory that was new to it a sender got, as a share of what it sent then."""
    if packets is None or calls is None or not calls.messages:
        return 0.0
    each = packets.payload_bytes / (packets.messages - packets.fragments)
    return calls.mapped_bytes / (calls.messages * each)


def has_small_heaps(seen: Seen) -> bool:
    """Whether heaps are small, and each takes a call, or time of the program's own."""
    packets = seen.packets
    if packets is None or packets.heap_bytes is None or packets.heap_bytes >= SMALL_HEAP:
        return False
    n_calls, own_s = of_each_heap(seen)
    return n_calls >= CALLS_PER_HEAP or OWN_S_PER_HEAP <= own_s < HEAP_S


def of_each_heap(seen: Seen) -> tuple[float, float]:
    """Return how many calls a heap takes, and how many seconds of the program's own."""
    run, packets, calls = seen.run, seen.packets, seen.calls
    assert packets is not None
    assert packets.heap_bytes is not None
    heaps, n_calls = 1e9 / packets.heap_bytes, 0.0
    if calls is not None and calls.messages:
        n_calls = packets.per_gb(packets.messages) / heaps / calls.per_call
    return n_calls, run.per_gb(run.user_s) / heaps
