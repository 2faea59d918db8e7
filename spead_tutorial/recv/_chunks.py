# SPDX-License-Identifier: BSD-3-Clause
"""Streams of chunks and their rings: what is left to say of them in Python."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator
from typing import Any, TypeVar

from spead_tutorial._core import Chunk, ChunkRing, ChunkStream, ThreadPool
from spead_tutorial._types import Stopped
from spead_tutorial.recv._config import ChunkStreamConfig, StreamConfig
from spead_tutorial.recv._stats import (
    COMMON,
    StreamStatConfig,
    StreamStats,
    account_values,
    common_values,
)
from spead_tutorial.recv._stream import Readers

__all__ = ["ChunkRingStream", "ChunkRingbuffer"]

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_MAXIMUM = StreamStatConfig.Mode.MAXIMUM

#: What streams of chunks count besides: first what spead2's do, too.
_OF_CHUNKS = (
    StreamStatConfig("too_old_heaps"),
    StreamStatConfig("rejected_heaps"),
    StreamStatConfig("misplaced_heaps"),
    StreamStatConfig("chunks"),
    StreamStatConfig("chunk_waits"),
    StreamStatConfig("longest_chunk_wait_ns", _MAXIMUM),
    StreamStatConfig("room_waits"),
    StreamStatConfig("longest_room_wait_ns", _MAXIMUM),
)


class ChunkRingbuffer(ChunkRing):
    """A queue of chunks between a stream and a program.

    It is its own iterator, which ends once the ring has been stopped and is empty.

    Parameters
    ----------
    maxsize : int
        How many chunks it has room for, at least 1.

    Raises
    ------
    ValueError
        For a ring without room.
    """

    def __init__(self, maxsize: int) -> None:
        self._streams: list[weakref.ref[ChunkRingStream]] = []  # that put chunks in

    def get(self) -> Chunk:
        """Wait for the next chunk.

        Other Python threads run meanwhile, and it can be interrupted (Ctrl-C).

        Returns
        -------
        Chunk
            The one that has been in the ring for longest.

        Raises
        ------
        Stopped
            Where the ring has been stopped, and is empty.
        """
        return self._get()

    def put(self, chunk: Chunk) -> None:
        """Put a chunk in, and wait for room.

        Other Python threads run meanwhile, and it can be interrupted (Ctrl-C).

        Parameters
        ----------
        chunk : Chunk
            With data and present.

        Raises
        ------
        Stopped
            Where the ring has been stopped.
        ValueError
            For a chunk without data or present, or one that is in a ring.
        """
        self._put(chunk)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        try:
            return self._get()
        except Stopped:
            raise StopIteration from None

    def _ended(self) -> None:
        for stream in self._alive():
            stream._ended()

    def _waiting(self) -> None:
        for stream in self._alive():
            stream._waiting()

    def _alive(self) -> list[ChunkRingStream]:
        found = [reference() for reference in tuple(self._streams)]  # others may add to it now
        return [stream for stream in found if stream is not None]


def _given(name: str, value: object, kind: type[_T]) -> _T:
    """Return an argument that there has to be: only the one before it has a default."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")
    return value


class ChunkRingStream(Readers, ChunkStream):
    """Receives heaps, and gathers them in chunks.

    A place function says for each heap which chunk it belongs to, and where in it; the payload is
    written there straight away. Chunks come from one ring and go, filled, to another, in the order
    of their ids; while there is none, or no room, the stream waits. At the end of a ``with`` block
    it is stopped.

    Where the stream ends by itself, the ring of filled chunks stops, as soon as no other stream
    puts any in. `stop` stops both rings; chunks that were begun can be got afterwards, too.

    Parameters
    ----------
    thread_pool : ThreadPool
        Whose threads do it; kept alive.
    config : StreamConfig
        How packets become heaps; copied. Heaps have to say how long they are, and its allocator is
        not used. By default ``StreamConfig()``.
    chunk_stream_config : ChunkStreamConfig
        How heaps are gathered; copied.
    data_ringbuffer : ChunkRingbuffer
        Where filled chunks go.
    free_ringbuffer : ChunkRingbuffer
        Where free chunks come from; see `add_free_chunk`.

    Raises
    ------
    TypeError
        For arguments that are something else.
    ValueError
        Without a place function.
    """

    _OF_THIS_KIND = _OF_CHUNKS

    def __init__(
        self,
        thread_pool: ThreadPool,
        config: StreamConfig | None = None,
        chunk_stream_config: ChunkStreamConfig | None = None,
        data_ringbuffer: ChunkRingbuffer | None = None,
        free_ringbuffer: ChunkRingbuffer | None = None,
    ) -> None:
        self._configure(config)
        chunk_config = _given("chunk_stream_config", chunk_stream_config, ChunkStreamConfig)
        data_ring = _given("data_ringbuffer", data_ringbuffer, ChunkRingbuffer)
        free_ring = _given("free_ringbuffer", free_ringbuffer, ChunkRingbuffer)
        if chunk_config.place is None:
            raise ValueError("place is not set: a stream of chunks has to know where heaps belong")
        self._chunk_config = chunk_config.copy()
        # The place function counts where spead2's do: behind the common ones and before ours.
        modes = [stat.mode is _MAXIMUM for stat in (*self._config._stats, *_OF_CHUNKS[:2])]
        self._open(thread_pool, self._config, self._chunk_config, data_ring, free_ring, modes)
        data_ring._streams.append(weakref.ref(self))

    @property
    def chunk_stream_config(self) -> ChunkStreamConfig:
        """How heaps are gathered: a copy."""
        return self._chunk_config.copy()

    def stop(self) -> None:
        """Receive no more, and stop both rings. May be repeated.

        Ports are free afterwards. What has been filled, or begun, can still be got.
        """
        super().stop()
        self._warn()

    @property
    def stats(self) -> StreamStats:
        """Counts since the stream was made: those of what has been read so far, at one moment.

        Behind those of all streams and your own there are: ``too_old_heaps``, whose chunk had left;
        ``rejected_heaps``, which the place function refused, or for which it named no place that
        there is: the latter are ``misplaced_heaps``, too; ``chunks`` that were filled;
        ``chunk_waits`` for a free chunk and ``room_waits`` for room for a filled one, with
        ``longest_chunk_wait_ns`` and ``longest_room_wait_ns``. ``heaps`` includes all of these
        heaps.
        """
        counts, chunks = self._counts(), self._chunk_counts()
        common = common_values(counts)
        common[0] += chunks["too_old_heaps"] + chunks["rejected_heaps"]
        counted = chunks["place"][len(COMMON) : len(self._config._stats)]
        return StreamStats(
            self._config.stats,
            [
                *common,
                *counted,
                *(chunks[stat.name] for stat in _OF_CHUNKS),
                *account_values(counts),
            ],
        )

    def _warn(self) -> None:
        """Say which heaps were misplaced, if there are any that have not been spoken of."""
        counts: dict[str, Any] = self._chunk_counts()
        new = counts["misplaced_heaps"] - self._warned_of
        if new == 0:
            return
        self._warned_of += new
        _log.warning(
            "%d heap%s dropped that the place function had a place for where there is none; the"
            " last one: %s",
            new, " was" if new == 1 else "s were", counts["misplaced"],
        )  # fmt: skip
