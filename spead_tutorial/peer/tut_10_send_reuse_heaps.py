#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer: chapter 10: more heaps in flight, and heap objects that are built once, with spead2."""

import asyncio

import numpy as np
import spead2
import spead2.send
import spead2.send.asyncio
from peer_report import report

from spead_tutorial.chapters.report import Options, Usage, parse_options


class State:
    """A heap and its memory, to leave alone until the future is done."""

    def __init__(self, heap_size: int) -> None:
        self.timestamp = np.array(0, ">u8")  # the heap sends its low bytes as they are then
        self.adc_samples = np.ones(heap_size, np.int8)
        item_group = spead2.send.ItemGroup()
        item_group.add_item(
            0x1600,
            "timestamp",
            "Index of the first sample",
            shape=(),
            format=[("u", spead2.Flavour().heap_address_bits)],
            value=self.timestamp,
        )
        item_group.add_item(
            0x3300,
            "adc_samples",
            "Samples of the converter",
            shape=(heap_size,),
            dtype=np.int8,
            value=self.adc_samples,
        )
        self.first_heap = item_group.get_heap(descriptors="all", data="all")
        self.heap = item_group.get_heap(descriptors="none", data="all")
        self.end = item_group.get_end()
        self.future: asyncio.Future[int] | None = None


async def main() -> None:
    options = parse_options(__doc__, "nHpd", Options(packet_size=9000))
    heap_size = options.heap_size
    n_states = min(options.n_heaps, max(2, 1024 * 1024 // heap_size))
    thread_pool = spead2.ThreadPool()
    config = spead2.send.StreamConfig(rate=0.0, max_heaps=n_states)
    config.max_packet_size = options.packet_size
    stream = spead2.send.asyncio.UdpStream(thread_pool, [(options.host, options.port)], config)

    states = [State(heap_size) for _ in range(n_states)]
    start = Usage.now()
    for i in range(options.n_heaps):
        state = states[i % n_states]
        if state.future is not None:
            await state.future
        state.adc_samples.fill((i + 128) % 256 - 128)  # wraps: NumPy refuses 128 for an int8
        state.timestamp[...] = i * heap_size
        state.future = stream.async_send_heap(state.heap if i > 0 else state.first_heap)
    for state in states:
        if state.future is not None:
            await state.future
    used = Usage.now() - start
    await stream.async_send_heap(states[0].end)
    report(options, used, states[0].first_heap, states[0].heap, states[0].end)


if __name__ == "__main__":
    asyncio.run(main())
