# SPDX-License-Identifier: BSD-3-Clause
"""What a recording has to say in a picture: of each point, in the title, and at the foot."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from spead_tutorial._shown import shown_lines
from spead_tutorial.chapters.catalogue import MEASURED, NAMES
from spead_tutorial.measure import search, stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Series
from spead_tutorial.measure.stats import FEWEST, Estimate, differs

_Place = TypeVar("_Place")
_Value = TypeVar("_Value")
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

    def values(self, value: Value = rate) -> dict[int, float]:
        """Return what they have, by round; those that failed have nothing."""
        known = [(one.round, x) for one in self.samples if (x := value(one)) is not None]
        if len(known) > len(dict(known)):
            case = self.samples[0].case
            raise ValueError(f"the recording has several samples of {case} in a round")
        return dict(known)

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


def by_language(
    found: Mapping[Series, _Value], program: str, variant: str = ""
) -> dict[str, _Value]:
    """Return what a recording has of a program of ours, in the languages that are measured."""
    series = {language: Series(OURS, language, program, variant) for language in MEASURED}
    return {language: found[one] for language, one in series.items() if one in found}


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


def ends(estimates: Iterable[Estimate | None]) -> list[float]:
    """Return the ends of those that are known, for a scale that has room for them."""
    known = [estimate for estimate in estimates if estimate is not None]
    return [end for estimate in known for end in (estimate.low, estimate.high)]


def highest(found: Iterable[Point], value: Value = rate) -> float:
    """Return the highest value that a sample of some points has; 0 where none has one."""
    return max((x for point in found for x in point.values(value).values()), default=0.0)


def require(there: object, sweep: str, *programs: str) -> None:
    """Raise `ValueError` where a recording has nothing of what a picture is about."""
    if not there:
        wanted = " or ".join(dict.fromkeys(programs))
        raise ValueError(f"the recording has no sample of {wanted}: python -m bench run {sweep}")


# ---- Titles: sentences of what a record says ----

#: What is said where no interval leaves out 1.
NO_DIFFERENCE = "no difference that can be told"
#: A gain that a title speaks of is at least so large, and a loss too.
_TOLD = 0.05


def told(gains: Mapping[str, Estimate | None]) -> str:
    """Say how many times as fast something became, and in which language or where: most first.

    Of what is alike nothing is said, unless all is.
    """
    known = {where: gain for where, gain in gains.items() if gain is not None and differs(gain)}
    found: dict[tuple[str, str], list[str]] = {}
    for where, gain in sorted(known.items(), key=lambda one: -abs(math.log(one[1].median))):
        place = f"in {NAMES[where]}" if where in NAMES else where
        found.setdefault(_faster(gain.median), []).append(place)
    said, last = [], ""
    for (amount, what), places in found.items():
        of = _joined(places)
        said.append(f"{amount} {of}" if what == last else f"{amount} {what} {of}")
        last = what
    return ", ".join(said)


def _faster(gain: float) -> tuple[str, str]:
    if gain < 1:
        return f"{100 * (1 - gain):.0f} %", "slower"
    if gain < 1.95:
        return f"{100 * (gain - 1):.0f} %", "faster"
    return ("twice" if gain < 2.05 else f"{gain:.2g} times"), "as fast"


def _joined(places: Sequence[str]) -> str:
    """Join "in Python" and "in C" to "in Python and C"."""
    first, *others = places
    preposition = first.partition(" ")[0] + " "
    return " and ".join([first, *(one.removeprefix(preposition) for one in others)])


def extremes(gains: Mapping[str, Mapping[int, Estimate | None]]) -> list[int]:
    """Return the size at which most was gained, and that at which most was lost, if any."""
    known = [
        (gain.median, x)
        for by_size in gains.values()
        for x, gain in by_size.items()
        if gain is not None and differs(gain) and abs(gain.median - 1) >= _TOLD
    ]
    ends = [max(known), min(known)] if known else []
    return list(dict.fromkeys(x for n, (gain, x) in enumerate(ends) if (gain < 1) is bool(n)))


# ---- The foot: where the numbers come from ----

_BARS = "median of {rounds} rounds, line: {spread}"
_PEER = "spead2"


def caption(recording: Recording, shown: str = _BARS) -> str:
    """Say where the numbers of a recording come from: what a picture shows, a gap, and the rest."""
    header = recording.header
    machine, lab, versions = header.machine, header.lab, header.versions
    has_peer = any(sample.implementation.startswith(_PEER) for sample in recording.samples)
    rest = [
        f"Linux {machine.get('kernel')}",
        f"sent to: {lab.get('kind')}, MTU {lab.get('mtu')}{_exceptions(recording)}",
        f"governor {machine.get('governor') or 'unknown'}",
        f"Python {versions.get('python')}, NumPy {versions.get('numpy')}",
        *([f"{_PEER} {versions[_PEER]}"] if has_peer and versions.get(_PEER) else []),
        versions.get("compiler") or "unknown compiler",
        *([f"revision {header.revision}"] if header.revision else []),
        header.time[:10],
        f"drawn by: {header.settings.get('drawn_by') or 'make figures'}",
    ]
    first = [_machine(machine), *_rounds(recording, shown)]
    both = (" \N{MIDDLE DOT} ".join(parts) for parts in (first, rest))
    return shown_lines(" \N{MIDDLE DOT}\n\n".join(both))


def _machine(facts: dict[str, object]) -> str:
    virtual = facts.get("virtualisation")
    cpu = str(facts.get("cpu") or "unknown CPU")
    cpu = cpu.replace("(R)", "").removesuffix(" Processor")  # captions have little room
    cores = f"{cpu}, {facts.get('usable_cores')} cores"
    return cores + (f" ({virtual})" if virtual not in (None, "none") else "")


def _exceptions(recording: Recording) -> str:
    """Name the chapters that sent to loopback, or there too, though there was a lab."""
    if recording.header.lab.get("kind") == "loopback":
        return ""  # that is what has been said
    ours = (sample for sample in recording.samples if sample.implementation == OURS)
    chapters = {sample.chapter for sample in ours if sample.kind == "loopback" and sample.chapter}
    return "".join(f" (loopback in chapter {chapter})" for chapter in sorted(chapters))


def _rounds(recording: Recording, shown: str) -> list[str]:
    """Say how many samples a median is of, and what shows how far they differ."""
    if "{" not in shown:
        return [shown]
    counts = Counter(
        (sample.series, sample.heap_size, sample.packet_size)
        for sample in recording.samples
        if not sample.warm_up
    ).values()
    if not counts:
        return []
    fewest, most = min(counts), max(counts)
    spread = "their range" if most < FEWEST else f"95 % interval (range below {FEWEST})"
    if fewest >= FEWEST:
        spread = "95 % interval"
    rounds = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return [shown.format(rounds=rounds, spread=spread)]
