# SPDX-License-Identifier: BSD-3-Clause
"""Receiving heaps in coroutines.

How streams are configured is in `spead_tutorial.recv`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from spead_tutorial import recv
from spead_tutorial._core import Chunk, HeapBase, ThreadPool
from spead_tutorial._types import Empty, Full, Stopped

__all__ = ["ChunkRingbuffer", "Stream"]

_IN_A_ROW = 64  # heaps, before other tasks have their turn,
_READING = 16  # one that has to be read counts as this number of them
_T = TypeVar("_T")


async def _soon(attempt: Callable[[], _T], watched: Callable[[], int]) -> _T:
    """Return what an attempt does once it can; until then, watch a descriptor for news."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    while True:
        try:
            return attempt()
        except (Empty, Full):
            fd = watched()
        news.clear()
        loop.add_reader(fd, news.set)
        try:
            await news.wait()
        finally:
            loop.remove_reader(fd)


class _Iterated(Generic[_T]):
    """What is got, one after the other, until it is stopped."""

    if TYPE_CHECKING:

        async def get(self) -> _T: ...

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        try:
            return await self.get()
        except Stopped:
            raise StopAsyncIteration from None


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


class Stream(_Iterated[HeapBase], recv.Stream):
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
        async with self._turns.of(asyncio.get_running_loop()):
            # Where heaps are always ready, nothing else would have its turn: no timeout, no Ctrl-C.
            if self._done >= _IN_A_ROW:
                self._done = 0
                await asyncio.sleep(0)
            self._done += _READING if self._reads and self._ready() == 0 else 1
            return await _soon(self.get_nowait, self._news)

    def _news(self) -> int:
        self._waiting()
        self._done = 0
        return self.fd

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.stop()


class ChunkRingbuffer(_Iterated[Chunk], recv.ChunkRingbuffer):
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
        async with self._to_get.of(asyncio.get_running_loop()):
            await asyncio.sleep(0)  # where chunks are always ready, nothing else had its turn
            return await _soon(self.get_nowait, self._news)

    def _news(self) -> int:
        self._waiting()
        return self.data_fd

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
        async with self._to_put.of(asyncio.get_running_loop()):
            await _soon(lambda: self.put_nowait(chunk), lambda: self.space_fd)
