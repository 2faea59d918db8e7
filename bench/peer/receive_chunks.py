#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Receive small heaps into chunks, whose memory is used again and again: to be measured.

It is the same program for each library: they have the same names.
"""

import ctypes
import importlib
import importlib.resources
import logging
import socket
from typing import Any

import numpy as np
import scipy
from claims import Claims, parser_of

CHUNK = 1 << 20
CHUNKS, WINDOW, LIVE = 8, 2, 4
HEAP_CNT = 1


class Shape(ctypes.Structure):
    """What place.c has to know of a chunk."""

    _fields_ = [("heaps", ctypes.c_int64), ("heap_size", ctypes.c_int64)]


def place_function(shape: Shape) -> Any:
    """Return the function that says where heaps go."""
    path = importlib.resources.files("spead_tutorial").joinpath("bin", "place.so")
    function = ctypes.CDLL(str(path)).place
    function.restype = None
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    data = ctypes.cast(ctypes.pointer(shape), ctypes.c_void_p)
    return scipy.LowLevelCallable(function, data, "void (void *, size_t, void *)")


def main() -> None:
    options = parser_of(__doc__).parse_args()
    logging.basicConfig(level=logging.ERROR)
    library = importlib.import_module(options.library)
    recv = importlib.import_module(f"{options.library}.recv")
    shape = Shape(max(1, CHUNK // options.H), options.H)
    place = place_function(shape)
    data_ring, free_ring = recv.ChunkRingbuffer(CHUNKS), recv.ChunkRingbuffer(CHUNKS)
    stream = recv.ChunkRingStream(
        library.ThreadPool(),
        recv.StreamConfig(max_heaps=LIVE),
        recv.ChunkStreamConfig(items=[HEAP_CNT], max_chunks=WINDOW, place=place),
        data_ring,
        free_ring,
    )
    for _ in range(CHUNKS):
        data = np.zeros(shape.heaps * options.H, np.uint8)
        stream.add_free_chunk(recv.Chunk(data=data, present=np.zeros(shape.heaps, np.uint8)))
    with socket.socket(fileno=options.socket) as sock:
        stream.add_udp_reader(sock, max_size=max(9200, options.p))
    claims = Claims(options)
    for chunk in data_ring:
        there = np.flatnonzero(chunk.present)
        if options.check:
            samples = chunk.data.reshape(shape.heaps, options.H)
            for i in there:
                claims.check(chunk.chunk_id * shape.heaps + int(i), samples[i])
        claims.count(len(there))
        stream.add_free_chunk(chunk)
    stream.stop()
    claims.end(stream.stats)


if __name__ == "__main__":
    main()
