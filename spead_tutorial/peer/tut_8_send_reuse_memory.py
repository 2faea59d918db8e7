#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The peer: chapter 8: two states in turn, instead of new memory for every heap, with spead2."""

import asyncio
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import spead2
import spead2.send
import spead2.send.asyncio
from peer_report import report

from spead_tutorial.chapters.report import Options, Usage, parse_options


@dataclass
class State:
    """Memory for a heap, to leave alone until the future is done."""

    adc_samples: npt.NDArray[np.int8]
    future: asyncio.Future[int] | None = None


async def main() -> None:
    options = parse_options(__doc__, "nHpd", Options(packet_size=9000))
    thread_pool = spead2.ThreadPool()
    config = spead2.send.StreamConfig(rate=0.0, max_heaps=2)
    config.max_packet_size = options.packet_size
    stream = spead2.send.asyncio.UdpStream(thread_pool, [(options.host, options.port)], config)

    heap_size = options.heap_size
    item_group = spead2.send.ItemGroup()
    item_group.add_item(
        0x1600,
        "timestamp",
        "Index of the first sample",
        shape=(),
        format=[("u", spead2.Flavour().heap_address_bits)],
    )
    item_group.add_item(
        0x3300,
        "adc_samples",
        "Samples of the converter",
        shape=(heap_size,),
        dtype=np.int8,
    )

    # Touched before the clock starts: np.empty and np.zeros would leave that to the loop.
    states = [State(np.ones(heap_size, np.int8)) for _ in range(2)]
    start = Usage.now()
    for i in range(options.n_heaps):
        state = states[i % len(states)]
        if state.future is not None:
            await state.future
        state.adc_samples.fill((i + 128) % 256 - 128)  # wraps: NumPy refuses 128 for an int8
        item_group["timestamp"].value = i * heap_size
        item_group["adc_samples"].value = state.adc_samples
        state.future = stream.async_send_heap(item_group.get_heap())
    for state in states:
        if state.future is not None:
            await state.future
    used = Usage.now() - start
    end = item_group.get_end()
    await stream.async_send_heap(end)
    first_heap = item_group.get_heap(descriptors="all", data="all")
    heap = item_group.get_heap(descriptors="none", data="all")
    report(options, used, first_heap, heap, end)


if __name__ == "__main__":
    asyncio.run(main())
