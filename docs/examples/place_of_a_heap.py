# SPDX-License-Identifier: BSD-3-Clause
"""Say where heaps belong in chunks, by their timestamps."""

HEAP_SIZE = 8192
CHUNK_SIZE = 128 * HEAP_SIZE  # 1 MiB


def place(timestamp: int) -> tuple[int, int, int]:
    """Return the chunk, the heap's number in it, and its first byte."""
    chunk_id = timestamp // CHUNK_SIZE
    offset = timestamp % CHUNK_SIZE
    return chunk_id, offset // HEAP_SIZE, offset


print("timestamp    chunk id  heap of the chunk  first byte")
for timestamp in (0, 8192, 16384, 1040384, 1048576, 1056768):
    chunk_id, index, offset = place(timestamp)
    print(f"{timestamp:>9}  {chunk_id:>10}  {index:>17}  {offset:>10}")
