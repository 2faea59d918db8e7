#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 4: the same loop with constant samples, which are quickly made."""

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.report import Options, Usage, parse_options, report


def main() -> None:
    options = parse_options(__doc__, "nHcd", Options(n_heaps=100))
    thread_pool = spead_tutorial.ThreadPool(1, options.cores[1:])
    if options.cores:
        spead_tutorial.ThreadPool.set_affinity(options.cores[0])
    config = spead_tutorial.send.StreamConfig(rate=0.0)
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

    start = Usage.now()
    for i in range(options.n_heaps):
        adc_samples = np.empty(heap_size, np.int8)
        adc_samples.fill((i + 128) % 256 - 128)  # wraps: NumPy refuses 128 for an int8
        item_group["timestamp"].value = i * heap_size
        item_group["adc_samples"].value = adc_samples
        stream.send_heap(item_group.get_heap())
    used = Usage.now() - start
    stream.send_heap(item_group.get_end())
    report(options, [stream.stats], used)


if __name__ == "__main__":
    main()
