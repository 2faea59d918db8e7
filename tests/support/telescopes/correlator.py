# SPDX-License-Identifier: BSD-3-Clause
"""A correlator: what channelises sends int8 voltages in batches, what correlates takes chunks."""

import ctypes
import threading

import numba
import numpy as np
import scipy
import spead2.recv
import spead2.recv.numba
import spead2.send
from numba import types
from spead2.numba import intp_to_voidptr

TIMES = 6  # heaps of an antenna, to each destination
CHUNK_TIMES = 2
CHANNELS, SPECTRA, POLS = 8, 16, 2  # of a heap
STEP = SPECTRA * 4096  # timestamps count samples
FIRST = 5 * CHUNK_TIMES * STEP
FLAVOUR = spead2.Flavour(4, 64, 48)
TIMESTAMP, ANTENNA, FREQUENCY, RAW = 0x1600, 0x4101, 0x4103, 0x4300
SHAPE = (CHANNELS, SPECTRA, POLS, 2)
HEAP_BYTES = CHANNELS * SPECTRA * POLS * 2


def make_voltages(antenna, n_destinations):
    """Complex voltages, shape (time, destination, channel, spectrum, polarisation, part)."""
    rng = np.random.default_rng(antenna)
    return rng.integers(-127, 128, (TIMES, n_destinations, *SHAPE), np.int8)


# ---- What channelises ----


def add_items(items, timestamp, antenna, frequency, voltages):
    for id, name, value in (
        (TIMESTAMP, "timestamp", timestamp),
        (ANTENNA, "feng_id", antenna),
        (FREQUENCY, "frequency", frequency),
    ):
        items.add_item(id, name, "", (), format=[("u", 48)], value=value)
    items.add_item(RAW, "feng_raw", "", voltages.shape, voltages.dtype, value=voltages)


def send(endpoints, antenna):
    """Send an antenna's voltages, a range of channels to each endpoint, and return the bytes."""
    voltages = make_voltages(antenna, len(endpoints))
    config = spead2.send.StreamConfig(
        rate=100e6,
        burst_size=4096,
        max_packet_size=HEAP_BYTES // 2 + 96,
        max_heaps=2 * len(endpoints),
        rate_method=spead2.send.RateMethod.SW,
    )
    stream = spead2.send.UdpStream(
        spead2.ThreadPool(), endpoints, config, buffer_size=65536, interface_address="127.0.0.1"
    )
    stream.set_cnt_sequence(antenna + 1, 1 << 12)
    timestamp = np.zeros((), ">u8")
    batch, descriptors, ends = [], [], []
    memory = np.empty_like(voltages[0])
    for i in range(len(endpoints)):
        items = spead2.send.ItemGroup(flavour=FLAVOUR)
        add_items(items, timestamp, antenna, i * CHANNELS, memory[i])
        heap = items.get_heap(descriptors="none", data="all")
        heap.repeat_pointers = True
        batch.append(spead2.send.HeapReference(heap, substream_index=i))
        heap = items.get_heap(descriptors="all", data="none")
        descriptors.append(spead2.send.HeapReference(heap, substream_index=i))
        ends.append(spead2.send.HeapReference(items.get_end(), substream_index=i, rate=0.0))
    batch = spead2.send.HeapReferenceList(batch)
    n_bytes = stream.send_heaps(descriptors, spead2.send.GroupMode.SERIAL)
    for i, values in enumerate(voltages):
        memory[:] = values
        timestamp[...] = FIRST + i * STEP
        n_bytes += stream.send_heaps(batch, spead2.send.GroupMode.ROUND_ROBIN)
    return n_bytes + stream.send_heaps(ends, spead2.send.GroupMode.SERIAL)


def send_all(endpoints):
    """Send what several antennas do at the same time, each to endpoints of its own."""
    threads = [threading.Thread(target=send, args=(to, i)) for i, to in enumerate(endpoints)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- What correlates ----


class Parameters(ctypes.Structure):
    """What the place function is given besides the heap."""

    _fields_ = (
        ("antennas", ctypes.c_int64),
        ("foreign", ctypes.c_int64),  # where it counts heaps that are not voltages
    )


@numba.cfunc(
    types.void(
        types.CPointer(spead2.recv.numba.chunk_place_data),
        types.size_t,
        types.CPointer(types.int64),
    ),
    nopython=True,
)
def place(data_ptr, data_size, parameters_ptr):
    data = numba.carray(data_ptr, 1)
    items = numba.carray(intp_to_voidptr(data[0].items), 4, dtype=np.int64)
    parameters = numba.carray(parameters_ptr, 2)
    antennas, foreign = parameters[0], parameters[1]
    timestamp, antenna, length, control = items[0], items[1], items[2], items[3]
    if control >= 0:
        return
    if timestamp < 0 or length != HEAP_BYTES:
        statistics = numba.carray(intp_to_voidptr(data[0].batch_stats), foreign + 1, np.uint64)
        statistics[foreign] += 1
        return
    time = timestamp // STEP
    data[0].chunk_id = time // CHUNK_TIMES
    data[0].heap_index = time % CHUNK_TIMES * antennas + antenna
    data[0].heap_offset = data[0].heap_index * HEAP_BYTES
    extra = numba.carray(intp_to_voidptr(data[0].extra), 1, np.int64)
    extra[0] = timestamp
    data[0].extra_offset = data[0].heap_index * 8
    data[0].extra_size = 8


class VoltageChunk(spead2.recv.Chunk):
    """A chunk with a name for each part of it."""

    def __init__(self, antennas, **kwargs):
        voltages = np.zeros((CHUNK_TIMES, antennas, *SHAPE), np.int8)
        present = np.zeros((CHUNK_TIMES, antennas), np.uint8)
        extra = np.zeros((CHUNK_TIMES, antennas), np.int64)
        super().__init__(data=voltages, present=present, extra=extra, **kwargs)
        self.recycled = 0


class Receiver:
    """Takes in one range of channels of all antennas, from a socket or a group of them."""

    def __init__(self, sockets, antennas, grouped):
        self.config = spead2.recv.StreamConfig(max_heaps=8, allow_out_of_order=True)
        self.foreign = self.config.add_stat("foreign_heaps")
        self.parameters = Parameters(antennas, self.foreign)
        self.place = scipy.LowLevelCallable(
            place.ctypes,
            user_data=ctypes.cast(ctypes.pointer(self.parameters), ctypes.c_void_p),
            signature="void (void *, size_t, void *)",
        )
        self.data_ring = spead2.recv.ChunkRingbuffer(2)
        self.free_ring = spead2.recv.ChunkRingbuffer(6)
        if grouped:
            self.streams = self.stream = spead2.recv.ChunkStreamRingGroup(
                spead2.recv.ChunkStreamGroupConfig(
                    max_chunks=2,
                    eviction_mode=spead2.recv.ChunkStreamGroupConfig.EvictionMode.LOSSLESS,
                ),
                self.data_ring,
                self.free_ring,
            )
            for i in range(len(sockets)):
                self.stream.emplace_back(spead2.ThreadPool(), *self.configs(i))
        else:
            self.stream = spead2.recv.ChunkRingStream(
                spead2.ThreadPool(), *self.configs(0), self.data_ring, self.free_ring
            )
            self.streams = [self.stream]
        for _ in range(self.free_ring.maxsize):
            self.stream.add_free_chunk(VoltageChunk(antennas))
        for stream, sock in zip(self.streams, sockets, strict=True):
            stream.add_udp_reader(sock)

    def configs(self, stream_id):
        self.config.stream_id = stream_id
        chunk_config = spead2.recv.ChunkStreamConfig(
            items=[TIMESTAMP, ANTENNA, spead2.HEAP_LENGTH_ID, spead2.STREAM_CTRL_ID],
            max_chunks=2,
            place=self.place,
            max_heap_extra=8,
        )
        return self.config, chunk_config

    def receive(self):
        """Return what is in each chunk, in the order of arrival, and what has been counted."""
        got = []
        for chunk in self.data_ring:
            if np.any(chunk.present):
                got.append(
                    (chunk.chunk_id, chunk.present.copy(), chunk.data.copy(), chunk.extra.copy())
                )
            chunk.recycled += 1
            self.stream.add_free_chunk(chunk)
        self.stream.stop()
        totals = self.streams[0].stats
        for stream in list(self.streams)[1:]:
            totals += stream.stats
        names = ("heaps", "foreign_heaps", "too_old_heaps", "incomplete_heaps_evicted")
        return got, {name: totals[name] for name in names}
