# SPDX-License-Identifier: BSD-3-Clause
"""The highest rate at which a receiver loses nothing: a search, whose runs are samples.

The rate is doubled until something is lost, and then what is between is halved. A rate is *held*
when some runs in a row have lost nothing. A loss in one run may be chance, as when somebody else
has the core for some milliseconds: it is forgiven once, and the runs begin anew. A second one at
the same rate decides. Where the sender does not keep the rate that it was asked for, nobody knows
what would have been lost at it: then the search is over, and what was found is a lower bound.

What is to be run next follows from the runs that there are, and from nothing else, so a search
that was interrupted goes on, and what it found is computed from its record.
"""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Literal

from spead_tutorial.records import Recording, Sample

__all__ = [
    "LOWEST",
    "ROUGH",
    "START",
    "THOROUGH",
    "Criterion",
    "begin",
    "fell_short",
    "found",
    "is_bound",
    "is_search",
    "lost",
    "next_rate",
    "offered",
    "settled",
]

#: Payload bytes/s that a search begins at where nothing is known, and that it does not go below.
START, LOWEST = 2.5e8, 3e7
#: What a sender has kept that sent at least this share of what it was asked for.
_KEPT = 0.95
_GOLDEN = 0.618034


@dataclasses.dataclass(frozen=True, slots=True)
class Criterion:
    """What it takes to call a rate one without loss.

    Parameters
    ----------
    runs : int
        So many in a row have to lose nothing.
    forgiven : int
        So many may lose something before.
    narrow : float
        How many times as high the lowest rate with a loss may be as the highest without one, for
        the search to end.
    """

    runs: int
    forgiven: int
    narrow: float


#: Of a round that counts, and of a warm-up, which only finds where to begin.
THOROUGH, ROUGH = Criterion(3, 1, 2 ** (1 / 8)), Criterion(1, 0, 2.0)


def is_search(sample: Sample) -> bool:
    """Return whether a sample is a run of a search.

    Parameters
    ----------
    sample : Sample
        Of any record.
    """
    return sample.asked_bytes_per_s is not None


def criterion_of(sample: Sample) -> Criterion:
    """Return by what its search is judged."""
    return ROUGH if sample.warm_up else THOROUGH


def lost(run: Sample) -> bool:
    """Return whether anything was lost in a run: a packet, or a heap.

    Parameters
    ----------
    run : Sample
        One of a search.
    """
    return bool(run.received_dropped) or run.received_heaps != run.heaps


def offered(run: Sample) -> float:
    """Return the payload bytes/s that the sender really sent.

    Parameters
    ----------
    run : Sample
        One of a search.
    """
    return run.heaps * run.heap_size / ((run.elapsed_ns or 1) / 1e9)


def fell_short(run: Sample) -> bool:
    """Return whether the sender did not keep the rate that it was asked for.

    Parameters
    ----------
    run : Sample
        One of a search.
    """
    return offered(run) < _KEPT * (run.asked_bytes_per_s or 0)


def begin(warm_up: Sample | None, number: int) -> float:
    """Return the rate at which a round begins.

    Rounds begin within one step of each other: if all began at the same rate, all would try the
    same ones, and seem to agree better than they do.

    Parameters
    ----------
    warm_up : Sample or None
        What the warm-up's search found; None for the warm-up itself.
    number : int
        The round's.
    """
    if warm_up is None:
        return START
    rate = START if warm_up.failure is not None else offered(warm_up)
    return float(rate / THOROUGH.narrow ** (number * _GOLDEN % 1))


def next_rate(runs: Sequence[Sample], start: float, criterion: Criterion) -> float | None:
    """Return at which rate the next run is to be sent to.

    Parameters
    ----------
    runs : sequence of Sample
        Those of this search so far, in their order.
    start : float
        Payload bytes/s of the first.
    criterion : Criterion
        When a rate is held, and when the search is over.

    Returns
    -------
    float or None
        Payload bytes/s; None where the search is over.
    """
    if any(run.failure is not None for run in runs):
        return None
    verdicts = {rate: _verdict(some, criterion) for rate, some in _by_rate(runs).items()}
    if not verdicts:
        return start
    undecided = [rate for rate, verdict in verdicts.items() if verdict is None]
    if undecided or "short" in verdicts.values():
        return undecided[0] if undecided else None
    held = max((rate for rate, verdict in verdicts.items() if verdict == "held"), default=None)
    least = min((rate for rate, verdict in verdicts.items() if verdict == "lost"), default=None)
    if least is None or held is None:
        return 2 * held if held else least / 2 if least and least / 2 >= LOWEST else None
    return math.sqrt(held * least) if least / held > criterion.narrow * (1 + 1e-6) else None


def _by_rate(runs: Iterable[Sample]) -> dict[float, list[Sample]]:
    found: dict[float, list[Sample]] = {}
    for run in runs:
        found.setdefault(run.asked_bytes_per_s or 0.0, []).append(run)
    return found


def _verdict(
    runs: Sequence[Sample], criterion: Criterion
) -> Literal["held", "lost", "short"] | None:
    """Return what is known of a rate by the runs at it; None where there have to be more."""
    if sum(map(lost, runs)) > criterion.forgiven:
        return "lost"
    last = runs[-criterion.runs :]
    if len(last) < criterion.runs or any(map(lost, last)):
        return None
    return "short" if fell_short(_middle(last)) else "held"


def _middle(runs: Sequence[Sample]) -> Sample:
    """Return the run with the median of what was offered, the lower one of two."""
    return sorted(runs, key=offered)[(len(runs) - 1) // 2]


def found(runs: Sequence[Sample]) -> Sample | None:
    """Return the run that stands for a search: at the highest rate that was held, the median one.

    Parameters
    ----------
    runs : sequence of Sample
        All of a search, in their order.

    Returns
    -------
    Sample or None
        Its rate is what the search has found; a lower bound, where the sender did not keep what was
        asked for. It has a failure where a run failed, or no rate was held. None where the search
        is not over.
    """
    failed = next((run for run in runs if run.failure is not None), None)
    if failed is not None or not runs:
        return failed
    criterion = criterion_of(runs[0])
    if next_rate(runs, START, criterion) is not None:
        return None
    by_rate = _by_rate(runs)
    held = [rate for rate, some in by_rate.items() if _verdict(some, criterion) != "lost"]
    if not held:
        least = min(by_rate) / 1e6
        return dataclasses.replace(runs[-1], failure=f"packets are lost at {least:.3g} MB/s, too")
    return _middle(by_rate[max(held)][-criterion.runs :])


def is_bound(searches: Iterable[Sample]) -> bool:
    """Return whether what was found is a lower bound: in most rounds the sender was the slower one.

    Parameters
    ----------
    searches : iterable of Sample
        Those that stand for a case's searches.
    """
    rounds = [fell_short(one) for one in searches if is_search(one) and one.failure is None]
    return 2 * sum(rounds) > len(rounds)


def settled(recording: Recording) -> Recording:
    """Return a recording in which one run stands for each search: that at which it arrived.

    Parameters
    ----------
    recording : Recording
        One that may have searches. Those that are not over are left out; other samples stay.
    """
    searches: dict[tuple[object, ...], list[Sample]] = {}
    for sample in filter(is_search, recording.samples):
        key = sample.source, sample.case, sample.round, sample.warm_up
        searches.setdefault(key, []).append(sample)
    ends = (found(sorted(runs, key=lambda run: run.run)) for runs in searches.values())
    others = [sample for sample in recording.samples if not is_search(sample)]
    return dataclasses.replace(
        recording, samples=(*others, *(end for end in ends if end is not None))
    )
