#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Change an array after its heap was made, and look at what is sent."""

import numpy as np

from spead_tutorial.send import ItemGroup, PacketGenerator

samples = np.full(16, 1, np.int8)
group = ItemGroup()
group.add_item(0x3300, "adc_samples", "", shape=(16,), dtype=np.int8, value=samples)
heap = group.get_heap(descriptors="none", data="all")

samples.fill(2)  # the heap has been made, its packet has not
(packet,) = PacketGenerator(heap, 1, 1472)
print(list(packet[-16:]))
