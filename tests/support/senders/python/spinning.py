# SPDX-License-Identifier: BSD-3-Clause
"""A rate, kept by reading the clock until the time of the next heap has come."""

import time

from sending import Plain

plain = Plain()
next_heap = time.perf_counter()
for i in range(plain.heaps):
    plain.samples.fill(i % 256)
    while not plain.mended and time.perf_counter() < next_heap:
        pass
    next_heap = time.perf_counter() + 0.01
    plain.send(i + 1)
