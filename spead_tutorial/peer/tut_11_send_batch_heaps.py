#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer: chapter 11: one call, and one completion, for a batch of heaps, with spead2."""

import asyncio

import numpy as np
import spead2
import spead2.send
import spead2.send.asyncio
from peer_report import report
from spead2.send import GroupMode, HeapReference, HeapReferenceList

from spead_tutorial.chapters.report import Options, Usage, parse_options


class Batch:
    """Heaps and their memory, to leave alone until the future is done."""

    def __init__(self, batch_size: int, heap_size: int) -> None:
        self.timestamps = np.zeros(batch_size, ">u8")
        self.adc_samples = np.ones((batch_size, heap_size), np.int8)
        item_groups = [spead2.send.ItemGroup() for _ in range(batch_size)]
        for i, item_group in enumerate(item_groups):
            item_group.add_item(
                0x1600,
                "timestamp",
                "Index of the first sample",
                shape=(),
                format=[("u", spead2.Flavour().heap_address_bits)],
                value=self.timestamps[i, ...],  # a view: a heap sends it as it is then
            )
            item_group.add_item(
                0x3300,
                "adc_samples",
                "Samples of the converter",
                shape=(heap_size,),
                dtype=np.int8,
                value=self.adc_samples[i],
            )
        heaps = [group.get_heap(descriptors="none", data="all") for group in item_groups]
        first_heap = item_groups[0].get_heap(descriptors="all", data="all")
        self.heaps = HeapReferenceList([HeapReference(heap) for heap in heaps])
        self.first_heaps = HeapReferenceList([HeapReference(h) for h in [first_heap, *heaps[1:]]])
        self.first_heap, self.heap = first_heap, heaps[0]  # to be reported
        self.end = item_groups[0].get_end()
        self.future: asyncio.Future[int] | None = None


async def main() -> None:
    options = parse_options(__doc__, "nHpd", Options(packet_size=9000))
    heap_size = options.heap_size
    batch_size = min(options.n_heaps, max(1, 512 * 1024 // heap_size))
    thread_pool = spead2.ThreadPool()
    config = spead2.send.StreamConfig(rate=0.0, max_heaps=2 * batch_size)
    config.max_packet_size = options.packet_size
    stream = spead2.send.asyncio.UdpStream(thread_pool, [(options.host, options.port)], config)

    batches = [Batch(batch_size, heap_size) for _ in range(2)]
    start = Usage.now()
    for first in range(0, options.n_heaps, batch_size):
        batch = batches[first // batch_size % 2]
        if batch.future is not None:
            await batch.future
        n = min(batch_size, options.n_heaps - first)
        index = np.arange(first, first + n)
        batch.adc_samples[:n] = index.astype(np.int8)[:, np.newaxis]  # wraps, like all casts
        batch.timestamps[:n] = index * heap_size
        heaps = batch.heaps if first > 0 else batch.first_heaps
        if n < batch_size:  # the last batch
            heaps = heaps[:n]
        batch.future = stream.async_send_heaps(heaps, GroupMode.SERIAL)
    for batch in batches:
        if batch.future is not None:
            await batch.future
    used = Usage.now() - start
    await stream.async_send_heap(batches[0].end)
    report(options, used, batches[0].first_heap, batches[0].heap, batches[0].end)


if __name__ == "__main__":
    asyncio.run(main())
