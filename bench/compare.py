# SPDX-License-Identifier: BSD-3-Clause
"""Whether one thing is faster than another: faster, slower, or one cannot tell.

Within a recording, ratios are taken within rounds. Between two recordings there are no common
rounds, and the whole machine may have become faster or slower in between. What did not change
between them, the peer and the bare loops, shows by how much: ratios are judged against that, and
what the peer and the loops differ by among themselves cannot be told from chance.
"""

import dataclasses
from collections.abc import Callable

from bench.status import Place, by_place, noise_floor, rates_by_round
from bench.sweeps import CEILING, PEERS
from spead_tutorial.measure.rounds import differences
from spead_tutorial.records import Header, RecordError, Recording, Sample
from spead_tutorial.stats import Estimate, gain, median, ratio

__all__ = ["Comparison", "Drift", "Verdict", "compare", "refuse_different_machines", "table"]

FASTER, SLOWER, CANNOT_TELL = "faster", "slower", "cannot tell"
_TOLD = (FASTER, SLOWER, CANNOT_TELL)
_SIGNIFICANCE = 0.05
_FEWEST_CONTROLS = 3
CONTROLS = (*PEERS, CEILING)


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """One point of a comparison.

    Parameters
    ----------
    place : tuple
        Series (of the second), heap size and packet size.
    before, after : Estimate or None
        Payload bytes/s; None for one that failed, or is not there.
    ratio : Estimate or None
        Of the second to the first; None where one of them has no rate.
    word : str
        ``"faster"``, ``"slower"``, ``"cannot tell"``, or why there is no ratio.
    """

    place: Place
    before: Estimate | None
    after: Estimate | None
    ratio: Estimate | None
    word: str


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """What changed between two recordings though nothing had been changed.

    Parameters
    ----------
    ratio : float
        Of what was measured again to what had been measured; 1 within a recording.
    spread : float
        How far single ones of these ratios are from it, as a share.
    why : str
        How one knows.
    """

    ratio: float
    spread: float
    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """All points of a comparison.

    Parameters
    ----------
    verdicts : tuple of Verdict
        In the order of sizes.
    threshold : float
        A ratio has to be away from one, and from the drift, by more than this.
    drift : Drift
        Of the machine.
    """

    verdicts: tuple[Verdict, ...]
    threshold: float
    drift: Drift


def refuse_different_machines(one: Recording, other: Recording) -> None:
    """Raise `RecordError` where two recordings are not of one machine and one kind of lab."""

    def places(recording: Recording) -> list[Header]:
        return list(recording.headers)

    first = one.header
    for header in [*places(one), *places(other)]:
        named = [name for name in differences(first, header) if name in ("machine", "lab")]
        if named:
            facts = sorted(
                f"{key}: {getattr(first, name).get(key)} and {value}"
                for name in named
                for key, value in getattr(header, name).items()
                if getattr(first, name).get(key) != value and key != "load"
            )
            raise RecordError(
                f"the records are of different machines ({'; '.join(facts)[:300]}):"
                " --different-machines compares them all the same"
            )


def compare(
    one: Recording,
    other: Recording,
    *,
    threshold: float,
    before: str | None = None,
    after: str | None = None,
) -> Comparison:
    """Hold one recording against another, or one implementation against another in one.

    Parameters
    ----------
    one, other : Recording
        The first and the second; the same one twice for implementations in it.
    threshold : float
        Ratios that are nearer to one than this are not told apart; a noisier machine raises it.
    before, after : str, optional
        Implementation of the first and of the second; by default each is held against itself.
    """
    first, second = _chosen(one, before), _chosen(other, after)
    pairs = [(place, _partner(place, first, before), theirs) for place, theirs in second.items()]
    pairs.sort(key=lambda pair: (pair[0][1:], str(pair[0][0])))
    drift = Drift(1.0, 0.0, "") if one is other else _drift(one, other)
    threshold = max(threshold, drift.spread)
    judge = _judge_within_rounds if one is other else _judge_apart
    judged = [_judge(place, mine, theirs, judge, threshold, drift) for place, mine, theirs in pairs]
    told = [index for index, (verdict, _) in enumerate(judged) if verdict.word in _TOLD]
    chances = dict(zip(told, _corrected([judged[index][1] for index in told]), strict=True))
    verdicts = tuple(
        dataclasses.replace(verdict, word=CANNOT_TELL)
        if chances.get(index, 0.0) > _SIGNIFICANCE
        else verdict
        for index, (verdict, _) in enumerate(judged)
    )
    return Comparison(verdicts, threshold, drift)


def _chosen(recording: Recording, implementation: str | None) -> dict[Place, list[Sample]]:
    """Return the samples of one implementation, or of all."""
    places = by_place(recording)
    if implementation is None:
        return places
    chosen = {p: samples for p, samples in places.items() if p[0].implementation == implementation}
    if not chosen:
        there = ", ".join(sorted({place[0].implementation for place in places}))
        raise RecordError(f"the record has nothing of {implementation!r}: it has {there}")
    return chosen


def _partner(
    place: Place, first: dict[Place, list[Sample]], implementation: str | None
) -> list[Sample]:
    """Find what a place is to be held against."""
    if implementation is None:
        return first.get(place, [])
    series, *sizes = place
    for candidate, samples in first.items():
        same_program = candidate[0].program in (series.program, "ceiling")
        same = candidate[0].language == series.language and list(candidate[1:]) == sizes
        if (
            same
            and same_program
            and (candidate[0].program == "ceiling") | (candidate[0].variant == series.variant)
        ):
            return samples
    return []


_Rates = dict[tuple[int, int], float]
_Judge = Callable[[_Rates, _Rates, Drift], tuple[Estimate, float]]


def _judge(
    place: Place,
    mine: list[Sample],
    theirs: list[Sample],
    judge: _Judge,
    threshold: float,
    drift: Drift,
) -> tuple[Verdict, float]:
    """Judge a point; also return how likely chance alone makes such a difference."""
    before, after = rates_by_round(mine), rates_by_round(theirs)
    first, second = (median(list(r.values())) if r else None for r in (before, after))
    if any(sample.failure is not None for sample in (*mine, *theirs)):
        return Verdict(place, first, second, None, "failed"), 0.0
    if not before or not after:
        return Verdict(place, first, second, None, "only in one"), 0.0
    estimate, p = judge(before, after, drift)
    # A point is not faster for having stayed where it was while the machine became slower.
    least, most = min(1.0, drift.ratio) / (1 + threshold), max(1.0, drift.ratio) * (1 + threshold)
    word = SLOWER if estimate.median < least else FASTER if estimate.median > most else CANNOT_TELL
    return Verdict(place, first, second, estimate, word), p


def _judge_within_rounds(before: _Rates, after: _Rates, _: Drift) -> tuple[Estimate, float]:
    """Judge by the ratios within rounds: their interval has to be on one side of one."""
    if not before.keys() & after.keys():
        raise RecordError("the two have no round in common: they were not measured together")
    estimate = gain(before, after)
    return estimate, 1.0 if estimate.low <= 1 <= estimate.high else 0.0


def _judge_apart(before: _Rates, after: _Rates, drift: Drift) -> tuple[Estimate, float]:
    """Judge by a test of the values, as they would be without the drift."""
    expected = [rate * drift.ratio for rate in before.values()]
    return ratio(list(before.values()), list(after.values())), _chance(
        expected, list(after.values())
    )


def _chance(before: list[float], after: list[float]) -> float:
    """Return the probability that values of one kind differ as much as these."""
    from scipy import stats

    return float(stats.mannwhitneyu(before, after).pvalue)


def _corrected(chances: list[float]) -> list[float]:
    """Correct probabilities for their number: of many, some are small by chance.

    Of the points that are called faster or slower, one in twenty may be wrong (Benjamini and
    Hochberg, 1995). To be right about every single one of them (Holm, 1979) takes more rounds
    than a quick run has, whatever the change.
    """
    from scipy import stats

    return [float(p) for p in stats.false_discovery_control(chances)] if chances else []


def _drift(earlier: Recording, later: Recording) -> Drift:
    """Find out what changed between two recordings though nothing had been changed."""
    first, second = by_place(earlier), by_place(later)
    ratios = []
    for place in first.keys() & second.keys():
        before, after = (list(rates_by_round(places[place]).values()) for places in (first, second))
        if place[0].implementation in CONTROLS and before and after:
            ratios.append(median(after).median / median(before).median)
    if len(ratios) >= _FEWEST_CONTROLS:
        middle = median(ratios).median
        spreads = sorted(max(r / middle, middle / r) - 1 for r in ratios)
        why = "the peer and the bare loops, which did not change, say so"
        return Drift(middle, spreads[int(0.95 * len(spreads))], why)
    floors = [floor for floor in map(noise_floor, (earlier, later)) if floor is not None]
    why = "no peer and no bare loop is in both records to show what the machine did in between"
    return Drift(1.0, max(floors, default=0.0), why)


def table(found: Comparison) -> str:
    """Write a comparison as a table, and sum it up."""
    lines = [
        f"{'heap':>10} {'packet':>6}  {'program':52} {'before':>8} {'after':>8}"
        f" {'ratio':>6}  {'95 % interval':^13}"
    ]
    counts = dict.fromkeys(_TOLD, 0)
    for verdict in found.verdicts:
        series, heap_size, packet_size = verdict.place
        counts[verdict.word] = counts.get(verdict.word, 0) + 1
        rates = " ".join(
            "       —" if e is None else f"{e.median / 1e6:8.0f}"
            for e in (verdict.before, verdict.after)
        )
        interval = ""
        if verdict.ratio is not None:
            interval = (
                f"{verdict.ratio.median:6.2f}  [{verdict.ratio.low:5.2f},{verdict.ratio.high:5.2f}]"
            )
        lines.append(
            f"{heap_size:>10} {packet_size:>6}  {series!s:52} {rates} {interval:21}  {verdict.word}"
        )
    summary = ", ".join(f"{n} {word}" for word, n in counts.items() if n or word in _TOLD)
    notes = [f"{summary}. MB/s; a difference below {found.threshold:.0%} does not count."]
    if found.drift.why:
        notes.append(
            f"Drift of the machine: {found.drift.ratio:.2f} times as fast, give or take"
            f" {found.drift.spread:.0%} ({found.drift.why})."
        )
    return "\n".join([*lines, "", *notes])
