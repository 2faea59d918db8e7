# SPDX-License-Identifier: BSD-3-Clause
"""What mending each part of the equation gains: findings, the largest gain first. No I/O."""

import math
from collections.abc import Iterator

import msgspec

from spead_tutorial.results.units import bytes_text, thousands
from spead_tutorial.tools.why import loops
from spead_tutorial.tools.why.equation import NO_CORE, Account, account
from spead_tutorial.tools.why.facts import Loop, Seen
from spead_tutorial.tools.why.stacks import IDLE, KINDS, READS, SENDS, TRACED

#: A gain below this is said last, in a line; and how many times what the best loop takes a packet
#: may take that is told nothing of its own code.
MATTERS, FAST = 1.1, 2.2
#: A rate in bytes/s at which a receiver that loses nothing has room enough.
_HELD = 0.9e9
#: Standard errors of an interval; how far rates of two runs are apart, and the most of that.
_ERRORS, _NOISE, _MOST_NOISE = 2.0, 0.1, 0.3
_BUFFER = "small-buffer"
#: Of each finding about how packets are sent, which loops show what mending gains, the best first.
WAYS = {
    "fragments": (loops.FITTING,),
    "small-packets": (loops.LARGER,),
    "call-per-packet": (loops.BOTH, loops.OFFLOAD, loops.BATCHES, loops.MERGED),
    "no-segmentation-offload": (loops.OFFLOAD,),
    "small-pieces": (loops.GATHERED,),
    "unconnected": (loops.CONNECTED,),
}
#: Languages whose standard libraries can neither send or read batches nor ask for the offload.
_WITHOUT = ("shell", "PHP", "Java", "JavaScript", "Lua", "Tcl", "C#")
_EACH = "call-per-packet"
_BATCHED = (_EACH, "no-segmentation-offload")


class Gain(msgspec.Struct, frozen=True):
    median: float  # with all the rest as it is
    low: float
    high: float


class Finding(msgspec.Struct, frozen=True):
    """Something that makes a sender slow, or a receiver lose packets."""

    kind: str  # what it is called in JSON
    takes_s: float  # seconds of a packet that go into it, or that a bare loop saves otherwise
    where: tuple[str, ...]  # the calls, functions, lines or threads that it is in
    check: str  # what to look at, and to change
    chapter: int  # which mends it
    gain: Gain | None  # None for what is no matter of its time


def finding(
    kind: str, seen: Seen, takes_s: float, where: list[str], gain: Gain | None = None
) -> Finding:
    row = KINDS[kind]
    check, receives = row.in_.get(seen.language, row.check), seen.receiving is not None
    check = row.of_receivers or check if receives else check
    return Finding(kind, takes_s, tuple(where), check, row.chapters[receives], gain)


def diagnose(seen: Seen) -> tuple[Finding, ...]:
    """Return what makes a sender slow, what gains most first."""
    its = account(seen)
    traced = {one.thread.tracer for one in seen.run.threads} - {""} or its.where(TRACED)
    tracers = [finding(TRACED, seen, its.of(TRACED), sorted(traced))] if traced else []
    elsewhere = (*tracers, *_lost_elsewhere(seen))
    if its.busy_s <= 0:
        return elsewhere
    both = (*_of_parts(seen, its), *_of_ways(seen, its))
    found = sorted(both, key=lambda one: -one.gain.median if one.gain else 0.0)
    own = (one for one in found if one.kind != READS and one.kind not in WAYS)
    slow = [one for one in own if one.gain and one.gain.low > FAST]
    if slow and [one.kind for one in elsewhere] == [_BUFFER]:
        # For who does far more than a bare reader the buffer is not the first matter.
        return (*slow, *elsewhere, *(one for one in found if one not in slow))
    return (*elsewhere, *found)


def _lost_elsewhere(seen: Seen) -> tuple[Finding, ...]:
    """Return where a receiver's packets are lost, other than for want of its time."""
    its = seen.receiving
    if its is None:
        return ()
    fates, room = its.fates, its.buffer
    rooms = [bytes_text(room)] if room is not None else []
    # A bare reader loses in it, too; at the highest rates the usual buffer is short for everybody.
    is_small = 0 < fates.share < 2 * its.bare_lost
    found = {
        "device": (2 * fates.device > fates.no_room, [thousands(fates.device)]),
        "no-socket": (2 * fates.unclaimed > fates.lost, [thousands(fates.unclaimed)]),
        _BUFFER: (is_small and (its.held or 0.0) <= _HELD, rooms),
    }
    return tuple(finding(kind, seen, 0.0, where) for kind, (is_so, where) in found.items() if is_so)


def is_fast(seen: Seen, its: Account) -> bool:
    """Whether it is about as fast as a loop that sends (and fills memory), or reads, best."""
    if seen.receiving is not None:
        return bool(seen.loops) and its.busy_s < FAST * min(one.median_s for one in seen.loops)
    best = seen.loop(loops.BEST)
    if best is None or seen.packets is None:
        return False
    return its.busy_s / seen.packets.mean_bytes < FAST * best.median_s / best.way.packet_bytes


# ---- The program's own ----


def _of_parts(seen: Seen, its: Account) -> Iterator[Finding]:
    has_pieces = seen.loop(loops.GATHERED) is not None
    for kind, takes_s in its.kinds.items():
        if kind in (NO_CORE, IDLE, TRACED):
            continue
        if kind in (SENDS, READS) and (takes_s < its.loop_s or has_pieces):
            continue  # of its calls, which others say
        gain = _without(seen, its, takes_s)
        yield finding(kind, seen, takes_s, its.where(kind), gain)


def _without(seen: Seen, its: Account, takes_s: float) -> Gain:
    """Return what it gains if some of its time goes, and as much of the rest as may follow it."""
    whole_s, as_is = its.busy_s, seen.loop()
    share = min(1.0, takes_s / whole_s)
    error = whole_s * _ERRORS * math.sqrt(max(share * (1 - share), 1 / its.samples) / its.samples)
    least = max(min(as_is.packet_s) if as_is else 0.0, whole_s * 1e-3)
    gone = min(takes_s, whole_s - least)
    gain = _gain(whole_s, least, gone - error, gone, 2 * gone + error)
    if gain.high <= MATTERS:
        return gain
    # The two were measured one after the other, and the loop beside them.
    noise = min(_MOST_NOISE, _NOISE + (as_is.spread if as_is else 0.0))
    return Gain(gain.median, max(1.0, gain.low * (1 - noise)), gain.high * (1 + noise))


def _gain(whole_s: float, least_s: float, low: float, median: float, high: float) -> Gain:
    """Return how many times as fast it is without some seconds, of which some at least stay."""
    median, low, high = (
        max(1.0, whole_s / max(least_s, whole_s - gone, 1e-12)) for gone in (median, low, high)
    )
    return Gain(median, low, high)


# ---- How it sends ----


def _of_ways(seen: Seen, its: Account) -> Iterator[Finding]:
    as_is = seen.loop()
    has_batches = seen.receiving is None and seen.loop(loops.BATCHES) is None
    where = list(seen.calls.names) if seen.calls else []
    for kind, changes in WAYS.items():
        tried = [one for change in changes if (one := seen.loop(change)) is not None]
        if kind in _BATCHED and ((kind == _EACH) == has_batches or seen.language in _WITHOUT):
            continue  # one of the two, where the language has any
        if as_is is None or not tried:
            continue
        best = min(tried, key=lambda one: one.median_s / one.way.packet_bytes)
        saved = max(0.0, as_is.median_s - best.as_much(as_is.way.packet_bytes))
        yield finding(kind, seen, saved, where, _gain_of(seen, its, as_is, best))


def _gain_of(seen: Seen, its: Account, as_is: Loop, other: Loop) -> Gain:
    """Return what another way gains: at least that of the loop, mostly what calls take besides."""
    a, b = as_is.way, other.way
    now_s, then_s = as_is.median_s, other.as_much(a.packet_bytes)
    scale = min(1.0, its.loop_s / now_s)  # the share of it that was found in the sender
    saved, spread = (now_s - then_s) * scale, max(as_is.spread, other.spread, _NOISE)
    # What goes with calls, and at most what goes with packets.
    calls_s = its.of(SENDS) + its.of(READS) + max(0.0, its.loop_s - now_s)
    rest_s = its.busy_s - now_s * scale - calls_s
    gathers = a.pieces > b.pieces
    bytes_now, bytes_then = a.packet_bytes * a.packets, b.packet_bytes * b.packets
    fewer = 0.0 if gathers else min(1.0, bytes_now * a.messages / (bytes_then * b.messages))
    per_packet = min(1.0, a.packet_bytes / b.packet_bytes)
    low = saved * (1 - spread) + calls_s * gathers
    median = saved + calls_s * (1 - fewer)
    high = median + saved * spread + rest_s * (1 - per_packet)
    return _gain(its.busy_s, then_s * scale, low, median, high)
