# SPDX-License-Identifier: BSD-3-Clause
"""Slow data: every sample is a sine, which takes far longer to compute than to send."""

from typing import Any

import numpy as np
from sending import HEAP_SIZE, Sender

sender = Sender()
phase = np.arange(HEAP_SIZE) * 0.01
wave = np.empty(HEAP_SIZE)


def computed(i: int) -> Any:
    """Fill one of the two heaps, in place."""
    np.add(phase, HEAP_SIZE * 0.01, out=phase)
    np.sin(phase, out=wave)
    np.multiply(wave, 100, out=wave)
    np.copyto(sender.samples[i % 2], wave, casting="unsafe")
    return sender.heaps[i % 2]


sender.send(sender.filled if sender.mended else computed)
