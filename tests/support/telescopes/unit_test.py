# SPDX-License-Identifier: BSD-3-Clause
"""The unit test of an instrument that applies gains: in one process, and over TCP."""

import numpy as np
import spead2.recv.asyncio
import spead2.send.asyncio

HEAPS = 5
SHAPE = (4, 300)
GAINS = np.array([0.5, 2, -1, 3], np.float32)


def make_voltages():
    """One array for each heap."""
    return np.random.default_rng(5).normal(size=(HEAPS, *SHAPE)).astype(np.float32)


async def instrument(reader, writer):
    """Apply the gains to all that arrives, and send it on; the thing to be tested."""
    incoming, outgoing = spead2.ItemGroup(), spead2.send.ItemGroup()
    outgoing.add_item(0x1600, "timestamp", "", (), format=[("u", 64)])
    outgoing.add_item(0x1601, "corrected", "", SHAPE, np.float32)
    async for heap in reader:
        updated = incoming.update(heap)
        if "voltages" not in updated:
            continue
        outgoing["timestamp"].value = updated["timestamp"].value
        outgoing["corrected"].value = updated["voltages"].value * GAINS[:, np.newaxis]
        await writer.async_send_heap(outgoing.get_heap())
    await writer.async_send_heap(outgoing.get_end())


async def drive(writer):
    """Send the instrument its input."""
    items = spead2.send.ItemGroup()
    items.add_item(0x1600, "timestamp", "", (), np.int64)
    items.add_item(0x1602, "voltages", "", SHAPE, np.float32)
    await writer.async_send_heap(items.get_heap())
    for i, values in enumerate(make_voltages()):
        items["timestamp"].value = 10 * i
        items["voltages"].value = values
        await writer.async_send_heap(items.get_heap())
    await writer.async_send_heap(items.get_end())


async def collect(reader):
    """Return what the instrument says, by timestamp."""
    items = spead2.ItemGroup()
    got = {}
    async for heap in reader:
        items.update(heap)
        got[items["timestamp"].value] = items["corrected"].value.copy()
    return got


def make_reader(acceptor, **options):
    """A stream that reads a connection."""
    stream = spead2.recv.asyncio.Stream(spead2.ThreadPool())
    stream.add_tcp_reader(acceptor, **options)
    return stream


async def connect(endpoint):
    """Make a stream that sends over TCP."""
    config = spead2.send.StreamConfig(max_packet_size=9000)
    return await spead2.send.asyncio.TcpStream.connect(spead2.ThreadPool(), [endpoint], config)


async def drive_by_tcp(endpoint):
    """Send the instrument its input over a connection."""
    await drive(await connect(endpoint))


async def instrument_by_tcp(acceptor, endpoint):
    """Run the instrument with a connection on either side of it."""
    await instrument(make_reader(acceptor), await connect(endpoint))


async def collect_by_tcp(acceptor):
    """Take what the instrument says from a connection."""
    return await collect(make_reader(acceptor, max_size=9000))
