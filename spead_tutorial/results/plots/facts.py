# SPDX-License-Identifier: BSD-3-Clause
"""What a recording has to say in a picture: of each point, in the title, and at the foot."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from spead_tutorial._shown import shown_lines
from spead_tutorial.measure import search, stats
from spead_tutorial.measure.records import OURS, Header, Recording, Sample, Series, joined, words_of
from spead_tutorial.measure.stats import FEWEST, Estimate, differs
from spead_tutorial.results.plots.theme import NAMES
from spead_tutorial.results.units import size, times

_Place = TypeVar("_Place")
Value = Callable[[Sample], float | None]


def rate(sample: Sample) -> float | None:
    """Return a sample's rate in MB/s (10⁶ bytes of payload a second)."""
    return None if sample.rate is None else sample.rate / 1e6


def faults(sample: Sample) -> float | None:
    """Return the page faults of a heap."""
    if sample.failure is not None or sample.page_faults is None:
        return None
    return sample.page_faults / sample.heaps


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """The samples of one case."""

    samples: tuple[Sample, ...]  # those that count

    @property
    def failed(self) -> int:
        """How many of them failed; with any, the point has no median."""
        return sum(sample.failure is not None for sample in self.samples)

    @property
    def key(self) -> tuple[str, ...]:
        """What its samples have in common with those of other sizes of heaps, as a page has it."""
        first = self.samples[0]
        searched = ["searched"] * search.is_search(first)
        return (*dataclasses.astuple(first.series), str(first.packet_size), *searched)

    def values(self, value: Value = rate) -> dict[tuple[int, int], float]:
        """Return what they have, by machine and round; those that failed have nothing."""
        values_by_round: dict[tuple[int, int], float] = {}
        for sample in self.samples:
            x, key = value(sample), (sample.source, sample.round)
            if key in values_by_round and x is not None:
                raise ValueError(f"the recording has several samples of {sample.case} in a round")
            if x is not None:
                values_by_round[key] = x
        return values_by_round

    @property
    def median(self) -> float:
        """The median rate; 0 where there is none."""
        estimate = self.estimate()
        return 0.0 if estimate is None else estimate.median

    def estimate(self, value: Value = rate) -> Estimate | None:
        """Return their median; None where one of them failed, or none has the value."""
        values = self.values(value)
        return stats.median(list(values.values())) if values and not self.failed else None


def points(samples: Iterable[Sample], x: str = "heap_size") -> dict[Series, dict[int, Point]]:
    """Sort the samples that count into series, and those by size."""
    found: dict[Series, dict[int, list[Sample]]] = {}
    for sample in samples:
        if not sample.warm_up:
            found.setdefault(sample.series, {}).setdefault(getattr(sample, x), []).append(sample)
    return {
        series: {size: Point(tuple(some)) for size, some in sorted(sizes.items())}
        for series, sizes in found.items()
    }


def gain(before: Point | None, after: Point | None) -> Estimate | None:
    """Return how many times as fast it became within rounds; None where one has no rate."""
    if before is None or after is None or before.failed or after.failed:
        return None
    old, new = before.values(), after.values()
    return stats.gain(old, new) if old.keys() & new.keys() else None


def gain_each(
    before: Mapping[_Place, Point], after: Mapping[_Place, Point]
) -> dict[_Place, Estimate | None]:
    """Return the gain of each language, or at each size: None where one has no rate."""
    return {place: gain(before.get(place), point) for place, point in after.items()}


def gains(before: Mapping[int, Point], after: Mapping[int, Point]) -> dict[int, Estimate | None]:
    """Return the gain at each size; nothing where none has one."""
    found = gain_each(before, after)
    return found if any(found.values()) else {}


def ends(estimates: Iterable[Estimate | None]) -> list[float]:
    """Return the ends of those that are known, for a scale that has room for them."""
    return [
        end
        for estimate in estimates
        if estimate is not None
        for end in (estimate.low, estimate.high)
    ]


def highest(found: Iterable[Point], value: Value = rate) -> float:
    """Return the highest value that a sample of some points has; 0 where none has one."""
    return max((x for point in found for x in point.values(value).values()), default=0.0)


def top(recording: Recording) -> float:
    """Return the highest rate of a recording in MB/s, so that its pictures have one scale."""
    rates = (rate(sample) for sample in recording.samples if not sample.warm_up)
    return max((x for x in rates if x is not None), default=1.0)


def require(found: Mapping[Series, object], wanted: Iterable[Series], sweep: str) -> None:
    """Raise `ValueError` where a recording has nothing of what a picture is about."""
    all_series = list(wanted)
    if not any(series in found for series in all_series):
        programs = " or ".join(dict.fromkeys(series.program for series in all_series))
        raise ValueError(f"the recording has no sample of {programs}: python -m bench run {sweep}")


# ---- The bare system calls ----


def is_bare(series: Series) -> bool:
    """Return whether it is one of the loops."""
    return series.implementation == "ceiling"


def bare_name(variant: str) -> str:
    """Say who sends in a loop and what is done with the bytes, as a record names what it is not."""
    words = words_of(variant)
    streams = [word for word in words if word.endswith("streams")]
    threads = [word for word in words if word.endswith(("thread", "threads"))]
    work = "read in place" if "zero-copy" in words else "copy"
    fill = "" if "no fill" in words else "fill and "
    pages = ["huge pages"] if "huge pages" in words else []
    return joined(*(streams or threads), fill + work, *pages)


# ---- The title: written by people, with slots for what a record says ----

NO_DIFFERENCE = "no difference found"


def gain_text(gain: Estimate) -> str:
    """Say how many times as fast something became."""
    return times(gain.median) if differs(gain) else NO_DIFFERENCE


def gained(gains: Mapping[str, Estimate | None]) -> str:
    """Say how many times as fast something became, and whose gain that is."""
    owners: dict[str, list[str]] = {}
    for owner, gain in gains.items():
        if gain is not None:
            owners.setdefault(gain_text(gain), []).append(NAMES.get(owner, owner))
    if owners.keys() <= {NO_DIFFERENCE}:
        return NO_DIFFERENCE if owners else "not known"
    return ", ".join(f"{words} ({', '.join(names)})" for words, names in owners.items())


def strongest(gains: Mapping[_Place, Mapping[str, Estimate | None]]) -> _Place:
    """Return where the largest difference is that can be told; where none can, the last place."""

    def difference(place: _Place) -> float:
        known = (gain for gain in gains[place].values() if gain is not None and differs(gain))
        return max((abs(math.log(gain.median)) for gain in known), default=0.0)

    return max(reversed(list(gains)), key=difference)


def over_sizes(
    gains: Mapping[str, Mapping[int, Estimate | None]],
    words: Callable[[Mapping[str, Estimate | None]], str] = gained,
) -> dict[str, str]:
    """Return what fills the slots of a title, of gains by whose they are and by size."""
    sizes = sorted({x for by_size in gains.values() for x in by_size})
    at = {x: {name: by_size.get(x) for name, by_size in gains.items()} for x in sizes}
    slots = {size(x): words(at[x]) for x in sizes if any(at[x].values())}
    if slots:
        x = strongest(at)
        most = gained(at[x])
        slots["most"] = most if most == NO_DIFFERENCE else f"{most} at {size(x)}"
    return slots


def fill(title: str, slots: Mapping[str, str]) -> str:
    """Fill the slots of a title; where one is not known, only what is before the colon is left."""
    try:
        return title.format_map(slots)
    except KeyError:
        return title.partition(":")[0]


# ---- The foot: where the numbers come from ----

_BARS = "median of {rounds} rounds, dots: samples, line: {spread}"
_PEER = "spead2"
_COMMAND = "make figures"


def caption(recording: Recording, shown: str = _BARS, of: Collection[Series] | None = None) -> str:
    """Say where the numbers of a recording come from: what a picture shows, a gap, and the rest."""

    def each(write: Callable[[Header], str | None]) -> list[str]:
        return _distinct(filter(None, map(write, recording.headers)))

    has_peer = any(sample.implementation.startswith(_PEER) for sample in recording.samples)
    rest = [
        *each(lambda header: f"Linux {header.machine.get('kernel')}"),
        f"sent to: {_destinations(recording)}{_exceptions(recording)}",
        *each(lambda header: f"governor {header.machine.get('governor') or 'unknown'}"),
        *each(_software),
        *(each(_peer) if has_peer else []),
        *each(lambda header: header.versions.get("compiler") or "unknown compiler"),
        *each(lambda header: f"revision {header.revision}" if header.revision else None),
        recording.header.time[:10],
        f"drawn by: {recording.header.settings.get('drawn_by') or _COMMAND}",
    ]
    first = [*_machines(recording), *_rounds(recording, shown, of)]
    both = (" \N{MIDDLE DOT} ".join(parts) for parts in (first, rest))
    return shown_lines(" \N{MIDDLE DOT}\n\n".join(both))


def _distinct(texts: Iterable[str]) -> list[str]:
    """Join what differs from machine to machine."""
    return [", ".join(distinct)] if (distinct := list(dict.fromkeys(texts))) else []


def _machines(recording: Recording) -> list[str]:
    """Name the machines: different ones have different facts, whatever their load was."""
    different: list[dict[str, object]] = []
    for header in recording.headers:
        facts = {key: value for key, value in header.machine.items() if key != "load"}
        different += [facts] * (facts not in different)
    count = [f"{len(different)} machines"] if len(different) > 1 else []
    return count + _distinct(map(_machine, different))


def _machine(facts: dict[str, object]) -> str:
    virtual = facts.get("virtualisation")
    cores = f"{facts.get('cpu') or 'unknown CPU'}, {facts.get('usable_cores')} cores"
    return cores + (f" ({virtual})" if virtual not in (None, "none") else "")


def _software(header: Header) -> str:
    return f"Python {header.versions.get('python')}, NumPy {header.versions.get('numpy')}"


def _peer(header: Header) -> str | None:
    return (version := header.versions.get(_PEER)) and f"{_PEER} {version}"


def _destinations(recording: Recording) -> str:
    labs = (header.lab for header in recording.headers)
    return " or ".join(dict.fromkeys(f"{lab.get('kind')}, MTU {lab.get('mtu')}" for lab in labs))


def _exceptions(recording: Recording) -> str:
    """Name the chapters that sent to loopback, or there too, though there was a lab."""
    if all(header.lab.get("kind") == "loopback" for header in recording.headers):
        return ""  # that is what has been said
    kinds: dict[int, set[bool]] = {}
    for sample in recording.samples:
        if sample.implementation == OURS and sample.chapter:
            kinds.setdefault(sample.chapter, set()).add(sample.kind == "loopback")
    return "".join(
        f" (chapter {chapter}: loopback{' too' * (False in places)})"
        for chapter, places in sorted(kinds.items())
        if True in places
    )


def _rounds(recording: Recording, shown: str, of: Collection[Series] | None) -> list[str]:
    """Say how many samples a median of some series is of, and what shows how far they differ."""
    if "{" not in shown:
        return [shown]
    counts = Counter(
        (sample.series, sample.heap_size, sample.packet_size)
        for sample in recording.samples
        if not sample.warm_up and (of is None or sample.series in of)
    ).values()
    if not counts:
        return []
    fewest, most = min(counts), max(counts)
    spread = "their range" if most < FEWEST else f"95 % interval (range below {FEWEST})"
    if fewest >= FEWEST:
        spread = "95 % interval"
    rounds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return [shown.format(rounds=rounds, spread=spread)]
