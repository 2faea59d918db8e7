# SPDX-License-Identifier: BSD-3-Clause
"""Tables of runs that last: what was lost, and what both ends took for it.

losses RECORD       what receivers lost at each rate, a row for each line
    chapter 7 in C | ours c tut_7_recv_power
both-ends           each sender into each receiver, for minutes over a link
"""

import shlex
from collections.abc import Sequence

from measured import UnknownError, recording
from sphinx.application import Sphinx
from tables import KINDS, Table

from spead_tutorial.chapters.catalogue import NAMES
from spead_tutorial.measure import losses
from spead_tutorial.measure.analysis import cpu_s_per_gb
from spead_tutorial.measure.records import OURS, Received, Sample, Series, words_of
from spead_tutorial.results.units import number, percent, thousands

_RECORD = "both-ends"


def lost_at(record: str, *lines: str) -> Table:
    found = losses.by_rate(recording(record).samples)
    rates = sorted({rate for its in found.values() for rate in its})
    rows = [("% lost at", *(f"{rate:g} GB/s" for rate in rates), "nothing lost up to")]
    for line in lines:
        title, _, words = line.partition("|")
        series = Series(*shlex.split(words))
        if series not in found:
            raise UnknownError(f"{record} has no {series}: there are {', '.join(map(str, found))}")
        its = found[series]
        held = losses.lossless(its)
        cells = [_lost(its[rate]) if rate in its else "-" for rate in rates]
        rows.append((title.strip(), *cells, f"{held:g} GB/s" if held is not None else "-"))
    return Table(rows)


def _lost(samples: Sequence[Sample]) -> str:
    known = losses.share(samples)
    if known is None:
        return "failed"
    ends = f" [{number(known.low)}, {number(known.high)}]" if known.low != known.high else ""
    return f"{number(known.median)}{ends}"


def both_ends() -> Table:
    heads = ("Sender", "Receiver", "GB", "Packets", "lost")
    more = ("CPU s a GB, sender", "receiver", "socket full, at most", "memory added, kB")
    samples = [one for one in recording(_RECORD).samples if isinstance(one, Received)]
    return Table([(*heads, *more), *map(_run, samples)])


def _run(one: Received) -> tuple[str, ...]:
    to = words_of(one.variant)[0].removeprefix("to ")
    names = _named(one.implementation, one.language), _named(to, one.language)
    if one.failure is not None or not one.payload_bytes:
        return (*names, "failed", *["-"] * 6)
    gigabytes = one.heaps * one.heap_size / 1e9
    return (
        *names,
        number(gigabytes),
        thousands(one.packets or 0),
        thousands(one.received_dropped or 0),
        f"{(one.sender_cpu_ns or 0) / 1e9 / gigabytes:.2f}",
        f"{cpu_s_per_gb(one) or 0:.2f}",
        percent((one.fullest_percent or 0) / 100),
        thousands((one.growth_bytes or 0) / 1e3),
    )


def _named(implementation: str, language: str) -> str:
    if implementation == OURS:
        return f"ours in {NAMES['c' if language == 'cpp' else language]}"
    return f"spead2 in {NAMES['cpp' if language == 'c' else language]}"


def setup(app: Sphinx) -> dict[str, bool]:
    KINDS.update({"losses": lost_at, "both-ends": both_ends})
    return {"parallel_read_safe": True, "parallel_write_safe": True}
