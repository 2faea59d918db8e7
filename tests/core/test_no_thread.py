# SPDX-License-Identifier: BSD-3-Clause
"""Streams without a thread of their own: what the threads that call them do, and when.

What they have in common with other streams is tested with those, once for each kind.
"""

import asyncio

import spead_tutorial.send.asyncio
from spead_tutorial.send import StreamConfig
from support.heaps import make_heap
from support.loops import in_loop
from support.sockets import messages

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream


@in_loop
async def test_small_heaps_are_gathered_and_go_when_the_loop_turns(receiver):
    stream = AsyncUdpStream(None, [receiver.getsockname()], StreamConfig(max_heaps=20))
    futures = [stream.async_send_heap(make_heap()) for _ in range(10)]
    assert messages(receiver) == []
    await asyncio.sleep(0)
    assert len(messages(receiver)) == 10
    assert all(future.done() for future in futures)
    assert stream.stats.send_calls == 1


@in_loop
async def test_a_call_that_gathers_enough_sends_and_the_futures_are_done_when_it_returns(receiver):
    config = StreamConfig(max_heaps=100, max_packet_size=9000)
    stream = AsyncUdpStream(None, [receiver.getsockname()], config)
    futures = [stream.async_send_heap(make_heap(8192)) for _ in range(100)]
    done = sum(future.done() for future in futures)
    assert done == 96  # three times what makes 256 KiB
    assert all(future.done() for future in futures[:done])
    await asyncio.gather(*futures)


@in_loop
async def test_what_a_rate_holds_up_goes_on_by_itself_while_the_loop_is_free(receiver):
    config = StreamConfig(max_heaps=10, rate=20000.0, burst_size=1)
    stream = AsyncUdpStream(None, [receiver.getsockname()], config)
    futures = [stream.async_send_heap(make_heap()) for _ in range(5)]
    await asyncio.sleep(0)
    assert not futures[-1].done()  # nobody waits for it, and the loop has turned
    while not all(future.done() for future in futures):
        await asyncio.sleep(0.005)
    assert len(messages(receiver)) == 5


@in_loop
async def test_a_full_queue_is_sent_to_make_room(receiver):
    stream = AsyncUdpStream(None, [receiver.getsockname()], StreamConfig(max_heaps=2))
    futures = [stream.async_send_heap(make_heap()) for _ in range(9)]
    assert [await future for future in futures] == [futures[0].result()] * 9
