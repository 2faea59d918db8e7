# SPDX-License-Identifier: BSD-3-Clause
"""Receiving heaps: streams, and what they are made of.

A program makes a `spead_tutorial.ThreadPool` and a `Stream`, adds a reader to it, and iterates over
the heaps that arrive; an `spead_tutorial.ItemGroup` is updated with each of them. Without a pool
the stream has no thread, and the program reads while it waits. Where heaps are small, a
`ChunkRingStream` gathers many of them in a `Chunk`, and the streams of a `ChunkStreamRingGroup`
fill the same chunks. Streams for coroutines are in
`spead_tutorial.recv.asyncio`.
"""

from spead_tutorial._core import Chunk, HeapBase, IncompleteHeap, RawItem
from spead_tutorial.recv import stream_stat_indices
from spead_tutorial.recv._config import (
    ChunkStreamConfig,
    ChunkStreamGroupConfig,
    RingStreamConfig,
    StreamConfig,
    StreamStatConfig,
    UdpIbvConfig,
)
from spead_tutorial.recv._stats import Account, StreamStats
from spead_tutorial.recv._stream import (
    ChunkRingbuffer,
    ChunkRingPair,
    ChunkRingStream,
    ChunkStreamGroupMember,
    ChunkStreamGroupStats,
    ChunkStreamRingGroup,
    Heap,
    Stream,
)

__all__ = [
    "Account",
    "Chunk",
    "ChunkRingPair",
    "ChunkRingStream",
    "ChunkRingbuffer",
    "ChunkStreamConfig",
    "ChunkStreamGroupConfig",
    "ChunkStreamGroupMember",
    "ChunkStreamGroupStats",
    "ChunkStreamRingGroup",
    "Heap",
    "HeapBase",
    "IncompleteHeap",
    "RawItem",
    "RingStreamConfig",
    "Stream",
    "StreamConfig",
    "StreamStatConfig",
    "StreamStats",
    "UdpIbvConfig",
    "stream_stat_indices",
]
