#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How long after it was queued a heap's packet is on its way, on a stream that was idle.

It is the same program for each library: they have the same names.
"""

from spead_tutorial_run import run

import argparse
import asyncio
import importlib
import json
import random
import socket
import struct
import time

import numpy as np

HEAP_SIZE = 1024
EVERY_MS = 3.0  # time between heaps, about
_SO_TIMESTAMPNS = 35  # which the socket module does not know


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=["spead_tutorial", "spead2"])
    parser.add_argument("-n", dest="heaps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1, help="of these times")
    parser.add_argument("--no-thread", action="store_true", help="a stream without a thread")
    return parser.parse_args()


def make_receiver() -> socket.socket:
    """A socket that says when the kernel got what it receives."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(1.0)
    return receiver


def received_ns(receiver: socket.socket) -> int:
    """When the kernel got the next packet: the same clock as CLOCK_REALTIME."""
    _, ancillary, _, _ = receiver.recvmsg(2048, 64)
    ((_, _, data),) = ancillary
    seconds, ns = struct.unpack("@ll", data)
    return seconds * 10**9 + ns


async def main() -> None:
    options = parse_options()
    library = importlib.import_module(options.library)
    send = importlib.import_module(f"{options.library}.send.asyncio")
    receiver = make_receiver()
    pool = None if options.no_thread else library.ThreadPool()
    config = library.send.StreamConfig(max_packet_size=1472)
    stream = send.UdpStream(pool, [receiver.getsockname()], config)
    item_group = library.send.ItemGroup()
    samples = np.zeros(HEAP_SIZE, np.int8)
    item_group.add_item(
        0x3300, "adc_samples", "Samples", shape=samples.shape, dtype=np.int8, value=samples
    )
    heap = item_group.get_heap(descriptors="none", data="all")
    times = random.Random(options.seed)

    latency_ns = []
    for _ in range(options.heaps):
        await asyncio.sleep(EVERY_MS * times.uniform(0.5, 1.5) / 1e3)
        queued_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        future = stream.async_send_heap(heap)
        await future
        latency_ns.append(received_ns(receiver) - queued_ns)
    print(json.dumps({"heap_size": HEAP_SIZE, "latency_ns": latency_ns}))


if __name__ == "__main__":
    run(main)
