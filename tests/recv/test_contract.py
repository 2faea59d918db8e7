# SPDX-License-Identifier: BSD-3-Clause
"""The receiver's interface, name by name, of spead2 and of ours: programs may count on either."""

import asyncio
import importlib
import os
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import spead2.recv

from support import captures, ref_encode
from support.chunks import capsule
from support.loops import in_loop
from support.ref_encode import Inline, described
from support.ref_encode import one_packet as heap
from support.sockets import free_port, udp_socket
from support.trouble import stop_packet

PACKAGES = ("spead2", "spead_tutorial")
NINE = [stat.name for stat in spead2.recv.StreamConfig().stats]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests for both, and those of streams for ours without a thread, too."""
    if "has_thread" in metafunc.fixturenames:
        kinds = [*((name, True) for name in PACKAGES), ("spead_tutorial", False)]
        ids = [*PACKAGES, "spead_tutorial without a thread"]
        metafunc.parametrize(("package", "has_thread"), kinds, ids=ids, indirect=["package"])
    elif "package" in metafunc.fixturenames:
        metafunc.parametrize("package", PACKAGES, indirect=True)


@pytest.fixture
def package(request: pytest.FixtureRequest) -> ModuleType:
    """Spead2, or ours, with the receiver imported."""
    importlib.import_module(f"{request.param}.recv.asyncio")
    return importlib.import_module(request.param)


@pytest.fixture
def recv(package: ModuleType) -> Any:
    return package.recv


@pytest.fixture
def threads(package: ModuleType) -> Any:
    return package.ThreadPool()


@pytest.fixture
def pool(threads: Any, has_thread: bool) -> Any:
    """Who reads."""
    return threads if has_thread else None


def part(cnt: int, length: int = 40) -> bytes:
    """The first packet of a heap of which there is no other."""
    items = [Inline(0x1001, 7), ref_encode.value(bytes(length))]
    return ref_encode.encode_heap(items, cnt, 72)[0]


def heaps(recv: Any, pool: Any, data: bytes, *configs: Any) -> list[Any]:
    stream = recv.Stream(pool, *configs)
    stream.add_buffer_reader(data)
    return list(stream)


# ---- Configurations -----------------------------------------------------------------------------

SETTINGS = {
    "StreamConfig": "max_heaps substreams bug_compat memcpy stop_on_stop_item allow_unsized_heaps"
    " allow_out_of_order stream_id explicit_start",
    "RingStreamConfig": "heaps contiguous_only incomplete_keep_payload_ranges",
    "ChunkStreamConfig": "max_chunks max_heap_extra",
    "ChunkStreamGroupConfig": "max_chunks",
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_config_has_defaults_and_is_given_values_by_keyword_and_by_assignment(recv, kind):
    made = getattr(recv, kind)
    for name in SETTINGS[kind].split():
        config, default = made(), getattr(getattr(spead2.recv, kind)(), name)
        assert getattr(config, name) == default
        other = not default if isinstance(default, bool) else default + 1
        setattr(config, name, other)
        assert getattr(config, name) == getattr(made(**{name: other}), name) == other
    with pytest.raises(TypeError):
        made(no_such_thing=1)
    with pytest.raises(TypeError):
        made(4)
    with pytest.raises(AttributeError):
        made().no_such_thing = 1


@pytest.mark.parametrize("name", ["stop_on_stop_item", "allow_unsized_heaps", "explicit_start"])
def test_a_flag_of_a_config_may_be_a_truth_of_numpy(recv, name):
    for value in (np.True_, np.False_):
        assert getattr(recv.StreamConfig(**{name: value}), name) is bool(value)


def test_a_config_has_an_allocator(recv, package):
    assert isinstance(recv.StreamConfig().memory_allocator, package.MemoryAllocator)


@pytest.mark.parametrize(
    ("kind", "name", "value", "error"),
    [
        ("StreamConfig", "max_heaps", 0, ValueError),
        ("StreamConfig", "max_heaps", -1, TypeError),
        ("StreamConfig", "max_heaps", "many", TypeError),
        ("StreamConfig", "max_heaps", 2**64, TypeError),
        ("StreamConfig", "substreams", 0, ValueError),
        ("StreamConfig", "substreams", -1, TypeError),
        ("StreamConfig", "bug_compat", 8, ValueError),
        ("StreamConfig", "memcpy", 2, ValueError),
        ("StreamConfig", "memory_allocator", 3, TypeError),
        ("RingStreamConfig", "heaps", 0, ValueError),
        ("RingStreamConfig", "heaps", -1, TypeError),
        ("ChunkStreamConfig", "max_chunks", 0, ValueError),
        ("ChunkStreamConfig", "max_chunks", -1, TypeError),
        ("ChunkStreamConfig", "max_heap_extra", -1, TypeError),
        ("ChunkStreamConfig", "place", 3, TypeError),
        ("ChunkStreamConfig", "place", (), IndexError),
        ("ChunkStreamConfig", "place", (3,), TypeError),
        ("ChunkStreamConfig", "place", (capsule(8, b"void (int)", None),), ValueError),
        ("ChunkStreamConfig", "items", [-1], TypeError),
        ("ChunkStreamConfig", "items", [2**64], TypeError),
        ("ChunkStreamGroupConfig", "max_chunks", 0, ValueError),
        ("ChunkStreamGroupConfig", "max_chunks", -1, TypeError),
        ("ChunkStreamGroupConfig", "eviction_mode", 1, TypeError),
    ],
)
def test_a_config_refuses_what_cannot_be(recv, kind, name, value, error):
    made = getattr(recv, kind)
    with pytest.raises(error):
        made(**{name: value})
    config = made()
    before = getattr(config, name)
    with pytest.raises(error):
        setattr(config, name, value)
    assert name == "memory_allocator" or getattr(config, name) == before


def test_a_stream_takes_copies_of_its_configs_by_place_or_by_keyword(recv, pool):
    config, ring = recv.StreamConfig(max_heaps=2), recv.RingStreamConfig(heaps=3)
    config.add_stat("mine")
    streams = (
        recv.Stream(pool, config, ring),
        recv.Stream(thread_pool=pool, config=config, ring_config=ring),
    )
    config.max_heaps = ring.heaps = 100
    config.add_stat("too late")
    for stream in streams:
        assert (stream.config.max_heaps, stream.ring_config.heaps) == (2, 3)
        assert "mine" in stream.stats
        assert "too late" not in stream.stats
        stream.config.max_heaps = 100
        assert stream.config.max_heaps == 2
    for wrong in ((pool, ring), (), (3,)):
        with pytest.raises(TypeError):
            recv.Stream(*wrong)


# ---- Statistics ---------------------------------------------------------------------------------


def test_the_nine_statistics_have_fixed_places(recv, pool):
    stats = recv.Stream(pool).stats
    config = recv.StreamConfig()
    indices = importlib.import_module(f"{recv.__name__}.stream_stat_indices")
    for i, name in enumerate(NINE):
        assert getattr(indices, name.upper()) == i
        assert config.get_stat_index(name) == i
        assert config.stats[i].name == stats.config[i].name == name
        assert stats[i] == stats[name] == getattr(stats, name) == 0
    assert list(stats)[:9] == list(stats.keys())[:9] == list(NINE)
    assert list(stats.items())[:9] == [(name, 0) for name in NINE]
    assert list(stats.values()) == [0] * len(stats)


def test_a_statistic_of_ones_own_follows_the_nine(recv, pool):
    config = recv.StreamConfig()
    index = config.next_stat_index()
    assert index >= 9
    assert config.add_stat("mine") == index
    assert config.add_stat("most", recv.StreamStatConfig.Mode.MAXIMUM) == index + 1
    assert config.next_stat_index() == index + 2
    assert config.get_stat_index("mine") == index
    assert config.stats[index].name == "mine"
    stats = recv.Stream(pool, config).stats
    assert "mine" in stats
    assert stats["mine"] == stats[index] == 0
    assert stats.config[index + 1].mode == recv.StreamStatConfig.Mode.MAXIMUM
    for clash in ("mine", "heaps"):
        with pytest.raises(ValueError, match=clash):
            config.add_stat(clash)
    with pytest.raises(IndexError):
        config.get_stat_index("none of that name")
    with pytest.raises(ValueError):  # noqa: PT011
        recv.Stream(pool).stats + stats


def test_statistics_can_be_set_in_a_snapshot_and_those_that_there_are_not_are_refused(recv, pool):
    stream = recv.Stream(pool)
    stats = stream.stats
    stats["heaps"] = 3
    stats[3] = 4
    stats.batches = 5
    assert (stats.heaps, stats.packets, stats["batches"]) == (3, 4, 5)
    assert "nothing" not in stats
    for key, error in (("nothing", KeyError), (len(stats), IndexError), (-1, TypeError)):
        with pytest.raises(error):
            stats[key]
        with pytest.raises(error):
            stats[key] = 1
    with pytest.raises(AttributeError):
        stats.nothing  # noqa: B018
    for name in ("nothing", "config"):
        with pytest.raises(AttributeError):
            setattr(stats, name, 1)
    for value in (-1, 0.5, 2**64):
        with pytest.raises(TypeError):
            stats.heaps = value
    assert (stats.heaps, stream.stats.heaps) == (3, 0)


def test_statistics_count_and_are_added_up(recv, pool):
    found = []
    for data, max_heaps in ((heap(1) + part(2) + part(3), 4), (part(2) + part(3), 1)):
        stream = recv.Stream(pool, recv.StreamConfig(max_heaps=max_heaps))
        before = stream.stats
        stream.add_buffer_reader(data)
        list(stream)
        stream.stop()
        assert before.heaps == 0
        found.append(stream.stats)
    first, second = found
    assert (first.heaps, first.packets, first.single_packet_heaps) == (3, 3, 1)
    assert (first.incomplete_heaps_flushed, first.incomplete_heaps_evicted) == (2, 0)
    assert (second.incomplete_heaps_flushed, second.incomplete_heaps_evicted) == (1, 1)
    total = first + second
    assert (total.heaps, total.packets) == (5, 5)
    assert total.max_batch == max(first.max_batch, second.max_batch)
    assert first.heaps == 3
    before = first
    first += second
    assert first is before
    assert list(first.items()) == list(total.items())


def test_a_statistic_is_combined_by_its_mode(recv):
    kind = recv.StreamStatConfig
    assert kind("x").mode == kind.Mode.COUNTER
    assert kind("x").name == "x"
    assert kind("x").combine(3, 4) == 7
    assert kind("x", kind.Mode.MAXIMUM).combine(3, 4) == 4
    assert kind("x") == kind("x", mode=kind.Mode.COUNTER)
    assert kind("x") != kind("y")
    assert kind("x") != kind("x", kind.Mode.MAXIMUM)
    for wrong in ((3,), ("x", 1), ("x", "maximum")):
        with pytest.raises(TypeError):
            kind(*wrong)
    for name, value in (("name", "y"), ("mode", kind.Mode.MAXIMUM)):  # all streams share them
        with pytest.raises(AttributeError):
            setattr(recv.StreamConfig().stats[0], name, value)


def test_a_ring_of_chunks_says_that_it_has_stopped(recv):
    ring = recv.ChunkRingbuffer(1)
    assert [ring.stop(), ring.stop()] == [True, True]


# ---- Getting heaps ------------------------------------------------------------------------------


def test_a_stream_is_its_own_iterator_and_ends_with_its_reader(recv, pool, package):
    stream = recv.Stream(pool)
    stream.start()  # as it does by itself
    assert iter(stream) is stream
    with pytest.raises(package.Empty):
        stream.get_nowait()
    stream.add_buffer_reader(heap(1) + heap(2))
    assert [next(stream).cnt, stream.get().cnt] == [1, 2]
    with pytest.raises(StopIteration):
        next(stream)
    for get in (stream.get, stream.get_nowait):
        with pytest.raises(package.Stopped):
            get()


def test_the_ring_says_how_full_it_is(recv, threads):
    stream = recv.Stream(threads, ring_config=recv.RingStreamConfig(heaps=3))
    assert isinstance(stream.ringbuffer, recv.Stream.Ringbuffer)
    assert (stream.ringbuffer.size(), stream.ringbuffer.capacity()) == (0, 3)
    stream.add_buffer_reader(b"".join(heap(cnt) for cnt in range(10)))
    while stream.ringbuffer.size() < 3:
        os.sched_yield()
    assert len(list(stream)) == 10


def test_a_stream_that_is_started_explicitly_waits_for_it(recv, pool, package):
    stream = recv.Stream(pool, recv.StreamConfig(explicit_start=True))
    stream.add_buffer_reader(heap(1))
    with pytest.raises(package.Empty):
        stream.get_nowait()
    stream.start()
    with pytest.raises(RuntimeError):
        stream.add_buffer_reader(heap(2))
    assert [h.cnt for h in stream] == [1]


def test_a_stop_item_ends_a_stream_unless_it_is_to_be_an_item(recv, pool):
    data = heap(1) + stop_packet(2) + heap(3)
    assert [h.cnt for h in heaps(recv, pool, data)] == [1]
    found = heaps(recv, pool, data, recv.StreamConfig(stop_on_stop_item=False))
    assert [(h.cnt, h.is_end_of_stream()) for h in found] == [(1, False), (2, True), (3, False)]
    (found,) = heaps(recv, pool, ref_encode.encode_heap([Inline(6, 0)], 4, 1472)[0])
    assert found.is_start_of_stream()
    assert not found.is_end_of_stream()


def test_packets_are_read_from_whatever_has_a_whole_buffer(recv, pool):
    for make in (bytes, bytearray, memoryview):
        assert [h.cnt for h in heaps(recv, pool, make(heap(1)))] == [1]
    for wrong, error in (("text", TypeError), (memoryview(bytes(8))[::2], BufferError)):
        with pytest.raises(error):
            recv.Stream(pool).add_buffer_reader(wrong)


def test_heaps_are_read_from_a_capture_by_what_a_filter_takes(recv, pool, tmp_path):
    if not hasattr(recv.Stream, "add_udp_pcap_file_reader"):
        pytest.skip("this spead2 was built without libpcap")
    if recv.__name__ == "spead2.recv" and not Path("/etc/protocols").exists():
        pytest.skip("libpcap does not know what UDP is: apt install netbase")  # and finds nothing
    frames = [captures.frame(heap(1)), captures.frame(heap(2), 8889), captures.frame(heap(3))]
    path = captures.write(tmp_path / "some.pcap", frames)
    for conditions, found in (
        ("", [1, 2, 3]),
        ("udp port 8889", [2]),
        ("udp and dst port 8888 and host 10.0.0.1", [1, 3]),
        ("src port 8888", []),
    ):
        stream = recv.Stream(pool)
        stream.add_udp_pcap_file_reader(path, filter=conditions)
        assert [h.cnt for h in stream] == found
    for name, conditions in (("none.pcap", ""), ("some.pcap", "port nowhere")):
        with pytest.raises((RuntimeError, ValueError)):
            recv.Stream(pool).add_udp_pcap_file_reader(str(tmp_path / name), conditions)


# ---- Heaps --------------------------------------------------------------------------------------


def test_a_heap_says_what_is_in_it(recv, pool, package):
    (found,) = heaps(recv, pool, heap(7, b"abc", Inline(0x1001, 258), described()))
    assert isinstance(found, recv.Heap)
    assert found.cnt == 7
    assert found.flavour == package.Flavour(4, 64, 40)
    (descriptor,) = found.get_descriptors()
    assert (descriptor.id, descriptor.name, descriptor.description) == (0x1000, b"x", b"an x")
    assert (list(descriptor.format), list(descriptor.shape)) == ([("u", 8)], [None])
    assert descriptor.numpy_header == b""
    addressed, immediate = found.get_items()
    assert (addressed.id, addressed.is_immediate, bytes(addressed)) == (0x1000, False, b"abc")
    assert (immediate.id, immediate.is_immediate) == (0x1001, True)
    assert immediate.immediate_value == 258
    assert bytes(immediate) == b"\0\0\0\1\2"
    view = memoryview(addressed)
    assert not view.readonly
    view[0] = ord("X")
    assert bytes(addressed) == b"Xbc"


def test_a_heap_that_something_is_missing_of_is_dropped_unless_it_is_asked_for(recv, pool):
    assert heaps(recv, pool, part(1) + heap(2))[0].cnt == 2
    ring = recv.RingStreamConfig(contiguous_only=False)
    whole, found = heaps(recv, pool, part(1) + heap(2), recv.StreamConfig(), ring)
    assert isinstance(whole, recv.Heap)
    assert isinstance(found, recv.IncompleteHeap)
    assert not isinstance(whole, recv.IncompleteHeap)
    assert not isinstance(found, recv.Heap), "programs tell them apart by their class"
    assert (found.cnt, found.heap_length, found.received_length) == (1, 40, 16)
    assert list(found.payload_ranges) == []
    (item,) = found.get_items()
    assert (item.id, item.immediate_value) == (0x1001, 7)
    assert not found.is_start_of_stream()
    assert not found.is_end_of_stream()


# ---- UDP ----------------------------------------------------------------------------------------

GROUP = "239.255.88.88"
NAMED = {"max_size": 1500, "buffer_size": 0, "interface_address": "127.0.0.1"}


def send(host: str, port: int, *packets: bytes) -> None:
    """Send over loopback, to a group too; and the end of the stream."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_DGRAM) as sock:
        if kind == socket.AF_INET:
            loopback = socket.inet_aton("127.0.0.1")
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
        for packet in (*packets, stop_packet(1000)):
            sock.sendto(packet, (host, port))


@pytest.mark.parametrize(
    ("to", "add"),
    [
        ("127.0.0.1", lambda add, port: add(port)),
        ("127.0.0.1", lambda add, port: add(port, 9200, 0, "127.0.0.1")),
        ("127.0.0.1", lambda add, port: add(port, 1 << 16)),
        ("127.0.0.1", lambda add, port: add(port, bind_hostname="localhost", buffer_size=99999)),
        ("127.0.0.1", lambda add, port: add(port=port, max_size=1500, buffer_size=0)),
        ("::1", lambda add, port: add(port, bind_hostname="::1")),
        (GROUP, lambda add, port: add(GROUP, port, 1500, 0, "127.0.0.1")),
        (GROUP, lambda add, port: add(multicast_group=GROUP, port=port, **NAMED)),
        ("127.0.0.1", lambda add, port: add("127.0.0.1", port, 1500, 0, "127.0.0.1")),
    ],
)
def test_heaps_come_from_a_port_or_from_a_group(recv, pool, to, add):
    port = free_port(to if to != GROUP else "127.0.0.1")
    stream = recv.Stream(pool)
    add(stream.add_udp_reader, port)
    send(to, port, heap(1), heap(2))
    assert [h.cnt for h in stream] == [1, 2]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_group_of_ipv6_is_joined_on_the_interface_that_is_asked_for(recv, pool, by_name):
    loopback, group = socket.if_nametoindex("lo"), "ff15::8888"
    if not Path("/proc/net/igmp6").exists():
        pytest.skip("the kernel has no IPv6")
    stream = recv.Stream(pool)
    if by_name:
        stream.add_udp_reader(group, 0, 1500, 0, interface_index=loopback)
    else:
        stream.add_udp_reader(group, 0, 1500, 0, loopback)
    joined = [line.split()[1:3] for line in Path("/proc/net/igmp6").read_text().splitlines()]
    assert ["lo", socket.inet_pton(socket.AF_INET6, group).hex()] in joined
    stream.stop()


def test_heaps_come_from_several_readers_and_the_end_of_one_is_that_of_all(recv, pool):
    port = free_port()
    stream = recv.Stream(pool, ring_config=recv.RingStreamConfig(heaps=10))
    stream.add_udp_reader(port, bind_hostname="127.0.0.1")
    with udp_socket() as sock:
        stream.add_udp_reader(sock)  # and it may be closed at once
        address = sock.getsockname()
    with udp_socket() as sock:
        sock.sendto(heap(1), ("127.0.0.1", port))
        assert stream.get().cnt == 1
    send(*address, heap(2))
    assert [h.cnt for h in stream] == [2]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((65536,), TypeError),
        (("239.1.1.1", 65536), TypeError),
        ((-1,), TypeError),
        ((8888.0,), TypeError),
        (("127.0.0.1",), TypeError),
        (("no such group", 0, 1500, 0, "127.0.0.1"), (ValueError, RuntimeError)),
        (("127.0.0.1", 0, 1500, 0, "127.0.0.2"), ValueError),
        (("ff15::1", 0, 1500, 0, "127.0.0.1"), ValueError),
        (("ff15::1", 0, 1500, 0, 1.0), TypeError),
        (("ff15::1", 0, 1500, 0, -1), TypeError),
        (("ff15::1", 0, 1500, 0, 2**32), TypeError),
        ((0, 9200, 0, "no such host"), (ValueError, RuntimeError)),
    ],
    ids=str,
)
def test_a_reader_of_what_cannot_be_is_refused(recv, pool, arguments, error):
    with pytest.raises(error):
        recv.Stream(pool).add_udp_reader(*arguments)
    with socket.socket() as of_tcp, pytest.raises(TypeError):
        recv.Stream(pool).add_udp_reader(of_tcp)


# ---- asyncio ------------------------------------------------------------------------------------


@in_loop
async def test_who_waits_first_gets_the_first_heap_and_a_cancelled_wait_none(recv, pool):
    port, stream = free_port(), recv.asyncio.Stream(pool)
    stream.add_udp_reader(port, bind_hostname="127.0.0.1")
    waiting = [asyncio.ensure_future(stream.get()) for _ in range(6)]
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(stream.get(), 0.001)
    for i in (0, 2, 5):
        waiting[i].cancel()
    send("127.0.0.1", port, *(heap(cnt) for cnt in range(8)))
    await asyncio.wait(waiting)
    found = [w.result().cnt for w in waiting if not w.cancelled()]
    assert found + [h.cnt async for h in stream] == list(range(8))
