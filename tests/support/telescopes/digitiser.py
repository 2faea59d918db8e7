# SPDX-License-Identifier: BSD-3-Clause
"""A digitiser: two polarisations from one asynchronous stream, to an address each."""

import asyncio
import itertools

import numpy as np
import spead2.recv
import spead2.send.asyncio

HEAPS = 12  # of each polarisation
SAMPLES = 3000  # of a heap, 10 bits each
DESCRIPTORS_EVERY = 4  # heaps
IN_FLIGHT = 3  # heaps of each polarisation


def make_samples():
    """Samples as the converter counts them, shape (heap, polarisation, sample)."""
    return np.random.default_rng(1).integers(-512, 512, (HEAPS, 2, SAMPLES))


class Slot:
    """Memory that a heap is filled from, again and again."""

    def __init__(self, pol):
        self.timestamp = np.zeros((), ">u8")
        self.samples = np.zeros(SAMPLES * 10 // 8, np.uint8)
        self.items = spead2.send.ItemGroup()
        self.items.add_item(
            0x1600, "timestamp", "first sample", (), format=[("u", 48)], value=self.timestamp
        )
        self.items.add_item(
            0x3101, "polarisation", "0 or 1", (), format=[("u", 48)], value=np.array(pol, ">u8")
        )
        self.items.add_item(
            0x3102, "status", "of the converter", (), format=[("u", 32), ("b", 32)], value=(7, True)
        )
        self.items.add_item(
            0x3300, "raw_data", "10 bits each", self.samples.shape, np.uint8, value=self.samples
        )
        self.heap = self.items.get_heap(descriptors="none", data="all")
        self.sent = None


def pack(samples):
    """Pack numbers of 10 bits, the highest bit first."""
    bits = (samples[:, np.newaxis] >> np.arange(9, -1, -1)) & 1
    return np.packbits(bits.astype(np.uint8))


async def send(endpoints):
    """Send all samples, and return how many bytes of packets that were."""
    config = spead2.send.StreamConfig(rate=200e6, max_packet_size=1472, max_heaps=64)
    stream = spead2.send.asyncio.UdpStream(spead2.ThreadPool(), endpoints, config)
    stream.set_cnt_sequence(1, 3)
    pols = range(stream.num_substreams)
    slots = [[Slot(pol) for pol in pols] for _ in range(IN_FLIGHT)]
    others = []
    for i, (samples, pair) in enumerate(zip(make_samples(), itertools.cycle(slots), strict=False)):
        for pol, slot in enumerate(pair):
            if i % DESCRIPTORS_EVERY == 0:
                heap = slot.items.get_heap(descriptors="all", data="none")
                others.append(stream.async_send_heap(heap, substream_index=pol))
            if slot.sent is not None:
                others.append(slot.sent)
                await slot.sent
            slot.samples[:] = pack(samples[pol])
            slot.timestamp[...] = i * SAMPLES
            slot.sent = stream.async_send_heap(slot.heap, substream_index=pol)
    others += [slot.sent for slot in itertools.chain(*slots)]
    others += [
        stream.async_send_heap(slots[0][pol].items.get_end(), substream_index=pol) for pol in pols
    ]
    await stream.async_flush()
    return sum(await asyncio.gather(*others))


def listen(sock):
    """Begin to receive one polarisation."""
    config = spead2.recv.StreamConfig(max_heaps=2)
    stream = spead2.recv.Stream(spead2.ThreadPool(), config, spead2.recv.RingStreamConfig(heaps=2))
    stream.add_udp_reader(sock)
    return stream


def receive(stream):
    """Return the counts and values of the heaps that a stream brings."""
    items = spead2.ItemGroup()
    got = []
    for heap in stream:
        updated = items.update(heap)
        values = {name: item.value for name, item in updated.items()}
        got.append((heap.cnt, values))
    return got
