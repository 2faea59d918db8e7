# SPDX-License-Identifier: BSD-3-Clause
"""Receiving heaps in coroutines.

How streams are configured is in `spead_tutorial.recv`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from spead_tutorial import recv
from spead_tutorial._core import HeapBase, ThreadPool
from spead_tutorial._types import Empty, Stopped

__all__ = ["Stream"]


class Stream(recv.Stream):
    """Receives heaps that coroutines wait for.

    It differs from `spead_tutorial.recv.Stream` in `get`, and in that it is iterated over by
    ``async for``.

    Parameters
    ----------
    thread_pool : ThreadPool
        Whose threads do it; kept alive.
    config : StreamConfig
        How packets become heaps; copied. By default ``StreamConfig()``.
    ring_config : RingStreamConfig
        How heaps wait; copied. By default ``RingStreamConfig()``.
    """

    def __init__(
        self,
        thread_pool: ThreadPool,
        config: recv.StreamConfig | None = None,
        ring_config: recv.RingStreamConfig | None = None,
    ) -> None:
        super().__init__(thread_pool, config, ring_config)
        self._turn: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

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
        if self._turn is None or self._loop is not loop:
            self._turn, self._loop = asyncio.Lock(), loop
        async with self._turn:
            while True:
                try:
                    return self.get_nowait()
                except Empty:
                    self._waiting()
                    await self._readable(loop)

    async def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready = asyncio.Event()
        fd = self.fd
        loop.add_reader(fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(fd)

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
