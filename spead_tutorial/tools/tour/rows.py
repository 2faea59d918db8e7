# SPDX-License-Identifier: BSD-3-Clause
"""What a tour came to: its rows, what each of them gained, how near it is to the ceiling.

And what arrived, which is no measurement.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import msgspec

from spead_tutorial.chapters.catalogue import BESIDE_LADDER, LADDER, Chapter, find_chapter
from spead_tutorial.measure import stats
from spead_tutorial.measure.analysis import ROUNDS_FOR_A_CLAIM, Row, rates_by_round, rows
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.records import OURS, Count, RecordError, Recording, Sample, Sent
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.tables import NOTHING, Column, Table, ends, estimate, plain
from spead_tutorial.results.units import number, percent, size, thousands
from spead_tutorial.tools.command_line import worded

#: What the settings of a tour's record call what arrived.
ARRIVALS = "arrivals"
#: What a mark in the table of that says.
PROVED = "the sender's device, the receiver's machine and its socket agree on every packet"
_LANGUAGES = {"python": "Python", "c": "C", "cpp": "C++"}
#: The chapter whose clock is that of the whole program: nothing is compared with it.
_FIRST = 2
#: The chapter whose program fills nothing: none of a tour's bare loops does the same.
_RECORDED = 15
_ORDER = list(dict.fromkeys(rung.program for rung in (*LADDER, *BESIDE_LADDER)))
_TIMES = "\N{MULTIPLICATION SIGN}"
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
    """From the first chapter to the fastest, in one language."""

    by: str  # the language
    first: Entry  # both ends, and what gained most on the way
    best: Entry
    largest: Entry
    times: Estimate  # how many times as fast the best is as the first

    def __str__(self) -> str:
        rates = (number(entry.rate / 1e6) for entry in (self.first, self.best))
        return f"{' → '.join(rates)} MB/s, {number(self.times.median)} times"

    @property
    def details(self) -> tuple[str, str, str]:
        """Which chapters these are, what gained most, and how far the rounds are apart."""
        chapter, gain = self.largest.chapter, self.largest.gain
        assert chapter is not None
        assert gain is not None
        return (
            f"from chapter {_named(self.first)} to chapter {_named(self.best)}",
            f"largest step: {chapter.change}, {number(gain.median)} times",
            f"{self.times.spread} of the ratios within rounds: {ends(self.times)} times",
        )


def _named(entry: Entry) -> str:
    assert entry.chapter is not None
    return f"{entry.chapter.number} ({entry.chapter.title})"


def headlines(found: Sequence[Entry]) -> list[Headline]:
    """Return what is to be said first, for each language in which a gain is known."""
    alike = [entry for entry in found if entry.section == found[0].section]
    made = (_headline([entry for entry in alike if entry.by == by]) for by in _LANGUAGES.values())
    return [headline for headline in made if headline is not None]


def _headline(found: list[Entry]) -> Headline | None:
    if not found or found[0].row.last.chapter == _FIRST:
        return None
    first, best = found[0], max(found, key=lambda entry: entry.rate)
    times = _times(first.row, best.row)
    way = [entry for entry in found[: found.index(best) + 1] if entry.gain is not None]
    if times is None or not way:
        return None
    largest = max(way, key=lambda entry: entry.gain.median if entry.gain else 0.0)
    return Headline(first.by, first, best, largest, times)


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
        by = others.get(sample.implementation) or _LANGUAGES[sample.language]
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


def entries_table(found: Sequence[Entry], recording: Recording, *, brief: bool) -> Table[Entry]:
    """Return a tour's table: all of it for a page, or what terminals have room for."""
    its = spread(recording)
    names: list[Column[Entry]] = [
        Column("chapter", lambda entry: entry.title, is_words=True),
        Column("by", lambda entry: entry.by, is_words=True),
    ]
    gain: list[Column[Entry]] = [
        Column("gain", lambda entry: entry.gain, lambda gain: f"{_TIMES}{number(gain.median)}"),
        Column(its, lambda entry: entry.gain, ends),
    ]
    packets: list[Column[Entry]] = [
        Column("packets claimed", lambda entry: _count(entry.row.last.packets)),
        Column("counted", _counted),
    ]
    if brief:
        gain.pop()
        packets = [Column("packets", lambda entry: f"{_count(entry.row.last.packets)} ✓")]
    values: list[Column[Entry]] = [
        *estimate(("MB/s", its), lambda entry: entry.row.rate, lambda rate: number(rate / 1e6)),
        *gain,
        Column("share", lambda entry: entry.share, lambda share: percent(share.median)),
        *packets,
        Column("calls", lambda entry: entry.row.calls_per_heap, number),
        Column("CPU", lambda entry: entry.row.cpu_s_per_gb, number),
    ]
    return Table(
        names, values, found, lambda entry: _failed(entry.row.failure), lambda entry: entry.section
    )


def _count(packets: int | None) -> str:
    return NOTHING if packets is None else thousands(packets)


def _counted(entry: Entry) -> str:
    last = entry.row.last
    return f"{_count(last.counted_packets if isinstance(last, Sent) else None)} ✓"


def _failed(failure: str | None) -> str | None:
    return failure and f"✗ failed: {failure}"


def spread(recording: Recording) -> str:
    """Name what is given with a median: an interval takes more rounds than a range."""
    return stats.spread([recording.header.settings["rounds"]])


def where(recording: Recording) -> str:
    lab = recording.header.lab
    return f"{lab['kind']}, MTU {lab['mtu']}"


def notes(recording: Recording) -> list[str]:
    """Say what is in the columns of a tour's table, and what is not."""
    header, samples = recording.header, recording.samples
    peers = [sample for sample in samples if sample.implementation == PEER and sample.packets]
    is_counted = not over_loopback(header.lab)
    said = worded(
        Path(__file__).with_name("notes.jinja"),
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
        ROUNDS=ROUNDS_FOR_A_CLAIM,
    )
    return str(said).splitlines()


# ---- What arrived ----


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
        return _LANGUAGES[self.language]

    @property
    def summary(self) -> str:
        """Who received from whom, and over what."""
        return (
            f"chapter {self.receiver} receives {self.heaps} heaps of 1 MiB from chapter"
            f" {self.sender}, over a link ({self.way}) of {number(self.bits_per_s / 8e6)} MB/s"
        )

    @property
    def shown_values(self) -> list[str]:
        """The receiver's lines, with a mark where some are left out."""
        *first, last = self.values or ("",)
        return [*first, "…", last] if first else [*self.values]


def read_arrivals(recording: Recording) -> list[Arrival]:
    """Return what arrived on a tour; nothing where nothing could."""
    try:
        return msgspec.convert(recording.header.settings.get(ARRIVALS, []), list[Arrival])
    except msgspec.ValidationError as error:
        raise RecordError(f"{recording.header.experiment}: {ARRIVALS}: {error}") from None


def arrivals_table(found: Sequence[Arrival]) -> Table[Arrival]:
    values: list[Column[Arrival]] = [
        Column("heaps whole", lambda arrival: arrival.complete, thousands),
        Column("packets sent", lambda arrival: arrival.sent, thousands),
        Column("received", lambda arrival: arrival.received, thousands),
        Column("lost on the way", lambda arrival: arrival.lost, thousands),
        Column("no room in the socket", lambda arrival: f"{thousands(arrival.dropped)} ✓"),
    ]
    names: list[Column[Arrival]] = [Column("by", lambda arrival: arrival.by, is_words=True)]
    return Table(names, values, found, lambda arrival: _failed(arrival.failure))


def arrivals_text(found: Sequence[Arrival]) -> str:
    """Write what arrived for a terminal; nothing where nothing could."""
    if not found:
        return ""
    values = [f"  {plain(value)}" for value in found[0].shown_values]
    lines = [f"What arrives: {plain(found[0].summary)}", str(arrivals_table(found)), "", *values]
    return "\n".join([*lines, *[""] * bool(values), f"✓: {PROVED}."])
