# SPDX-License-Identifier: BSD-3-Clause
"""A system call for each packet, as a plain socket makes it."""

import numpy as np
from sending import HEAP_SIZE, connected, packets, parse

to = parse(library=False)
sock = connected(to)
samples = np.zeros(HEAP_SIZE, np.uint8)
for i in range(to.heaps):
    samples.fill(i % 256)
    for packet in packets(samples.data, i + 1):
        sock.sendmsg(packet)
