#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""To do, chapter 2: heaps that have samples, and a stream that ends."""

from spead_tutorial_run import run

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
    # TODO: add the item adc_samples: id 0x3300, heap_size numbers of type int8.

    for i in range(options.n_heaps):
        item_group["timestamp"].value = i * heap_size
        # TODO: give adc_samples heap_size random numbers, from -100 to 99.
        stream.send_heap(item_group.get_heap())
    # TODO: send the heap that ends the stream.
    report(options, [stream.stats])


if __name__ == "__main__":
    run(main)
