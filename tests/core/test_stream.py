# SPDX-License-Identifier: BSD-3-Clause
"""Streams in Python: what is handed to the core, what is returned, and what is refused."""

import asyncio
import errno
import os
import socket
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spead2.send.asyncio

import spead_tutorial.send.asyncio
from spead_tutorial.send import BytesStream, GroupMode, HeapReference, StreamConfig, UdpStream
from support.heaps import counts, make_heap, slow_config
from support.loops import in_loop
from support.ref_decode import parse
from support.sockets import udp_socket

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream


# ---- What is sent ----


def test_send_heap_returns_the_bytes_of_the_packets_of_the_generator(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_packet_size=1000))
    in_memory = BytesStream(thread_pool, StreamConfig(max_packet_size=1000))
    heap = make_heap(5000)
    packets = list(spead_tutorial.send.PacketGenerator(heap, 7, 1000))
    assert stream.send_heap(heap, cnt=7) == in_memory.send_heap(heap, 7) == sum(map(len, packets))
    assert [receiver.recv(2000) for _ in packets] == packets
    assert in_memory.getvalue() == b"".join(packets)
    stats = stream.stats
    assert (stats.heaps, stats.packets, stats.bytes) == (1, 6, sum(map(len, packets)))
    assert (stats.errors, stats.errors_by_errno, stats.send_calls) == (0, {}, 1)


def test_counts_go_up_as_is_said_and_one_that_is_given_does_not_move_them(thread_pool):
    stream = BytesStream(thread_pool)
    stream.set_cnt_sequence(10, 3)
    for cnt in (-1, 77, -1):
        stream.send_heap(make_heap(), cnt)
    assert counts(stream) == [10, 77, 13]
    with pytest.raises(ValueError, match="must not be 0"):
        stream.set_cnt_sequence(1, 0)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (GroupMode.SERIAL, [5, 5, 5, 5, 6, 7, 7]),
        (GroupMode.ROUND_ROBIN, [5, 6, 7, 5, 7, 5, 5]),
    ],
)
@pytest.mark.parametrize("of", [list, spead_tutorial.send.HeapReferenceList])
def test_a_group_sends_its_heaps_in_the_order_of_its_mode(thread_pool, mode, expected, of):
    stream = BytesStream(thread_pool, StreamConfig(max_packet_size=1000))
    sizes = ((4, 9), (5, 2900), (6, 900), (7, 1900), (8, 9))
    references = [HeapReference(make_heap(n_bytes), cnt=cnt) for cnt, n_bytes in sizes]
    assert weakref.ref(references[0])() is references[0]
    heaps = of(references)[1:4]
    assert len(heaps) == 3
    stream.send_heaps(heaps, mode)
    assert counts(stream) == expected


def test_a_list_of_references_has_what_they_said_when_it_was_made(thread_pool):
    stream = BytesStream(thread_pool)
    references = [HeapReference(make_heap(), cnt=cnt) for cnt in range(4)]
    heaps = spead_tutorial.send.HeapReferenceList(references)
    for one in references:
        one.cnt += 10
    stream.send_heaps(heaps[3:0:-2], GroupMode.SERIAL)
    assert counts(stream) == [3, 1]


def test_multicast_goes_out_of_the_interface_that_was_named():
    with udp_socket("239.255.88.88") as sock:
        group = socket.inet_aton("239.255.88.88") + socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        stream = UdpStream(None, [sock.getsockname()], StreamConfig(), 0, 0, "127.0.0.1")
        stream.send_heap(make_heap())
        assert parse(sock.recv(2000)).cnt == 1


def test_a_socket_that_is_handed_in_is_duplicated(thread_pool, receiver):
    with udp_socket() as sock:
        address = sock.getsockname()
        stream = UdpStream(thread_pool, sock, [receiver.getsockname()], StreamConfig())
    stream.send_heap(make_heap())
    assert receiver.recvfrom(2000)[1] == address
    with pytest.raises(ValueError, match="the socket that was given is closed"):
        UdpStream(thread_pool, sock, [receiver.getsockname()])


# ---- What is refused ----


def as_group(*heaps):
    return lambda s: s.send_heaps(heaps, GroupMode.SERIAL)


@pytest.mark.parametrize(
    ("send", "error", "words"),
    [
        (lambda s: s.send_heap(make_heap(), substream_index=1), errno.EINVAL, "not exist"),
        (lambda s: s.send_heap(make_heap(), cnt=2**40), errno.EINVAL, "heap count"),
        (lambda s: s.send_heap(make_heap(), rate=float("nan")), errno.EINVAL, "finite"),
        (as_group(), errno.EINVAL, "at least one heap"),
        (as_group(*[HeapReference(make_heap())] * 3), errno.EAGAIN, "max_heaps"),
        (as_group(make_heap()), None, "HeapReference"),
    ],
)
def test_a_send_that_cannot_be_is_refused_and_uses_up_no_count(thread_pool, send, error, words):
    stream = BytesStream(thread_pool, StreamConfig(max_heaps=2))
    with pytest.raises(OSError if error else TypeError, match=words) as caught:
        send(stream)
    assert error is None or caught.value.errno == error
    stream.send_heap(make_heap())
    assert counts(stream) == [1]


def test_a_configuration_keeps_what_it_is_told_unless_that_cannot_be():
    for name, value, error in (
        ("max_packet_size", 55, ValueError),
        ("max_packet_size", -1, TypeError),
        ("max_heaps", 0, ValueError),
        ("rate", float("nan"), ValueError),
        ("burst_rate_ratio", 0.9, ValueError),
        ("burst_size", 1.5, TypeError),
        ("rate_method", 1, TypeError),
        ("no_such_option", 1, TypeError),
    ):
        with pytest.raises(error):
            StreamConfig(**{name: value})
    config = StreamConfig(rate=1e9, burst_rate_ratio=1.5)
    config.max_packet_size = 9000
    assert (config.max_packet_size, config.burst_rate) == (9000, 1.5e9)
    for name in ("burst_rate", "DEFAULT_MAX_HEAPS", "other"):
        with pytest.raises(AttributeError):
            setattr(config, name, 1)
    with pytest.raises(ValueError, match="56 bytes"):
        config.max_packet_size = 8


@pytest.mark.parametrize(
    ("endpoints", "words"),
    [
        ([], "at least one endpoint"),
        ([("127.0.0.1", 0)], "1 to 65535"),
        ([("not a host", 8888)], "could not look up host 'not a host'"),
        ([("127.0.0.1\0.example", 8888)], "NUL character"),
        ([("127.0.0.1", 9.7)], "pairs of host and port"),
        ([("127.0.0.1", "9")], "pairs of host and port"),
        ([(5, 8888)], "pairs of host and port"),
    ],
)
def test_endpoints_that_are_none_are_refused(thread_pool, endpoints, words):
    with pytest.raises((ValueError, TypeError), match=words):
        UdpStream(thread_pool, endpoints)


@pytest.mark.parametrize("package", [spead2, spead_tutorial], ids=lambda p: p.__name__)
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda p: p.ThreadPool(1.5), TypeError),
        (lambda p: p.ThreadPool(-1), ValueError),
        (lambda p: p.ThreadPool(2**40), TypeError),
        (lambda p: p.ThreadPool(1, [0.5]), TypeError),
        (lambda p: p.ThreadPool(1, [2**40]), TypeError),
        (lambda p: p.ThreadPool.set_affinity(0.5), TypeError),
        (lambda p: p.ThreadPool.set_affinity(2**40), TypeError),
        (lambda p: p.send.StreamConfig(rate="1"), TypeError),
        (lambda p: p.send.StreamConfig(burst_rate_ratio="2"), TypeError),
        (lambda p: p.send.StreamConfig(max_heaps=2**64), TypeError),
        (lambda p: p.send.PacketGenerator(p.send.Heap(), -1, 1472), TypeError),
        (lambda p: p.send.PacketGenerator(p.send.Heap(), 1.5, 1472), TypeError),
        (lambda p: p.send.PacketGenerator(p.send.Heap(), 1, 1472.5), TypeError),
        (lambda p: in_group(p, cnt=1.5), TypeError),
        (lambda p: in_group(p, substream_index=0.5), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(1.5, 1), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(1, 1.5), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(-1, 1), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(1, 2**64), TypeError),
        (lambda p: in_memory(p).send_heap(p.send.Heap(), cnt=1.5), TypeError),
        (lambda p: in_memory(p).send_heap(p.send.Heap(), cnt=2**63), TypeError),
        (lambda p: in_memory(p).send_heap(p.send.Heap(), substream_index=-1), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", 65536)]), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", -1)]), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1",)]), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", 9)], 5.5), TypeError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, 1.5), TypeError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, 256), IndexError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, -1), IndexError),
        (lambda p: to_endpoints(p, [("ff02::1", 9)], 0, 1, 1.5), TypeError),
        (lambda p: to_endpoints(p, [("ff02::1", 9)], 0, 1, 2**32), TypeError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, 1, ttl=1), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", 9)], no_such_argument=1), TypeError),
        (lambda p: p.send.UdpStream(p.ThreadPool(), socket.socket(), [("::1", 9)]), TypeError),
        (lambda p: p.send.UdpStream(p.ThreadPool(), None, [("::1", 9)]), TypeError),
        (lambda p: p.send.UdpStream(p.ThreadPool(), [("::1", 9)], {}), TypeError),
    ],
)
def test_numbers_that_cannot_be_are_the_error_that_they_are_in_spead2(package, call, error):
    with pytest.raises(error):
        call(package)


def in_memory(package):
    return package.send.BytesStream(package.ThreadPool())


def in_group(package, **kwargs):
    reference = package.send.HeapReference(package.send.Heap(), **kwargs)
    return package.send.HeapReferenceList([reference])


def to_endpoints(package, endpoints, *more, **named):
    config = package.send.StreamConfig()
    return package.send.UdpStream(package.ThreadPool(), endpoints, config, *more, **named)


def test_ids_that_the_protocol_reserves_are_refused_and_those_that_do_not_fit_the_flavour():
    of_one_byte = {"name": "x", "description": "", "shape": (), "dtype": np.uint8, "value": 1}
    for id in range(7):
        with pytest.raises(ValueError, match="0x0 to 0x6 are reserved"):
            spead_tutorial.Item(id, **of_one_byte)
        theirs = spead2.Item(id, **of_one_byte)
        for add in (spead_tutorial.send.Heap().add_item, spead_tutorial.send.Heap().add_descriptor):
            with pytest.raises(ValueError, match="0x0 to 0x6 are the protocol's own"):
                add(theirs)
    heap = spead_tutorial.send.Heap(spead_tutorial.Flavour(4, 64, 56))
    for id in (7, 0x7F):
        heap.add_item(spead_tutorial.Item(id, **of_one_byte))
        heap.add_descriptor(spead_tutorial.Item(id, **of_one_byte))
    with pytest.raises(ValueError, match="ids have 7 bits"):
        heap.add_item(spead_tutorial.Item(0x80, **of_one_byte))


@in_loop
async def test_a_heap_in_flight_or_whose_packets_are_generated_cannot_be_added_to(
    thread_pool, receiver
):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], slow_config())
    heap = make_heap()
    await stream.async_send_heap(make_heap())
    stream.async_send_heap(heap)
    with pytest.raises(BufferError, match="being sent"):
        heap.add_end()
    heap = make_heap(5000)
    packets = spead_tutorial.send.PacketGenerator(heap, 1, 1000)
    next(packets)
    with pytest.raises(BufferError):
        heap.add_end()
    list(packets)
    heap.add_end()


def test_a_closed_stream_and_a_stopped_pool_refuse_heaps(own_threads):
    closed = BytesStream(own_threads)
    with closed:
        closed.send_heap(make_heap())
    with pytest.raises(spead_tutorial.Stopped, match="closed"):
        closed.send_heap(make_heap())
    assert closed.stats.heaps == 1
    stream = BytesStream(own_threads)
    own_threads.stop()
    with pytest.raises(spead_tutorial.Stopped):
        stream.send_heap(make_heap())


# ---- Asynchronous ----


@in_loop
async def test_futures_tell_the_bytes_in_order_of_the_calls(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=50))
    futures = [stream.async_send_heap(make_heap(100 + i)) for i in range(50)]
    sent = await asyncio.gather(*futures)
    packets = [receiver.recv(2000) for _ in range(50)]
    assert [parse(packet).cnt for packet in packets] == list(range(1, 51))
    assert [len(packet) for packet in packets] == sent


@pytest.mark.parametrize("package", [spead2, spead_tutorial], ids=lambda p: p.__name__)
@in_loop
async def test_futures_are_completed_by_who_does_not_wait_for_the_loop(package):
    stream = package.send.asyncio.InprocStream(package.ThreadPool(), [package.InprocQueue()])
    future = stream.async_send_heap(package.send.ItemGroup().get_end())
    while not future.done():
        stream.process_callbacks()
    assert future.result() == 57


def test_flush_waits_for_all_that_is_queued(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=20))

    async def main() -> None:
        futures = [stream.async_send_heap(make_heap()) for _ in range(20)]
        await stream.async_flush()
        assert all(future.done() for future in futures)
        stream.async_send_heap(make_heap())
        stream.flush()
        assert stream.stats.heaps == 21
        await stream.async_flush()
        stream.async_send_heap(make_heap())

    async def later() -> int:
        await asyncio.wait_for(stream.async_flush(), 10)
        return await stream.async_send_heap(make_heap())

    asyncio.run(main())
    assert asyncio.run(later()) > 1000


@in_loop
async def test_a_flush_leaves_its_futures_to_another_loop_that_runs(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], slow_config())
    futures = [stream.async_send_heap(make_heap(100)) for _ in range(2)]
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(stream.async_flush()))
    assert await futures[0] > 100


@pytest.fixture
def idle_loop():
    """The event loop of this thread, which does not run."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


def test_what_is_sent_while_no_loop_runs_is_for_the_threads(thread_pool, receiver, idle_loop):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()])
    futures = [
        stream.async_send_heap(make_heap(100)),
        stream.async_send_heaps([HeapReference(make_heap(100))], GroupMode.SERIAL),
        stream.async_send_heap(make_heap(100), substream_index=1),
    ]
    assert all(future.get_loop() is idle_loop for future in futures)
    stream.flush()
    sent, of_group, refused = idle_loop.run_until_complete(
        asyncio.gather(*futures, return_exceptions=True)
    )
    assert sent == of_group > 100
    assert refused.errno == errno.EINVAL

    async def main() -> int:
        return await stream.async_send_heap(make_heap(100))

    assert asyncio.run(main()) == sent


def test_what_is_sent_beside_a_thread_with_the_loop_is_for_that(thread_pool, receiver, idle_loop):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=1000))

    async def results(futures: list[asyncio.Future[int]]) -> list[int]:
        return await asyncio.gather(*futures)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(idle_loop.run_forever)
        try:
            asyncio.run_coroutine_threadsafe(results([]), idle_loop).result()
            futures = [stream.async_send_heap(make_heap(100)) for _ in range(500)]
            found = asyncio.run_coroutine_threadsafe(results(futures), idle_loop).result(60)
        finally:
            idle_loop.call_soon_threadsafe(idle_loop.stop)
    assert len(set(found)) == 1


def test_nothing_is_queued_for_a_loop_that_will_not_complete_it(thread_pool, receiver, idle_loop):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], slow_config())
    stream.async_send_heap(make_heap(100))
    stream.async_send_heap(make_heap(100))
    other = asyncio.new_event_loop()
    asyncio.set_event_loop(other)
    with pytest.raises(RuntimeError, match="another event loop"):
        stream.async_send_heap(make_heap(100))
    other.close()
    for loop, match in ((other, "closed"), (None, "no current event loop")):
        asyncio.set_event_loop(loop)
        with pytest.raises(RuntimeError, match=match):
            AsyncUdpStream(thread_pool, [receiver.getsockname()]).async_send_heap(make_heap(100))


# ---- What a stream tells ----


def test_the_timeline_tells_when_each_heap_was_sent():
    stream = BytesStream(None, StreamConfig(timeline=3))
    sent = [stream.send_heap(make_heap()) for _ in range(5)]
    times = stream.timeline()
    assert (times["cnt"].tolist(), times["bytes"].tolist()) == ([3, 4, 5], sent[2:])
    order = ["queued_ns", "first_packet_ns", "last_packet_ns", "completed_ns"]
    steps = np.stack([times[name].astype(np.int64) for name in order])
    assert (np.diff(steps, axis=0) >= 0).all()
    assert (np.diff(steps, axis=1) > 0).all()
    without = BytesStream(None)
    without.send_heap(make_heap())
    assert without.timeline().shape == (0,)


@pytest.mark.parametrize("missing", [1000, 5000, -1])
def test_a_core_that_is_not_there_is_a_warning_and_its_thread_runs_on_any(missing, caplog):
    usable = os.sched_getaffinity(0)
    core, before = min(usable), set(os.listdir("/proc/self/task"))
    with spead_tutorial.ThreadPool(2, affinity=[missing, core]):
        while len(threads := set(os.listdir("/proc/self/task")) - before) > 2:
            pass  # one that has ended may be there a moment longer
        found = [os.sched_getaffinity(int(thread)) for thread in threads]
    assert sorted(found, key=len) == sorted([{core}, usable], key=len)
    spead_tutorial.ThreadPool.set_affinity(missing)
    assert os.sched_getaffinity(0) == usable
    assert {(r.levelname, r.name) for r in caplog.records} == {("WARNING", "spead_tutorial")}
    assert [f"core {missing}" in r.getMessage() for r in caplog.records] == [True, True]
