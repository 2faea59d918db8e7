#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 8, first step: heaps of any size, each in new memory."""

import asyncio
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import spead_tutorial
import spead_tutorial.send
import spead_tutorial.send.asyncio
from spead_tutorial.chapters.report import Options, Usage, parse_options, report


@dataclass
class State:
    """A heap in flight: memory to leave alone until the future is done."""

    adc_samples: npt.NDArray[np.int8]
    future: asyncio.Future[int]


async def main() -> None:
    options = parse_options(__doc__, "nHpd", Options(packet_size=9000))
    thread_pool = spead_tutorial.ThreadPool()
    config = spead_tutorial.send.StreamConfig(rate=0.0, max_heaps=2)
    config.max_packet_size = options.packet_size
    stream = spead_tutorial.send.asyncio.UdpStream(
        thread_pool, [(options.host, options.port)], config
    )

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

    old_state = None
    start = Usage.now()
    for i in range(options.n_heaps):
        adc_samples = np.empty(heap_size, np.int8)
        adc_samples.fill((i + 128) % 256 - 128)  # wraps: NumPy refuses 128 for an int8
        item_group["timestamp"].value = i * heap_size
        item_group["adc_samples"].value = adc_samples
        new_state = State(adc_samples, stream.async_send_heap(item_group.get_heap()))
        if old_state is not None:
            await old_state.future
        old_state = new_state
    if old_state is not None:
        await old_state.future
    used = Usage.now() - start
    await stream.async_send_heap(item_group.get_end())
    report(options, [stream.stats], used)


if __name__ == "__main__":
    asyncio.run(main())
