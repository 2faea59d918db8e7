#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 15: a recording that the kernel reads in place, instead of copying it."""

import contextlib
import mmap

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.report import (
    Options,
    Usage,
    parse_options,
    report,
    tell,
    tell_of_copies,
)
from spead_tutorial.send import GroupMode, HeapReference, HeapReferenceList


def allocate(n_bytes: int, small_pages: bool) -> memoryview:
    """Return memory in huge pages, or in small ones, wherever the system prefers huge ones."""
    if small_pages:
        memory = mmap.mmap(-1, n_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # where there are none but small ones
            memory.madvise(mmap.MADV_NOHUGEPAGE)
        return memoryview(memory)
    pages = spead_tutorial.HugePages(n_bytes)
    if pages.reason is not None:
        tell(f"the recording is not in huge pages: {pages.reason}")
    return memoryview(pages)


class Recording:
    """Rows of samples that are there already, and a heap for each; they are sent in batches."""

    def __init__(self, n_rows: int, batch_size: int, heap_size: int, small_pages: bool) -> None:
        self.timestamps = np.zeros(n_rows, ">u8")
        memory = allocate(n_rows * heap_size, small_pages)
        self.adc_samples = np.ndarray((n_rows, heap_size), np.int8, memory)
        self.adc_samples[:] = np.arange(n_rows).astype(np.int8)[:, np.newaxis]  # wraps
        item_groups = [spead_tutorial.send.ItemGroup() for _ in range(n_rows)]
        for i, item_group in enumerate(item_groups):
            item_group.add_item(
                0x1600,
                "timestamp",
                "Index of the first sample",
                shape=(),
                format=[("u", spead_tutorial.Flavour().heap_address_bits)],
                value=self.timestamps[i, ...],  # a view: a heap sends it as it is then
            )
            item_group.add_item(
                0x3300,
                "adc_samples",
                "Samples of the converter",
                shape=(heap_size,),
                dtype=np.int8,
                value=self.adc_samples[i],
            )
        heaps = [HeapReference(g.get_heap(descriptors="none", data="all")) for g in item_groups]
        starts = range(0, n_rows, batch_size)
        self.batches = [HeapReferenceList(heaps[i : i + batch_size]) for i in starts]
        heaps[0] = HeapReference(item_groups[0].get_heap(descriptors="all", data="all"))
        self.first_batch = HeapReferenceList(heaps[:batch_size])
        self.end = item_groups[0].get_end()


def main() -> None:
    options = parse_options(__doc__, "nHpzd", Options(packet_size=9000))
    heap_size = options.heap_size
    room = max(heap_size, 8192)  # a small heap counts as this
    batch_size = min(options.n_heaps, max(1, 4 * 1024 * 1024 // room))
    n_batches = max(1, 512 * 1024 * 1024 // room // batch_size)  # in the recording
    n_rows = min(n_batches * batch_size, options.n_heaps)
    config = spead_tutorial.send.StreamConfig(rate=0.0, max_heaps=batch_size)
    config.max_packet_size = options.packet_size
    stream = spead_tutorial.send.UdpStream(
        None, [(options.host, options.port)], config, zero_copy=not options.copy
    )

    recording = Recording(n_rows, batch_size, heap_size, options.small_pages)
    start = Usage.now()
    for first in range(0, options.n_heaps, batch_size):
        n = min(batch_size, options.n_heaps - first)
        index = np.arange(first, first + n)
        row = first % n_rows  # again and again
        if options.fill:
            recording.adc_samples[row : row + n] = index.astype(np.int8)[:, np.newaxis]
        recording.timestamps[row : row + n] = index * heap_size
        heaps = recording.batches[row // batch_size] if first > 0 else recording.first_batch
        if n < batch_size:  # the last batch
            heaps = heaps[:n]
        stream.send_heaps(heaps, GroupMode.SERIAL)
    used = Usage.now() - start
    if not options.copy:
        tell_of_copies(stream.stats)
    stream.send_heap(recording.end)
    report(options, [stream.stats], used)


if __name__ == "__main__":
    main()
