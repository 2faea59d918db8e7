# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis as a page of text, what to mend first before all else, and as an object for JSON."""

import dataclasses
import functools
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spead_tutorial.chapters.catalogue import Chapter, Receiver, find_chapter, find_receiver
from spead_tutorial.results.tables import Column, Table, plain, rendered, width_up_to
from spead_tutorial.results.units import bytes_text, number, percent, size, thousands
from spead_tutorial.tools.command_line import worded
from spead_tutorial.tools.why import bars
from spead_tutorial.tools.why.account import KINDS
from spead_tutorial.tools.why.distance import distance
from spead_tutorial.tools.why.facts import Seen
from spead_tutorial.tools.why.finding import ROWS, Finding

if TYPE_CHECKING:
    from rich.console import RenderableType

#: The chapter that mends what is found in a sender, and in a receiver.
CHAPTERS = {kind: row.chapter for kind, row in ROWS.items() if row.chapter}
RECEIVER_CHAPTERS = {kind: row.receivers for kind, row in ROWS.items() if row.receivers}
#: The table of facts.
_FACT: Column[tuple[str, str]] = Column("What was seen", operator.itemgetter(0), is_words=True)
_VALUE: Column[tuple[str, str]] = Column("", operator.itemgetter(1), is_words=True)
_WIDTH = 80


# ---- As text ----


def text(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Write a diagnosis, in at most 80 columns; coloured where it goes to a terminal."""
    from rich.table import Table as RichTable  # here, as no other command should wait for it
    from rich.text import Text

    width, facts = width_up_to(_WIDTH), [*_fates(seen), *_facts(seen)]
    unseen = [*seen.unseen]
    if unseen and not all(_is_ranked(seen, one) for one in findings):
        unseen.append("What has no number below could not be weighed without that.")

    def words(said: str, style: str = "") -> Text:
        return Text(plain(said.strip()), style)

    def written(*parts: "RenderableType") -> str:
        return rendered(*parts, width=width)

    said = _sentences(seen, findings)
    paragraphs = [
        written(words(" ".join(unseen))),
        written(words(said.first(), "bold"), words(said.rate())),
        written(*bars.lines(seen.account, width)) if seen.account else "",
        written(words(said.disturbed())),
    ]
    for place, finding in enumerate(findings, 1):
        n = str(_chapter(seen, finding))
        chapter: Chapter | Receiver | None
        chapter = find_chapter(n) if seen.receiving is None else find_receiver(n)
        assert chapter is not None
        whole = "the distance" if seen.receiving is None else "its busy time"
        share = "" if finding.explains is None else f"{percent(finding.explains)} of {whole}: "
        grid = RichTable.grid(padding=(0, 1))
        mark = f"{place}." if _is_ranked(seen, finding) else "-"
        grid.add_row(mark, words(share + finding.symptom, "bold"))
        grid.add_row("", words(f"Check: {finding.check}"))
        gained = said.gained(finding)
        grid.add_row("", words(f"Chapter {chapter.number}, {chapter.title}. {gained}"))
        paragraphs.append(written(grid))
    paragraphs.append(Table([_FACT], [_VALUE], facts).text(width) if facts else "")
    paragraphs.append(written(words(said.looking())))
    return "\n\n".join(filter(None, paragraphs))


def _is_ranked(seen: Seen, finding: Finding) -> bool:
    is_known = finding.explains is not None or finding.cost_s is not None
    return is_known or seen.receiving is not None


def _sentences(seen: Seen, findings: tuple[Finding, ...]) -> Any:
    """Return the macros of the template, each of which writes a paragraph."""
    return worded(
        Path(__file__).with_name("report.jinja"),
        seen=seen,
        findings=findings,
        elsewhere=[one.gain.remedies for one in findings if one.gain],
        is_ranked=functools.partial(_is_ranked, seen),
        is_idle=lambda: distance(seen).is_idle,
        does=functools.partial(_does, seen),
        factor=_factor,
        number=number,
        percent=percent,
        KINDS=KINDS,
    )


def _does(seen: Seen, finding: Finding) -> str:
    """Say what a sender does, and in which call, library or thread where that is known."""
    row, parts = ROWS[finding.kind], seen.account.parts if seen.account else ()
    where = next((one.what for one in parts if one.kind == row.where and one.what), "")
    return f"{row.does} {where}" if where else row.does.removesuffix(" in").rstrip(":")


def _chapter(seen: Seen, finding: Finding) -> int:
    return (CHAPTERS if seen.receiving is None else RECEIVER_CHAPTERS)[finding.kind]


def _factor(x: float) -> str:
    """Write how many times as fast, with two digits: it is known no better."""
    return f"{x:.1f}" if x < 9.95 else f"{float(f'{x:.2g}'):g}"


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


# ---- As an object ----


def as_object(seen: Seen, findings: tuple[Finding, ...]) -> dict[str, Any]:
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
