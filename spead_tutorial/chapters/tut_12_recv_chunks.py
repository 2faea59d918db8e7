#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 12: small heaps, gathered in chunks of about 1 MiB."""

import ctypes
import os
from typing import Any

import numpy as np

import spead_tutorial
import spead_tutorial.recv
from spead_tutorial.chapters.receiving import (
    UNFIT,
    Chunks,
    ReceiverOptions,
    parse_receiver_options,
)

try:
    import numba
    import scipy
    from numba import types

    from spead_tutorial.numba import intp_to_voidptr
    from spead_tutorial.recv.numba import chunk_place_data
except ImportError as error:
    raise SystemExit(f"{error}: pip install 'spead-tutorial[numba]'") from None

CHUNK = 1 << 20  # bytes of samples in a chunk, or somewhat less
CHUNKS = 4  # one that is filled, two in the ring, and one with the program


@numba.cfunc(
    types.void(types.CPointer(chunk_place_data), types.size_t, types.CPointer(types.int64))
)
def place(data_ptr: Any, data_size: Any, known_ptr: Any) -> None:
    """Say where a heap belongs: called by the stream's thread."""
    data = numba.carray(data_ptr, 1)[0]
    items = numba.carray(intp_to_voidptr(data.items), 2, np.int64)
    heap_size, chunk_size, unfit = numba.carray(known_ptr, 3)
    length, timestamp = items[0], items[1]
    if timestamp < 0:
        return  # there are no samples in it: it has the descriptors
    if length == heap_size and timestamp % heap_size == 0:
        data.chunk_id = timestamp // chunk_size
        data.heap_offset = timestamp % chunk_size
        data.heap_index = data.heap_offset // heap_size
    else:
        stats = numba.carray(intp_to_voidptr(data.batch_stats), unfit + 1, np.uint64)
        stats[unfit] += 1


@numba.njit("float64(int8[:, ::1], uint8[::1])")
def mean_square(samples: Any, present: Any) -> float:
    """Mean of the squares of the heaps that are there."""
    total = n = 0
    for heap in range(len(samples)):
        if present[heap]:
            n += samples.shape[1]
            for sample in samples[heap]:
                total += int(sample) * int(sample)
    return total / n


def main() -> None:
    options = parse_receiver_options(__doc__, ReceiverOptions(heap_size=1 << 20))
    heap_size = options.heap_size
    n_heaps = max(1, CHUNK // heap_size)  # in a chunk
    chunk_size = n_heaps * heap_size
    cores = sorted(os.sched_getaffinity(0))[-2:]  # of the stream's thread, and of this one
    thread_pool = spead_tutorial.ThreadPool(1, cores[:-1])
    spead_tutorial.ThreadPool.set_affinity(cores[-1])

    config = spead_tutorial.recv.StreamConfig(max_heaps=2)
    compiled: Any = place.ctypes
    known = np.array([heap_size, chunk_size, config.add_stat(UNFIT)], np.int64)
    chunk_config = spead_tutorial.recv.ChunkStreamConfig(
        items=[spead_tutorial.HEAP_LENGTH_ID, 0x1600],
        max_chunks=1,
        place=scipy.LowLevelCallable(
            compiled,
            user_data=known.ctypes.data_as(ctypes.c_void_p),
            signature="void (void *, size_t, void *)",
        ),
    )
    stream = spead_tutorial.recv.ChunkRingStream(
        thread_pool,
        config,
        chunk_config,
        spead_tutorial.recv.ChunkRingbuffer(2),
        spead_tutorial.recv.ChunkRingbuffer(CHUNKS),
    )
    for _ in range(CHUNKS):
        chunk = spead_tutorial.recv.Chunk(
            data=np.zeros((n_heaps, heap_size), np.int8), present=np.zeros(n_heaps, np.uint8)
        )
        stream.add_free_chunk(chunk)
    stream.add_udp_reader(options.port, bind_hostname=options.host)

    chunks = Chunks(stream, options)
    received = 0
    for chunk in chunks:
        n = int(np.count_nonzero(chunk.present))
        if n > 0:
            power = mean_square(chunk.data, chunk.present)
            options.say(f"Timestamp: {chunk.chunk_id * chunk_size:<10} Power: {power:.2f}")
            received += n
        stream.add_free_chunk(chunk)
    chunks.report(f"Received {received} heaps")


if __name__ == "__main__":
    main()
