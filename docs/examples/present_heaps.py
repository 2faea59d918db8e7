# SPDX-License-Identifier: BSD-3-Clause
"""Lose packets, and show which heaps of each chunk are present."""

from typing import Any

import numba
import numpy as np
import scipy
from numba import types

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.measure.verify import make_group
from spead_tutorial.numba import intp_to_voidptr
from spead_tutorial.recv.numba import chunk_place_data

HEAP, HEAPS, CHUNKS = 4000, 32, 4
CHUNK = HEAP * HEAPS


@numba.cfunc(types.void(types.CPointer(chunk_place_data), types.size_t))
def place(data_ptr: Any, size: Any) -> None:
    data = numba.carray(data_ptr, 1)[0]
    timestamp = numba.carray(intp_to_voidptr(data.items), 1, np.int64)[0]
    if timestamp >= 0:
        data.chunk_id = timestamp // CHUNK
        data.heap_offset = timestamp % CHUNK
        data.heap_index = data.heap_offset // HEAP


def packets() -> list[bytes]:
    """Return three packets for each heap."""
    group, made = make_group(HEAP), []
    for i in range(CHUNKS * HEAPS):
        group["timestamp"].value = i * HEAP
        made += send.PacketGenerator(group.get_heap("none", "all"), i + 1, 1472)
    return made


rng = np.random.default_rng(12)
kept = [packet for packet in packets() if rng.random() >= 0.05]
with st.ThreadPool() as threads:
    compiled: Any = place.ctypes
    function = scipy.LowLevelCallable(compiled, signature="void (void *, size_t)")
    config = recv.ChunkStreamConfig(items=[0x1600], max_chunks=1, place=function)
    filled, free = recv.ChunkRingbuffer(CHUNKS), recv.ChunkRingbuffer(CHUNKS)
    stream = recv.ChunkRingStream(threads, recv.StreamConfig(max_heaps=2), config, filled, free)
    for _ in range(CHUNKS):
        data, present = np.zeros(CHUNK, np.int8), np.zeros(HEAPS, np.uint8)
        stream.add_free_chunk(recv.Chunk(data=data, present=present))
    stream.add_buffer_reader(b"".join(kept))
    for chunk in filled:
        row = "".join("■" if there else "·" for there in chunk.present)
        print(f"chunk {chunk.chunk_id}: {row}  {np.count_nonzero(chunk.present)} heaps")
    stream.stop()
