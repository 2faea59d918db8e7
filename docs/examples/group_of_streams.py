# SPDX-License-Identifier: BSD-3-Clause
"""Receive two polarisations with a stream for each, which fill the same chunks."""

from typing import Any

import numba
import numpy as np
import scipy
from numba import types

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.numba import intp_to_voidptr
from spead_tutorial.recv.numba import chunk_place_data

HEAP, POLS, TIMES, CHUNKS = 4000, 2, 32, 3  # bytes; in a chunk: polarisations, heaps of each


@numba.cfunc(types.void(types.CPointer(chunk_place_data), types.size_t))
def place(data_ptr: Any, size: Any) -> None:
    data = numba.carray(data_ptr, 1)[0]
    timestamp, pol = numba.carray(intp_to_voidptr(data.items), 2, np.int64)
    if timestamp >= 0:
        time = timestamp // HEAP
        data.chunk_id = time // TIMES
        data.heap_index = pol * TIMES + time % TIMES
        data.heap_offset = data.heap_index * HEAP


def packets(pol: int) -> list[bytes]:
    """Return three packets for each heap of a polarisation."""
    group = send.ItemGroup()
    timestamp = group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)])
    group.add_item(0x1601, "polarisation", "", (), format=[("u", 40)], value=pol)
    group.add_item(0x3300, "adc_samples", "", (HEAP,), np.int8, value=np.zeros(HEAP, np.int8))
    made = []
    for i in range(CHUNKS * TIMES):
        timestamp.value = i * HEAP
        made += send.PacketGenerator(group.get_heap("none", "all"), i + 1, 1472)
    return made


compiled: Any = place.ctypes
function = scipy.LowLevelCallable(compiled, signature="void (void *, size_t)")
config = recv.ChunkStreamConfig(items=[0x1600, 0x1601], max_chunks=2, place=function)
mode = recv.ChunkStreamGroupConfig.EvictionMode.LOSSLESS
together = recv.ChunkStreamGroupConfig(max_chunks=2, eviction_mode=mode)
filled, free = recv.ChunkRingbuffer(CHUNKS), recv.ChunkRingbuffer(CHUNKS)
rng = np.random.default_rng(12)
with recv.ChunkStreamRingGroup(together, filled, free) as group:
    for _ in range(POLS):
        group.emplace_back(st.ThreadPool(), recv.StreamConfig(), config)
    for _ in range(CHUNKS):
        data, present = np.zeros((POLS, TIMES * HEAP), np.int8), np.zeros((POLS, TIMES), np.uint8)
        group.add_free_chunk(recv.Chunk(data=data, present=present))
    for pol, stream in enumerate(group):
        kept = [packet for packet in packets(pol) if rng.random() >= 0.05]
        stream.add_buffer_reader(b"".join(kept))  # elsewhere: add_udp_reader, a port for each
    for chunk in filled:
        for pol, marks in enumerate(chunk.present):
            row = "".join("■" if there else "·" for there in marks)
            print(f"chunk {chunk.chunk_id}, polarisation {pol}: {row}")
        group.add_free_chunk(chunk)
