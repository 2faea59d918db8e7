# SPDX-License-Identifier: BSD-3-Clause
"""What the planted senders in Python share: [LIBRARY] HOST PORT HEAPS [mended], and a stream.

The library is this package or spead2, which have the same names. Heaps are of 1 MiB, and two are on
their way at a time. Those that use plain sockets cut them into packets here.
"""

import argparse
import asyncio
import collections
import importlib
import socket
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

HEAP_SIZE = 1 << 20
PACKET_SIZE = 9000
#: Of a packet: 8 bytes and five items, count, length, offset, length here, and the samples.
HEADER = struct.Struct(">6Q")
PAYLOAD = PACKET_SIZE - HEADER.size


def parse(*, library: bool = True) -> argparse.Namespace:
    """Read the command line; plain sockets need no library."""
    parser = argparse.ArgumentParser()
    if library:
        parser.add_argument("library")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("heaps", type=int)
    parser.add_argument("mended", nargs="?", type=bool, default=False)
    return parser.parse_args()


class Sender:
    """A stream of a library's, and two heaps to fill in turn."""

    def __init__(
        self,
        *,
        packet_size: int = PACKET_SIZE,
        rate: float = 0.0,
        offload: bool = False,
    ) -> None:
        arguments = parse()
        self.n_heaps, self.mended = arguments.heaps, arguments.mended
        if self.mended:
            packet_size, rate = PACKET_SIZE, 0.0
        ours = self.mended and offload  # which spead2's wheel does without
        self.library = importlib.import_module("spead_tutorial" if ours else arguments.library)
        send = importlib.import_module(f"{self.library.__name__}.send")
        self._group = send.ItemGroup
        self._config = send.StreamConfig(max_packet_size=packet_size, rate=rate, max_heaps=2)
        self._to = [(arguments.host, arguments.port)]
        self.samples = [np.ones(HEAP_SIZE, np.int8) for _ in range(2)]
        self.heaps = [self.heap_of(samples) for samples in self.samples]

    def heap_of(self, samples: Any) -> Any:
        """Return a heap that refers to samples."""
        group = self._group()
        group.add_item(0x3300, "samples", "", samples.shape, samples.dtype, value=samples)
        return group.get_heap(descriptors="none", data="all")

    def filled(self, i: int) -> Any:
        """Return the next of the two heaps, filled."""
        self.samples[i % 2].fill(i % 100)
        return self.heaps[i % 2]

    def send(self, heap: Callable[[int], Any]) -> None:
        """Send all heaps: the i-th is made, or filled, when that before the last has gone."""
        asyncio.run(self._send(heap))

    async def _send(self, heap: Callable[[int], Any]) -> None:
        # spead2's stream belongs to the loop that runs when it is made.
        asynchronous = importlib.import_module(f"{self.library.__name__}.send.asyncio")
        pool = self.library.ThreadPool(1)
        stream = asynchronous.UdpStream(pool, self._to, self._config)
        on_their_way: collections.deque[Any] = collections.deque()
        for i in range(self.n_heaps):
            if len(on_their_way) == 2:
                await on_their_way.popleft()
            on_their_way.append(stream.async_send_heap(heap(i)))
        await asyncio.gather(*on_their_way)


class Plain:
    """A plain socket, samples to fill, and packets of them; nothing is wrong with it."""

    def __init__(self) -> None:
        to = parse(library=False)
        self.heaps, self.mended = to.heaps, to.mended
        self.samples = np.zeros(HEAP_SIZE, np.uint8)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect((to.host, to.port))
        self.offload(on=True)
        # Headers are made once: of them only the heap's number changes.
        immediate = [1 << 63 | number << 40 for number in range(5)]
        begin = 0x5304030500000005, immediate[1], immediate[2] | HEAP_SIZE
        offsets, packed = range(0, HEAP_SIZE, PAYLOAD), bytearray()
        parts = [self.samples[offset : offset + PAYLOAD] for offset in offsets]
        for offset, part in zip(offsets, parts, strict=True):
            where = immediate[3] | offset, immediate[4] | len(part)
            packed += HEADER.pack(*begin, *where, 0x3300 << 40)
        self._counts = np.frombuffer(packed, ">u8")[1::6]
        pairs = zip(range(0, len(packed), HEADER.size), parts, strict=True)
        self._pieces = [
            piece
            for at, part in pairs
            for piece in (memoryview(packed)[at : at + HEADER.size], part.data)
        ]

    def offload(self, *, on: bool) -> None:
        """Send with segmentation offload, or without."""
        self._together = 65507 // PACKET_SIZE if on else 1
        self._socket.setsockopt(socket.IPPROTO_UDP, 103, PACKET_SIZE if on else 0)  # UDP_SEGMENT

    def send(self, count: int) -> None:
        """Send the samples as a heap."""
        self._counts[:] = 1 << 63 | 1 << 40 | count
        for first in range(0, len(self._pieces), 2 * self._together):
            self._socket.sendmsg(self._pieces[first : first + 2 * self._together])
