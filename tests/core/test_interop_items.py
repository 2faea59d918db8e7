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


def test_a_program_written_for_spead2_runs_with_only_its_imports_changed(thread_pool):
    """The usual first program, with keywords as spead2 documents them."""

    def program(package, send, pool) -> bytes:
        config = send.StreamConfig(max_packet_size=1472, rate=0.0, burst_size=9000, max_heaps=8)
        stream = send.BytesStream(pool, config)
        group = send.ItemGroup(flavour=package.Flavour(4, 64, 48, 0))
        shape = (40, 50)
        group.add_item(0x1234, "image", "an image", shape, dtype=np.uint8)
        for i in range(3):
            group["image"].value = np.full(shape, i, np.uint8)
            stream.send_heap(group.get_heap())
        stream.send_heap(group.get_end())
        return bytes(stream.getvalue())

    ours = program(spead_tutorial, spead_tutorial.send, thread_pool)
    assert ours == program(spead2, spead2.send, spead2.ThreadPool())
