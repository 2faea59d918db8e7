#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chapter 19: one of an array's senders, each of which sends to every receiver."""

import numpy as np

import spead_tutorial
import spead_tutorial.send
from spead_tutorial.chapters.report import Options, Usage, parse_options, report
from spead_tutorial.send import GroupMode, Heap, HeapReference, ItemGroup


class Sender:
    """A stream with a substream for each receiver, at one rate for all of them together."""

    def __init__(self, options: Options) -> None:
        self.sender, self.senders = options.sender, options.senders
        endpoints = [(host, port + self.sender) for host, port in options.destinations]
        config = spead_tutorial.send.StreamConfig(rate=options.rate * 1e6, max_heaps=len(endpoints))
        config.max_packet_size = options.packet_size
        self.stream = spead_tutorial.send.UdpStream(
            None, endpoints, config, interface_address=options.interface, ttl=options.ttl
        )

    def send(self, heaps: list[Heap], k: int) -> None:
        """Send the k-th heap to each receiver, a packet to each in turn.

        No other sender has the same heap counts.
        """
        cnt = k * self.senders + self.sender + 1
        references = [
            HeapReference(heap, cnt=cnt, substream_index=j) for j, heap in enumerate(heaps)
        ]
        self.stream.send_heaps(references, GroupMode.ROUND_ROBIN)


def make_item_group(options: Options, timestamp: np.ndarray, samples: np.ndarray) -> ItemGroup:
    """What a receiver gets; its heaps send the values as they are then."""
    item_group = ItemGroup()
    number = [("u", spead_tutorial.Flavour().heap_address_bits)]
    item_group.add_item(
        0x1600, "timestamp", "Index of the first sample", (), format=number, value=timestamp
    )
    item_group.add_item(
        0x4101, "antenna", "Index of the sender", (), format=number, value=options.sender
    )
    item_group.add_item(
        0x3300, "adc_samples", "Samples of the converter", samples.shape, np.int8, value=samples
    )
    return item_group


def main() -> None:
    options = parse_options(__doc__, "nHpa", Options(packet_size=9000))
    heap_size, n_receivers = options.heap_size, len(options.destinations)
    timestamp = np.array(0, ">u8")
    adc_samples = np.ones((n_receivers, heap_size), np.int8)
    item_groups = [make_item_group(options, timestamp, samples) for samples in adc_samples]
    descriptors = [group.get_heap(descriptors="all", data="none") for group in item_groups]
    heaps = [group.get_heap(descriptors="none", data="all") for group in item_groups]
    ends = [group.get_end() for group in item_groups]
    receivers = np.arange(n_receivers)

    sender = Sender(options)
    start = Usage.now()
    sender.send(descriptors, 0)
    for i in range(options.n_heaps):
        values = i + options.sender + receivers  # the samples say who sent them, and to whom
        adc_samples[:] = values.astype(np.int8)[:, np.newaxis]  # wraps, like all casts
        timestamp[...] = i * heap_size
        sender.send(heaps, i + 1)
    used = Usage.now() - start
    sender.send(ends, options.n_heaps + 1)
    report(options, [sender.stream.stats], used)


if __name__ == "__main__":
    main()
