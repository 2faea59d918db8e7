#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 17: power by the thread that reads, from data that is in its cache."""

import numpy as np

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import (
    Heaps,
    describe,
    numbers,
    parse_receiver_options,
)
from spead_tutorial.chapters.squares import mean_square


def main() -> None:
    options = parse_receiver_options(__doc__)
    stream = spead_tutorial.recv.Stream(None)
    stream.add_udp_reader(options.port, bind_hostname=options.host)

    item_group = spead_tutorial.ItemGroup()
    heaps = Heaps(stream, options)
    received = 0
    for heap in heaps:
        known = set(item_group.values())
        try:
            updated = item_group.update(heap)
        except ValueError:  # its items contradict their descriptors
            updated = {}
        for line in describe(item for item in item_group.values() if item not in known):
            options.say(line)
        timestamp, adc_samples = numbers(updated, "timestamp"), numbers(updated, "adc_samples")
        if timestamp is not None and adc_samples is not None and adc_samples.dtype == np.int8:
            power = mean_square(adc_samples)
            options.say(f"Timestamp: {timestamp.flat[0]:<10} Power: {power:.2f}")
            received += 1
        else:
            heaps.not_understood += 1
    heaps.report(f"Received {received} heaps")


if __name__ == "__main__":
    main()
