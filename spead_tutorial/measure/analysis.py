# SPDX-License-Identifier: BSD-3-Clause
"""What records say: of each case, what its samples come to; of single runs, where the time went."""

import bisect
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from spead_tutorial.measure.records import Recording, Sample, Sent, Series, Spacing, Split, Timeline
from spead_tutorial.measure.stats import Estimate, median

# ---- What the samples of a case come to ----

#: With fewer, a difference of some percent may be chance.
ROUNDS_FOR_A_CLAIM = 9


def program_busy(sample: Sample) -> float | None:
    """Return the share of the time in which the program's own thread worked; None if not known."""
    looking_ns = sample.waiting_looking_ns if isinstance(sample, Sent) else None
    return _busy(sample, sample.program_cpu_ns, looking_ns)


def others_busy(sample: Sample) -> float | None:
    """Return the same of all its other threads together, of which the stream's is one."""
    everybody_ns, program_ns = _cpu_ns(sample), sample.program_cpu_ns
    if everybody_ns is None or program_ns is None:
        return None
    looking_ns = sample.looking_ns if isinstance(sample, Sent) else None
    return _busy(sample, everybody_ns - program_ns, looking_ns)


def _busy(sample: Sample, cpu_ns: int | None, looking_ns: int | None) -> float | None:
    """CPU time that was work, as a share of the time; a program that counts no looking has none."""
    if cpu_ns is None or not sample.elapsed_ns:
        return None
    # What is counted as looking is the clock's time, and may be more than the CPU's.
    return max(0, cpu_ns - (looking_ns or 0)) / sample.elapsed_ns


def cpu_s_per_gb(sample: Sample) -> float | None:
    """Return CPU seconds for 10⁹ bytes of payload; None if not known."""
    return _ratio(_cpu_ns(sample), sample.payload_bytes)


def _cpu_ns(sample: Sample) -> int | None:
    if sample.cpu_user_ns is None or sample.cpu_system_ns is None:
        return None
    return sample.cpu_user_ns + sample.cpu_system_ns


def _ratio(above: int | None, below: int | None) -> float | None:
    return None if above is None or not below else above / below


def _middle(of: Callable[[Sample], float | None]) -> property:
    return property(lambda row: row.middle(of), doc=of.__doc__)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A case, and what its samples came to."""

    samples: tuple[Sample, ...]  # those that count
    last: Sample  # the last of all
    rate: Estimate | None  # payload bytes/s; None with a failure
    failure: str | None  # why it has no rate
    repeated: int = 0  # how many samples failed and were repeated; they are none of these

    @property
    def series(self) -> Series:
        return self.last.series

    def middle(self, of: Callable[[Sample], float | None]) -> float | None:
        """Return the median of something over the samples; None with a failure or where unknown."""
        if self.failure is not None:
            return None
        known = [value for value in map(of, self.samples) if value is not None]
        return median(known).median if known else None

    # Medians; the shares are those of the time, and what is per heap in microseconds or a count.
    cpu_s_per_gb = _middle(cpu_s_per_gb)
    cpu_us_per_heap = _middle(lambda one: _ratio(_cpu_ns(one), one.heaps * 1000))
    calls_per_heap = _middle(
        lambda one: _ratio(one.send_calls, one.heaps) if isinstance(one, Sent) else None
    )
    faults_per_heap = _middle(lambda one: _ratio(one.page_faults, one.heaps))
    program_busy = _middle(program_busy)
    others_busy = _middle(others_busy)


def rates_by_round(samples: Sequence[Sample]) -> dict[int, float]:
    """Return the rate of each round."""
    return {sample.round: sample.rate for sample in samples if sample.rate is not None}


def rows(recording: Recording) -> list[Row]:
    """Sum a recording up, case by case; one has failed if any sample has that was not repeated."""
    cases: dict[str, list[Sample]] = {}
    for sample in recording.samples:
        cases.setdefault(sample.case, []).append(sample)
    repeated = Counter(one.case for one in recording.superseded if isinstance(one, Sample))
    return [_row(samples, repeated[case]) for case, samples in cases.items()]


def _row(samples: Sequence[Sample], repeated: int) -> Row:
    failure = next((sample.failure for sample in samples if sample.failure is not None), None)
    counted = tuple(sample for sample in samples if not sample.warm_up)
    rates = [sample.rate for sample in counted if sample.rate is not None]
    if failure is None and not rates:
        failure = "no sample has a rate"
    rate = median(rates) if failure is None else None
    return Row(counted, samples[-1], rate, failure, repeated)


# ---- What the time of a run was used for: preparing heaps, waiting for them, sending them ----

#: Begin and end in ns.
Interval = tuple[int, int]


@dataclasses.dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of the time of `steady`."""

    preparing: float  # in which the program prepared heaps
    waiting: float  # in which it waited for them
    rest: float  # in which it did anything else; these three make 1
    # in which the network thread was between the first and the last packet of a heap
    sending: float


def shares(timeline: Timeline) -> Shares:
    """Return what the time of a run was used for: the part of it that intervals cover."""
    begin, end = steady(timeline)
    whole = max(1, end - begin)
    prepared, waited, sent = (
        _covered((max(one, begin), min(other, end)) for one, other in intervals) / whole
        for intervals in (preparing(timeline), waiting(timeline), sending(timeline))
    )
    return Shares(prepared, waited, max(0.0, 1 - prepared - waited), sent)


def first_steady(timeline: Timeline) -> int:
    """Return the first heap that counts: the third part of a run before it is a cold start."""
    return len(timeline.prepare_ns) // 3


def steady(timeline: Timeline) -> Interval:
    """Return when the heaps that count began, and when a run had waited for its last heap."""
    return timeline.prepare_ns[first_steady(timeline)], span(timeline)[1]


def span(timeline: Timeline) -> Interval:
    """Return when a run began, and when it had waited for its last heap."""
    return timeline.prepare_ns[0], max(*timeline.resumed_ns, *timeline.last_packet_ns)


def preparing(timeline: Timeline) -> list[Interval]:
    """Return when the program prepared each heap, until it was queued."""
    return list(zip(timeline.prepare_ns, timeline.queued_ns, strict=True))


def sending(timeline: Timeline) -> list[Interval]:
    """Return when the network thread sent each heap, its first packet to its last."""
    # One call may have the end of a heap and the beginning of the next: no time counts twice.
    before = (0, *timeline.last_packet_ns)
    first = map(max, timeline.first_packet_ns, before)
    return list(zip(first, timeline.last_packet_ns, strict=True))


def waiting(timeline: Timeline) -> list[Interval]:
    """Return when the program waited for heaps: from when it last queued one, or went on."""
    queued = set(timeline.queued_ns)
    marks = sorted({*queued, *timeline.resumed_ns})
    intervals = []
    for end in sorted(set(timeline.resumed_ns) - queued):  # at others it went on at once
        place = bisect.bisect_left(marks, end)
        if place > 0:
            intervals.append((marks[place - 1], end))
    return intervals


def _covered(intervals: Iterable[Interval]) -> int:
    """Return how long at least one of the intervals lasts."""
    total = 0
    last: int | None = None
    for begin, end in sorted(intervals):
        begin = begin if last is None else max(begin, last)
        total += max(0, end - begin)
        last = end if last is None else max(end, last)
    return total


# ---- How evenly its messages left: how long it was silent, and how much came at once ----
#
# Both are a heap's: its time reaches from its first message to the first of the heap after it. The
# median of the heaps counts, so that one that was held up by something else does not.

_Numbers = np.ndarray[Any, Any]


def silence(run: Spacing) -> float:
    """Return the longest time between two messages: the median of the heaps, in ns."""
    return float(np.median([np.diff(times).max() for times, _ in _of_heaps(run)]))


def burst(run: Spacing) -> float:
    """Return how much came at once: the median of the heaps, in bytes.

    It is what a bucket must hold, that is emptied at the heap's own average rate, for all of the
    heap to pass. Of a message that came as soon as the bucket had room for it, that is one message.
    """
    return float(np.median([_burst(*heap) for heap in _of_heaps(run)]))


def _of_heaps(run: Spacing) -> Iterator[tuple[_Numbers, _Numbers]]:
    """Yield of each heap but the last the times of its messages and of what follows, and bytes."""
    begins = [0, *(place for place, (a, b) in enumerate(pairwise(run.heaps), 1) if a != b)]
    if len(begins) < 2:
        raise ValueError(f"{run.program}: there are no two heaps one after the other")
    for begin, end in pairwise(begins):
        yield np.array(run.time_ns[begin : end + 1]), np.array(run.message_bytes[begin:end])


def _burst(times: _Numbers, n_bytes: _Numbers) -> float:
    time = times - times[0]
    paid = time[:-1] * (n_bytes.sum() / max(time[-1], 1))
    return longest_burst(np.cumsum(n_bytes), n_bytes, paid, paid)


def longest_burst(after: _Numbers, steps: _Numbers, began: _Numbers, ended: _Numbers) -> float:
    """Return what a bucket must hold that is emptied evenly, for all of a stream to pass.

    `after` is what has come after each step, in bytes, and `steps` are they themselves. What had
    been let out until then is `began` where a burst begins with that step, and `ended` where one
    ends with it: they differ where the time of a step is not known exactly.
    """
    return float((after - ended + np.maximum.accumulate(began - (after - steps))).max())


# ---- The time of a heap, split into parts: from how often a run was found at each of them ----

OTHER = "other"
#: The parts of the work on a heap, those of one kind side by side: the site explains them.
PARTS = (
    "fill",
    "program",
    "queue",
    "packetizing",
    "completion",
    "copy",
    "system call",
    "buffers",
    "stack",
    "lock",
    "wake-up",
    "looking",
    OTHER,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A case, as a picture or a table names it."""

    heap_size: int  # bytes of samples in a heap
    program: str  # what was run
    language: str


@dataclasses.dataclass(frozen=True, slots=True)
class Thread:
    """What a thread did for a heap."""

    own: bool  # whether it is the program's own; otherwise the stream's
    elapsed: Estimate  # time from heap to heap, ns
    # CPU time of each part of it, ns; parts that it was never found at are left out
    parts: dict[str, Estimate]

    @property
    def busy_ns(self) -> float:
        return sum(estimate.median for estimate in self.parts.values())

    @property
    def idle_ns(self) -> float:
        """The rest of the time from heap to heap, in which it did not run."""
        return max(0.0, self.elapsed.median - self.busy_ns)


def split_times(recording: Recording) -> dict[Kind, list[Thread]]:
    """Return what each thread of each case did for a heap."""
    plain = {
        (one.case, one.round): one
        for one in recording.samples
        if not one.warm_up and one.rate is not None
    }
    pairs: dict[Kind, list[tuple[Sample, Split]]] = {}
    for split in recording.splits:
        sample = plain.get((split.case, split.round))
        if sample is not None and split.failure is None:
            kind = Kind(split.heap_size, split.program, split.language)
            pairs.setdefault(kind, []).append((sample, split))
    if not pairs:
        raise ValueError("the recording has no splits: python -m bench run where")
    return {kind: list(_threads(pairs[kind])) for kind in sorted(pairs, key=dataclasses.astuple)}


def _threads(pairs: list[tuple[Sample, Split]]) -> Iterable[Thread]:
    elapsed = median([(sample.elapsed_ns or 0) / sample.heaps for sample, _ in pairs])
    for own in (True, False):
        rounds = [_times(sample, split, own) for sample, split in pairs]
        found = [part for part in PARTS if any(part in times for times in rounds)]
        if found:
            parts = {part: median([times.get(part, 0.0) for times in rounds]) for part in found}
            yield Thread(own, elapsed, parts)


def _times(sample: Sample, split: Split, own: bool) -> dict[str, float]:
    """Return ns of CPU time a heap in each part, as they would be without looking."""
    cpu_ns = sample.program_cpu_ns or 0
    if not own:
        cpu_ns = (sample.cpu_user_ns or 0) + (sample.cpu_system_ns or 0) - cpu_ns
    counts = split.own if own else split.others
    each = cpu_ns / sample.heaps / max(1, sum(counts.values()))
    return {part: count * each for part, count in counts.items()}
