#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Send samples from standard input as SPEAD heaps, in memory that is used again and again."""

import argparse
import asyncio
import sys
from io import BufferedReader

import numpy as np
import numpy.typing as npt

import spead_tutorial
import spead_tutorial.send
import spead_tutorial.send.asyncio

Block = npt.NDArray[np.int8]
N_BLOCKS = 4  # one is being filled, and three are on their way


def endpoint(text: str) -> tuple[str, int]:
    """Where a substream goes, for argparse."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoints", nargs="+", type=endpoint, metavar="HOST:PORT")
    parser.add_argument("--heap-size", type=int, default=1 << 20, help="samples in a heap")
    parser.add_argument("--packet-size", type=int, default=1472, help="bytes in a packet at most")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes/s; 0 for no limit")
    parser.add_argument("--ttl", type=int, help="time to live of multicast packets")
    parser.add_argument("--interface", help="address of the interface to send from")
    options = parser.parse_args()
    if options.heap_size < 1:
        parser.error("a heap has at least one sample")
    return options


def make_items(heap_size: int) -> spead_tutorial.send.ItemGroup:
    """Describe what is sent, again every 100 heaps for receivers that join late."""
    items = spead_tutorial.send.ItemGroup(descriptor_frequency=100)
    items.add_item(0x1600, "timestamp", "Index of the first sample", shape=(), format=[("u", 40)])
    items.add_item(
        0x3300, "adc_samples", "Samples of the converter", shape=(heap_size,), dtype=np.int8
    )
    return items


def open_stream(
    pool: spead_tutorial.ThreadPool, options: argparse.Namespace
) -> spead_tutorial.send.asyncio.UdpStream:
    config = spead_tutorial.send.StreamConfig(
        max_packet_size=options.packet_size,
        rate=options.rate,
        max_heaps=N_BLOCKS,
        timeline=1000,
    )
    multicast = {"ttl": options.ttl, "interface_address": options.interface}
    given = {name: value for name, value in multicast.items() if value is not None}
    return spead_tutorial.send.asyncio.UdpStream(pool, options.endpoints, config, **given)


class Sender:
    """Blocks of memory go round: filled with samples, sent, and filled again."""

    def __init__(self, stream: spead_tutorial.send.asyncio.UdpStream, heap_size: int) -> None:
        self.stream = stream
        # Each substream has receivers of its own, to which its group describes the items.
        self.groups = [make_items(heap_size) for _ in range(stream.num_substreams)]
        self.free: asyncio.Queue[Block] = asyncio.Queue()
        self.filled: asyncio.Queue[Block | None] = asyncio.Queue()
        self.in_flight: asyncio.Queue[tuple[asyncio.Future[int], Block] | None] = asyncio.Queue()
        self.n_sent = self.n_failed = 0
        for _ in range(N_BLOCKS):
            self.free.put_nowait(np.empty(heap_size, np.int8))

    async def read(self, source: BufferedReader) -> None:
        """Fill blocks, in a thread since reading waits, until the source ends."""
        while True:
            block = await self.free.get()
            n = await asyncio.to_thread(source.readinto, block.data)
            if n < block.nbytes:
                break
            self.filled.put_nowait(block)
        if n > 0:
            print(f"{n} samples at the end fill no heap: not sent", file=sys.stderr)
        self.filled.put_nowait(None)

    async def send(self) -> None:
        """Queue a heap for each block: the substreams take turns."""
        n = 0
        while (block := await self.filled.get()) is not None:
            substream = n % len(self.groups)
            items = self.groups[substream]
            items["timestamp"].value = n * block.size
            items["adc_samples"].value = block
            future = self.stream.async_send_heap(items.get_heap(), substream_index=substream)
            self.in_flight.put_nowait((future, block))
            n += 1
        self.in_flight.put_nowait(None)

    async def give_back(self) -> None:
        """Wait for heaps in their order: then their blocks may be filled again."""
        while (sent := await self.in_flight.get()) is not None:
            future, block = sent
            await self.outcome(future)
            self.free.put_nowait(block)

    async def outcome(self, future: asyncio.Future[int]) -> None:
        """Wait for a heap and count it; say why the first one failed."""
        try:
            await future
            self.n_sent += 1
        except OSError as error:
            if self.n_failed == 0:
                print(error, file=sys.stderr)
            self.n_failed += 1

    async def run(self, source: BufferedReader) -> None:
        """Send all that there is, and tell the receivers that it ends."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.read(source))
            tasks.create_task(self.send())
            tasks.create_task(self.give_back())
        for i, items in enumerate(self.groups):
            await self.outcome(self.stream.async_send_heap(items.get_end(), substream_index=i))


def report(sender: Sender) -> None:
    stats, times = sender.stream.stats, sender.stream.timeline()
    print(f"heaps sent: {sender.n_sent}, that failed: {sender.n_failed}")
    print(f"packets: {stats.packets}, in {stats.messages} messages and {stats.send_calls} calls")
    print(f"packets that failed, by errno: {stats.errors_by_errno}")
    print(f"waits for the socket: {stats.waits}")
    if len(times) > 0:
        took_ns = times["completed_ns"] - times["queued_ns"]
        print(f"from queue to completion: {np.median(took_ns) / 1e6:.2f} ms, the median")


async def main() -> int:
    options = parse_options()
    with spead_tutorial.ThreadPool() as pool, open_stream(pool, options) as stream:
        sender = Sender(stream, options.heap_size)
        with open(sys.stdin.fileno(), "rb", closefd=False) as source:
            await sender.run(source)
        report(sender)
    return 1 if sender.n_failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
