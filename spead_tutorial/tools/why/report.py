# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis as a page of text, what to mend first before all else, and as an object for JSON."""

import dataclasses
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from spead_tutorial.chapters.catalogue import Chapter, Receiver, find_chapter, find_receiver
from spead_tutorial.results.tables import Column, Table, plain, rendered, width_up_to
from spead_tutorial.results.units import bytes_text, number, percent, size, thousands
from spead_tutorial.tools.why import bars
from spead_tutorial.tools.why.account import KINDS
from spead_tutorial.tools.why.distance import distance
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.finding import ROWS, Finding
from spead_tutorial.tools.why.remedies import Gain

if TYPE_CHECKING:
    from rich.console import RenderableType


#: The chapter that mends what is found in a sender, and in a receiver.
CHAPTERS = {kind: row.chapter for kind, row in ROWS.items() if row.chapter}
RECEIVER_CHAPTERS = {kind: row.receivers for kind, row in ROWS.items() if row.receivers}
#: The table of facts.
_FACT: Column[tuple[str, str]] = Column("What was seen", operator.itemgetter(0), is_words=True)
_VALUE: Column[tuple[str, str]] = Column("", operator.itemgetter(1), is_words=True)
_WIDTH = 80
#: Shares of the bare loop's rate below which a sender is slow, and of the time without a core from
#: which rates say little; a gain that counts; and how far above it an interval has no end.
_FAR, _WAITED, _GAINS, _OPEN = 0.5, 0.2, 1.05, 5


# ---- As text ----


def text(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Write a diagnosis, in at most 80 columns; coloured where it goes to a terminal."""
    from rich.text import Text  # here, as no other command should wait for it

    width, facts = width_up_to(_WIDTH), [*_fates(seen), *_facts(seen)]

    def written(*parts: "RenderableType | str") -> str:
        return rendered(*(Text(plain(x)) if isinstance(x, str) else x for x in parts), width=width)

    paragraphs = [
        written(_unseen(seen, findings)),
        written(Text(plain(_first(seen, findings)), "bold"), _rate(seen)),
        written(*bars.lines(seen.account, width)) if seen.account else "",
        written(_disturbed(seen, findings)),
        *(written(_finding(seen, place, findings)) for place in range(len(findings))),
        Table([_FACT], [_VALUE], facts).text(width) if facts else "",
        written(_looking(seen)),
    ]
    return "\n\n".join(filter(None, paragraphs))


def _unseen(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Say what could not be seen, how to get it, and what is not known therefore."""
    unranked = "What has no number below could not be weighed without that."
    is_short = seen.unseen and not all(_is_ranked(seen, one) for one in findings)
    return " ".join([*seen.unseen, *[unranked] * bool(is_short)])


def _is_ranked(seen: Seen, finding: Finding) -> bool:
    is_known = finding.explains is not None or finding.cost_s is not None
    return is_known or seen.receiving is not None


def _first(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Say what to mend first and what it is worth, or that there is nothing."""
    if findings and _is_ranked(seen, findings[0]):
        first = findings[0]
        said, gain = f"Mend first: {_does(seen, first)}", first.gain
        if first.explains is not None:
            whole = "its busy time" if seen.receiving else "the distance to the bare loop"
            said += f", {percent(first.explains)} of {whole}"
        if gain is None or gain.median < _GAINS:
            return f"{said}."
        after = f"with {_joined(gain.remedies)}" if gain.measured else "without that"
        about = _ends(gain) if _is_open(gain) else f"about {_factor(gain.median)}"
        return f"{said}; {after} it is {about} times as fast."
    if findings:
        return "What to mend first is not known. These were found:"
    if seen.receiving is not None and distance(seen).is_idle:
        return (
            "Nothing found: the threads that read had next to nothing to do. Packets came faster"
            " for a moment than the socket has room for, or when the threads had no core."
        )
    if seen.receiving is not None:
        return (
            "Nothing found: it reads as fast as it can. The rest is what the kernel takes for"
            " each packet: larger packets (chapter 6), or a socket for each core (chapter 18)."
        )
    if seen.share is None or seen.share >= _FAR:
        return "Nothing found." if not seen.unseen else "Nothing found in what was seen."
    most = ""
    if seen.account is not None and seen.account.parts:
        part = seen.account.parts[0]
        most = f" Most of its time is {KINDS[part.kind]}{f' ({part.what})' * bool(part.what)}."
    return f"Nothing found that a chapter mends.{most} A profile says more: perf record, py-spy."


def _does(seen: Seen, finding: Finding) -> str:
    """Say what a sender does, and in which call, library or thread where that is known."""
    row, parts = ROWS[finding.kind], seen.account.parts if seen.account else ()
    where = next((one.what for one in parts if one.kind == row.where and one.what), "")
    return f"{row.does} {where}" if where else row.does.removesuffix(" in").rstrip(":")


def _rate(seen: Seen) -> str:
    if (its := seen.receiving) is not None:
        held = f"none at {number(its.held / 1e6)} MB/s" if its.held else "some at every rate"
        return (
            f"{seen.program} lost {percent(its.fates.share)} of the packets at"
            f" {number(its.fates.rate / 1e6)} MB/s in packets of {its.packet_bytes} bytes, {held}."
        )
    rate = f"{seen.program} sends {number(seen.run.rate / 1e6)} MB/s to {seen.place}"
    if seen.share is None or seen.bare is None:
        return f"{rate}."
    return (
        f"{rate}: {percent(seen.share)} of the {number(seen.bare.rate / 1e6)} MB/s of the bare loop"
        " with heaps and packets of these sizes."
    )


def _disturbed(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Say that the rate says little, where threads waited for cores that somebody else had."""
    waited = seen.account.share("core") if seen.account else 0.0
    if waited < _WAITED or any(finding.kind == "shared-core" for finding in findings):
        return ""
    what = "the rate and the distance say" if seen.receiving is None else "what was lost says"
    return (
        f"It waited for a core for {percent(waited)} of the time. If other programs had it, {what}"
        " little: measure again on a quiet machine."
    )


def _finding(seen: Seen, place: int, findings: tuple[Finding, ...]) -> "RenderableType":
    from rich.table import Table as RichTable
    from rich.text import Text

    finding = findings[place]
    mark = f"{place + 1}." if _is_ranked(seen, finding) else "-"
    whole = "the distance" if seen.receiving is None else "its busy time"
    share = "" if finding.explains is None else f"{percent(finding.explains)} of {whole}: "
    n = str(_chapter(seen, finding))
    chapter: Chapter | Receiver | None
    chapter = find_chapter(n) if seen.receiving is None else find_receiver(n)
    assert chapter is not None
    elsewhere = [one.gain.remedies for one in findings if one.gain]
    gained = _gained(finding, elsewhere)
    made = RichTable.grid(padding=(0, 1))
    made.add_row(mark, Text(plain(share + finding.symptom), "bold"))
    made.add_row("", Text(plain(f"Check: {finding.check}")))
    made.add_row("", Text(plain(f"Chapter {chapter.number}, {chapter.title}. {gained}")))
    return made


def _chapter(seen: Seen, finding: Finding) -> int:
    return (CHAPTERS if seen.receiving is None else RECEIVER_CHAPTERS)[finding.kind]


def _gained(finding: Finding, elsewhere: list[tuple[str, ...]]) -> str:
    """Say what mending it gains by itself, with others, and those alone if not said elsewhere."""
    gain = finding.gain
    if gain is None:
        return "What it gains is not known."
    after = f"With {_joined(gain.remedies)}" if gain.measured else "Without it"
    by = "as the bare loop is here" if gain.measured else "if all of its time goes"
    said = [f"{after}, {_factor(gain.median)} times as fast ({_ends(gain)}), {by}"]
    if gain.median < _GAINS:
        said = ["By itself it gains next to nothing"]
    for other in finding.with_others:
        if other.remedies not in elsewhere:
            words = _joined(other.remedies) + " alone" * (len(other.remedies) == 1)
            said.append(f"with {words}, {_factor(other.median)} ({_ends(other)})")
    return f"{'; '.join(said)}."


def _ends(gain: Gain) -> str:
    low = _factor(gain.low)
    return f"at least {low}" if _is_open(gain) else f"{low} to {_factor(gain.high)}"


def _is_open(gain: Gain) -> bool:
    return gain.high > _OPEN * gain.median


def _factor(x: float) -> str:
    """Write how many times as fast, with two digits: it is known no better."""
    return f"{x:.1f}" if x < 9.95 else f"{float(f'{x:.2g}'):g}"


def _joined(words: tuple[str, ...]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _facts(seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield what is known of packets, calls, faults and memory."""
    run, packets, calls, traffic = seen.run, seen.packets, seen.calls, seen.traffic
    if packets is not None:
        yield "packets in a message", f"{packets.per_message:.1f}"
    if calls is not None:
        yield "messages in a call", f"{calls.per_call:.1f} ({', '.join(calls.names)})"
    if packets is not None:
        cut = f"; {number(packets.fragments)} IP fragments" if packets.fragments else ""
        yield "bytes in a packet", f"{packets.packet_bytes}, of {seen.largest_packet} that fit{cut}"
        heap = packets.heap_bytes
        if heap is not None and calls is not None and calls.per_call:
            each = packets.messages / calls.per_call * heap / packets.payload_bytes
            yield "calls for a heap", f"{number(each)}, of {size(heap)}"
    if run.threads:
        yield "page faults for a GB", number(run.per_gb(run.faults))
    if traffic is not None and traffic.n_bytes is not None:
        alone = ", the kernel's not counted" if traffic.program_only else ""
        each = traffic.n_bytes / run.payload_bytes
        yield "memory traffic", f"{each:.2g} bytes for each sent{alone}"


def _fates(seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield what was counted of the packets on their way to a receiver."""
    its = seen.receiving
    if its is None:
        return
    fates, n = its.fates, len(its.sockets)
    room = f", of {bytes_text(its.buffer)}" if its.buffer is not None else ""
    where = f" (port {its.sockets[0].port}{f', {n} of them' * (n > 1)}{room})" if n else ""
    yield "packets sent", thousands(fates.packets)
    yield "messages dropped by a device", thousands(fates.device)
    yield "packets that came to its machine", thousands(fates.arrived)
    yield "messages for a port without a socket", thousands(fates.unclaimed)
    yield "messages without room in the socket", f"{thousands(fates.no_room)}{where}"
    if (dropped := its.told.get("ring_dropped")) is not None:
        yield "heaps dropped by the stream's full ring", thousands(dropped)
    if (waits := its.told.get("worker_blocked")) is not None:
        yield "waits for room in the stream's ring", thousands(waits)


def _looking(seen: Seen) -> str:
    """Say what looking cost, and that the rate and the times are without it."""
    slowed = seen.account.slowed if seen.account else None
    if slowed is None:
        return ""
    if slowed < _GAINS:
        return "Looking at its calls did not slow it."
    return (
        f"While its calls were looked at, it took {_factor(slowed)} times as long. Rate and times"
        " are of a run of their own, which nothing slowed."
    )


# ---- As an object ----


def as_object(seen: Seen, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return a diagnosis for JSON."""
    packets, calls, account = seen.packets, seen.calls, seen.account
    made, its = dataclasses.asdict(seen), seen.receiving
    if its is not None:
        made["receiving"]["fates"] |= {"lost": its.fates.lost, "share": its.fates.share}
    made["run"]["rate_bytes_per_s"] = seen.run.rate
    made["share_of_bare_loop"] = seen.share
    made["packets_per_message"] = packets.per_message if packets else None
    made["messages_per_call"] = calls.per_call if calls else None
    made["page_faults_per_gb"] = seen.run.per_gb(seen.run.faults)
    made["shares"] = {kind: account.share(kind) for kind in KINDS} if account else None
    made["findings"] = [
        dataclasses.asdict(finding) | {"chapter": _chapter(seen, finding)} for finding in findings
    ]
    return made


def seen_of(made: dict[str, Any]) -> Seen:
    """Return what was seen of a sender, from the object that `as_object` made of it."""
    return msgspec.convert(made, Seen)
