# SPDX-License-Identifier: BSD-3-Clause
"""What a tour came to: its rows, what each of them gained, and how near it is to the ceiling."""

import dataclasses
from collections.abc import Callable, Iterable

from spead_tutorial import stats
from spead_tutorial.catalogue import BESIDE_LADDER, LADDER, Chapter, find_chapter
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.place import over_loopback
from spead_tutorial.measure.summary import ROUNDS_FOR_A_CLAIM, Row, rows
from spead_tutorial.records import OURS, Recording, Sample
from spead_tutorial.stats import FEWEST, Estimate
from spead_tutorial.units import number, size

__all__ = [
    "NOTHING",
    "Headline",
    "Line",
    "Section",
    "ends",
    "headlines",
    "middle",
    "notes",
    "sections",
    "spread",
    "where",
    "written",
]

#: What a table has where there is no value.
NOTHING = "—"

_LANGUAGES = {"python": "Python", "c": "C", "cpp": "C++"}
#: The chapter whose clock is that of the whole program: nothing is compared with it.
_FIRST = 2
#: The chapter whose program fills nothing: none of a tour's bare loops does the same.
_RECORDED = 15
_ORDER = list(dict.fromkeys(rung.program for rung in (*LADDER, *BESIDE_LADDER)))
_BESIDE = [rung.program for rung in BESIDE_LADDER]


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """A row, with what it is compared with."""

    row: Row  # what was measured
    by: str  # whose program it is: a language of ours, the peer, or the bare loops
    gain: Estimate | None = None  # how many times as fast it is as the line before it by the same
    share: Estimate | None = None  # its part of the rate of the bare loops of as many streams

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


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """Lines that can be compared with each other."""

    title: str  # what they have in common
    lines: tuple[Line, ...]  # in the order of the chapters


@dataclasses.dataclass(frozen=True, slots=True)
class Headline:
    """From the first chapter to the fastest, in one language."""

    by: str  # the language
    first: Line  # both ends, and the line on the way that gained most
    best: Line
    largest: Line
    times: Estimate  # how many times as fast the best is as the first

    def __str__(self) -> str:
        ends = (_median(line) / 1e6 for line in (self.first, self.best))
        return f"{' → '.join(map(number, ends))} MB/s, {number(self.times.median)} times"

    @property
    def chapters(self) -> str:
        """Which chapters these are."""
        return f"from chapter {_named(self.first)} to chapter {_named(self.best)}"

    @property
    def rounds(self) -> str:
        """How far the rounds are apart: it is within them that rates are compared."""
        return f"{_spread(self.times.n)} of the ratios within rounds: {ends(self.times)} times"

    @property
    def largest_step(self) -> str:
        """What gained most on the way, and how much."""
        chapter, gain = self.largest.chapter, self.largest.gain
        assert chapter is not None
        assert gain is not None
        return f"largest step: {chapter.change}, {number(gain.median)} times"


def _named(line: Line) -> str:
    assert line.chapter is not None
    return f"{line.chapter.number} ({line.chapter.title})"


def _median(line: Line) -> float:
    return 0.0 if line.row.rate is None else line.row.rate.median


def headlines(found: Iterable[Section]) -> list[Headline]:
    """Return what is to be said first, for each language in which a gain is known.

    The start is the first chapter with a clock around its loop alone, the end the fastest of those
    that send the same data in heaps of the same size.
    """
    lines = next((section.lines for section in found), ())
    headings = (_headline([one for one in lines if one.by == by]) for by in _LANGUAGES.values())
    return [heading for heading in headings if heading is not None]


def _headline(lines: list[Line]) -> Headline | None:
    if not lines or lines[0].row.last.chapter == _FIRST:
        return None
    first, best = lines[0], max(lines, key=_median)
    times = _times(first.row, best.row)
    way = [line for line in lines[: lines.index(best) + 1] if line.gain is not None]
    if times is None or not way:
        return None
    largest = max(way, key=lambda line: line.gain.median if line.gain else 0.0)
    return Headline(first.by, first, best, largest, times)


# ---------------------------------------------------------------------------------------
# Rows, side by side


def sections(recording: Recording) -> list[Section]:
    """Sort a tour's rows, and compare them: by ratios within rounds."""
    by_title: dict[str, list[Row]] = {}
    found = sorted(rows(recording), key=_place)
    bare = {_size_and_streams(row): row for row in found if row.last.program == CEILING}
    for row in found:
        by_title.setdefault(_section(row.last), []).append(row)
    return [Section(title, _lines(its, bare)) for title, its in by_title.items()]


def _place(row: Row) -> tuple[int, int, int, int, bool]:
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


def _lines(its: list[Row], bare: dict[tuple[int, int], Row]) -> tuple[Line, ...]:
    before: dict[str, Row] = {}
    lines = []
    for row in its:
        sample = row.last
        by = _by(sample)
        gains = sample.program not in (CEILING, *_BESIDE) and sample.chapter != _FIRST
        fills = sample.chapter not in (_FIRST, _RECORDED)
        gain = _times(before.get(by), row) if gains else None
        share = _times(bare.get(_size_and_streams(row)), row) if fills else None
        lines.append(Line(row, by, gain, share))
        before[by] = row
    return tuple(lines)


def _by(sample: Sample) -> str:
    others = {PEER: PEER, CEILING: "bare"}
    return others.get(sample.implementation) or _LANGUAGES[sample.language]


def _size_and_streams(row: Row) -> tuple[int, int]:
    return row.last.heap_size, row.last.streams


def _times(before: Row | None, after: Row) -> Estimate | None:
    """Return how many times as fast it became within rounds; None where one has no rate."""
    if before is None or before.failure is not None or after.failure is not None:
        return None
    old, new = ({one.round: one.rate for one in row.samples if one.rate} for row in (before, after))
    return stats.gain(old, new) if old.keys() & new.keys() else None


# ---------------------------------------------------------------------------------------
# In words


def written(value: float | None) -> str:
    """Write a number as the site does."""
    return NOTHING if value is None else number(value)


def middle(estimate: Estimate | None, unit: float = 1.0) -> str:
    """Write a median."""
    return written(None if estimate is None else estimate.median / unit)


def ends(estimate: Estimate | None, unit: float = 1.0) -> str:
    """Write the ends of an interval, or of a range."""
    if estimate is None:
        return NOTHING
    return "\N{EN DASH}".join(number(end / unit) for end in (estimate.low, estimate.high))


def spread(recording: Recording) -> str:
    """Name what is given beside a median: an interval takes more rounds than a range."""
    return _spread(recording.header.settings["rounds"])


def _spread(rounds: int) -> str:
    return "range" if rounds < FEWEST else "95 % interval"


def where(recording: Recording) -> str:
    """Say what a tour sent to."""
    lab = recording.header.lab
    return f"{lab['kind']}, MTU {lab['mtu']}"


def notes(recording: Recording) -> list[str]:
    """Say what is in the columns of a tour's table, and what is not."""
    rounds = recording.header.settings["rounds"]
    told = [
        f"MB/s: 10⁶ bytes of samples a second, median of {rounds} rounds, and their"
        f" {spread(recording)}.",
        f"Sent to: {where(recording)}.",
        "gain: times as fast as the line above it in the same language, by ratios within rounds.",
        *_beside(recording),
        "packets: those that the last run says it sent. ✓: none failed, and in every run the"
        " counters bear it out.",
        "calls: system calls to send a heap. CPU: seconds for a GB.",
    ]
    if rounds < ROUNDS_FOR_A_CLAIM:
        told.append(
            f"Fewer than {ROUNDS_FOR_A_CLAIM} rounds: a difference of some percent may be chance"
            " (--full has more)."
        )
    if _has(recording, lambda sample: sample.chapter == _FIRST):
        told.append(
            f"Chapter {_FIRST} sends to loopback, at most 100 MB/s, and its time is that of the"
            " whole program."
        )
    return told


def _has(recording: Recording, wanted: Callable[[Sample], bool]) -> bool:
    return any(wanted(sample) for sample in recording.samples)


def _beside(recording: Recording) -> list[str]:
    """Say what the chapters were measured beside, and why they were not beside more."""
    told = []
    if _has(recording, lambda sample: sample.program == CEILING):
        told.append(
            "share: of the rate of bare loops, one thread for each stream, which fills and sends."
        )
    peers = [one for one in recording.samples if one.implementation == PEER and one.packets]
    if peers:
        version = recording.header.versions.get(PEER) or ""
        counted = not over_loopback(recording.header.lab)
        alone = counted and all(one.counted_packets == one.packets for one in peers)
        offload = "; it has no segmentation offload" if alone else ""
        told.append(f"{PEER}: the same loops with version {version}, as it is installed{offload}.")
    return told + [str(reason) for reason in recording.header.settings.get("without", ())]
