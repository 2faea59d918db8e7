# SPDX-License-Identifier: BSD-3-Clause
"""What was found of a receiver, as text for a terminal and as an object for JSON."""

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import Any

from spead_tutorial.chapters.catalogue import find_receiver
from spead_tutorial.ledger import table
from spead_tutorial.results.tables import plain
from spead_tutorial.results.units import bytes_text, number, percent
from spead_tutorial.tools.why.account import KINDS, Part, ThreadTime
from spead_tutorial.tools.why.findings import Finding
from spead_tutorial.tools.why.distance import distance
from spead_tutorial.tools.why.facts import Receiving, Seen
from spead_tutorial.tools.why.receiver_faults import CHAPTERS

_WIDTH, _INDENT = 80, "     "
_KINDS = KINDS | {"sends": "in calls that read the socket", "input": "waiting for packets"}
_MOST_THREADS, _MOST_PARTS = 4, 6
_LEAST = 0.01  # of a thread's time
_BUSY = 0.2  # of the time without a core, from which the machine is said to be busy


def text(seen: Seen, findings: tuple[Finding, ...]) -> str:
    """Write what was found of a receiver."""
    its = seen.receiving
    assert its is not None
    lines = [line for one in seen.unseen for line in _wrapped(one)]
    lines += [""] if lines else []
    lines += [*_wrapped(_first(seen, its, findings)), "", "Where:", *_where(its), "", *_times(seen)]
    lines += ["", *_disturbed(seen)]
    if not findings:
        lines += _wrapped(_nothing(seen))
    for place, one in enumerate(findings, 1):
        receiver = find_receiver(str(CHAPTERS[one.kind]))
        title = receiver.title if receiver else ""
        share = "" if one.explains is None else f" ({percent(one.explains)} of its busy time)"
        lines += [
            *_wrapped(f"{place:>2}.  {one.symptom}{share}"),
            *_wrapped(f"{_INDENT}Check: {one.check}"),
            *_wrapped(f"{_INDENT}Chapter {CHAPTERS[one.kind]}, {title}."),
            "",
        ]
    return "\n".join(lines).rstrip().replace("\N{THIN SPACE}", "")


def _nothing(seen: Seen) -> str:
    if distance(seen).is_idle:
        return (
            "Nothing found: the threads that read had next to nothing to do. Packets came faster"
            " for a moment than the socket has room for, or when the threads had no core."
        )
    return (
        "Nothing found: it reads as fast as it can. The rest is what the kernel takes for"
        " each packet: larger packets (chapter 6), or a socket for each core (chapter 18)."
    )


def _wrapped(line: str) -> list[str]:
    indent = _INDENT if line[0] in " 1234567890" else ""
    return textwrap.wrap(plain(line), _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _first(seen: Seen, its: Receiving, findings: tuple[Finding, ...]) -> str:
    rate = f"{number(its.fates.rate / 1e6)} MB/s in packets of {its.packet_bytes} bytes"
    said = f"{seen.program}: lost {percent(its.fates.share)} of the packets at {rate}"
    held = "some were lost at every rate"
    if its.held is not None:
        held = f"none at {number(its.held / 1e6)} MB/s"
    gain = ""
    if findings and (share := findings[0].explains) is not None and share < 1:
        gain = f" Without what is found first it could take up to {1 / (1 - share):.2g} times that."
    return f"{said}, {held}.{gain}"


def _where(its: Receiving) -> list[str]:
    way = its.fates
    rows = [
        (way.packets, "packets sent"),
        (way.device, "messages dropped by a device"),
        (way.arrived, "packets came to its machine"),
        (way.unclaimed, "messages for a port without a socket"),
        (way.no_room, f"messages without room in the socket{_sockets(its)}"),
    ]
    if "ring_dropped" in its.told:
        rows.append((its.told["ring_dropped"], "heaps dropped by the stream's full ring"))
    if "worker_blocked" in its.told:
        rows.append((its.told["worker_blocked"], "waits for room in the stream's ring"))
    return table([("", rows)])


def _sockets(its: Receiving) -> str:
    rooms = sorted({one.buffer for one in its.sockets if one.buffer is not None})
    sizes = f", of {bytes_text(rooms[-1])}" if rooms else ""
    n = len(its.sockets)
    return f" (port {its.sockets[0].port}{f', {n} of them' * (n > 1)}{sizes})" if n else ""


def _times(seen: Seen) -> Iterator[str]:
    """Write what threads spent their time on: those that read, then the busiest."""
    yield "Time of its threads:"
    for one in (seen.account.threads if seen.account else ())[:_MOST_THREADS]:
        if one.sends or one.of("own") + one.of("calls") >= _LEAST * one.seconds:
            yield f"  {plain(one.name)}{' (reads)' * one.sends}"
            yield from (f"    {_part(part, one)}" for part in _largest(one))


def _largest(one: ThreadTime) -> list[Part]:
    parts = sorted(one.parts, key=lambda part: -part.seconds)
    return [part for part in parts if part.seconds >= _LEAST * one.seconds][:_MOST_PARTS]


def _part(part: Part, one: ThreadTime) -> str:
    share = part.seconds / one.seconds
    what = f": {plain(part.what)}" if part.what else ""
    calls = f", {part.calls:.2g} for a packet" if part.calls is not None else ""
    return f"{percent(share):>5} {'█' * round(20 * share):20} {_KINDS[part.kind]}{what}{calls}"


def _disturbed(seen: Seen) -> list[str]:
    share = seen.account.share("core") if seen.account else 0.0
    if share < _BUSY:
        return []
    return [
        *_wrapped(
            f"It waited for a core for {percent(share)} of the time: others had them. Then packets"
            " are lost that a quiet machine would take; measure again on one."
        ),
        "",
    ]


def as_object(seen: Seen, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return what was found for JSON."""
    made = dataclasses.asdict(seen)
    assert seen.receiving is not None
    fates = seen.receiving.fates
    made["receiving"]["fates"] |= {"lost": fates.lost, "share": fates.share}
    made["findings"] = [
        dataclasses.asdict(one) | {"chapter": CHAPTERS[one.kind]} for one in findings
    ]
    return made
