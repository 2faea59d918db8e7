# SPDX-License-Identifier: BSD-3-Clause
"""An ingest: visibilities and items of every other kind, taken in by a coroutine, in a pool."""

import numpy as np
import spead2.recv.asyncio
import spead2.send

DUMPS = 7
BASELINES, CHANNELS = 6, 256
SENSOR = np.dtype([("name", "S8"), ("time", ">f8"), ("offset", "<f4", (2,)), ("ok", "?")])
LOWER, UPPER = 1 << 12, 1 << 14  # bytes of a heap


def make_dump(n):
    """What is new in one dump, by name."""
    rng = np.random.default_rng(n)
    parts = rng.normal(size=(2, BASELINES, CHANNELS)).astype(np.float32)
    sensors = np.zeros(2, SENSOR)
    sensors["name"] = [b"azimuth", b"el"]
    sensors["time"] = 1.6e9 + n
    sensors["offset"] = rng.normal(size=(2, 2))
    sensors["ok"] = [True, n % 2]
    new = {
        "timestamp": 1_600_000_000 + 4 * n,
        "flux": parts[0] + 1j * parts[1],
        "weights": np.asfortranarray(rng.integers(0, 256, (CHANNELS, 2), np.uint8)),
        "flagged": rng.choice(CHANNELS, n + 1, replace=False).astype(np.uint16),
        "sensors": sensors,
    }
    if n % 2 == 0:
        new["delays"] = [(n, 0.5), (-n, 0.25)]
        new["mask"] = rng.integers(0, 2, 11) == 1
    if n % 4 == 0:
        new["target"] = "zenith" if n else "J1939-6342"
        new["rate"] = np.float64(0.25 + n)
    if n == 0:
        new["pointing"] = np.array([12.5, -30], ">f4")
        new["observers"] = [list("Ann"), list("Bob")]
    return new


def describe(items):
    items.add_item(0x1600, "timestamp", "s", (), format=[("u", 40)])
    items.add_item(0x1800, "flux", "", (BASELINES, CHANNELS), np.complex64)
    items.add_item(0x1801, "weights", "", (CHANNELS, 2), np.uint8, order="F")
    items.add_item(0x1802, "flagged", "channels", (None,), format=[("u", 16)])
    items.add_item(0x1803, "sensors", "", (2,), SENSOR)
    items.add_item(0x1804, "target", "name", (None,), format=[("c", 8)])
    items.add_item(0x1805, "delays", "", (2,), format=[("i", 12), ("f", 32)])
    items.add_item(0x1806, "mask", "", (11,), format=[("b", 1)])
    items.add_item(0x1807, "rate", "Hz", (), np.float64)
    items.add_item(None, "pointing", "degrees", (2,), ">f4")
    items.add_item(None, "observers", "", (2, None), format=[("c", 8)])


def about(items):
    """What is known of items besides their values."""
    return {
        name: (item.id, item.description, tuple(item.shape), item.dtype, item.order, item.format)
        for name, item in items.items()
    }


def send(endpoint, flavour):
    """Send the dumps, and return what is known of the items at the end."""
    config = spead2.send.StreamConfig(max_packet_size=4096, rate=200e6)
    stream = spead2.send.UdpStream(spead2.ThreadPool(1, [0]), [endpoint], config, 1 << 18)
    items = spead2.send.ItemGroup(3, spead2.Flavour(*flavour))
    describe(items)
    stream.send_heap(items.get_start())
    for n in range(DUMPS):
        if n == 4:
            items.add_item(0x1807, "rate", "in Hz", (), ">f8")
        for name, value in make_dump(n).items():
            items[name].value = value
        stream.send_heap(items.get_heap(), cnt=n + 10)
    stream.send_heap(items.get_end())
    return about(items)


def listen(sock, bug_compat=0):
    """Begin to receive."""
    pool = spead2.MemoryPool(LOWER, UPPER, 4, 4, allocator=spead2.MmapAllocator())
    pool.warn_on_empty = False
    config = spead2.recv.StreamConfig(memory_allocator=pool, stream_id=3, bug_compat=bug_compat)
    config.max_heaps = 2
    config.memcpy = spead2.MEMCPY_NONTEMPORAL
    ring_config = spead2.recv.RingStreamConfig(heaps=2, contiguous_only=False)
    stream = spead2.recv.asyncio.Stream(spead2.ThreadPool(), config, ring_config)
    stream.add_udp_reader(sock, max_size=4096)
    return stream


async def receive(stream):
    """Return the updates, heap by heap; what is known of the items; and some counts."""
    items = spead2.ItemGroup()
    got = []
    async for heap in stream:
        assert isinstance(heap, spead2.recv.Heap)
        assert heap.is_start_of_stream() == (not got)
        updated = items.update(heap)
        got.append((heap.cnt, {name: item.value for name, item in updated.items()}))
    return got, about(items), dict(list(stream.stats.items())[:3])
