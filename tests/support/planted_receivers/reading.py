# SPDX-License-Identifier: BSD-3-Clause
"""A receiver with one fault: PROGRAM HOST PORT FAULT [mended]."""

import gc
import json
import socket
import sys
import time
from collections.abc import Callable

import spead_tutorial
import spead_tutorial.recv

host, port, fault, *mended = sys.argv[1:]
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def read(work: Callable[[bytes], None]) -> None:
    """Read one packet after the other, and work on each."""
    sock.bind((host, int(port)))
    while True:
        work(sock.recv(1 << 16))


def computes(packet: bytes) -> None:
    """Add all samples up, in the slowest of ways."""
    if not mended:
        sum(packet)


class Collecting:
    """A collection of garbage now and then, which looks at many objects each time."""

    def __init__(self) -> None:
        gc.disable()
        self._many = [[i] for i in range(300_000)]
        self._packets = 0

    def work(self, _: bytes) -> None:
        """Do it once in many packets."""
        self._packets += 1
        if self._packets % 100 == 0 and not mended:
            gc.collect()


def stream() -> None:
    """Take heaps out of a stream's ring, too slowly."""
    pool = spead_tutorial.ThreadPool()
    stream = spead_tutorial.recv.Stream(pool)
    stream.add_udp_reader(int(port), bind_hostname=host, buffer_size=1 << 20)
    try:
        for _ in stream:
            until = time.perf_counter() + (0 if mended else 2e-3)
            while time.perf_counter() < until:
                pass
    except KeyboardInterrupt:
        pass
    print(json.dumps(dict(stream.stats.items())))


if fault == "stream":
    stream()
else:
    read(computes if fault == "computes" else Collecting().work)
