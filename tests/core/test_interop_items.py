# SPDX-License-Identifier: BSD-3-Clause
"""Items and descriptors made with spead2, sent by our heaps; and ours as spead2 sends its own."""

import numpy as np
import pytest
import spead2
import spead2.send

import spead_tutorial
import spead_tutorial.send


def fill(group) -> None:
    """Items of many kinds, in a group of either package."""
    group.add_item(0x1600, "timestamp", "a", shape=(), format=[("u", 40)], value=123456789)
    samples = np.arange(12, dtype=">i2").reshape(3, 4)
    group.add_item(0x3300, "adc", "b", shape=(3, 4), dtype=">i2", value=samples)
    columns = np.ones((2, 3), "f4", order="F")
    group.add_item(0x3301, "fortran", "", (2, 3), np.float32, order="F", value=columns)
    group.add_item(0x3302, "name", "", shape=(None,), format=[("c", 8)], value="telescope")
    group.add_item(0x3303, "bits", "", shape=(5,), format=[("u", 12)], value=[1, 2, 3, 4, 4095])
    group.add_item(None, "free", "", shape=(), dtype=np.uint16, value=7)


@pytest.mark.parametrize("flavour", [(4, 64, 40), (4, 64, 48), (4, 64, 40, 7), (4, 64, 32)])
def test_an_item_group_made_with_spead2_is_sent_as_spead2_would(flavour):
    theirs = spead2.send.ItemGroup(flavour=spead2.Flavour(*flavour))
    fill(theirs)
    heap = spead_tutorial.send.Heap(theirs.get_heap().flavour)
    for item in theirs.values():
        heap.add_descriptor(item)
        heap.add_item(item)
    expected = theirs.get_heap(descriptors="all", data="all")
    for size in (64, 200, 1472):
        packets = list(spead_tutorial.send.PacketGenerator(heap, 5, size))
        assert packets == [bytes(p) for p in spead2.send.PacketGenerator(expected, 5, size)]
