# SPDX-License-Identifier: BSD-3-Clause
"""What the samples of a case come to."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence

from spead_tutorial.measure.records import Recording, Sample, Sent, Series
from spead_tutorial.measure.stats import Estimate, median

__all__ = ["ROUNDS_FOR_A_CLAIM", "Row", "others_busy", "program_busy", "rates_by_round", "rows"]

#: With fewer, a difference of some percent may be chance.
ROUNDS_FOR_A_CLAIM = 9


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
        """The line of a picture that it is on."""
        return self.last.series

    def middle(self, of: Callable[[Sample], float | None]) -> float | None:
        """Return the median of something over the samples; None with a failure or where unknown."""
        if self.failure is not None:
            return None
        known = [value for value in map(of, self.samples) if value is not None]
        return median(known).median if known else None

    @property
    def cpu_s_per_gb(self) -> float | None:
        """Median CPU seconds for 10⁹ bytes of payload."""
        return self.middle(lambda sample: _ratio(_cpu_ns(sample), sample.payload_bytes))

    @property
    def cpu_us_per_heap(self) -> float | None:
        """Median CPU microseconds for a heap."""
        return self.middle(lambda sample: _ratio(_cpu_ns(sample), sample.heaps * 1000))

    @property
    def calls_per_heap(self) -> float | None:
        """Median system calls to send for each heap."""
        return self.middle(_calls_per_heap)

    @property
    def faults_per_heap(self) -> float | None:
        """Median page faults for each heap."""
        return self.middle(lambda sample: _ratio(sample.page_faults, sample.heaps))

    @property
    def program_busy(self) -> float | None:
        """Median share of the time in which the program's own thread worked."""
        return self.middle(program_busy)

    @property
    def others_busy(self) -> float | None:
        """Median share of the time in which its other threads worked, all together."""
        return self.middle(others_busy)


def _calls_per_heap(sample: Sample) -> float | None:
    return _ratio(sample.send_calls, sample.heaps) if isinstance(sample, Sent) else None


def rates_by_round(samples: Sequence[Sample]) -> dict[tuple[int, int], float]:
    """Return the rate of each round; rounds of different machines are different rounds."""
    return {
        (sample.source, sample.round): sample.rate for sample in samples if sample.rate is not None
    }


def program_busy(sample: Sample) -> float | None:
    """Return the share of the time in which the program's own thread worked; None if not known.

    Time in which it looked whether there was more to do is no work.
    """
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


def _cpu_ns(sample: Sample) -> int | None:
    if sample.cpu_user_ns is None or sample.cpu_system_ns is None:
        return None
    return sample.cpu_user_ns + sample.cpu_system_ns


def _ratio(above: int | None, below: int | None) -> float | None:
    return None if above is None or not below else above / below


def rows(recording: Recording) -> list[Row]:
    """Sum a recording up: a row for each case, in the order in which they came.

    A case with a failure in any of its samples has failed, the warm-up too, unless the sample was
    repeated since.
    """
    cases: dict[str, list[Sample]] = {}
    for sample in recording.samples:
        cases.setdefault(sample.case, []).append(sample)
    repeated = Counter(sample.case for sample in recording.superseded)
    return [_row(samples, repeated[case]) for case, samples in cases.items()]


def _row(samples: Sequence[Sample], repeated: int) -> Row:
    failure = next((sample.failure for sample in samples if sample.failure is not None), None)
    counted = tuple(sample for sample in samples if not sample.warm_up)
    rates = [sample.rate for sample in counted if sample.rate is not None]
    if failure is None and not rates:
        failure = "no sample has a rate"
    rate = median(rates) if failure is None else None
    return Row(counted, samples[-1], rate, failure, repeated)
