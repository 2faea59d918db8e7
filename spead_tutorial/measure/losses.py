# SPDX-License-Identifier: BSD-3-Clause
"""What receivers lose at rates that a sender keeps, whatever comes of it."""

from collections.abc import Iterable, Mapping, Sequence

from spead_tutorial.measure.records import Sample, Series, joined, words_of
from spead_tutorial.measure.stats import Estimate, median

#: What the word of a case's variant ends with that says its rate.
_RATE = " GB/s"
#: Samples of a receiver by the rate that it was sent, in GB/s.
ByRate = Mapping[float, Sequence[Sample]]


def by_rate(samples: Iterable[Sample]) -> dict[Series, dict[float, list[Sample]]]:
    """Sort the samples that count by receiver, without their rates, and those by rate."""
    found: dict[Series, dict[float, list[Sample]]] = {}
    for sample in samples:
        rates = [word for word in words_of(sample.variant) if word.endswith(_RATE)]
        if sample.warm_up or len(rates) != 1:
            continue
        variant = joined(*(word for word in words_of(sample.variant) if word not in rates))
        receiver = Series(sample.implementation, sample.language, sample.program, variant)
        rate = float(rates[0].removesuffix(_RATE))
        found.setdefault(receiver, {}).setdefault(rate, []).append(sample)
    return {receiver: dict(sorted(rates.items())) for receiver, rates in found.items()}


def share(samples: Iterable[Sample]) -> Estimate | None:
    """Return the share of packets that was lost, in percent; None where a sample failed."""
    shares = [
        100 * (one.received_dropped or 0) / one.packets if one.packets and not one.failure else None
        for one in samples
    ]
    known = [one for one in shares if one is not None]
    return median(known) if known and len(known) == len(shares) else None


def lossless(rates: ByRate) -> float | None:
    """Return the highest rate at which, and below which, no sample has lost anything."""
    highest = None
    for rate, samples in rates.items():
        if share(samples) is None or any(one.received_dropped for one in samples):
            break
        highest = rate
    return highest
