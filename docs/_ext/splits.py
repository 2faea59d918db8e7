# SPDX-License-Identifier: BSD-3-Clause
"""The time of a heap, part by part: from the committed record of ``python -m bench run where``.

    {split}`copy 8KiB c tut_13_send_hot`    CPU time of a part for a heap, of all threads
    {split}`share copy 8KiB c tut_13_send_hot`    the same, as a share of all its CPU time
    {split}`waking 8KiB`                    until the stream of an idle program begins with a heap
    {split}`news 8KiB`                      from when it was sent until the program goes on
    {split}`slowed`                         how much slower the programs were with someone looking
    {split}`looks`                          how often in a second of CPU time

Parts whose name has a space are put in quotes. ``made-table`` shows all parts at a size of heaps,
with a column for each thread.
"""

import functools
import shlex

from measured import Choice, Measured, Said, UnknownError, recording
from sphinx.application import Sphinx
from tables import Table

from spead_tutorial.chapters.catalogue import MEASURED, NAMES, find_chapter
from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis import PARTS, Kind, Thread, split_times
from spead_tutorial.results.units import number, percent, thousands

_RECORD = "where"
_NS, _US = "\N{NO-BREAK SPACE}ns", "\N{NO-BREAK SPACE}µs"
_IDLE, _WHOLE = "not running", "heap to heap"


@functools.cache
def _kinds() -> dict[Kind, list[Thread]]:
    return split_times(recording(_RECORD))


def split(text: str) -> Said:
    first, *words = shlex.split(text)
    if first == "slowed":
        return _slowed()
    if first == "looks":
        looks = recording(_RECORD).header.settings["looks_per_s"]
        return Said(thousands(looks), "at each thread", _RECORD)
    as_share = first == "share"
    if as_share:
        first, *words = words
    choice = Choice(_RECORD).changed(words)
    if first in ("waking", "news"):
        return _waited(first, choice)
    return _part(first, choice, as_share)


def _part(part: str, choice: Choice, as_share: bool) -> Said:
    kinds = _kinds()
    kind = Kind(choice.heap_size or 0, choice.program or "", choice.language or "")
    if kind not in kinds or part not in PARTS:
        there = "; ".join(map(str, kinds))
        raise UnknownError(f"{part!r} of {choice} was not measured: there are {there}")
    found = [thread.parts[part] for thread in kinds[kind] if part in thread.parts]
    ns = sum(estimate.median for estimate in found)
    whole = sum(thread.busy_ns for thread in kinds[kind])
    time, share = _ns(ns) + _NS, percent(ns / whole)
    said, other = (share, time) if as_share else (time, f"{share} of the CPU time")
    spread = " and ".join(f"{_ns(x.low)} to {_ns(x.high)}{_NS}" for x in found) or "never seen"
    return Said(said, f"{other}, {spread}", _RECORD)


def _waited(what: str, choice: Choice) -> Said:
    """Say how long a heap of a timeline waited for the stream, or the program for the news."""
    of_size = [one for one in recording(_RECORD).timelines if one.heap_size == choice.heap_size]
    if len(of_size) != 1:
        raise UnknownError(f"{_RECORD} has {len(of_size)} timelines of {choice}")
    (one,) = of_size
    waking = zip(one.queued_ns, one.first_packet_ns, strict=True)
    news = zip(one.completed_ns, one.resumed_ns, strict=True)
    waits = waking if what == "waking" else news
    found = stats.median([(end - begin) / 1e3 for begin, end in waits])
    ends = f"{found.low:.3g} to {found.high:.3g}"
    detail = f"median of {found.n} heaps, {found.spread} {ends}{_US}"
    return Said(f"{found.median:.3g}{_US}", detail, _RECORD)


def _slowed() -> Said:
    """Say how much longer a heap took with someone looking: the case in which it was the most."""
    found = recording(_RECORD)
    plain = {(one.case, one.round): one for one in found.samples if not one.warm_up}
    ratios: dict[str, list[float]] = {}
    for one in found.splits:
        sample = plain[one.case, one.round]
        if one.elapsed_ns and sample.elapsed_ns:
            ratios.setdefault(one.case, []).append(one.elapsed_ns / sample.elapsed_ns - 1)
    medians = [stats.median(values).median for values in ratios.values()]
    detail = f"of {len(medians)} cases, {percent(min(medians))} least"
    return Said(percent(max(medians)), detail, _RECORD)


def _ns(value: float) -> str:
    return thousands(float(f"{value:.3g}")) if value >= 100 else number(value)


# ---- As a table ----


def parts(size: str) -> Table:
    """Return the table of a size: heads, a row for each part, and what is left."""
    heap_size = Choice(_RECORD).changed([size]).heap_size
    kinds = sorted((kind for kind in _kinds() if kind.heap_size == heap_size), key=_place)
    threads = [(kind, thread) for kind in kinds for thread in _kinds()[kind]]
    if not threads:
        raise UnknownError(f"{_RECORD} has no heaps of {size}")
    rows = [("ns", *(_head(kind, one) for kind, one in threads))]
    for part in PARTS:
        found = [one.parts.get(part) for _, one in threads]
        if any(found):
            rows.append((part, *("" if x is None else _ns(x.median) for x in found)))
    rows.append((_IDLE, *(_ns(one.idle_ns) for _, one in threads)))
    rows.append((_WHOLE, *(_ns(one.elapsed.median) for _, one in threads)))
    return Table(rows)


def _place(kind: Kind) -> tuple[int, int]:
    return find_chapter(kind.program).number, MEASURED.index(kind.language)


def _head(kind: Kind, thread: Thread) -> str:
    who = (", program" if thread.own else ", stream") * (len(_kinds()[kind]) > 1)
    return f"{find_chapter(kind.program).number} {NAMES[kind.language]}{who}"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("split", Measured(split))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
