# SPDX-License-Identifier: BSD-3-Clause
"""The time of a heap, split into parts: from how often a run was found at each of them."""

import dataclasses
from collections.abc import Iterable

from spead_tutorial.measure.records import Recording, Sample, Split
from spead_tutorial.measure.stats import Estimate, median

__all__ = ["OTHER", "PARTS", "Kind", "Thread", "split_times"]

OTHER = "other"
#: The parts of the work on a heap, those of one kind beside each other: the site explains them.
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
        """CPU time of all its parts."""
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
        raise ValueError("the recording has no splits: python -m bench where")
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
    """Return ns of CPU time a heap in each part, as they would be with nobody looking."""
    cpu_ns = sample.program_cpu_ns or 0
    if not own:
        cpu_ns = (sample.cpu_user_ns or 0) + (sample.cpu_system_ns or 0) - cpu_ns
    counts = split.own if own else split.others
    each = cpu_ns / sample.heaps / max(1, sum(counts.values()))
    return {part: count * each for part, count in counts.items()}
