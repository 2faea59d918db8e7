# SPDX-License-Identifier: BSD-3-Clause
"""Rates over the size of heaps: what was before, what it became, and the limit."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED, NAMES
from spead_tutorial.measure.records import OURS, Recording, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.picture import Line, Picture
from spead_tutorial.results.plots.theme import role_of
from spead_tutorial.results.units import bytes_text, size

#: What a rate is of.
SENT = "payload sent in MB/s"

_LIMIT = "bare calls"
_Points: TypeAlias = Mapping[Series, Mapping[int, facts.Point]]
_Gains: TypeAlias = Mapping[int, Estimate | None]


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """What a panel holds against each other."""

    name: str  # of the panel, such as a language's
    before: Series
    after: Series
    where: str = ""  # the same in a sentence: "in C"
    packet_size: int | None = None  # of the samples; None for any


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """A picture of rates over sizes: what it shows of a recording; call it to draw it.

    There is a panel for each pair that the recording has, with the limit; others are left out.
    """

    finding: str  # how its title begins, with a verb: "Heaps built once make"
    pairs: tuple[Compared, ...]
    names: tuple[str, str]  # what stands at the ends of the lines: before, and after
    sweep: str  # which sweep is to be run where a recording has none of them
    limit: Series | None = None  # bare system calls of the same recording
    subtitle: str = ""  # what the picture is of
    rate: str = SENT  # what the rates are of
    at_once: int = 0  # heaps that are to be in a cache together; 0 where no cache is drawn

    def __call__(self, recording: Recording) -> Picture:
        """Return the picture of a recording."""
        panels = dict(self._panels(recording))
        found = [points for lines in panels.values() for points in lines.values()]
        heap_sizes = {x for points in found for x in points}
        scale = curves.sizes(heap_sizes)
        most = facts.highest(point for points in found for point in points.values())
        rows, held = [], self._held(recording, scale, max(heap_sizes, default=0))
        for n, (pair, lines) in enumerate(panels.items()):
            its = [self._curve(pair, series, points) for series, points in lines.items()]
            name = pair.name if n else f"{pair.name}: {self.rate}"
            last = n == len(panels) - 1
            rows.append([curves.Curves(name, its, scale, most, is_last=last, uprights=held)])
        shown = {series for lines in panels.values() for series in lines}
        title, subtitle = self._words(self.gains(recording), shown)
        what = "Lines: the rate in MB/s against the size of a heap."
        return Picture(title, subtitle, rows, what, facts.caption(recording, curves.SHOWN))

    def _held(self, recording: Recording, scale: curves.Scale, largest: float) -> dict[float, str]:
        """Return where heaps begin of which a cache does not hold those in use at once."""
        caches = recording.header.machine.get("caches_bytes") or {}
        held = [name for name in ("L2", "L3") if self.at_once and caches.get(name)]
        places = {name: caches[name] / self.at_once for name in held}
        return {
            scale.place(x): f"more than {name} holds" for name, x in places.items() if x < largest
        }

    def _curve(
        self, pair: Compared, series: Series, points: Mapping[int, facts.Point]
    ) -> curves.Curve:
        named = dict(zip((pair.before, pair.after), self.names, strict=True))
        label = named.get(series, _LIMIT)
        name, key = f"{pair.name}, {label}", next(iter(points.values())).key
        line = Line(name, role_of(series), key)
        return curves.Curve(line, points, label=label, is_before=series == pair.before)

    def gains(self, recording: Recording) -> dict[str, _Gains]:
        """Return the gain at each size, by whose it is."""
        found = {
            pair.where or pair.after.language: facts.gain_each(
                lines.get(pair.before, {}), lines[pair.after]
            )
            for pair, lines in self._panels(recording)
        }
        return {where: gains for where, gains in found.items() if any(gains.values())}

    def _panels(self, recording: Recording) -> Iterator[tuple[Compared, _Points]]:
        """Find what the recording has of what is wanted."""
        wanted = {pair.after for pair in self.pairs}
        there = wanted & {sample.series for sample in recording.samples}
        facts.require(there, self.sweep, *(pair.after.program for pair in self.pairs))
        for pair in self.pairs:
            points = facts.points(
                sample
                for sample in recording.samples
                if pair.packet_size in (None, sample.packet_size)
            )
            if pair.after in points:
                lines = (pair.after, pair.before, self.limit)
                yield pair, {one: points[one] for one in lines if one is not None and one in points}

    def _words(self, gains: Mapping[str, _Gains], shown: set[Series]) -> tuple[str, str]:
        """Say what was gained most, and below it what the limit is, and what was lost."""
        limits = [f"{_LIMIT}: {one.variant}" for one in shown if one.program == "ceiling"]
        subtitle = "; ".join(filter(None, (self.subtitle, *limits)))
        if not gains:
            return f"{self.finding} rates that nothing is compared with", subtitle
        ends = facts.extremes(gains)
        if not ends:
            return f"{self.finding} {facts.NO_DIFFERENCE}", subtitle
        said = [facts.told({who: some.get(x) for who, some in gains.items()}) for x in ends]
        lost = [f"{_heaps(x)}: {words}" for x, words in zip(ends[1:], said[1:], strict=True)]
        subtitle = ". ".join(filter(None, (subtitle, *lost)))
        return f"{self.finding} {_heaps(ends[0])} {said[0]}", subtitle


def compared(before: tuple[str, str], after: tuple[str, str]) -> tuple[Compared, ...]:
    """Return a pair for each language, of programs and their variants."""
    return tuple(
        Compared(NAMES[one], Series(OURS, one, *before), Series(OURS, one, *after))
        for one in MEASURED
    )


#: The socket is filled while the receiver is stopped: what is timed is the receiver alone.
_PEER, _OURS, _BARE = (
    Series(whose, "c", "receive", "in turns") for whose in ("spead2-source", OURS, "ceiling")
)

receiving = Sweep(
    "Compared with spead2 in C++, C receives",
    tuple(
        Compared(f"packets of {bytes_text(n)}", _PEER, _OURS, f"in packets of {n}", n)
        for n in (1472, 9000)
    ),
    ("spead2 in C++", "C"),
    "receive",
    limit=_BARE,
    subtitle="Receivers that empty a full socket; spead2 built from its source",
    rate="payload received in MB/s",
)


def _heaps(n_bytes: float) -> str:
    """Return heaps of a size as a title has them: 8 KiB heaps, or 256-byte heaps."""
    return f"{size(n_bytes)} heaps".replace(" bytes ", "-byte ")
