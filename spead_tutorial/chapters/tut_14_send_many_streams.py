#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 14: a stream for each core; together they send one sequence of heaps."""

import os
import threading

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.report import Options, Usage, parse_options, report
from spead_tutorial.send import GroupMode, HeapReference, HeapReferenceList


class Sender:
    """A stream, and the heaps that its thread fills and sends: first, first + step, ..."""

    def __init__(self, options: Options, first: int, step: int) -> None:
        self.n_heaps, self.heap_size = options.n_heaps, options.heap_size
        self.first, self.step = first, step
        batch_size = min(max(1, 512 * 1024 // self.heap_size), (self.n_heaps - 1) // step + 1)
        self.timestamps = np.zeros(batch_size, ">u8")
        self.adc_samples = np.ones((batch_size, self.heap_size), np.int8)
        item_groups = [spead_tutorial.send.ItemGroup() for _ in range(batch_size)]
        for i, item_group in enumerate(item_groups):
            item_group.add_item(
                0x1600,
                "timestamp",
                "Index of the first sample",
                shape=(),
                format=[("u", spead_tutorial.Flavour().heap_address_bits)],
                value=self.timestamps[i, ...],  # a view: a heap sends it as it is then
            )
            item_group.add_item(
                0x3300,
                "adc_samples",
                "Samples of the converter",
                shape=(self.heap_size,),
                dtype=np.int8,
                value=self.adc_samples[i],
            )
        heaps = [group.get_heap(descriptors="none", data="all") for group in item_groups]
        self.heaps = HeapReferenceList([HeapReference(heap) for heap in heaps])
        self.first_heap = item_groups[0].get_heap(descriptors="all", data="all")
        self.end = item_groups[0].get_end()
        config = spead_tutorial.send.StreamConfig(rate=0.0, max_heaps=batch_size)
        config.max_packet_size = options.packet_size
        self.stream = spead_tutorial.send.UdpStream(None, [(options.host, options.port)], config)
        self.stream.set_cnt_sequence(first + 1, step)

    def send_heaps(self, core: int | None) -> None:
        """Work as a thread. Python's lock is let go to fill and to send, and held for the rest."""
        if core is not None:
            spead_tutorial.ThreadPool.set_affinity(core)
        step, batch_size = self.step, len(self.heaps)
        for first in range(self.first, self.n_heaps, step * batch_size):
            index = np.arange(first, min(first + step * batch_size, self.n_heaps), step)
            n = len(index)
            self.adc_samples[:n] = index.astype(np.int8)[:, np.newaxis]  # wraps, like all casts
            self.timestamps[:n] = index * self.heap_size
            heaps = self.heaps if n == batch_size else self.heaps[:n]  # the last batch
            self.stream.send_heaps(heaps, GroupMode.SERIAL)


def main() -> None:
    cores = sorted(os.sched_getaffinity(0))
    options = parse_options(__doc__, "nHpsd", Options(packet_size=9000, n_streams=len(cores)))
    n_streams = min(options.n_streams, options.n_heaps)
    senders = [Sender(options, k, n_streams) for k in range(n_streams)]
    threads = []
    for k, sender in enumerate(senders):
        core = cores[k] if n_streams <= len(cores) else None
        threads.append(threading.Thread(target=sender.send_heaps, args=[core]))
    start = Usage.now()
    senders[0].adc_samples[0] = 0  # with the descriptors: before all others
    senders[0].stream.send_heap(senders[0].first_heap)
    senders[0].first += n_streams
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = Usage.now() - start
    senders[0].stream.send_heap(senders[0].end, cnt=options.n_heaps + 1)  # follows the last one
    report(options, [sender.stream.stats for sender in senders], used)


if __name__ == "__main__":
    main()
