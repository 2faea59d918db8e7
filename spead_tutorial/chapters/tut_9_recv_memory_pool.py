#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 9: heaps are received into memory that others have left, in a pool."""

import numpy as np

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import (
    Heaps,
    ReceiverOptions,
    describe,
    numbers,
    parse_receiver_options,
)
from spead_tutorial.chapters.squares import mean_square

#: Where heaps are: being put together, in the ring, in this program. One more may be between them.
MAX_HEAPS, RING_HEAPS, HELD, BETWEEN = 2, 2, 1, 1
BUFFERS = MAX_HEAPS + RING_HEAPS + HELD + BETWEEN
DESCRIPTORS = 8192  # bytes that may be in a heap besides its samples


def main() -> None:
    usual = ReceiverOptions(heap_size=1 << 20, buffers=BUFFERS)
    options = parse_receiver_options(__doc__, usual)
    n, size = options.buffers, options.heap_size + DESCRIPTORS
    pool = spead_tutorial.MemoryPool(0, size, max_free=n, initial=n)
    thread_pool = spead_tutorial.ThreadPool()
    stream = spead_tutorial.recv.Stream(
        thread_pool,
        spead_tutorial.recv.StreamConfig(max_heaps=MAX_HEAPS, memory_allocator=pool),
        spead_tutorial.recv.RingStreamConfig(heaps=RING_HEAPS),
    )
    stream.add_udp_reader(options.port, bind_hostname=options.host)

    item_group = spead_tutorial.ItemGroup()
    heaps = Heaps(stream, options, pool)
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
        for item in updated.values():
            del item.value
        del heap, updated, timestamp, adc_samples  # or the next one would be held beside this one
    heaps.report(f"Received {received} heaps")


if __name__ == "__main__":
    main()
