#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 2: a first sender. Ten heaps of random samples, at 100 MB/s."""

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.report import Options, parse_options, report


def main() -> None:
    options = parse_options(__doc__, "", Options(n_heaps=10))
    thread_pool = spead_tutorial.ThreadPool()
    config = spead_tutorial.send.StreamConfig(rate=100e6)
    stream = spead_tutorial.send.UdpStream(thread_pool, [(options.host, options.port)], config)

    heap_size = options.heap_size
    item_group = spead_tutorial.send.ItemGroup()
    item_group.add_item(
        0x1600,
        "timestamp",
        "Index of the first sample",
        shape=(),
        format=[("u", spead_tutorial.Flavour().heap_address_bits)],
    )
    item_group.add_item(
        0x3300,
        "adc_samples",
        "Samples of the converter",
        shape=(heap_size,),
        dtype=np.int8,
    )

    rng = np.random.default_rng(seed=1)
    for i in range(options.n_heaps):
        item_group["timestamp"].value = i * heap_size
        item_group["adc_samples"].value = rng.integers(-100, 100, size=heap_size, dtype=np.int8)
        stream.send_heap(item_group.get_heap())
    stream.send_heap(item_group.get_end())
    report(options, [stream.stats])


if __name__ == "__main__":
    main()
