# SPDX-License-Identifier: BSD-3-Clause
"""Receive from an instrument that sends no descriptors: the program describes the items."""

import numpy as np

import spead_tutorial
from spead_tutorial import recv, send

N_SAMPLES = 4096


def describe(group: spead_tutorial.ItemGroup) -> None:
    """Add the items that the instrument's documentation lists."""
    group.add_item(0x1600, "timestamp", "Samples since the epoch", (), format=[("u", 48)])
    group.add_item(0x4101, "antenna", "Which antenna sent this", (), format=[("u", 48)])
    group.add_item(0x4300, "samples", "Samples of the converter", (N_SAMPLES,), np.int8)


def receive(queue: spead_tutorial.InprocQueue) -> None:
    """Show the values of each heap, which has none but the ids of its items."""
    stream = recv.Stream(spead_tutorial.ThreadPool())
    stream.add_inproc_reader(queue)  # with a network: add_udp_reader
    group = spead_tutorial.ItemGroup()
    describe(group)
    for heap in stream:
        group.update(heap)
        samples = group["samples"].value
        print(group["timestamp"].value, group["antenna"].value, samples.dtype, samples.sum())


def pretend_to_be_the_instrument(queue: spead_tutorial.InprocQueue) -> None:
    """Queue what an FPGA would send: two heaps, by the flavour with 48-bit values."""
    group = send.ItemGroup(flavour=spead_tutorial.Flavour(4, 64, 48))
    describe(group)
    for i in range(2):
        group["timestamp"].value = 2**40 + N_SAMPLES * i
        group["antenna"].value = 7
        group["samples"].value = np.full(N_SAMPLES, i + 1, np.int8)
        heap = group.get_heap(descriptors="none", data="all")
        for packet in send.PacketGenerator(heap, N_SAMPLES * i, 1472):
            queue.add_packet(packet)
    queue.stop()


if __name__ == "__main__":
    queue = spead_tutorial.InprocQueue()
    pretend_to_be_the_instrument(queue)
    receive(queue)
