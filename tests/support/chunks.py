# SPDX-License-Identifier: BSD-3-Clause
"""Streams of chunks, ours or spead2's, with place functions in Python."""

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import spead2
import spead2.recv

import spead_tutorial as st
import spead_tutorial.recv as recv
import spead_tutorial.recv.asyncio
from support import ref_encode

HEAP = 8  # bytes
HEAPS = 4  # in a chunk
TIMESTAMP = 0x1600
SIGNATURE = b"void (void *, size_t, void *)"

capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Said(ctypes.Structure):
    """What a place function is told, and says."""

    _fields_ = (
        ("packet", ctypes.POINTER(ctypes.c_uint8)),
        ("packet_size", ctypes.c_size_t),
        ("items", ctypes.POINTER(ctypes.c_int64)),
        ("chunk_id", ctypes.c_int64),
        ("heap_index", ctypes.c_size_t),
        ("heap_offset", ctypes.c_size_t),
        ("batch_stats", ctypes.POINTER(ctypes.c_uint64)),
        ("extra", ctypes.POINTER(ctypes.c_uint8)),
        ("extra_offset", ctypes.c_size_t),
        ("extra_size", ctypes.c_size_t),
    )


def by_timestamp(said: Said) -> None:
    """A timestamp counts bytes; a heap without one is not wanted."""
    if said.items[0] >= 0:
        said.chunk_id, said.heap_offset = divmod(said.items[0], HEAP * HEAPS)
        said.heap_index = said.heap_offset // HEAP


class Place(tuple[object, ...]):
    """A place function as streams want it; it keeps what is called alive."""

    function: object

    @classmethod
    def of(cls, function: Callable[[Said], None]) -> "Place":
        def call(said: Any, size: int, context: object) -> None:
            assert size == ctypes.sizeof(Said) == 80
            function(said[0])

        kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(Said), ctypes.c_size_t, ctypes.c_void_p)
        called = kind(call)
        made = cls((capsule(ctypes.cast(called, ctypes.c_void_p), SIGNATURE, None),))
        made.function = called
        return made


def packet(
    cnt: int, length: int | None, offset: int, payload: bytes, *items: tuple[int, int]
) -> bytes:
    """A packet with immediates."""
    immediates = [(True, id, value) for id, value in items]
    return ref_encode.packet(cnt, length, offset, payload, immediates)


def heap(n: int, n_bytes: int = HEAP, of: int | None = HEAP) -> bytes:
    """The first bytes of the heap for the n-th place, which is its count less 1."""
    payload = bytes([n % 255 + 1]) * n_bytes
    return packet(n + 1, of, 0, payload, (TIMESTAMP, n * HEAP))


STOP = packet(1 << 30, 0, 0, b"", (6, 2))


class Setup:
    """A stream of chunks, ours or spead2's, with its rings."""

    def __init__(
        self,
        module: Any = st,
        place: Any = by_timestamp,
        free: int = 10,
        room: int = 20,
        packets: Iterable[bytes] = (),
        **kwargs: Any,
    ) -> None:
        api: Any = recv if module is st else spead2.recv
        self.recv = api
        marks = HEAPS * (HEAP // kwargs.get("payload_size", HEAP))
        config = kwargs.get("config") or api.StreamConfig()
        self.chunk_config = api.ChunkStreamConfig(
            items=[TIMESTAMP, 2],
            max_chunks=kwargs.get("max_chunks", 2),
            place=place if isinstance(place, tuple) else Place.of(place),
            max_heap_extra=kwargs.get("max_heap_extra", 0),
        )
        if "payload_size" in kwargs:
            self.chunk_config.enable_packet_presence(kwargs["payload_size"])
        self.data, self.free = api.ChunkRingbuffer(room), api.ChunkRingbuffer(10)
        self.pool = module.ThreadPool() if kwargs.get("thread", True) else None
        self.stream = api.ChunkRingStream(
            self.pool, config, self.chunk_config, self.data, self.free
        )
        for _ in range(free):
            self.stream.add_free_chunk(self.chunk(marks))
        if packets:
            self.stream.add_buffer_reader(b"".join(packets))

    def chunk(self, marks: int = HEAPS) -> Any:
        return self.recv.Chunk(
            data=np.zeros(HEAP * HEAPS, np.uint8),
            present=np.ones(marks, np.uint8),
            extra=np.zeros(HEAPS, np.uint8),
        )

    def got(self) -> list[tuple[int, list[int], bytes, list[int]]]:
        """All chunks that come: id, what is present, data, and extra."""
        return [
            (c.chunk_id, list(map(int, c.present)), bytes(c.data), list(map(int, c.extra)))
            for c in self.data
        ]
