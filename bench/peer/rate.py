#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send at a rate: heaps that are made once, so that the limiter is all there is to wait for.

It is the same program for each library: they have the same names.
"""

from spead_tutorial_run import run

import argparse
import asyncio
import importlib
import json
from collections import deque

import numpy as np

HEAP_SIZE = 64 * 1024
PACKET_SIZE = 9000
IN_FLIGHT = 64  # so many that the limiter does not run out of heaps


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["spead_tutorial", "spead2"])
    parser.add_argument("--rate", type=float, required=True, help="bytes/s of SPEAD packets")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long that is to take")
    parser.add_argument("--no-thread", action="store_true", help="a stream without a thread")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    return parser.parse_args()


async def main() -> None:
    options = parse_options()
    library = importlib.import_module(options.library)
    send = importlib.import_module(f"{options.library}.send.asyncio")
    pool = None if options.no_thread else library.ThreadPool()
    config = library.send.StreamConfig(
        max_packet_size=PACKET_SIZE, rate=options.rate, max_heaps=IN_FLIGHT
    )
    stream = send.UdpStream(pool, [(options.host, options.port)], config)
    item_group = library.send.ItemGroup()
    samples = np.zeros(HEAP_SIZE, np.int8)
    item_group.add_item(
        0x3300, "adc_samples", "Samples", shape=samples.shape, dtype=np.int8, value=samples
    )
    heap = item_group.get_heap(descriptors="none", data="all")
    packets = [len(p) for p in library.send.PacketGenerator(heap, 1, PACKET_SIZE)]
    heaps = max(2, round(options.rate * options.seconds / sum(packets)))

    futures: deque[asyncio.Future[int]] = deque()
    for _ in range(heaps):
        if len(futures) == IN_FLIGHT:
            await futures.popleft()
        futures.append(stream.async_send_heap(heap))
    await asyncio.gather(*futures)
    report = {
        "heaps": heaps,
        "heap_size": HEAP_SIZE,
        "packet_size": PACKET_SIZE,
        "packets": heaps * len(packets),
        "spead_bytes": heaps * sum(packets),
        "burst_size": config.burst_size,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)
