# SPDX-License-Identifier: BSD-3-Clause
"""Streams without a thread of their own: what the threads that call them do, and when.

What they have in common with other streams is tested with those, once for each kind.
"""

import asyncio
import gc
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import spead_tutorial.send.asyncio
from spead_tutorial import wire
from spead_tutorial.send import BytesStream, Heap, ItemGroup, StreamConfig, UdpStream

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream


def make_heap(size: int = 1000) -> Heap:
    group = ItemGroup()
    group.add_item(0x1000, "x", "", shape=(size,), dtype=np.int8, value=np.ones(size, "i1"))
    return group.get_heap(descriptors="none", data="all")


def arrived(receiver: socket.socket) -> int:
    """How many packets are there."""
    receiver.setblocking(False)
    n = 0
    try:
        while receiver.recv(70000):
            n += 1
    except BlockingIOError:
        return n
    return n


def test_no_thread_is_started(receiver):
    before = len(os.listdir("/proc/self/task"))
    stream = UdpStream(None, [receiver.getsockname()])
    assert stream.send_heap(make_heap()) > 1000
    assert len(os.listdir("/proc/self/task")) == before


def test_small_heaps_are_gathered_and_go_when_the_loop_turns(receiver):
    async def main() -> None:
        stream = AsyncUdpStream(None, [receiver.getsockname()], StreamConfig(max_heaps=20))
        futures = [stream.async_send_heap(make_heap()) for _ in range(10)]
        assert arrived(receiver) == 0
        await asyncio.sleep(0)
        assert arrived(receiver) == 10
        assert all(future.done() for future in futures)
        assert stream.stats.send_calls == 1

    asyncio.run(main())


def test_a_call_that_gathers_enough_sends_and_the_futures_are_done_when_it_returns(receiver):
    async def main() -> None:
        config = StreamConfig(max_heaps=100, max_packet_size=9000)
        stream = AsyncUdpStream(None, [receiver.getsockname()], config)
        futures = [stream.async_send_heap(make_heap(8192)) for _ in range(100)]
        done = sum(future.done() for future in futures)
        assert done == 96  # three times what makes 256 KiB
        assert all(future.done() for future in futures[:done])
        await asyncio.gather(*futures)

    asyncio.run(main())


def test_what_a_rate_holds_up_goes_on_by_itself_while_the_loop_is_free(receiver):
    async def main() -> None:
        config = StreamConfig(max_heaps=10, rate=20000.0, burst_size=1)
        stream = AsyncUdpStream(None, [receiver.getsockname()], config)
        futures = [stream.async_send_heap(make_heap()) for _ in range(5)]
        await asyncio.sleep(0)
        assert not futures[-1].done()  # nobody waits for it, and the loop has turned
        while not all(future.done() for future in futures):
            await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert arrived(receiver) == 5


def test_a_stream_may_be_deleted_with_gathered_heaps_which_are_sent(receiver):
    async def main() -> None:
        stream = AsyncUdpStream(None, [receiver.getsockname()])
        future = stream.async_send_heap(make_heap())
        del stream
        gc.collect()
        assert await future > 1000

    asyncio.run(main())
    assert arrived(receiver) == 1


def test_a_full_queue_is_sent_to_make_room(receiver):
    async def main() -> None:
        stream = AsyncUdpStream(None, [receiver.getsockname()], StreamConfig(max_heaps=2))
        futures = [stream.async_send_heap(make_heap()) for _ in range(9)]
        assert [await future for future in futures] == [futures[0].result()] * 9

    asyncio.run(main())


def test_heaps_in_flight_belong_to_one_event_loop_at_a_time(receiver):
    config = StreamConfig(rate=0.1, burst_size=1)
    stream = AsyncUdpStream(None, [receiver.getsockname()], config)
    sent, end = threading.Event(), threading.Event()

    async def hold() -> None:
        stream.async_send_heap(make_heap())
        stream.async_send_heap(make_heap())
        sent.set()
        while not end.is_set():
            await asyncio.sleep(0.01)

    async def try_too() -> None:
        with pytest.raises(RuntimeError, match="each event loop a stream of its own"):
            stream.async_send_heap(make_heap())

    with ThreadPoolExecutor(1) as executor:
        held = executor.submit(asyncio.run, hold())
        assert sent.wait(30)
        asyncio.run(try_too())
        end.set()
        held.result()


def test_one_thread_waits_for_what_another_has_queued():
    stream = BytesStream(None, StreamConfig(max_heaps=4))
    with ThreadPoolExecutor(4) as executor:
        sent = list(executor.map(lambda _: stream.send_heap(make_heap(100)), range(2000)))
    value, counts = stream.getvalue(), []
    for at in range(0, len(value), sent[0]):
        counts.append(wire.parse(value[at : at + sent[0]]).heap_cnt)
    assert counts == list(range(1, 2001))
