#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 19: one of an array's receivers, which gathers what all senders send in chunks."""

import ctypes
from typing import Any

import numpy as np

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import (
    UNFIT,
    ChunksOfAll,
    ReceiverOptions,
    parse_receiver_options,
)
from spead_tutorial.recv import ChunkStreamConfig, ChunkStreamGroupConfig

try:
    import numba
    import scipy
    from numba import types

    from spead_tutorial.numba import intp_to_voidptr
    from spead_tutorial.recv.numba import chunk_place_data
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'spead-tutorial[numba]'") from None

CHUNK = 1 << 20  # bytes of each sender's samples in a chunk, or somewhat less
WINDOW = 8  # chunks that are filled: so far may a sender be ahead of another
CHUNKS = WINDOW + 3  # with two in the ring, and one with the program


@numba.cfunc(
    types.void(types.CPointer(chunk_place_data), types.size_t, types.CPointer(types.int64))
)
def place(data_ptr: Any, data_size: Any, known_ptr: Any) -> None:
    """Say where a heap belongs: in the row of the sender whose port it came to."""
    data = numba.carray(data_ptr, 1)[0]
    items = numba.carray(intp_to_voidptr(data.items), 2, np.int64)
    heap_size, n_heaps, sender, unfit = numba.carray(known_ptr, 4)
    length, timestamp = items[0], items[1]
    if timestamp < 0:
        return  # it is the one with the descriptors
    if length == heap_size and timestamp % heap_size == 0:
        i = timestamp // heap_size
        data.chunk_id = i // n_heaps
        data.heap_index = sender * n_heaps + i % n_heaps
        data.heap_offset = data.heap_index * heap_size
    else:
        stats = numba.carray(intp_to_voidptr(data.batch_stats), unfit + 1, np.uint64)
        stats[unfit] += 1


@numba.njit("float64(int8[:, :, ::1], uint8[:, ::1])")
def mean_square(samples: Any, present: Any) -> float:
    """Mean of the squares of the heaps that are there."""
    total = n = 0
    for sender in range(samples.shape[0]):
        for heap in range(samples.shape[1]):
            if present[sender, heap]:
                n += samples.shape[2]
                for sample in samples[sender, heap]:
                    total += int(sample) * int(sample)
    return total / n


def chunk_config(known: Any) -> ChunkStreamConfig:
    """How the stream of a sender fills chunks; its place function reads what is known."""
    compiled: Any = place.ctypes
    return ChunkStreamConfig(
        items=[spead_tutorial.HEAP_LENGTH_ID, 0x1600],
        max_chunks=1,
        place=scipy.LowLevelCallable(
            compiled,
            user_data=known.ctypes.data_as(ctypes.c_void_p),
            signature="void (void *, size_t, void *)",
        ),
    )


def main() -> None:
    options = parse_receiver_options(__doc__, ReceiverOptions(heap_size=1 << 20, senders=1))
    heap_size, senders = options.heap_size, options.senders
    n_heaps = max(1, CHUNK // heap_size)  # of each sender in a chunk
    modes = ChunkStreamGroupConfig.EvictionMode
    group = spead_tutorial.recv.ChunkStreamRingGroup(
        ChunkStreamGroupConfig(
            max_chunks=WINDOW, eviction_mode=modes.LOSSY if options.lossy else modes.LOSSLESS
        ),
        spead_tutorial.recv.ChunkRingbuffer(2),
        spead_tutorial.recv.ChunkRingbuffer(CHUNKS),
    )
    thread_pool = spead_tutorial.ThreadPool(senders)
    config = spead_tutorial.recv.StreamConfig(max_heaps=2)
    unfit = config.add_stat(UNFIT)
    known = np.array([(heap_size, n_heaps, i, unfit) for i in range(senders)], np.int64)
    for of_sender in known:
        group.emplace_back(thread_pool, config, chunk_config(of_sender))
    for _ in range(CHUNKS):
        chunk = spead_tutorial.recv.Chunk(
            data=np.zeros((senders, n_heaps, heap_size), np.int8),
            present=np.zeros((senders, n_heaps), np.uint8),
        )
        group.add_free_chunk(chunk)
    for i, stream in enumerate(group):
        stream.add_udp_reader(options.host, options.port + i, interface_address=options.interface)

    chunks = ChunksOfAll(group, options)
    received = 0
    for chunk in chunks:
        n = int(np.count_nonzero(chunk.present))
        if n > 0:
            first = chunk.chunk_id * n_heaps * heap_size
            power = mean_square(chunk.data, chunk.present)
            there = np.count_nonzero(chunk.present.any(axis=1))
            options.say(f"Timestamp: {first:<10} Power: {power:.2f} Senders: {there} of {senders}")
            received += n
        group.add_free_chunk(chunk)
    chunks.report(f"Received {received} heaps")


if __name__ == "__main__":
    main()
