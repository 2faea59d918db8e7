#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""When a stream's packets go: how soon on an idle one, or how evenly on one that keeps a rate.

It is the same program for each library: they have the same names.
"""

import argparse
import asyncio
import importlib
import json
import random
import socket
import struct
import time
from collections import deque
from typing import Any

import numpy as np

EVERY_MS = 3.0  # time between heaps on an idle stream, about
PACKET_SIZE = 9000
IN_FLIGHT = 64  # so many that the limiter does not run out of heaps
_SO_TIMESTAMPNS = 35  # which the socket module does not know


def parse_options() -> argparse.Namespace:
    example = "example: one_stream.py spead2 rate --rate 1e9 127.0.0.1 8888"
    parser = argparse.ArgumentParser(description=__doc__, epilog=example)
    parser.add_argument("library", choices=["spead_tutorial", "spead2"])
    parser.add_argument("--no-thread", action="store_true", help="a stream without a thread")
    what = parser.add_subparsers(required=True)
    latency = what.add_parser("latency", help="time each heap until the kernel has received it")
    latency.set_defaults(measure=measure_latency)
    latency.add_argument("-n", dest="heaps", type=int, default=1000)
    latency.add_argument("--seed", type=int, default=1, help="of the times between heaps")
    rate = what.add_parser("rate", help="send heaps that are made once, as fast as is allowed")
    rate.set_defaults(measure=measure_rate)
    rate.add_argument("--rate", type=float, required=True, help="bytes/s of SPEAD packets")
    rate.add_argument("--seconds", type=float, default=2.0, help="how long that is to take")
    rate.add_argument("host")
    rate.add_argument("port", type=int)
    return parser.parse_args()


def make_stream(options: argparse.Namespace, to: Any, **config: Any) -> Any:
    library = importlib.import_module(options.library)
    send = importlib.import_module(f"{options.library}.send.asyncio")
    pool = None if options.no_thread else library.ThreadPool()
    return send.UdpStream(pool, [to], library.send.StreamConfig(**config))


def make_heap(options: argparse.Namespace, heap_size: int) -> Any:
    send = importlib.import_module(f"{options.library}.send")
    item_group = send.ItemGroup()
    samples = np.zeros(heap_size, np.int8)
    item_group.add_item(
        0x3300, "adc_samples", "Samples", shape=samples.shape, dtype=np.int8, value=samples
    )
    return item_group.get_heap(descriptors="none", data="all")


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


async def measure_latency(options: argparse.Namespace) -> dict[str, Any]:
    heap_size = 1024
    receiver = make_receiver()
    stream = make_stream(options, receiver.getsockname(), max_packet_size=1472)
    heap = make_heap(options, heap_size)
    times = random.Random(options.seed)
    latency_ns = []
    for _ in range(options.heaps):
        await asyncio.sleep(EVERY_MS * times.uniform(0.5, 1.5) / 1e3)
        queued_ns = time.clock_gettime_ns(time.CLOCK_REALTIME)
        future = stream.async_send_heap(heap)
        await future
        latency_ns.append(received_ns(receiver) - queued_ns)
    return {"heap_size": heap_size, "latency_ns": latency_ns}


async def measure_rate(options: argparse.Namespace) -> dict[str, Any]:
    heap_size = 64 * 1024
    limits = {"max_packet_size": PACKET_SIZE, "rate": options.rate, "max_heaps": IN_FLIGHT}
    stream = make_stream(options, (options.host, options.port), **limits)
    send = importlib.import_module(f"{options.library}.send")
    heap = make_heap(options, heap_size)
    packets = [len(p) for p in send.PacketGenerator(heap, 1, PACKET_SIZE)]
    heaps = max(2, round(options.rate * options.seconds / sum(packets)))
    futures: deque[asyncio.Future[int]] = deque()
    for _ in range(heaps):
        if len(futures) == IN_FLIGHT:
            await futures.popleft()
        futures.append(stream.async_send_heap(heap))
    await asyncio.gather(*futures)
    return {
        "heaps": heaps,
        "heap_size": heap_size,
        "packet_size": PACKET_SIZE,
        "packets": heaps * len(packets),
        "spead_bytes": heaps * sum(packets),
        "burst_size": send.StreamConfig().burst_size,
    }


async def main() -> None:
    options = parse_options()
    print(json.dumps(await options.measure(options)))


if __name__ == "__main__":
    asyncio.run(main())
