# SPDX-License-Identifier: BSD-3-Clause
"""Fresh memory for every heap: four times what is sent of it, given back when that has gone."""

import mmap
from typing import Any

import numpy as np
from sending import HEAP_SIZE, Sender

sender = Sender()


def fresh(i: int) -> Any:
    """Return a heap with a quarter of some new memory."""
    # NumPy keeps what it has once had of this size; the system gives new pages.
    memory = mmap.mmap(-1, 4 * HEAP_SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    samples = np.frombuffer(memory, np.int8)
    samples[:: mmap.PAGESIZE] = i % 100
    samples[:HEAP_SIZE] = i % 100
    return sender.heap_of(samples[:HEAP_SIZE])


sender.send(sender.filled if sender.mended else fresh)
