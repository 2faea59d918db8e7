# SPDX-License-Identifier: BSD-3-Clause
"""Where the counts that every stream has stand in its `StreamStats`."""

__all__ = [
    "BATCHES",
    "HEAPS",
    "INCOMPLETE_HEAPS_EVICTED",
    "INCOMPLETE_HEAPS_FLUSHED",
    "MAX_BATCH",
    "PACKETS",
    "SEARCH_DIST",
    "SINGLE_PACKET_HEAPS",
    "WORKER_BLOCKED",
]

#: Heaps, complete or not.
HEAPS = 0
#: Heaps that something was missing of when another one needed the room.
INCOMPLETE_HEAPS_EVICTED = 1
#: Heaps that something was missing of at the end.
INCOMPLETE_HEAPS_FLUSHED = 2
#: Packets that are well-formed.
PACKETS = 3
#: Times that a reader found packets.
BATCHES = 4
#: The most packets that it found at once.
MAX_BATCH = 5
#: Heaps that were complete with their first packet.
SINGLE_PACKET_HEAPS = 6
#: Packets whose heap had to be looked for.
SEARCH_DIST = 7
#: Times that a reader had to wait because the ring was full.
WORKER_BLOCKED = 8
