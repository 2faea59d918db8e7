# SPDX-License-Identifier: BSD-3-Clause
"""What a tour came to: its rows, what each of them gained, how fast it is beside a bare loop."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from spead_tutorial.chapters.catalogue import BESIDE_LADDER, LADDER, NAMES, Chapter, find_chapter
from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis import Row, rates_by_round, rows
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import OURS, Recording, Sample, Sent
from spead_tutorial.measure.stats import Estimate, differs
from spead_tutorial.results.tables import NOTHING, Column, Table, ends, estimate
from spead_tutorial.results.units import number, percent, size, thousands, times
from spead_tutorial.tools.command_line import worded

#: The chapter whose clock is that of the whole program: nothing is compared with it.
_FIRST = 2
#: The chapter whose program fills nothing: none of a tour's bare loops does the same.
_RECORDED = 15
_ORDER = list(dict.fromkeys(rung.program for rung in (*LADDER, *BESIDE_LADDER)))
#: The first that fills constant samples: what a sender gains by itself begins there.
_CONSTANT = "tut_4_send_constant"
_CANNOT_TELL = "cannot tell"
_BESIDE = [rung.program for rung in BESIDE_LADDER]


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A row, with what it is compared with."""

    row: Row  # what was measured
    section: str  # what it has in common with those that it can be compared with
    by: str  # whose program it is: a language of ours, the peer, or the bare loops
    gain: Estimate | None  # how many times as fast it is as the one before it by the same
    share: Estimate | None  # its part of the rate of the bare loops of as many streams

    @property
    def chapter(self) -> Chapter | None:
        """The chapter, or step, whose program it is; None for the bare loops."""
        program = self.row.last.program
        return None if program == CEILING else find_chapter(program)

    @property
    def title(self) -> str:
        """The chapter's number and title, or what the bare loops are."""
        if self.chapter is None:
            streams = self.row.last.streams
            return "   Bare loop" if streams == 1 else f"   Bare loops, {streams} at once"
        return f"{self.chapter.number:>2} {self.chapter.title}"

    @property
    def rate(self) -> float:
        """The median in bytes/s; 0 where it failed."""
        return 0.0 if self.row.rate is None else self.row.rate.median


@dataclasses.dataclass(frozen=True, slots=True)
class Headline:
    """What the sender itself gained in one language, from constant samples to the last chapter.

    The picture's title compares the same two.
    """

    by: str  # the language
    ends: tuple[Entry, Entry]
    times: Estimate  # how many times as fast the second is as the first
    largest: Entry | None  # what gained most on the way
    cheaper: Estimate | None  # what constant samples have gained before, instead of random ones

    def __str__(self) -> str:
        rates = " → ".join(number(entry.rate / 1e6) for entry in self.ends)
        told = f"{number(self.times.median)} times" if differs(self.times) else _CANNOT_TELL
        return f"{rates} MB/s, {told}"

    @property
    def details(self) -> list[str]:
        """Which chapters these are, what gained most, and what is no gain of the sender's."""
        first, last = (f"{one.title.strip()}" for one in self.ends)
        lines = [f"chapter {first} → {last}", f"{self.times.spread}: {ends(self.times)} times"]
        if self.largest is not None and self.largest.gain is not None:
            lines.append(f"largest step: {self.largest.title.strip()}, {gained(self.largest.gain)}")
        if self.cheaper is not None:
            lines.append(
                f"not counted: constant samples instead of random ones, {gained(self.cheaper)}"
            )
        return lines


def gained(gain: Estimate) -> str:
    """Write how many times as fast something became, or that its rounds cannot tell."""
    return times(gain.median) if differs(gain) else _CANNOT_TELL


def headlines(found: Sequence[Entry]) -> list[Headline]:
    """Return what is to be said first, for each language in which a gain is known."""
    way = steps(found)
    made = (_headline([step[by] for step in way if by in step]) for by in NAMES.values())
    return [headline for headline in made if headline is not None]


def _headline(way: list[Entry]) -> Headline | None:
    if not way or way[0].row.last.program != _CONSTANT:
        return None
    whole = _times(way[0].row, way[-1].row)
    if whole is None or len(way) == 1:
        return None
    gains = {entry.gain.median: entry for entry in way[1:] if entry.gain and differs(entry.gain)}
    return Headline(
        way[0].by, (way[0], way[-1]), whole, gains.get(max(gains, default=0)), way[0].gain
    )


def steps(found: Sequence[Entry]) -> list[dict[str, Entry]]:
    """Return each step from constant samples on, at the largest heaps: its rows by language."""
    after = _ORDER[_ORDER.index(_CONSTANT) :]
    by_program: dict[str, dict[str, Entry]] = {}
    for entry in found:
        sample, is_ours = entry.row.last, entry.by in NAMES.values()
        if is_ours and entry.section == found[0].section and sample.program in after:
            by_program.setdefault(sample.program, {})[entry.by] = entry
    return list(by_program.values())


# ---- Rows, compared ----


def entries(recording: Recording) -> list[Entry]:
    """Sort a tour's rows, and compare them: by ratios within rounds."""
    found = sorted(rows(recording), key=_order)
    loops = [row for row in found if row.last.program == CEILING]
    bare = {(row.last.heap_size, row.last.streams): row for row in loops}
    before: dict[tuple[str, str], Row] = {}
    made = []
    for row in found:
        sample, section = row.last, _section(row.last)
        others = {PEER: PEER, CEILING: "bare"}
        by = others.get(sample.implementation) or NAMES[sample.language]
        gains = sample.program not in (CEILING, *_BESIDE) and sample.chapter != _FIRST
        fills = sample.chapter not in (_FIRST, _RECORDED)
        gain = _times(before.get((section, by)), row) if gains else None
        share = _times(bare.get((sample.heap_size, sample.streams)), row) if fills else None
        made.append(Entry(row, section, by, gain, share))
        before[section, by] = row
    return made


def _order(row: Row) -> tuple[int, int, int, int, bool]:
    sample = row.last
    last = 2 if sample.chapter == _FIRST else int(sample.program in _BESIDE)
    whose = [OURS, PEER, CEILING].index(sample.implementation)
    order = _ORDER.index(sample.program) if sample.program in _ORDER else sample.streams
    return last, -sample.heap_size, whose, order, sample.language == "c"


def _section(sample: Sample) -> str:
    heaps = f"eaps of {size(sample.heap_size)}"
    if sample.chapter == _FIRST:
        return f"Another clock, h{heaps}"
    return f"Other data or packets, h{heaps}" if sample.program in _BESIDE else f"H{heaps}"


def _times(before: Row | None, after: Row) -> Estimate | None:
    """Return how many times as fast it became within rounds; None where one has no rate."""
    if before is None or before.failure is not None or after.failure is not None:
        return None
    old, new = (rates_by_round(row.samples) for row in (before, after))
    return stats.gain(old, new) if old.keys() & new.keys() else None


# ---- In words ----


def steps_table(found: Sequence[Entry], its: str = "") -> Table[dict[str, Entry]]:
    """Return what each step gained; with intervals, by their name, where there is room for them."""

    def rate(entry: Entry) -> str:
        return number(entry.rate / 1e6) if entry.row.rate else "✗ failed"

    def gain(entry: Entry) -> str | None:
        if entry.gain is None or entry.row.last.program == _CONSTANT:
            return None
        return gained(entry.gain) + (f" ({ends(entry.gain)})" if its else "")

    def column(
        name: str, by: str, write: Callable[[Entry], str | None]
    ) -> Column[dict[str, Entry]]:
        return Column(f"{by}, {name}", lambda step: write(step[by]) if by in step else None)

    some = steps(found)
    values: list[Column[dict[str, Entry]]] = []
    for by in dict.fromkeys(by for step in some for by in step):
        values.append(column("MB/s", by, rate))
        values.append(column(f"gain ({its})" if its else "gain", by, gain))
    title: Column[dict[str, Entry]] = Column(
        "chapter", lambda step: next(iter(step.values())).title, is_words=True
    )
    return Table([title], values, some)


def entries_table(found: Sequence[Entry], recording: Recording) -> Table[Entry]:
    """Return all of a tour, for its page."""
    its = spread(recording)
    names: list[Column[Entry]] = [
        Column("chapter", lambda entry: entry.title, is_words=True),
        Column("by", lambda entry: entry.by, is_words=True),
    ]
    values: list[Column[Entry]] = [
        *estimate(
            ("rate, MB/s", f"{its} of the rate, MB/s"),
            lambda entry: entry.row.rate,
            lambda rate: number(rate / 1e6),
        ),
        Column("gain", lambda entry: entry.gain, gained),
        Column(f"{its} of the gain, times", lambda entry: entry.gain, ends),
        Column(
            "beside a bare loop", lambda entry: entry.share, lambda share: percent(share.median)
        ),
        Column("packets, all counted", lambda entry: f"{_count(entry.row.last.packets)} ✓"),
        Column("system calls a heap", lambda entry: entry.row.calls_per_heap, number),
        Column("CPU, s/GB", lambda entry: entry.row.cpu_s_per_gb, number),
    ]
    return Table(
        names, values, found, lambda entry: _failed(entry.row.failure), lambda entry: entry.section
    )


def _count(packets: int | None) -> str:
    return NOTHING if packets is None else thousands(packets)


def proof(found: Sequence[Entry]) -> str:
    """Say of all programs at once whether they did what they claim."""
    failed = sum(entry.row.failure is not None for entry in found)
    if failed:
        return f"✗ {failed} of {len(found)} programs and settings failed: they have no rate."
    return f"✓ {len(found)} programs and settings: no send failed, and every packet was counted."


def _failed(failure: str | None) -> str | None:
    return failure and f"✗ failed: {failure}"


def spread(recording: Recording) -> str:
    """Name what is given with a median: an interval takes more rounds than a range."""
    return stats.spread([recording.header.settings["rounds"]])


def where(recording: Recording) -> str:
    lab = recording.header.lab
    return f"{lab['kind']}, MTU {lab['mtu']}"


def notes(recording: Recording, *, whole: bool) -> list[str]:
    """Say what is in the columns of the table of steps, or of that of all rows."""
    header, samples = recording.header, recording.samples
    peers = [sample for sample in samples if sample.implementation == PEER and sample.packets]
    is_counted = not over_loopback(header.lab)
    said = worded(
        Path(__file__).with_name("notes.jinja"),
        whole=whole,
        rounds=header.settings["rounds"],
        spread=spread(recording),
        where=where(recording),
        has_bare=any(sample.program == CEILING for sample in samples),
        has_first=any(sample.chapter == _FIRST for sample in samples),
        peers=peers,
        version=header.versions.get(PEER) or "",
        has_no_offload=is_counted
        and all(
            isinstance(sample, Sent) and sample.counted_packets == sample.packets
            for sample in peers
        ),
        without=header.settings.get("without", ()),
        PEER=PEER,
        FIRST=_FIRST,
    )
    return str(said).splitlines()
