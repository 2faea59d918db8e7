# SPDX-License-Identifier: BSD-3-Clause
"""Receive into pools of several sizes, with a program so slow that as much waits as can wait."""

import itertools
import logging
import sys
import time
from collections.abc import Iterator

import numpy as np

import spead_tutorial as st
from spead_tutorial import recv, send

N, SIZE = 12, 50_000
MAX_HEAPS, RING_HEAPS = 2, 2
keeps = "keep" in sys.argv  # whether the last heap is kept until the next one is there
BUFFERS = MAX_HEAPS + RING_HEAPS + (2 if keeps else 1) + 1
logging.getLogger("spead_tutorial").setLevel(logging.ERROR)  # what it warns of is in the table

group = send.ItemGroup()
group.add_item(0x3300, "adc_samples", "", (SIZE,), np.int8, value=np.zeros(SIZE, np.int8))
heaps = [list(send.PacketGenerator(group.get_heap("all", "all"), i, 9000)) for i in range(1, N + 1)]
end = list(send.PacketGenerator(group.get_end(), N + 1, 9000))
pairs = [zip(*two, strict=True) for two in zip(heaps[::2], heaps[1::2], strict=True)]


def slow_heaps(stream: recv.Stream, n_heaps: int) -> Iterator[recv.Heap]:
    """Hold each heap until the ring is full again, and one more has found no room in it."""

    def wait_until_full(times: int) -> None:
        while stream.stats["worker_blocked"] < min(times, n_heaps - RING_HEAPS):
            time.sleep(0.001)

    wait_until_full(1)
    for number in range(1, n_heaps + 1):
        heap = stream.get()
        wait_until_full(number + 1)
        yield heap
        del heap


def times_empty(packets: list[bytes], n_heaps: int, buffers: int) -> int:
    pool = st.MemoryPool(0, SIZE + 8192, buffers, buffers)
    config = recv.StreamConfig(max_heaps=MAX_HEAPS, memory_allocator=pool)
    with st.ThreadPool() as threads:
        stream = recv.Stream(threads, config, recv.RingStreamConfig(heaps=RING_HEAPS))
        stream.add_buffer_reader(b"".join(packets + end))
        items = st.ItemGroup()
        for heap in slow_heaps(stream, n_heaps):
            items.update(heap)
            if not keeps:
                del heap, items["adc_samples"].value
        stream.stop()
    return pool.stats.empty


orders = {  # packets, and how many heaps are whole
    "one after the other": (list(itertools.chain(*heaps)), N),
    "two at a time": ([packet for pair in pairs for both in pair for packet in both], N),
    "every second one loses its end": (
        [packet for i, heap in enumerate(heaps) for packet in heap[: -1 if i % 2 else None]],
        N // 2,
    ),
}
print("buffers".ljust(10), *orders, sep="  ")
for buffers in range(BUFFERS - 3, BUFFERS + 2):
    more = buffers - BUFFERS
    name = f"n {'-' if more < 0 else '+'} {abs(more)}" if more else "n"
    counts = [times_empty(*order, buffers) for order in orders.values()]
    cells = (f"{count:>{len(head)}}" for head, count in zip(orders, counts, strict=True))
    print(f"{name} = {buffers}".ljust(10), *cells, sep="  ")
