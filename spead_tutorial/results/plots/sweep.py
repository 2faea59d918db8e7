# SPDX-License-Identifier: BSD-3-Clause
"""Rates over the size of heaps: what was before, what it became, and the limit."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import Estimate
from spead_tutorial.results.plots import curves, facts
from spead_tutorial.results.plots.picture import Picture
from spead_tutorial.results.plots.theme import NAMES, role_of
from spead_tutorial.results.units import bytes_text, number, size

#: What a rate is of.
SENT = "payload sent in MB/s"

_LIMIT = "bare calls"
_Points: TypeAlias = Mapping[int, facts.Point]
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

    There is a panel for each pair that the recording has, with the limit. What it does not have is
    left out.
    """

    finding: str  # how its title begins, with a verb: "Heaps built once make"
    pairs: tuple[Compared, ...]
    names: tuple[str, str]  # what stands at the ends of the lines: before, and after
    sweep: str  # which sweep is to be run where a recording has none of them
    limit: Series | None = None  # bare system calls of the same recording
    # of two in the same frame, between which one can flick, which one: "before", where only what
    # was before is drawn, or "after"
    part: str = ""
    was: str = ""  # how the title of the first of two begins: "A call for each heap sends"
    subtitle: str = ""  # what the picture is of
    largest: int | None = None  # sizes above it are left out
    rate: str = SENT  # what the rates are of
    at_once: int = 0  # heaps that are to be in a cache together; 0 where no cache is drawn

    def __call__(self, recording: Recording) -> Picture:
        """Return the picture of a recording."""
        panels = dict(self._panels(recording))
        drawn = [shown.points for lines in panels.values() for shown in lines]
        most = facts.highest(point for points in drawn for point in points.values())
        scale = curves.sizes({x for points in drawn for x in points})
        ends = self._ends(recording, scale)
        rows = []
        for n, (pair, lines) in enumerate(panels.items(), 1):
            found = [one.curve(pair, hidden=self.part == "before") for one in lines]
            unit = self.rate if n == 1 else ""
            name = ": ".join(filter(None, (pair.name, unit)))
            panel = curves.Curves(name, found, scale, most, is_last=n == len(panels), written=0.16)
            words = ends if n == 1 else dict.fromkeys(ends, "")
            rows.append([dataclasses.replace(panel, uprights=words)])
        shown = {one.series for lines in panels.values() for one in lines}
        there = self.limit is not None and self.limit in shown and facts.is_sender(self.limit)
        bare = self.limit if there else None
        limit = f"{_LIMIT}: {facts.bare_name(bare.variant)}" if bare is not None else ""
        of = self.gains(recording), self._rates(panels), limit
        title, subtitle = self._words(*of, self.part == "before")
        return Picture(
            title,
            subtitle,
            rows,
            "Lines: the rate in MB/s against the size of a heap.",
            facts.caption(recording, curves.SHOWN, shown),
            beside=self._words(*of, self.part != "before") if self.part else ("", ""),
        )

    def _ends(self, recording: Recording, scale: curves.Scale) -> dict[float, str]:
        """Return where heaps begin of which a cache does not hold those in use at once."""
        caches = recording.header.machine.get("caches_bytes") or {}
        held = [name for name in ("L2", "L3") if self.at_once and caches.get(name)]
        return {scale.place(caches[one] / self.at_once): f"more than {one} holds" for one in held}

    def gains(self, recording: Recording) -> dict[str, _Gains]:
        """Return the gain at each size, by whose it is."""
        found = {}
        for pair, lines in self._panels(recording):
            by_series = {one.series: one.points for one in lines}
            if pair.before in by_series and pair.after in by_series:
                gains = facts.gains(by_series[pair.before], by_series[pair.after])
                found[_where(pair)] = gains
        return {where: gains for where, gains in found.items() if gains}

    def _rates(self, panels: Mapping[Compared, list["_Shown"]]) -> dict[str, _Gains]:
        """Return the rate at each size of what was before, by whose it is."""
        return {
            _where(pair): {x: point.estimate() for x, point in one.points.items()}
            for pair, lines in panels.items()
            for one in lines
            if one.series == pair.before
        }

    def _panels(self, recording: Recording) -> Iterator[tuple[Compared, list["_Shown"]]]:
        """Find what the recording has of what is wanted."""
        wanted = {pair.after for pair in self.pairs}
        there = wanted & {sample.series for sample in recording.samples}
        facts.require(there, self.sweep, *(pair.after.program for pair in self.pairs))
        for pair in self.pairs:
            found = facts.points(filter(self._chosen(pair), recording.samples))
            if pair.after in found:
                before, after = self.names
                labels = {pair.after: after, pair.before: before}
                labels |= {self.limit: _LIMIT} if self.limit is not None else {}
                yield (
                    pair,
                    [
                        _Shown(series, label, found[series])
                        for series, label in labels.items()
                        if series in found
                    ],
                )

    def _chosen(self, pair: Compared) -> Callable[[Sample], bool]:
        return lambda one: (
            one.heap_size <= (self.largest or one.heap_size)
            and one.packet_size == (pair.packet_size or one.packet_size)
        )

    def _words(
        self, gains: Mapping[str, _Gains], rates: Mapping[str, _Gains], limit: str, is_before: bool
    ) -> tuple[str, str]:
        """Say what was gained most, and below it what was lost; or how fast it was before."""
        part = ("before" if is_before else "after") if self.part else ""
        subtitle = "; ".join(filter(None, (", ".join(filter(None, (self.subtitle, part))), limit)))
        ends = facts.extremes(gains)
        if is_before:
            x = ends[0] if ends else max((x for some in rates.values() for x in some), default=0)
            return f"{self.was} {_said(rates, x)}", subtitle
        if not gains:
            return f"{self.finding} rates that nothing is compared with", subtitle
        if not ends:
            return f"{self.finding} {facts.NO_DIFFERENCE}", subtitle
        said = [facts.told({who: some.get(x) for who, some in gains.items()}) for x in ends]
        lost = [f"{size(x)} heaps: {words}" for x, words in zip(ends[1:], said[1:], strict=True)]
        subtitle = ". ".join(filter(None, (subtitle, *lost)))
        return f"{self.finding} {size(ends[0])} heaps {said[0]}", subtitle


@dataclasses.dataclass(frozen=True, slots=True)
class _Shown:
    """A line of a panel."""

    series: Series
    label: str
    points: _Points

    def curve(self, pair: Compared, hidden: bool) -> curves.Curve:
        name = f"{pair.name}, {self.label}"
        is_before, is_after = self.series == pair.before, self.series == pair.after
        role = role_of(self.series)
        return curves.curve(
            name, self.label, role, self.points, is_before=is_before, is_hidden=hidden and is_after
        )


def _where(pair: Compared) -> str:
    return pair.where or f"in {NAMES[pair.after.language]}"


def _said(rates: Mapping[str, _Gains], x: int) -> str:
    """Say how fast heaps of a size were, where."""
    known = {where: one for where, some in rates.items() if (one := some.get(x)) is not None}
    said = [
        f"{number(float(f'{rate.median:.3g}'))} {'MB/s ' * (not n)}{where}"
        for n, (where, rate) in enumerate(known.items())
    ]
    return f"{size(x)} heaps at {', '.join(said)}" if said else "at a rate that is not known"


def compared(before: tuple[str, str], after: tuple[str, str]) -> tuple[Compared, ...]:
    """Return a pair for each language, of programs and their variants."""
    return tuple(
        Compared(
            NAMES[language],
            Series(OURS, language, *before),
            Series(OURS, language, *after),
        )
        for language in MEASURED
    )


#: The socket is filled while the receiver is stopped: what is timed is the receiver alone.
_HOW = "receive", "in turns"

receiving = Sweep(
    "Compared with spead2 in C++, C receives",
    tuple(
        Compared(
            f"packets of {bytes_text(n)}",
            Series("spead2-source", "c", *_HOW),
            Series(OURS, "c", *_HOW),
            f"in packets of {n}",
            n,
        )
        for n in (1472, 9000)
    ),
    ("spead2 in C++", "C"),
    "receive",
    limit=Series("ceiling", "c", *_HOW),
    subtitle="Receivers that empty a full socket; spead2 built from its source",
    rate="payload received in MB/s",
)
