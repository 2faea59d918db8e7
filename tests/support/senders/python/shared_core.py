# SPDX-License-Identifier: BSD-3-Clause
"""Two threads on one core: what makes the samples and what sends them, though there are others."""

import os
from typing import Any

import numpy as np
from sending import Sender

core = min(os.sched_getaffinity(0))
sender = Sender(cores=(core,))
if not sender.mended:
    sender.library.ThreadPool.set_affinity(core)


def computed(i: int) -> Any:
    """Fill one of the two heaps, a part of it with sines."""
    heap = sender.filled(i)
    sender.samples[i % 2][: 1 << 16] = 100 * np.sin(np.arange(1 << 16))
    return heap


sender.send(computed)
