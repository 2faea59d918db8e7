# SPDX-License-Identifier: BSD-3-Clause
"""Receiving heaps in coroutines.

How streams are configured is in `spead_tutorial.recv`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from spead_tutorial import recv
from spead_tutorial._core import Chunk, HeapBase, ThreadPool
from spead_tutorial._types import Empty, Full, Stopped

__all__ = ["ChunkRingbuffer", "Stream"]

_IN_A_ROW = 64  # heaps, before other tasks have their turn,
_READING = 16  # one that has to be read counts as this number of them


async def _readable(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


class _Turns:
    """A lock for each event loop, for those who wait in it."""

    def __init__(self) -> None:
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._last: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def of(self, loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
        last = self._last
        if last is None or last[0] is not loop:
            known = [*self._locks.items()]
            self._locks = {one: lock for one, lock in known if not one.is_closed()}
            last = self._last = (loop, self._locks.setdefault(loop, asyncio.Lock()))
        return last[1]


class Stream(recv.Stream):
    """Receives heaps that coroutines wait for.

    It differs from `spead_tutorial.recv.Stream` in `get`, and in that it is iterated over by
    ``async for``.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads do it; kept alive. None: the event loop watches the sockets, and who waits
        for a heap reads, a few times before other tasks have their turn.
    config, ring_config
        As in `spead_tutorial.recv.Stream`.
    """

    def __init__(
        self,
        thread_pool: ThreadPool | None,
        config: recv.StreamConfig | None = None,
        ring_config: recv.RingStreamConfig | None = None,
    ) -> None:
        super().__init__(thread_pool, config, ring_config)
        self._reads = thread_pool is None
        self._done = 0  # since other tasks had their turn
        self._turns = _Turns()

    async def get(self) -> HeapBase:  # type: ignore[override]
        """Wait for the next heap.

        Those who wait get theirs in turn. One who is cancelled loses none.

        Returns
        -------
        Heap or IncompleteHeap
            In the order in which they were finished.

        Raises
        ------
        Stopped
            Where there will be none any more.
        """
        loop = asyncio.get_running_loop()
        async with self._turns.of(loop):
            # Where heaps are always ready, nothing else would have its turn: no timeout, no Ctrl-C.
            if self._done >= _IN_A_ROW:
                self._done = 0
                await asyncio.sleep(0)
            self._done += _READING if self._reads and self._ready() == 0 else 1
            while True:
                try:
                    return self.get_nowait()
                except Empty:
                    self._waiting()
                    self._done = 0
                    await _readable(loop, self.fd)

    def __aiter__(self) -> AsyncIterator[HeapBase]:
        return self

    async def __anext__(self) -> HeapBase:
        try:
            return await self.get()
        except Stopped:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.stop()


class ChunkRingbuffer(recv.ChunkRingbuffer):
    """A queue of chunks that coroutines wait for.

    It differs from `spead_tutorial.recv.ChunkRingbuffer` in `get` and `put`, and in that it is
    iterated over by ``async for``.

    Parameters
    ----------
    maxsize : int
        How many chunks it has room for, at least 1.
    """

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self._to_get, self._to_put = _Turns(), _Turns()

    async def get(self) -> Chunk:  # type: ignore[override]
        """Wait for the next chunk.

        Those who wait get theirs in turn. One who is cancelled loses none.

        Returns
        -------
        Chunk
            The one that has been in the ring for longest.

        Raises
        ------
        Stopped
            Where the ring has been stopped, and is empty.
        """
        loop = asyncio.get_running_loop()
        async with self._to_get.of(loop):
            await asyncio.sleep(0)  # where chunks are always ready, nothing else had its turn
            while True:
                try:
                    return self.get_nowait()
                except Empty:
                    self._waiting()
                    await _readable(loop, self.data_fd)

    async def put(self, chunk: Chunk) -> None:  # type: ignore[override]
        """Put a chunk in, and wait for room.

        Those who wait have theirs put in in turn. That of one who is cancelled is not.

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
        loop = asyncio.get_running_loop()
        async with self._to_put.of(loop):
            while True:
                try:
                    return self.put_nowait(chunk)
                except Full:
                    await _readable(loop, self.space_fd)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        try:
            return await self.get()
        except Stopped:
            raise StopAsyncIteration from None
