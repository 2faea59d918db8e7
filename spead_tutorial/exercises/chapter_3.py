#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""To do, chapter 3: what is in each heap, printed as it arrives."""

from spead_tutorial_run import run

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import Heaps, parse_receiver_options


def main() -> None:
    options = parse_receiver_options(__doc__)
    thread_pool = spead_tutorial.ThreadPool()
    stream = spead_tutorial.recv.Stream(thread_pool)
    stream.add_udp_reader(options.port, bind_hostname=options.host)

    # TODO: make an item group.
    heaps = Heaps(stream, options)
    for heap in heaps:
        # TODO: update the group with the heap, and print the timestamp, and the mean of the squares
        # of adc_samples: options.say(f"Timestamp: {timestamp:<10} Power: {power:.2f}").
        del heap
    heaps.report()


if __name__ == "__main__":
    run(main)
