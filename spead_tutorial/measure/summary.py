# SPDX-License-Identifier: BSD-3-Clause
"""What the samples of a case come to."""

import dataclasses
from collections.abc import Callable, Sequence

from spead_tutorial.records import Recording, Sample, Series
from spead_tutorial.stats import Estimate, median

__all__ = ["ROUNDS_FOR_A_CLAIM", "Row", "rows"]

#: With fewer, a difference of some percent may be chance.
ROUNDS_FOR_A_CLAIM = 9


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """A case, and what its samples came to.

    Parameters
    ----------
    samples : tuple of Sample
        Those that count.
    last : Sample
        The last of all.
    rate : Estimate or None
        Payload bytes/s; None with a failure.
    failure : str or None
        Why it has no rate.
    """

    samples: tuple[Sample, ...]
    last: Sample
    rate: Estimate | None
    failure: str | None

    @property
    def series(self) -> Series:
        """The line of a picture that it is on."""
        return self.last.series

    def middle(self, of: Callable[[Sample], float | None]) -> float | None:
        """Return the median of something over the samples; None with a failure, or where unknown.

        Parameters
        ----------
        of : function
            Takes a sample; None where it does not know.
        """
        if self.failure is not None:
            return None
        known = [value for value in map(of, self.samples) if value is not None]
        return median(known).median if known else None

    @property
    def cpu_s_per_gb(self) -> float | None:
        """Median CPU seconds for 10⁹ bytes of payload."""
        return self.middle(lambda one: _ratio(_cpu_ns(one), one.payload_bytes))

    @property
    def cpu_us_per_heap(self) -> float | None:
        """Median CPU microseconds for a heap."""
        return self.middle(lambda one: _ratio(_cpu_ns(one), one.heaps * 1000))

    @property
    def calls_per_heap(self) -> float | None:
        """Median system calls to send for each heap."""
        return self.middle(lambda one: _ratio(one.send_calls, one.heaps))

    @property
    def faults_per_heap(self) -> float | None:
        """Median page faults for each heap."""
        return self.middle(lambda one: _ratio(one.page_faults, one.heaps))


def _cpu_ns(one: Sample) -> int | None:
    if one.cpu_user_ns is None or one.cpu_system_ns is None:
        return None
    return one.cpu_user_ns + one.cpu_system_ns


def _ratio(above: int | None, below: int | None) -> float | None:
    return None if above is None or not below else above / below


def rows(recording: Recording) -> list[Row]:
    """Sum a recording up: a row for each case, in the order in which they came.

    A case with a failure in any of its samples has failed, the warm-up too.

    Parameters
    ----------
    recording : Recording
        Whatever it is of.
    """
    cases: dict[str, list[Sample]] = {}
    for one in recording.samples:
        cases.setdefault(one.case, []).append(one)
    return [_row(samples) for samples in cases.values()]


def _row(samples: Sequence[Sample]) -> Row:
    failure = next((one.failure for one in samples if one.failure is not None), None)
    counted = tuple(one for one in samples if not one.warm_up)
    rates = [one.rate for one in counted if one.rate is not None]
    if failure is None and not rates:
        failure = "no sample has a rate"
    return Row(counted, samples[-1], median(rates) if failure is None else None, failure)
