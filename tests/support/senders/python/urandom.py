# SPDX-License-Identifier: BSD-3-Clause
"""Random samples from the system for each heap; mended, once."""

import os

import numpy as np
from sending import HEAP_SIZE, Plain

plain = Plain()
for i in range(plain.heaps):
    if not plain.mended or i == 0:
        plain.samples[:] = np.frombuffer(os.urandom(HEAP_SIZE), np.uint8)
    plain.send(i + 1)
