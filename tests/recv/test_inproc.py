# SPDX-License-Identifier: BSD-3-Clause
"""Heaps that stay in the process, from streams that send to streams that receive."""

import asyncio
import errno
import os
import warnings

import pytest
import spead2

import spead_tutorial as st
import spead_tutorial.recv.asyncio
import spead_tutorial.send.asyncio
from spead_tutorial import recv, send
from support.heaps import make_heap
from support.loops import in_loop

N_BYTES = 5000


def values(stream):
    """The first sample of each heap that a stream gets until it ends."""
    return [bytes(heap.get_items()[0])[0] for heap in stream]


def test_heaps_are_received_also_after_they_were_sent_until_the_queue_has_been_stopped(own_threads):
    queue = st.InprocQueue()
    with send.InprocStream(own_threads, [queue]) as sender, recv.Stream(own_threads) as receiver:
        assert sender.queues == [queue]
        sent = sum(sender.send_heap(make_heap(N_BYTES, i)) for i in range(5))
        receiver.add_inproc_reader(queue)
        sender.send_heap(make_heap(N_BYTES, 5))
        queue.stop()
        assert values(receiver) == [0, 1, 2, 3, 4, 5]
        stats = receiver.stats
    assert sender.stats.bytes == sent * 6 // 5
    assert stats.packets_received == stats.packets_placed == sender.stats.packets
    with pytest.raises(st.Stopped):
        queue.add_packet(b"")


def test_each_substream_has_a_queue(own_threads):
    queues = [st.InprocQueue(), st.InprocQueue()]
    with send.InprocStream(own_threads, queues) as sender:
        assert sender.num_substreams == 2
        for i in range(6):
            sender.send_heap(make_heap(N_BYTES, i), substream_index=i % 2)
    for i, queue in enumerate(queues):
        queue.stop()
        with recv.Stream(own_threads) as receiver:
            receiver.add_inproc_reader(queue)
            assert values(receiver) == [i, i + 2, i + 4]


@in_loop
async def test_coroutines_send_no_more_than_is_received(own_threads):
    queue = st.InprocQueue(max_packets=2, max_bytes=3000)
    sender = spead_tutorial.send.asyncio.InprocStream(own_threads, [queue])
    receiver = spead_tutorial.recv.asyncio.Stream(own_threads)
    first = sender.async_send_heap(make_heap(N_BYTES, 0))
    done, _ = await asyncio.wait([first], timeout=0.01)
    assert not done
    receiver.add_inproc_reader(queue)
    await first
    last = [sender.async_send_heap(make_heap(N_BYTES, i)) for i in (1, 2)]
    assert [bytes((await receiver.get()).get_items()[0])[0] for _ in range(3)] == [0, 1, 2]
    await asyncio.gather(*last)
    receiver.stop()
    blocked = sender.async_send_heap(make_heap(N_BYTES))
    queue.stop()
    with pytest.raises(OSError, match="the queue has been stopped") as raised:
        await blocked
    assert raised.value.errno == errno.ECANCELED


def test_a_full_queue_refuses_a_packet_and_says_what_to_do(own_threads):
    queue = st.InprocQueue(max_packets=1, max_bytes=100)
    queue.add_packet(bytearray(10))
    with pytest.raises(st.Full, match="raise its max_packets or max_bytes"):
        queue.add_packet(b"1")
    with pytest.raises(ValueError, match="max_bytes is 100"):
        queue.add_packet(bytes(101))
    for unusable in (-1, 1.5, "1"):
        with pytest.raises(TypeError):
            st.InprocQueue(max_packets=unusable)
    with pytest.raises(TypeError):
        send.InprocStream(own_threads, [spead2.InprocQueue()])


@in_loop
async def test_a_sender_goes_on_as_soon_as_there_is_room(own_threads):
    """Also where what receives has no room for more than a few heaps itself."""
    queue = st.InprocQueue(max_packets=10)
    receiver = recv.Stream(None, ring_config=recv.RingStreamConfig(heaps=1))
    receiver.add_inproc_reader(queue)
    config = send.StreamConfig(max_heaps=12)
    sender = spead_tutorial.send.asyncio.InprocStream(own_threads, [queue], config)
    sent = [sender.async_send_heap(make_heap()) for _ in range(11)]
    await asyncio.wait_for(sent[9], 5)
    assert receiver.get_nowait().cnt == 1
    await asyncio.wait_for(sent[10], 5)


def test_a_queue_is_of_no_use_in_a_child(own_threads):
    queue = st.InprocQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, by Python 3.12
        child = os.fork()
    if child == 0:
        try:
            queue.add_packet(b"")
        except RuntimeError as error:
            os._exit("the parent's" in str(error))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
