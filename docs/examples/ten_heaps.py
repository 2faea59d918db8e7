# SPDX-License-Identifier: BSD-3-Clause
"""What the heaps of chapter 2 become, without sending them: packets, bytes, and items."""

import numpy as np

from spead_tutorial import send, wire
from spead_tutorial.measure.verify import make_group

HEAP_SIZE = 1 << 20
NAMES = {
    0: "padding",
    5: "descriptor",
    6: "stop",
    0x1600: "timestamp",
    0x3300: "adc_samples",
}

group = make_group(HEAP_SIZE)
samples = np.zeros(HEAP_SIZE, np.int8)

print("heap  packets     bytes  items")
n_packets = n_bytes = 0
for cnt in range(1, 12):
    group["timestamp"].value = (cnt - 1) * HEAP_SIZE
    group["adc_samples"].value = samples
    heap = group.get_heap() if cnt <= 10 else group.get_end()
    packets = list(send.PacketGenerator(heap, cnt, 1472))
    items = [NAMES[pointer.id] for pointer in wire.parse(packets[0]).items[4:]]
    size = sum(map(len, packets))
    print(f"{cnt:4}  {len(packets):7}  {size:8}  {', '.join(items)}")
    n_packets, n_bytes = n_packets + len(packets), n_bytes + size
print(f" all  {n_packets:7}  {n_bytes:8}")
