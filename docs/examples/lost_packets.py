# SPDX-License-Identifier: BSD-3-Clause
"""Leave packets of ten heaps out, receive the others from memory, and say what became of them."""

import logging

import numpy as np

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.measure.verify import make_group

HEAP_SIZE = 10_000
SIZE = 1472
logging.getLogger("spead_tutorial").setLevel(logging.ERROR)  # what it warns of is in the table

group = make_group(HEAP_SIZE)
heaps = []  # the packets of each
for i in range(10):
    group["timestamp"].value = i * HEAP_SIZE
    group["adc_samples"].value = np.zeros(HEAP_SIZE, np.int8)
    heaps.append(list(send.PacketGenerator(group.get_heap(), i + 1, SIZE)))
end = b"".join(send.PacketGenerator(group.get_end(), 11, SIZE))


def receive(data: bytes) -> None:
    """Receive packets, and print a row of the table."""
    with st.ThreadPool() as pool, recv.Stream(pool) as stream:
        stream.add_buffer_reader(data)
        items = st.ItemGroup()
        undescribed = sum("adc_samples" not in items.update(heap) for heap in stream)
        s = stream.stats
    incomplete = s.incomplete_heaps_evicted + s.incomplete_heaps_flushed
    never_begun = s.heaps_never_begun + s.counts_skipped  # the sender counts every heap
    row = s.heaps_complete, undescribed, incomplete, never_begun, s.packets_after_loss
    print("".join(f"{count:>{width}}" for count, width in zip(row, WIDTHS, strict=True)))


HEADS = ("complete", "without descriptors", "incomplete", "never begun", "packets after a loss")
WIDTHS = [len(head) + 2 for head in HEADS]
print(f"{'left out':28}", *(f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS, strict=True)),
      sep="")  # fmt: skip
for words, first, last, at in (
    ("nothing", 5, 4, slice(0)),
    ("the 4th packet of heap 5", 5, 5, slice(3, 4)),
    ("the first packet of heap 5", 5, 5, slice(1)),
    ("all of heap 5", 5, 5, slice(None)),
    ("the first packet of heap 1", 1, 1, slice(1)),
    ("heaps 1 to 3", 1, 3, slice(None)),
    ("the last packet of heap 10", 10, 10, slice(-1, None)),
    ("all of heap 10", 10, 10, slice(None)),
):
    kept = [list(packets) for packets in heaps]
    for packets in kept[first - 1 : last]:
        del packets[at]
    print(f"{words:28}", end="")
    receive(b"".join(packet for packets in kept for packet in packets) + end)
