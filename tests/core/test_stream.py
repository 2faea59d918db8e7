# SPDX-License-Identifier: BSD-3-Clause
"""Streams: what is sent, in which order, what is returned, and what is refused."""

import asyncio
import errno
import gc
import os
import socket
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spead2
import spead2.recv
import spead2.send

import spead_tutorial
import spead_tutorial.send
import spead_tutorial.send.asyncio
from spead_tutorial import wire
from spead_tutorial.send import (
    BytesStream,
    GroupMode,
    Heap,
    HeapReference,
    HeapReferenceList,
    PacketGenerator,
    StreamConfig,
    UdpStream,
)
from support.heaps import make_heap, slow_config

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream


def split(data: bytes) -> list[wire.Packet]:
    """Take the packets of a BytesStream apart; none has a tail, so that lengths are known."""
    packets = []
    while data:
        n_pointers = int.from_bytes(data[6:8])
        size = 8 + 8 * n_pointers
        for pointer in range(n_pointers):
            word = int.from_bytes(data[8 + 8 * pointer : 16 + 8 * pointer])
            if word >> 40 == 1 << 23 | 4:  # the payload length, an immediate
                size += word & (1 << 40) - 1
        packets.append(wire.parse(data[:size]))
        data = data[size:]
    return packets


def counts(stream: BytesStream) -> list[int]:
    return [packet.heap_cnt for packet in split(stream.getvalue())]


# ---- What is sent ----


def test_a_stream_sends_the_packets_that_the_generator_makes(thread_pool):
    heap = make_heap(5000)
    stream = BytesStream(thread_pool, StreamConfig(max_packet_size=1000))
    stream.send_heap(heap, cnt=7)
    assert stream.getvalue() == b"".join(PacketGenerator(heap, 7, 1000))


def test_send_heap_returns_the_bytes_of_the_packets(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_packet_size=1000))
    heap = make_heap(5000)
    sent = stream.send_heap(heap)
    packets = [receiver.recv(2000) for _ in PacketGenerator(heap, 1, 1000)]
    assert sent == sum(map(len, packets))
    assert packets == list(PacketGenerator(heap, 1, 1000))


def test_a_value_edited_in_place_is_sent_as_it_is_then(thread_pool):
    timestamp = np.array(1, ">u8")
    group = spead_tutorial.send.ItemGroup()
    group.add_item(0x1600, "timestamp", "", shape=(), format=[("u", 40)], value=timestamp)
    heap = group.get_heap(descriptors="none", data="all")
    stream = BytesStream(thread_pool)
    stream.send_heap(heap)
    timestamp[...] = 0x12_3456_789A
    stream.send_heap(heap)
    values = [packet.items[4].value for packet in split(stream.getvalue())]
    assert values == [1, 0x12_3456_789A]


def test_heap_counts_start_at_one_and_go_up_by_one(thread_pool):
    stream = BytesStream(thread_pool)
    for _ in range(3):
        stream.send_heap(make_heap())
    assert counts(stream) == [1, 2, 3]


def test_a_count_sequence_can_be_chosen_and_is_cut_to_the_flavour(thread_pool):
    stream = BytesStream(thread_pool)
    stream.set_cnt_sequence(2**40 - 2, 3)
    for _ in range(2):
        stream.send_heap(make_heap())
    assert counts(stream) == [2**40 - 2, 1]


def test_a_count_given_with_a_heap_does_not_move_the_sequence(thread_pool):
    stream = BytesStream(thread_pool)
    stream.send_heap(make_heap(), cnt=77)
    stream.send_heap(make_heap())
    assert counts(stream) == [77, 1]


def test_a_step_of_zero_is_refused(thread_pool):
    with pytest.raises(ValueError, match="must not be 0"):
        BytesStream(thread_pool).set_cnt_sequence(1, 0)


def test_a_serial_group_sends_heap_after_heap(thread_pool):
    stream = BytesStream(thread_pool, StreamConfig(max_packet_size=1000))
    heaps = [HeapReference(make_heap(2000)) for _ in range(2)]
    stream.send_heaps(heaps, GroupMode.SERIAL)
    assert counts(stream) == [1, 1, 1, 2, 2, 2]


def test_a_round_robin_group_takes_a_packet_of_each_heap_in_turn(thread_pool):
    stream = BytesStream(thread_pool, StreamConfig(max_packet_size=1000))
    heaps = [HeapReference(make_heap(n)) for n in (2900, 900, 1900)]
    stream.send_heaps(heaps, GroupMode.ROUND_ROBIN)
    assert counts(stream) == [1, 2, 3, 1, 3, 1, 1]


def test_a_slice_of_a_list_of_heaps_sends_those_heaps(thread_pool):
    stream = BytesStream(thread_pool)
    heaps = HeapReferenceList([HeapReference(make_heap(), cnt=i) for i in range(10, 14)])
    assert len(heaps[1:3]) == 2
    stream.send_heaps(heaps[1:3], GroupMode.SERIAL)
    assert counts(stream) == [11, 12]


def test_substreams_go_to_their_own_endpoints(thread_pool, receiver):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        other.settimeout(10)
        stream = UdpStream(thread_pool, [receiver.getsockname(), other.getsockname()])
        assert stream.num_substreams == 2
        stream.send_heap(make_heap(), substream_index=1)
        stream.send_heap(make_heap(), substream_index=0)
        assert wire.parse(other.recv(2000)).heap_cnt == 1
        assert wire.parse(receiver.recv(2000)).heap_cnt == 2


def test_packets_reach_an_ipv6_address(thread_pool):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("::1", 0))
        except OSError:
            pytest.skip("the kernel has no IPv6 on loopback")
        sock.settimeout(10)
        stream = UdpStream(thread_pool, [("::1", sock.getsockname()[1])])
        stream.send_heap(make_heap())
        assert wire.parse(sock.recv(2000)).heap_cnt == 1


def test_multicast_goes_out_of_the_interface_that_was_named(thread_pool):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("239.255.88.88", 0))
        group = socket.inet_aton("239.255.88.88") + socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        sock.settimeout(10)
        endpoint = ("239.255.88.88", sock.getsockname()[1])
        stream = UdpStream(thread_pool, [endpoint], StreamConfig(), 0, 0, "127.0.0.1")
        stream.send_heap(make_heap())
        assert wire.parse(sock.recv(2000)).heap_cnt == 1


def test_a_socket_that_is_handed_in_is_duplicated(thread_pool, receiver):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        stream = UdpStream(thread_pool, sock, [receiver.getsockname()], StreamConfig())
    stream.send_heap(make_heap())
    assert receiver.recvfrom(2000)[1][1] == port


def test_equal_packets_share_messages_and_arrive_one_by_one(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_packet_size=1000))
    heap = make_heap(20000)
    stream.send_heap(heap)
    stats = stream.stats
    expected = list(PacketGenerator(heap, 1, 1000))
    assert [receiver.recv(2000) for _ in expected] == expected
    assert stats.packets == len(expected)
    assert stats.gso_messages >= 1
    assert stats.messages < stats.packets


def test_heaps_of_equal_packets_share_messages_throughout(thread_pool, receiver):
    group = spead_tutorial.send.ItemGroup()
    group.add_item(0x1600, "timestamp", "", shape=(), format=[("u", 40)], value=5)
    group.add_item(0x3300, "x", "", shape=(16384,), dtype=np.int8, value=np.ones(16384, "i1"))
    heaps = [HeapReference(group.get_heap(descriptors="none", data="all")) for _ in range(6)]
    messages, sizes = {}, {}
    for equal in (False, True):
        config = StreamConfig(max_packet_size=9000, max_heaps=6, equal_packets=equal)
        stream = UdpStream(thread_pool, [receiver.getsockname()], config)
        stream.send_heaps(heaps, GroupMode.SERIAL)
        messages[equal] = stream.stats.messages
        sizes[equal] = {len(receiver.recv(9000)) for _ in range(12)}
    assert sizes == {False: {9000, 7480}, True: {8240}}
    assert messages == {False: 6, True: 2}


def test_many_small_items_travel_whole(thread_pool):
    group = spead_tutorial.send.ItemGroup()
    for i in range(500):
        value = np.full(i % 7, i % 256, "u1")
        group.add_item(None, f"item{i}", "", shape=(None,), format=[("u", 8)], value=value)
    heap = group.get_heap()
    stream = BytesStream(thread_pool, StreamConfig(max_packet_size=500))
    stream.send_heap(heap)
    assert stream.getvalue() == b"".join(PacketGenerator(heap, 1, 500))


# ---- What is refused ----


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"substream_index": 1}, "substream 1 does not exist"),
        ({"cnt": 2**40}, "heap count"),
        ({"rate": float("nan")}, "finite"),
    ],
)
def test_a_bad_argument_of_a_send_is_einval_and_uses_up_no_count(thread_pool, kwargs, words):
    stream = BytesStream(thread_pool)
    with pytest.raises(OSError, match=words) as caught:
        stream.send_heap(make_heap(), **kwargs)
    assert caught.value.errno == errno.EINVAL
    stream.send_heap(make_heap())
    assert counts(stream) == [1]


def test_an_empty_group_is_einval(thread_pool):
    with pytest.raises(OSError, match="at least one heap") as caught:
        BytesStream(thread_pool).send_heaps([], GroupMode.SERIAL)
    assert caught.value.errno == errno.EINVAL


def test_a_plain_heap_in_a_group_is_a_type_error(thread_pool):
    with pytest.raises(TypeError, match="HeapReference"):
        BytesStream(thread_pool).send_heaps([make_heap()], GroupMode.SERIAL)


def test_a_group_larger_than_the_queue_sends_nothing(thread_pool):
    stream = BytesStream(thread_pool, StreamConfig(max_heaps=2))
    with pytest.raises(BlockingIOError, match="max_heaps"):
        stream.send_heaps([HeapReference(make_heap()) for _ in range(3)], GroupMode.SERIAL)
    stream.send_heap(make_heap())
    assert counts(stream) == [1]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_packet_size", 55, ValueError),
        ("max_packet_size", -1, TypeError),
        ("max_heaps", 0, ValueError),
        ("max_heaps", -1, TypeError),
        ("rate", -1.0, ValueError),
        ("rate", float("inf"), ValueError),
        ("rate", float("nan"), ValueError),
        ("burst_rate_ratio", 0.9, ValueError),
        ("burst_size", -5, TypeError),
        ("burst_size", 1.5, TypeError),
        ("rate_method", 1, TypeError),
        ("no_such_option", 1, TypeError),
    ],
)
def test_a_bad_configuration_is_refused(name, value, error):
    with pytest.raises(error):
        StreamConfig(**{name: value})


def test_a_configuration_keeps_what_it_is_told():
    config = StreamConfig(rate=1e9, burst_rate_ratio=1.5)
    config.max_packet_size = 9000
    assert (config.max_packet_size, config.burst_rate) == (9000, 1.5e9)
    with pytest.raises(AttributeError):
        config.burst_rate = 1.0
    with pytest.raises(ValueError, match="56 bytes"):
        config.max_packet_size = 8


@pytest.mark.parametrize(
    ("endpoints", "words"),
    [
        ([], "at least one endpoint"),
        ([("127.0.0.1", 0)], "1 to 65535"),
        ([("127.0.0.1", 8888), ("::1", 8888)], "one address family"),
        ([("not a host", 8888)], "could not look up host 'not a host'"),
    ],
)
def test_bad_endpoints_are_refused(thread_pool, endpoints, words):
    with pytest.raises(ValueError, match=words):
        UdpStream(thread_pool, endpoints)


def test_packets_larger_than_udp_carries_are_refused_before_a_byte_goes_out(thread_pool, receiver):
    config = StreamConfig(max_packet_size=70000)
    stream = UdpStream(thread_pool, [receiver.getsockname()], config)
    with pytest.raises(OSError, match=r"65507.*lower max_packet_size") as caught:
        stream.send_heap(make_heap(10))
    assert caught.value.errno == errno.EMSGSIZE
    assert stream.stats.send_calls == 0


@pytest.mark.parametrize(
    "endpoint", [("127.0.0.1\0.example", 8888), ("127.0.0.1", 9.7), ("127.0.0.1", "9"), (5, 8888)]
)
def test_endpoints_that_are_none_are_not_taken_for_another(thread_pool, endpoint):
    with pytest.raises((ValueError, TypeError)):
        UdpStream(thread_pool, [endpoint])


@pytest.mark.parametrize(
    "call",
    [
        lambda: spead_tutorial.ThreadPool(1.5),
        lambda: spead_tutorial.ThreadPool(1, [0.5]),
        lambda: spead_tutorial.ThreadPool.set_affinity(0.5),
        lambda: PacketGenerator(Heap(), 1, 1472.5),
        lambda: PacketGenerator(Heap(), 1.5, 1472),
        lambda: HeapReferenceList([HeapReference(Heap(), cnt=1.5)]),
        lambda: HeapReferenceList([HeapReference(Heap(), substream_index=0.5)]),
        lambda: BytesStream(spead_tutorial.ThreadPool()).set_cnt_sequence(1.5, 1),
        lambda: BytesStream(spead_tutorial.ThreadPool()).set_cnt_sequence(1, 1.5),
        lambda: BytesStream(spead_tutorial.ThreadPool()).send_heap(Heap(), cnt=1.5),
        lambda: UdpStream(spead_tutorial.ThreadPool(), [("127.0.0.1", 9)], None, 5.5),
        lambda: UdpStream(spead_tutorial.ThreadPool(), [("239.1.1.1", 9)], None, 0, 1.5),
        lambda: UdpStream(spead_tutorial.ThreadPool(), [("ff02::1", 9)], None, 0, 1, 1.5),
    ],
)
def test_what_has_a_fraction_is_not_cut_to_a_whole_number(call):
    with pytest.raises(TypeError):
        call()


@pytest.mark.parametrize("package", [spead2, spead_tutorial], ids=lambda p: p.__name__)
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda p: p.ThreadPool(1, [2**40]), TypeError),
        (lambda p: p.ThreadPool.set_affinity(2**40), TypeError),
        (lambda p: p.send.StreamConfig(rate="1"), TypeError),
        (lambda p: p.send.StreamConfig(burst_rate_ratio="2"), TypeError),
        (lambda p: p.send.StreamConfig(max_heaps=2**64), TypeError),
        (lambda p: p.send.PacketGenerator(p.send.Heap(), -1, 1472), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(-1, 1), TypeError),
        (lambda p: in_memory(p).set_cnt_sequence(1, 2**64), TypeError),
        (lambda p: in_memory(p).send_heap(p.send.Heap(), cnt=2**63), TypeError),
        (lambda p: in_memory(p).send_heap(p.send.Heap(), substream_index=-1), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", 65536)]), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1", -1)]), TypeError),
        (lambda p: to_endpoints(p, [("127.0.0.1",)]), TypeError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, 256), IndexError),
        (lambda p: to_endpoints(p, [("239.1.1.1", 9)], 0, -1), IndexError),
    ],
)
def test_what_is_out_of_range_is_the_error_that_it_is_in_spead2(package, call, error):
    with pytest.raises(error):
        call(package)


def in_memory(package):
    return package.send.BytesStream(package.ThreadPool())


def to_endpoints(package, endpoints, *more):
    config = package.send.StreamConfig()
    return package.send.UdpStream(package.ThreadPool(), endpoints, config, *more)


@pytest.mark.parametrize("package", [spead2, spead_tutorial], ids=lambda p: p.__name__)
def test_a_socket_that_is_not_one_of_udp_is_refused(package):
    with socket.socket() as of_tcp, pytest.raises(TypeError):
        package.send.UdpStream(package.ThreadPool(), of_tcp, [("127.0.0.1", 9)])


@pytest.mark.parametrize("id", range(7))
def test_ids_that_the_protocol_reserves_are_refused(id):
    with pytest.raises(ValueError, match="0x0 to 0x6 are reserved"):
        spead_tutorial.Item(id, "x", "", shape=(), dtype=np.uint8, value=1)
    theirs = spead2.Item(id, "x", "", shape=(), dtype=np.uint8, value=1)
    with pytest.raises(ValueError, match="0x0 to 0x6 are the protocol's own"):
        Heap().add_item(theirs)
    with pytest.raises(ValueError, match="0x0 to 0x6 are the protocol's own"):
        Heap().add_descriptor(theirs)


def test_the_first_id_that_is_not_reserved_arrives(thread_pool):
    heap = Heap()
    item = spead_tutorial.Item(7, "x", "", shape=(30,), dtype=np.uint8, value=range(30))
    heap.add_descriptor(item)
    heap.add_item(item)
    stream = BytesStream(thread_pool)
    stream.send_heap(heap)
    group, receiver = spead2.ItemGroup(), spead2.recv.Stream(spead2.ThreadPool())
    receiver.add_buffer_reader(stream.getvalue())
    for received in receiver:
        group.update(received)
    np.testing.assert_array_equal(group["x"].value, range(30))


def test_an_id_that_does_not_fit_the_flavour_is_refused():
    heap = Heap(spead_tutorial.Flavour(4, 64, 56))
    item = spead_tutorial.Item(0x80, "x", "", shape=(), dtype=np.uint8, value=1)
    with pytest.raises(ValueError, match="ids have 7 bits"):
        heap.add_item(item)


def test_repeated_pointers_that_do_not_fit_one_packet_are_refused(thread_pool):
    heap = Heap()
    for i in range(10):
        item = spead_tutorial.Item(0x1000 + i, "x", "", shape=(), dtype=np.uint8, value=1)
        heap.add_item(item)
    heap.repeat_pointers = True
    with pytest.raises(ValueError, match="raise max_packet_size to 136"):
        BytesStream(thread_pool, StreamConfig(max_packet_size=128)).send_heap(heap)


def test_a_heap_in_flight_cannot_be_added_to(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], slow_config())
        heap = make_heap()
        await stream.async_send_heap(make_heap())
        stream.async_send_heap(heap)
        with pytest.raises(BufferError, match="being sent"):
            heap.add_end()

    asyncio.run(main())


def test_a_heap_whose_packets_are_generated_cannot_be_added_to():
    heap = make_heap(5000)
    packets = PacketGenerator(heap, 1, 1000)
    next(packets)
    with pytest.raises(BufferError):
        heap.add_end()
    list(packets)
    heap.add_end()


def test_a_closed_stream_refuses_heaps(thread_pool):
    stream = BytesStream(thread_pool)
    with stream:
        stream.send_heap(make_heap())
    with pytest.raises(spead_tutorial.Stopped, match="closed"):
        stream.send_heap(make_heap())
    assert stream.stats.heaps == 1


def test_a_stopped_pool_refuses_heaps(own_threads):
    stream = BytesStream(own_threads)
    own_threads.stop()
    with pytest.raises(spead_tutorial.Stopped):
        stream.send_heap(make_heap())


# ---- Asynchronous ----


def test_futures_tell_the_bytes_in_order_of_the_calls(thread_pool, receiver):
    async def main() -> list[int]:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=50))
        futures = [stream.async_send_heap(make_heap(100 + i)) for i in range(50)]
        return await asyncio.gather(*futures)

    sent = asyncio.run(main())
    packets = [receiver.recv(2000) for _ in range(50)]
    assert [wire.parse(packet).heap_cnt for packet in packets] == list(range(1, 51))
    assert [len(packet) for packet in packets] == sent


def test_a_full_queue_is_told_through_the_future_and_is_all_or_nothing(thread_pool, receiver):
    async def main() -> None:
        config = slow_config(max_heaps=3)
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], config)
        await stream.async_send_heap(make_heap())
        waiting = [stream.async_send_heap(make_heap()) for _ in range(2)]
        group = [HeapReference(make_heap()) for _ in range(2)]
        with pytest.raises(BlockingIOError, match="2 of max_heaps=3 in flight"):
            await stream.async_send_heaps(group, GroupMode.SERIAL)
        waiting.append(stream.async_send_heap(make_heap()))
        with pytest.raises(BlockingIOError):
            await stream.async_send_heap(make_heap())
        assert not any(future.done() for future in waiting)

    asyncio.run(main())


def test_bad_arguments_are_told_through_the_future(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()])
        for future in (
            stream.async_send_heap(make_heap(), substream_index=5),
            stream.async_send_heap(make_heap(), cnt=2**63 - 1),
            stream.async_send_heaps([], GroupMode.SERIAL),
        ):
            with pytest.raises(OSError, match=r".") as caught:
                await future
            assert caught.value.errno == errno.EINVAL

    asyncio.run(main())


def test_heaps_are_let_go_before_their_future_is_done(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()])
        value = np.ones(10, "i1")
        alive = weakref.ref(value)
        group = spead_tutorial.send.ItemGroup()
        group.add_item(0x3300, "x", "", shape=(10,), dtype=np.int8, value=value)
        future = stream.async_send_heap(group.get_heap())
        del group, value
        gone = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _: gone.set_result(alive() is None))
        assert alive() is not None
        await future
        gc.collect()
        assert await gone

    asyncio.run(main())


def test_flush_waits_for_all_that_is_queued(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=20))
        futures = [stream.async_send_heap(make_heap()) for _ in range(20)]
        await stream.async_flush()
        assert all(future.done() for future in futures)
        stream.async_send_heap(make_heap())
        stream.flush()
        assert stream.stats.heaps == 21
        await stream.async_flush()

    asyncio.run(main())


def test_a_heap_reference_is_referred_to_weakly():
    reference = HeapReference(make_heap())
    alive = weakref.ref(reference)
    assert alive() is reference
    del reference
    gc.collect()
    assert alive() is None


def test_a_stream_can_be_used_in_one_event_loop_after_another(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()])

    async def main() -> int:
        return await stream.async_send_heap(make_heap(100))

    assert asyncio.run(main()) == asyncio.run(main())


@pytest.fixture
def idle_loop():
    """The event loop of this thread, which does not run."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


def test_what_is_sent_while_no_loop_runs_is_for_the_loop_of_the_thread(
    thread_pool, receiver, idle_loop
):
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


def test_what_is_sent_while_the_loop_runs_in_another_thread_is_for_that(
    thread_pool, receiver, idle_loop
):
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


def test_the_timeline_tells_when_each_heap_was_sent(thread_pool):
    stream = BytesStream(thread_pool, StreamConfig(timeline=3))
    sent = [stream.send_heap(make_heap()) for _ in range(5)]
    times = stream.timeline()
    assert times["cnt"].tolist() == [3, 4, 5]
    assert times["bytes"].tolist() == sent[2:]
    order = ["queued_ns", "first_packet_ns", "last_packet_ns", "completed_ns"]
    steps = np.stack([times[name].astype(np.int64) for name in order])
    assert (np.diff(steps, axis=0) >= 0).all()
    assert (np.diff(steps, axis=1) > 0).all()


def test_a_stream_without_a_timeline_tells_no_times(thread_pool):
    stream = BytesStream(thread_pool)
    stream.send_heap(make_heap())
    assert stream.timeline().shape == (0,)


def test_statistics_add_up(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_packet_size=1000))
    sent = sum(stream.send_heap(make_heap(3000)) for _ in range(4))
    stats = stream.stats
    assert (stats.heaps, stats.packets, stats.bytes) == (4, 16, sent)
    assert (stats.errors, stats.errors_by_errno) == (0, {})
    assert stats.send_calls >= 1


def test_statistics_tell_who_looked_for_more_to_do(thread_pool):
    stream = BytesStream(thread_pool, StreamConfig(rate=1e6, burst_size=1))
    stream.send_heap(make_heap(3000))
    while not (thread_pool is None or stream.stats.looking_ns):
        stream.send_heap(make_heap(3000))
    while not stream.stats.waiting_looking_ns:
        stream.send_heap(make_heap(3000))
    assert thread_pool is not None or stream.stats.looking_ns == 0


def test_all_threads_of_a_pool_can_be_given_cores():
    pool = spead_tutorial.ThreadPool(2, affinity=[0])
    assert BytesStream(pool).send_heap(make_heap()) > 0


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
