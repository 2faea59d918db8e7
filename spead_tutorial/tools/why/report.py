# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis as a page of text, what to mend first before all else, and as an object for JSON."""

import operator
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from spead_tutorial.chapters.catalogue import find_chapter, find_receiver
from spead_tutorial.results.tables import Column, Table, plain, width_up_to
from spead_tutorial.results.units import bytes_text, number, percent, thousands
from spead_tutorial.tools.why import loops
from spead_tutorial.tools.why.equation import Account, account
from spead_tutorial.tools.why.facts import Receiving, Seen
from spead_tutorial.tools.why.findings import MATTERS, WAYS, Finding, Gain, is_fast
from spead_tutorial.tools.why.stacks import KINDS

_WIDTH, _BAR = 80, 20
#: The table of facts, and that of a packet's time: of parts and what they take of how much.
_FACT: Column[tuple[str, str]] = Column("What was seen", operator.itemgetter(0), is_words=True)
_VALUE: Column[tuple[str, str]] = Column("", operator.itemgetter(1), is_words=True)
_Part = tuple[str, float, float]
_TIME: tuple[Column[_Part], ...] = (
    Column("A packet", lambda its: "█" * round(_BAR * its[1] / its[2]), is_words=True),
    Column("", lambda its: its[1] / its[2], percent),
    Column("", operator.itemgetter(1), lambda took: _short(took)),
    Column("", operator.itemgetter(0), is_words=True),
)
#: The share of a packet's time from which a kind is said by itself.
_SHOWN = 0.02


# ---- As text ----


def text(seen: Seen, findings: Sequence[Finding]) -> str:
    width, its = width_up_to(_WIDTH), account(seen)
    large, small = _divided(seen, its, findings)

    def filled(said: str, indent: str = "", begin: str = "") -> str:
        lines = textwrap.wrap(plain(said), width - len(indent), break_on_hyphens=False)
        return begin + f"\n{indent}".join(lines)

    opening = [" ".join(seen.unseen), _first(seen, large), _equation(seen, its)]
    paragraphs = [
        "\n".join(filled(one) for one in opening if one),
        Table((), _TIME, list(_parts(its))).text(width),
    ]
    for place, one in enumerate(large, 1):
        first, *more = _told(one, receives=seen.receiving is not None)
        lines = [filled(first, "   ", f"{place}. "), *(filled(one, "   ", "   ") for one in more)]
        paragraphs.append("\n".join(lines))
    facts = Table([_FACT], [_VALUE], list(_facts(seen))).text(width)
    return "\n\n".join(filter(None, [*paragraphs, filled(_said_last(small)), facts]))


def _divided(
    seen: Seen, its: Account, findings: Sequence[Finding]
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are worth mending, and the others.

    A fast sender is told nothing of its own code, only of other ways to send that gain more; a
    fast receiver nothing that gains.
    """
    is_best = is_fast(seen, its)
    ways = WAYS if seen.receiving is None else ()
    large = [one for one in findings if not one.gain or (
        one.gain.median >= MATTERS and (not is_best or one.kind in ways))]  # fmt: skip
    return large, [one for one in findings if one not in large]


def _first(seen: Seen, large: Sequence[Finding]) -> str:
    if not large:
        return f"Nothing found{' in what was seen' if seen.unseen else ''}."
    one = large[0]
    gain = f"; without that, {_times(one.gain)}" if one.gain else ""
    return f"Mend first: {_named(one.kind, one.where[:2], after=')')}{gain}."


def _times(gain: Gain) -> str:
    low, high = _factor(gain.low), _factor(gain.high)
    return f"{low if low == high else f'{low} to {high}'} times as fast"


def _factor(x: float) -> str:
    """Write how many times as fast, with two digits: it is known no better."""
    return f"{x:.1f}" if x < 9.95 else f"{float(f'{x:.2g}'):g}"


def _short(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{number(seconds * 1e6)} µs"
    return f"{number(seconds * 1e3)} ms" if seconds < 1 else f"{number(seconds)} s"


def _equation(seen: Seen, its: Account) -> str:
    said = f"{seen.program} sends {number(seen.rate / 1e6)} MB/s to {seen.place}."
    if (what := seen.receiving) is not None:
        fates = what.fates
        held = f"none at {number(what.held / 1e6)} MB/s" if what.held else "some at every rate"
        said = (
            f"{seen.program} lost {percent(fates.share)} of the packets at"
            f" {number(fates.rate / 1e6)} MB/s in packets of {what.packet_bytes} bytes, {held}."
        )
    each = f" of {round(seen.packets.mean_bytes)} bytes" if seen.packets else ""
    said += f" A packet{each} takes {_short(its.packet_s)} here"
    if its.loop_s and (as_is := seen.loop()):
        said += f"; a bare loop that does the same needs {_short(its.loop_s)}"
        for one in seen.loops:
            took = one.as_much(as_is.way.packet_bytes)
            if one.changed not in ("", loops.BEST, loops.MERGED) and took * MATTERS < its.loop_s:
                said += f", {one.changed} {_short(took)}"
    rest = its.packet_s - its.loop_s
    kinds = sorted(its.kinds.items(), key=lambda item: -item[1])[:3]
    told = [f"{_short(took)} are {KINDS[kind].words}" for kind, took in kinds]
    return f"{said}. Of the other {_short(rest)}, {', '.join(told)}." if told else f"{said}."


def _parts(its: Account) -> Iterator[_Part]:
    """Yield what takes the time of a packet, and how much of how much."""
    shown = {kind: took for kind, took in its.kinds.items() if took >= _SHOWN * its.packet_s}
    rows = {"what the bare loop needs": its.loop_s}
    rows |= {_named(kind, its.where(kind), ": "): took for kind, took in shown.items()}
    rows["the rest"] = its.packet_s - sum(rows.values())
    for said, took in rows.items():
        if took > 0:
            yield said, took, its.packet_s


def _named(kind: str, where: Sequence[str], before: str = " (", after: str = "") -> str:
    return KINDS[kind].words + (f"{before}{', '.join(where)}{after}" if where else "")


def _told(one: Finding, *, receives: bool) -> list[str]:
    chapter = (find_receiver if receives else find_chapter)(str(one.chapter))
    assert chapter is not None
    title = _named(one.kind, one.where, after=")")
    takes = f": {_short(one.takes_s)} of a packet" if one.gain else ""
    gain = f" Mended, {_times(one.gain)}." if one.gain else ""
    return [
        f"{title[0].upper()}{title[1:]}{takes}.",
        f"Check: {one.check}",
        f"Chapter {chapter.number}, {chapter.title}.{gain}",
    ]


def _said_last(small: Sequence[Finding]) -> str:
    said = [f"{KINDS[one.kind].words} ({_factor(one.gain.median)})" for one in small
            if one.gain and one.gain.median > 1.01]  # fmt: skip
    return f"What gains less: {'; '.join(said)}." if said else ""


def _facts(seen: Seen) -> Iterator[tuple[str, str]]:
    packets, calls = seen.packets, seen.calls
    if seen.receiving is not None:
        yield from _fates(seen.receiving)
    if packets is not None:
        yield "packets in a message", f"{packets.per_message:.1f}"
    if calls is not None:
        yield "messages in a call", f"{calls.per_call:.1f} ({', '.join(calls.names)})"
    if packets is not None:
        cut = f"; {number(packets.fragments)} IP fragments" if packets.fragments else ""
        yield "bytes in a packet", f"{packets.packet_bytes}, of {seen.largest_packet} that fit{cut}"


def _fates(its: Receiving) -> Iterator[tuple[str, str]]:
    fates, n = its.fates, len(its.sockets)
    room = f", of {bytes_text(its.buffer)}" if its.buffer is not None else ""
    where = f" (port {its.sockets[0].port}{f', {n} of them' * (n > 1)}{room})" if n else ""
    counts = {
        "packets sent": fates.packets,
        "messages dropped by a device": fates.device,
        "packets that came to its machine": fates.arrived,
        "messages for a port without a socket": fates.unclaimed,
        "messages without room in the socket": fates.no_room,
    }
    for words, count in counts.items():
        yield words, thousands(count) + where * words.endswith("in the socket")


# ---- As an object ----


def as_object(seen: Seen, findings: Sequence[Finding]) -> dict[str, Any]:
    its = account(seen)
    made: dict[str, Any] = msgspec.to_builtins(seen, str_keys=True)
    large, small = _divided(seen, its, findings)
    return made | {
        "rate_bytes_per_s": seen.rate,
        "account": msgspec.to_builtins(its) | {"kinds": its.kinds},
        "findings": msgspec.to_builtins(large),
        "gains_less": msgspec.to_builtins(small),
    }


def seen_of(made: dict[str, Any]) -> Seen:
    """Return what was seen of a sender, from the object that `as_object` made of it."""
    return msgspec.convert(made, Seen, strict=False)
