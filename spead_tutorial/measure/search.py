# SPDX-License-Identifier: BSD-3-Clause
"""The highest rate at which a receiver loses nothing: a search, whose runs are samples.

The rate is doubled until something is lost, and then what is between is halved. On the way, one run
without loss is enough to go on: the rate has *passed*. Where the search ends, that is not enough: a
rate is *held* when some runs in a row have lost nothing, and if it cannot be, the search goes on
below it. A loss in one run may be chance, as when another guest has the core for some milliseconds:
it is forgiven once, and the runs begin anew. A second one at the same rate decides. Where the
sender does not keep the rate that it was asked for, the search is over, and what was found is a
lower bound.

What is to be run next follows from the runs that there are, and from nothing else, so a search
that was interrupted goes on, and what it found is computed from its record.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

from msgspec.structs import replace

from spead_tutorial.measure.case import Step
from spead_tutorial.measure.records import Received, Recording, Sample

#: Payload bytes/s that a search begins at where nothing is known, and that it does not go below. It
#: begins high, as a run lasts the longer the lower its rate is.
START, LOWEST = 1e9, 3e7
#: What a sender has kept that sent at least this share of what it was asked for.
_KEPT = 0.95
_GOLDEN = 0.618034
#: Bytes that the chapters' programs ask for their socket; so all have as much that are searched.
BUFFER = 1 << 23
#: A run sends ten times what the socket and heaps that wait can take in: a receiver that is a tenth
#: slower than the sender has lost something then. And it lasts a while, this long at least.
_TIMES_TAKEN_IN, _SHORTEST_S = 10, 0.1
#: What may wait to be got: the heaps that make up this, and no fewer than some.
_WAITING_BYTES, _FEWEST_WAITING = 1 << 20, 4


class _Verdict(enum.Enum):
    """Of a rate: a run has lost nothing, or as many as it takes in a row, or too many something."""

    PASSED = 1
    HELD = 2
    LOST = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Criterion:
    """What it takes to call a rate one without loss."""

    runs: int  # this number in a row has to lose nothing at the rate that is found
    forgiven: int  # this number may lose something before
    # how many times as high the lowest rate with a loss may be as the highest without one, for
    # the search to end
    narrow: float
    lowest: float = LOWEST  # payload bytes/s that it does not go below


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """What the way of a search depends on, of a run."""

    asked: float  # bytes/s that were to be sent
    offered: float  # bytes/s that were sent
    lost: bool  # whether anything was lost

    @property
    def fell_short(self) -> bool:
        """Whether the sender did not keep the rate that it was asked for."""
        return self.offered < _KEPT * self.asked


#: Of a round that counts, and of a warm-up, which only finds where to begin.
THOROUGH, ROUGH = Criterion(3, 1, 2 ** (1 / 8)), Criterion(1, 0, 2.0)


def is_search(sample: Sample) -> TypeGuard[Received]:
    return isinstance(sample, Received) and sample.asked_bytes_per_s is not None


def lost(run: Received) -> bool:
    """Return whether anything was lost in a run: a packet, or a heap."""
    return bool(run.received_dropped) or run.received_heaps != run.heaps


def offered(run: Sample) -> float:
    """Return the payload bytes/s that the sender really sent."""
    return run.heaps * run.heap_size / ((run.elapsed_ns or 1) / 1e9)


def fell_short(run: Received) -> bool:
    return _tried(run).fell_short


def _tried(run: Received) -> Tried:
    return Tried(run.asked_bytes_per_s or 0.0, offered(run), lost(run))


def begin(warm_up: Sample | None, number: int) -> float:
    """Return the rate at which a round begins, another one each time."""
    if warm_up is None:
        return START
    rate = START if warm_up.failure is not None else offered(warm_up)
    # If all tried the same rates, they would seem to agree better than they do.
    return float(rate / THOROUGH.narrow ** (number * _GOLDEN % 1))


def look(
    run: Callable[[int, float], Received],
    step: Step,
    warm_up: Sample | None,
    most_bytes: float = math.inf,
    seconds: float = _SHORTEST_S,
) -> Iterator[Received]:
    """Yield the runs that a search still needs, each as it was taken: heaps at a rate.

    They last for some seconds, but for those of a warm-up, which are short.
    """
    runs = list(step.runs)
    start = begin(warm_up, step.number)
    criterion = ROUGH if step.warm_up else THOROUGH
    lasts = _SHORTEST_S if step.warm_up else seconds
    while (rate := next_rate(runs, start, criterion)) is not None:
        heaps = heaps_of_a_run(step.case.heap_size, rate, most_bytes, lasts)
        runs.append(replace(run(heaps, rate), run=len(runs)))
        yield runs[-1]


def waiting(heap_size: int) -> int:
    """Return how many heaps may wait to be got."""
    return max(_FEWEST_WAITING, _WAITING_BYTES // heap_size)


def heaps_of_a_run(
    heap_size: int, rate: float, most_bytes: float = math.inf, seconds: float = _SHORTEST_S
) -> int:
    taken_in = BUFFER + waiting(heap_size) * heap_size
    n_bytes = min(max(_TIMES_TAKEN_IN * taken_in, seconds * rate), most_bytes)
    return max(2, int(n_bytes) // heap_size)


def next_rate(runs: Sequence[Received], start: float, criterion: Criterion) -> float | None:
    """Return at which rate the next run is to be sent to."""
    if any(run.failure is not None for run in runs):
        return None
    return next_of(list(map(_tried, runs)), start, criterion)


def next_of(runs: Sequence[Tried], start: float, criterion: Criterion) -> float | None:
    """Return the same of runs that did not fail."""
    if not runs:
        return start
    by_rate = _by_rate(runs)
    verdicts = {rate: _verdict(some, criterion) for rate, some in by_rate.items()}
    undecided = next((rate for rate, verdict in verdicts.items() if verdict is None), None)
    if undecided is not None:
        return undecided
    least = min(
        (rate for rate, verdict in verdicts.items() if verdict is _Verdict.LOST), default=None
    )
    best = _best(verdicts)
    if best is None:
        return least / 2 if least is not None and least / 2 >= criterion.lowest else None
    is_near = least is not None and least / best <= criterion.narrow * (1 + 1e-6)
    if is_near or by_rate[best][_middle(by_rate[best], criterion)].fell_short:
        return best if verdicts[best] is _Verdict.PASSED else None
    return 2 * best if least is None else math.sqrt(best * least)


def _best(verdicts: Mapping[float, _Verdict | None]) -> float | None:
    """Return the highest rate at which nothing was lost, but what is forgiven."""
    return max(
        (rate for rate, verdict in verdicts.items() if verdict is not _Verdict.LOST), default=None
    )


def _by_rate(runs: Iterable[Tried]) -> dict[float, list[Tried]]:
    found: dict[float, list[Tried]] = {}
    for run in runs:
        found.setdefault(run.asked, []).append(run)
    return found


def _verdict(runs: Sequence[Tried], criterion: Criterion) -> _Verdict | None:
    """Return what is known of a rate by the runs at it; None where there have to be more."""
    losses = sum(run.lost for run in runs)
    if losses > criterion.forgiven:
        return _Verdict.LOST
    last = runs[-criterion.runs :]
    if len(last) == criterion.runs and not any(run.lost for run in last):
        return _Verdict.HELD
    return _Verdict.PASSED if losses == 0 else None


def _middle(runs: Sequence[Tried], criterion: Criterion) -> int:
    """Return which of the last runs has the median of what was offered, the lower one of two."""
    last = range(max(0, len(runs) - criterion.runs), len(runs))
    return sorted(last, key=lambda i: runs[i].offered)[(len(last) - 1) // 2]


def found(runs: Sequence[Received]) -> Received | None:
    """Return the run that stands for a search: the median one at the highest rate held."""
    failed = next((run for run in runs if run.failure is not None), None)
    if failed is not None or not runs:
        return failed
    criterion = ROUGH if runs[0].warm_up else THOROUGH
    if next_rate(runs, START, criterion) is not None:
        return None
    by_rate = _by_rate(map(_tried, runs))
    best = _best({rate: _verdict(some, criterion) for rate, some in by_rate.items()})
    if best is None:
        least = min(by_rate) / 1e6
        return replace(runs[-1], failure=f"packets are lost at {least:.3g} MB/s, too")
    mine = [run for run in runs if run.asked_bytes_per_s == best]
    return mine[_middle(by_rate[best], criterion)]


def is_bound(searches: Iterable[Sample]) -> bool:
    """Return whether the sender was the slower one in most rounds: a lower bound was found."""
    rounds = [fell_short(one) for one in searches if is_search(one) and one.failure is None]
    return 2 * sum(rounds) > len(rounds)


def settled(recording: Recording) -> Recording:
    """Return a recording in which one run stands for each search: that at which it arrived."""
    searches: dict[tuple[object, ...], list[Received]] = {}
    for sample in filter(is_search, recording.samples):
        key = sample.case, sample.round, sample.warm_up
        searches.setdefault(key, []).append(sample)
    ends = (found(sorted(runs, key=lambda run: run.run)) for runs in searches.values())
    others = [sample for sample in recording.samples if not is_search(sample)]
    return dataclasses.replace(
        recording, samples=(*others, *(end for end in ends if end is not None))
    )
