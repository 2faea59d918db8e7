# SPDX-License-Identifier: BSD-3-Clause
"""The receiver's interface, name by name, of spead2 and of ours: programs may count on either."""

import asyncio
import importlib
import logging
import os
import select
import socket
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support import ref_encode
from support.processes import run_script
from support.trouble import stop_packet

PACKAGES = ("spead2", "spead_tutorial")
NINE = (
    "heaps",
    "incomplete_heaps_evicted",
    "incomplete_heaps_flushed",
    "packets",
    "batches",
    "max_batch",
    "single_packet_heaps",
    "search_dist",
    "worker_blocked",
)


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> ModuleType:
    """Spead2, or ours, with the receiver imported."""
    importlib.import_module(f"{request.param}.recv.asyncio")
    return importlib.import_module(request.param)


@pytest.fixture
def recv(package: ModuleType) -> Any:
    return package.recv


@pytest.fixture
def pool(package: ModuleType) -> Any:
    return package.ThreadPool()


def heap(cnt: int, data: bytes = b"abc", *, more: tuple[Any, ...] = ()) -> bytes:
    """Encode a heap of one packet, whose item 0x1000 is these bytes."""
    items = [ref_encode.Value(0x1000, data, allow_immediate=False), *more]
    (packet,) = ref_encode.encode_heap(items, cnt, 1472)
    return packet


def part(cnt: int, length: int = 40) -> bytes:
    """The first packet of a heap of which there is no other."""
    value = ref_encode.Value(0x1000, bytes(length), allow_immediate=False)
    inline = ref_encode.Inline(0x1001, 7)
    return ref_encode.encode_heap([inline, value], cnt, 72)[0]


def heaps(recv: Any, pool: Any, data: bytes, *configs: Any) -> list[Any]:
    stream = recv.Stream(pool, *configs)
    stream.add_buffer_reader(data)
    return list(stream)


# ---- StreamConfig -------------------------------------------------------------------------------


def test_a_stream_config_has_these_defaults(recv, package):
    config = recv.StreamConfig()
    assert config.max_heaps == recv.StreamConfig.DEFAULT_MAX_HEAPS == 4
    assert config.substreams == 1
    assert config.bug_compat == 0
    assert config.memcpy == package.MEMCPY_STD == 0
    assert package.MEMCPY_NONTEMPORAL == 1
    assert isinstance(config.memory_allocator, package.MemoryAllocator)
    assert config.stop_on_stop_item is True
    assert config.allow_unsized_heaps is True
    assert config.allow_out_of_order is False
    assert config.stream_id == 0
    assert config.explicit_start is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_heaps", 7),
        ("substreams", 3),
        ("bug_compat", 7),
        ("memcpy", 1),
        ("stop_on_stop_item", False),
        ("allow_unsized_heaps", False),
        ("allow_out_of_order", True),
        ("stream_id", 12),
        ("explicit_start", True),
    ],
)
def test_a_stream_config_is_given_values_by_keyword_and_by_assignment(recv, name, value):
    assert getattr(recv.StreamConfig(**{name: value}), name) == value
    config = recv.StreamConfig()
    setattr(config, name, value)
    assert getattr(config, name) == value


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_heaps", 0, ValueError),
        ("max_heaps", -1, TypeError),
        ("max_heaps", "many", TypeError),
        ("max_heaps", 2**64, TypeError),
        ("substreams", 0, ValueError),
        ("substreams", -1, TypeError),
        ("bug_compat", 8, ValueError),
        ("memcpy", 2, ValueError),
        ("memory_allocator", 3, TypeError),
    ],
)
def test_a_stream_config_refuses_what_cannot_be(recv, name, value, error):
    with pytest.raises(error):
        recv.StreamConfig(**{name: value})
    config = recv.StreamConfig()
    before = getattr(config, name)
    with pytest.raises(error):
        setattr(config, name, value)
    if name != "memory_allocator":
        assert getattr(config, name) == before


@pytest.mark.parametrize("kind", ["StreamConfig", "RingStreamConfig"])
def test_configs_take_keywords_that_exist_and_nothing_else(recv, kind):
    with pytest.raises(TypeError):
        getattr(recv, kind)(no_such_thing=1)
    with pytest.raises(TypeError):
        getattr(recv, kind)(4)


def test_a_ring_config_has_these_defaults_and_can_be_changed(recv):
    config = recv.RingStreamConfig()
    assert config.heaps == recv.RingStreamConfig.DEFAULT_HEAPS == 4
    assert config.contiguous_only is True
    assert config.incomplete_keep_payload_ranges is False
    config.heaps = 9
    config.contiguous_only = False
    config.incomplete_keep_payload_ranges = True
    changed = recv.RingStreamConfig(
        heaps=9, contiguous_only=False, incomplete_keep_payload_ranges=True
    )
    for name in ("heaps", "contiguous_only", "incomplete_keep_payload_ranges"):
        assert getattr(config, name) == getattr(changed, name)


@pytest.mark.parametrize(("heaps", "error"), [(0, ValueError), (-1, TypeError)])
def test_a_ring_holds_one_heap_at_least(recv, heaps, error):
    with pytest.raises(error):
        recv.RingStreamConfig(heaps=heaps)


def test_what_a_stream_says_of_its_configs_are_copies(recv, pool):
    config, ring = recv.StreamConfig(max_heaps=2), recv.RingStreamConfig(heaps=3)
    config.add_stat("mine")
    stream = recv.Stream(pool, config, ring)
    config.max_heaps = 100
    ring.heaps = 100
    config.add_stat("too late")
    assert stream.config.max_heaps == 2
    assert stream.ring_config.heaps == 3
    assert "mine" in stream.stats
    assert "too late" not in stream.stats
    stream.config.max_heaps = 100
    assert stream.config.max_heaps == 2


def test_a_stream_takes_its_configs_by_place_or_by_keyword(recv, pool):
    config, ring = recv.StreamConfig(max_heaps=2), recv.RingStreamConfig(heaps=3)
    streams = (
        recv.Stream(pool, config, ring),
        recv.Stream(thread_pool=pool, config=config, ring_config=ring),
    )
    for stream in streams:
        assert (stream.config.max_heaps, stream.ring_config.heaps) == (2, 3)
    with pytest.raises(TypeError):
        recv.Stream(pool, ring)
    with pytest.raises(TypeError):
        recv.Stream()
    with pytest.raises(TypeError):
        recv.Stream(3)


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


def test_statistics_that_there_are_not_are_refused(recv, pool):
    stats = recv.Stream(pool).stats
    assert "nothing" not in stats
    with pytest.raises(KeyError):
        stats["nothing"]
    with pytest.raises(IndexError):
        stats[len(stats)]
    with pytest.raises(TypeError):
        stats[-1]
    with pytest.raises(AttributeError):
        stats.nothing  # noqa: B018


def test_statistics_can_be_set_in_a_snapshot_by_name_place_and_attribute(recv, pool):
    stream = recv.Stream(pool)
    stats = stream.stats
    stats["heaps"] = 3
    stats[3] = 4
    stats.batches = 5
    assert (stats.heaps, stats.packets, stats["batches"]) == (3, 4, 5)
    for key, error in (("nothing", KeyError), (len(stats), IndexError), (-1, TypeError)):
        with pytest.raises(error):
            stats[key] = 1
    for name in ("nothing", "config"):
        with pytest.raises(AttributeError):
            setattr(stats, name, 1)
    for value in (-1, 0.5, 2**64):
        with pytest.raises(TypeError):
            stats.heaps = value
    assert (stats.heaps, stream.stats.heaps) == (3, 0)


def received_stats(recv: Any, pool: Any, data: bytes, config: Any = None) -> Any:
    stream = recv.Stream(pool, config or recv.StreamConfig())
    stream.add_buffer_reader(data)
    list(stream)
    stream.stop()
    return stream.stats


def test_statistics_count_and_are_added_up(recv, pool):
    first = received_stats(recv, pool, heap(1) + part(2) + part(3))
    assert (first.heaps, first.packets, first.single_packet_heaps) == (3, 3, 1)
    assert (first.incomplete_heaps_flushed, first.incomplete_heaps_evicted) == (2, 0)
    one = recv.StreamConfig(max_heaps=1)
    second = received_stats(recv, pool, part(2) + part(3), one)
    assert (second.incomplete_heaps_flushed, second.incomplete_heaps_evicted) == (1, 1)
    total = first + second
    assert (total.heaps, total.packets) == (5, 5)
    assert total.max_batch == max(first.max_batch, second.max_batch)
    assert first.heaps == 3
    before = first
    first += second
    assert first is before
    assert list(first.items()) == list(total.items())


def test_statistics_of_other_lists_cannot_be_added(recv, pool):
    config = recv.StreamConfig()
    config.add_stat("mine")
    with pytest.raises(ValueError):  # noqa: PT011
        recv.Stream(pool).stats + recv.Stream(pool, config).stats


def test_statistics_are_a_snapshot(recv, pool):
    stream = recv.Stream(pool)
    before = stream.stats
    stream.add_buffer_reader(heap(1))
    list(stream)
    stream.stop()
    assert before.heaps == 0
    assert stream.stats.heaps == 1


def test_a_statistic_is_combined_by_its_mode(recv):
    kind = recv.StreamStatConfig
    assert kind("x").mode == kind.Mode.COUNTER
    assert kind("x").name == "x"
    assert kind("x").combine(3, 4) == 7
    assert kind("x", kind.Mode.MAXIMUM).combine(3, 4) == 4
    assert kind("x") == kind("x", mode=kind.Mode.COUNTER)
    assert kind("x") != kind("y")
    assert kind("x") != kind("x", kind.Mode.MAXIMUM)
    for name, value in (("name", "y"), ("mode", kind.Mode.MAXIMUM)):  # all streams share them
        with pytest.raises(AttributeError):
            setattr(recv.StreamConfig().stats[0], name, value)


# ---- Getting heaps ------------------------------------------------------------------------------


def test_a_stream_is_its_own_iterator_and_ends_with_its_reader(recv, pool):
    stream = recv.Stream(pool)
    assert iter(stream) is stream
    stream.add_buffer_reader(heap(1) + heap(2))
    assert [next(stream).cnt, stream.get().cnt] == [1, 2]
    with pytest.raises(StopIteration):
        next(stream)


def test_getting_without_waiting_says_that_there_is_nothing_or_no_more(recv, pool, package):
    stream = recv.Stream(pool)
    with pytest.raises(package.Empty):
        stream.get_nowait()
    stream.add_buffer_reader(heap(1))
    stream.get()
    with pytest.raises(package.Stopped):
        stream.get()
    with pytest.raises(package.Stopped):
        stream.get_nowait()


def test_heaps_in_the_ring_can_be_got_after_a_stop(recv, pool, package):
    stream = recv.Stream(pool)
    stream.add_buffer_reader(heap(1) + heap(2) + stop_packet(3))
    wait_for_heaps(stream, 2)
    stream.stop()
    stream.stop()
    assert [h.cnt for h in stream] == [1, 2]
    with pytest.raises(package.Stopped):
        stream.get()


def wait_readable(stream: Any) -> None:
    assert select.select([stream.fd], [], [], 60)[0]


def wait_for_heaps(stream: Any, n: int) -> None:
    while stream.ringbuffer.size() < n:
        os.sched_yield()


def test_the_descriptor_is_readable_while_there_is_something_to_get_or_no_more(recv, pool):
    stream = recv.Stream(pool)
    assert not select.select([stream.fd], [], [], 0)[0]
    stream.add_buffer_reader(heap(1))
    wait_readable(stream)
    stream.get()
    wait_readable(stream)
    assert list(stream) == []


def test_the_ring_says_how_full_it_is(recv, pool):
    stream = recv.Stream(pool, ring_config=recv.RingStreamConfig(heaps=3))
    assert isinstance(stream.ringbuffer, recv.Stream.Ringbuffer)
    assert (stream.ringbuffer.size(), stream.ringbuffer.capacity()) == (0, 3)
    stream.add_buffer_reader(b"".join(heap(cnt) for cnt in range(10)))
    wait_for_heaps(stream, 3)
    assert [h.cnt for h in stream] == list(range(10)), "a full ring is waited for"


def test_a_stream_that_is_started_explicitly_waits_for_it(recv, pool, package):
    stream = recv.Stream(pool, recv.StreamConfig(explicit_start=True))
    stream.add_buffer_reader(heap(1))
    with pytest.raises(package.Empty):
        stream.get_nowait()
    stream.start()
    with pytest.raises(RuntimeError):
        stream.add_buffer_reader(heap(2))
    assert [h.cnt for h in stream] == [1]


def test_a_stream_that_starts_by_itself_can_be_told_to(recv, pool):
    stream = recv.Stream(pool)
    stream.start()
    stream.add_buffer_reader(heap(1))
    assert [h.cnt for h in stream] == [1]


def test_a_stop_item_ends_a_stream_unless_it_is_to_be_an_item(recv, pool):
    data = heap(1) + stop_packet(2) + heap(3)
    assert [h.cnt for h in heaps(recv, pool, data)] == [1]
    found = heaps(recv, pool, data, recv.StreamConfig(stop_on_stop_item=False))
    assert [h.cnt for h in found] == [1, 2, 3]
    assert [h.is_end_of_stream() for h in found] == [False, True, False]
    start = ref_encode.encode_heap([ref_encode.Inline(6, 0)], 4, 1472)[0]
    (found,) = heaps(recv, pool, start)
    assert found.is_start_of_stream()
    assert not found.is_end_of_stream()


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_packets_are_read_from_whatever_has_a_buffer(recv, pool, make):
    assert [h.cnt for h in heaps(recv, pool, make(heap(1)))] == [1]


def test_what_has_no_whole_buffer_is_refused(recv, pool):
    with pytest.raises(TypeError):
        recv.Stream(pool).add_buffer_reader("text")
    with pytest.raises(BufferError):
        recv.Stream(pool).add_buffer_reader(memoryview(bytes(8))[::2])


# ---- Heaps --------------------------------------------------------------------------------------


def test_a_heap_says_what_is_in_it(recv, pool, package):
    described = ref_encode.Descriptor(0x1000, b"x", b"an x", b"", (("u", 8),), (None,))
    data = heap(7, b"abc", more=(ref_encode.Inline(0x1001, 258), described))
    (found,) = heaps(recv, pool, data)
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


def test_bytes_of_an_item_outlive_its_heap_and_its_stream(recv, pool):
    stream = recv.Stream(pool)
    stream.add_buffer_reader(heap(1, b"abcdef"))
    (item,) = stream.get().get_items()
    view = memoryview(item)
    del item
    stream.stop()
    del stream
    assert bytes(view) == b"abcdef"


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


def test_ranges_of_what_has_arrived_are_kept_where_it_is_asked_for(recv, pool):
    ring = recv.RingStreamConfig(contiguous_only=False, incomplete_keep_payload_ranges=True)
    config = recv.StreamConfig(allow_out_of_order=True)
    value = ref_encode.Value(0x1000, bytes(100), allow_immediate=False)
    packets = ref_encode.encode_heap([value], 1, 72)
    (found,) = heaps(recv, pool, packets[0] + packets[2], config, ring)
    assert [tuple(pair) for pair in found.payload_ranges] == [(0, 24), (56, 88)]


def test_the_length_of_an_incomplete_heap_may_not_be_known(recv, pool, package):
    bits = 40
    first = [(1, 5), (3, 8), (4, 8)]
    data = ref_encode.header(3, bits)
    data += b"".join(ref_encode.pointer(True, id, value, bits) for id, value in first) + bytes(8)
    ring = recv.RingStreamConfig(contiguous_only=False)
    config = recv.StreamConfig(allow_out_of_order=True)
    (found,) = heaps(recv, pool, data, config, ring)
    assert isinstance(found, recv.IncompleteHeap)
    assert found.heap_length == -1
    assert heaps(recv, pool, data, recv.StreamConfig(allow_unsized_heaps=False), ring) == []


def test_an_item_group_takes_in_heaps(recv, pool, package):
    described = ref_encode.Descriptor(0x1000, b"x", b"an x", b"", (("u", 8),), (None,))
    first, second = heaps(recv, pool, heap(1, b"abc", more=(described,)) + heap(2, b"de"))
    group = package.ItemGroup()
    assert list(group.update(first)) == ["x"]
    assert group["x"].value.tolist() == list(b"abc")
    before = group["x"].version
    assert group.update(second)["x"] is group[0x1000]
    assert group["x"].value.tolist() == list(b"de")
    assert group["x"].version > before


# ---- UDP ----------------------------------------------------------------------------------------


def free_port(host: str = "127.0.0.1", kind: int = socket.AF_INET) -> int:
    with socket.socket(kind, socket.SOCK_DGRAM) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


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
    "arguments",
    [
        lambda port: ((port,), {}),
        lambda port: ((port, 9200, 0, "127.0.0.1"), {}),
        lambda port: ((port,), {"bind_hostname": "127.0.0.1"}),
        lambda port: ((port,), {"bind_hostname": "localhost", "buffer_size": 100000}),
        lambda port: ((), {"port": port, "max_size": 1500, "buffer_size": 0}),
    ],
)
def test_heaps_come_from_a_port(recv, pool, arguments):
    port = free_port()
    places, keywords = arguments(port)
    stream = recv.Stream(pool)
    stream.add_udp_reader(*places, **keywords)
    send("127.0.0.1", port, heap(1), heap(2))
    assert [h.cnt for h in stream] == [1, 2]


def test_heaps_come_from_a_socket_that_may_be_closed_at_once(recv, pool):
    stream = recv.Stream(pool)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        stream.add_udp_reader(sock)
    send("127.0.0.1", port, heap(1), heap(2))
    assert [h.cnt for h in stream] == [1, 2]


def test_heaps_come_from_a_port_of_ipv6(recv, pool):
    port = free_port("::1", socket.AF_INET6)
    stream = recv.Stream(pool)
    stream.add_udp_reader(port, bind_hostname="::1")
    send("::1", port, heap(1), heap(2))
    assert [h.cnt for h in stream] == [1, 2]


@pytest.mark.parametrize("by_name", [True, False])
def test_heaps_come_from_a_multicast_group(recv, pool, by_name):
    port = free_port()
    stream = recv.Stream(pool)
    if by_name:
        stream.add_udp_reader(
            multicast_group="239.255.88.88",
            port=port,
            max_size=1500,
            buffer_size=0,
            interface_address="127.0.0.1",
        )
    else:
        stream.add_udp_reader("239.255.88.88", port, 1500, 0, "127.0.0.1")
    send("239.255.88.88", port, heap(1), heap(2))
    assert [h.cnt for h in stream] == [1, 2]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_multicast_group_of_ipv6_is_joined_on_the_interface_that_is_asked_for(
    recv, pool, by_name
):
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
    ports = free_port(), free_port()
    stream = recv.Stream(pool, ring_config=recv.RingStreamConfig(heaps=10))
    for port in ports:
        stream.add_udp_reader(port, bind_hostname="127.0.0.1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(heap(1), ("127.0.0.1", ports[0]))
        assert stream.get().cnt == 1
    send("127.0.0.1", ports[1], heap(2))
    assert [h.cnt for h in stream] == [2]


def test_a_datagram_longer_than_max_size_is_left_out(recv, pool):
    port = free_port()
    stream = recv.Stream(pool)
    stream.add_udp_reader(port, max_size=200, bind_hostname="127.0.0.1")
    send("127.0.0.1", port, heap(1), heap(2, bytes(500)), heap(3))
    assert [h.cnt for h in stream] == [1, 3]


def test_malformed_datagrams_are_left_out(recv, pool):
    port = free_port()
    stream = recv.Stream(pool)
    stream.add_udp_reader(port, bind_hostname="127.0.0.1")
    send("127.0.0.1", port, b"", b"nonsense", heap(1)[:-1], heap(1) + b"x", heap(2))
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
        ((0, 9200, 0, "no such host"), (ValueError, RuntimeError)),
    ],
    ids=str,
)
def test_a_reader_of_what_cannot_be_is_refused(recv, pool, arguments, error):
    with pytest.raises(error):
        recv.Stream(pool).add_udp_reader(*arguments)


def test_a_socket_that_is_not_one_of_udp_is_refused(recv, pool):
    with socket.socket() as of_tcp, pytest.raises(TypeError):
        recv.Stream(pool).add_udp_reader(of_tcp)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("place", (), IndexError), ("place", (3,), TypeError), ("items", [2**64], TypeError)],
)
def test_a_chunk_stream_config_refuses_what_cannot_be(recv, name, value, error):
    with pytest.raises(error):
        recv.ChunkStreamConfig(**{name: value})
    with pytest.raises(error):
        setattr(recv.ChunkStreamConfig(), name, value)


def test_a_port_that_is_in_use_is_refused_and_free_after_a_stop(recv, pool):
    port = free_port()
    first, second = recv.Stream(pool), recv.Stream(pool)
    first.add_udp_reader(port, bind_hostname="127.0.0.1")
    with pytest.raises(RuntimeError):
        second.add_udp_reader(port, bind_hostname="127.0.0.1")
    first.stop()
    second.add_udp_reader(port, bind_hostname="127.0.0.1")


def test_a_smaller_buffer_than_asked_for_is_said(recv, pool, caplog):
    with caplog.at_level(logging.WARNING):
        recv.Stream(pool).add_udp_reader(0, buffer_size=1 << 30, bind_hostname="127.0.0.1")
        wait_for_words(caplog, "1073741824")
    assert caplog.records[0].levelno == logging.WARNING


def wait_for_words(caplog: Any, words: str) -> None:
    """Wait for a worker's log."""
    while words not in caplog.text:
        os.sched_yield()


# ---- asyncio ------------------------------------------------------------------------------------


def udp(recv: Any, pool: Any, heaps: int = 4) -> tuple[Any, int]:
    """A stream for asyncio, and its port."""
    port = free_port()
    stream = recv.asyncio.Stream(pool, ring_config=recv.RingStreamConfig(heaps=heaps))
    stream.add_udp_reader(port, bind_hostname="127.0.0.1")
    return stream, port


def test_an_asyncio_stream_is_a_stream(recv, pool):
    assert issubclass(recv.asyncio.Stream, recv.Stream)
    assert asyncio.iscoroutinefunction(recv.asyncio.Stream.get)


def test_heaps_are_iterated_over_in_asyncio(recv, pool):
    async def main() -> list[int]:
        stream, port = udp(recv, pool)
        send("127.0.0.1", port, *(heap(cnt) for cnt in range(20)))
        return [h.cnt async for h in stream]

    assert asyncio.run(main()) == list(range(20))


def test_waiting_in_asyncio_ends_with_the_stream(recv, pool, package):
    async def main() -> None:
        stream, port = udp(recv, pool)
        waiting = asyncio.ensure_future(stream.get())
        await asyncio.sleep(0)
        send("127.0.0.1", port)
        with pytest.raises(package.Stopped):
            await waiting
        with pytest.raises(package.Stopped):
            await stream.get()

    asyncio.run(main())


def test_who_waits_first_in_asyncio_is_given_the_first_heap(recv, pool):
    async def main() -> list[int]:
        stream, port = udp(recv, pool)
        waiting = [asyncio.ensure_future(stream.get()) for _ in range(5)]
        await asyncio.sleep(0)
        send("127.0.0.1", port, *(heap(cnt) for cnt in range(5)))
        return [h.cnt for h in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == list(range(5))


def test_a_wait_that_is_cancelled_loses_no_heap(recv, pool):
    async def main() -> list[int]:
        stream, port = udp(recv, pool)
        waiting = [asyncio.ensure_future(stream.get()) for _ in range(6)]
        await asyncio.sleep(0)
        for i in (0, 2, 5):
            waiting[i].cancel()
        send("127.0.0.1", port, *(heap(cnt) for cnt in range(8)))
        await asyncio.wait(waiting)
        found = [w.result().cnt for w in waiting if not w.cancelled()]
        return found + [h.cnt async for h in stream]

    assert asyncio.run(main()) == list(range(8))


def test_waits_that_are_given_up_after_a_time_lose_no_heap(recv, pool):
    async def main() -> list[int]:
        stream, port = udp(recv, pool)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.get(), 0.001)
        send("127.0.0.1", port, heap(1), heap(2))
        return [h.cnt async for h in stream]

    assert asyncio.run(main()) == [1, 2]


def test_a_heap_that_is_there_is_given_without_waiting_in_asyncio_too(recv, pool, package):
    async def main() -> None:
        stream, port = udp(recv, pool)
        with pytest.raises(package.Empty):
            stream.get_nowait()
        send("127.0.0.1", port, heap(1))
        await asyncio.get_running_loop().run_in_executor(None, wait_readable, stream)
        assert stream.get_nowait().cnt == 1

    asyncio.run(main())


# ---- Programs -----------------------------------------------------------------------------------

SYNCHRONOUS = """
import sys
import numpy as np
import spead2
import spead2.recv

config = spead2.recv.StreamConfig(max_heaps=8, allow_out_of_order=True)
ring = spead2.recv.RingStreamConfig(heaps=2, contiguous_only=False)
stream = spead2.recv.Stream(spead2.ThreadPool(1), config, ring)
with open(sys.argv[1], "rb") as packets:
    stream.add_buffer_reader(packets.read())
group = spead2.ItemGroup()
for heap in stream:
    if isinstance(heap, spead2.recv.IncompleteHeap):
        print("incomplete", heap.cnt, heap.heap_length, len(heap.get_items()))
        continue
    for name, item in sorted(group.update(heap).items()):
        print(heap.cnt, name, item.shape, item.dtype, np.sum(item.value))
    ids = [item.id for item in heap.get_items()]
    print(heap.flavour.heap_address_bits, heap.is_start_of_stream(), ids)
stream.stop()
for name in ("heaps", "incomplete_heaps_flushed", "packets"):
    print(name, stream.stats[name])
"""

ASYNCHRONOUS = """
import asyncio
import sys
import spead2
import spead2.recv
import spead2.recv.asyncio

async def main():
    stream = spead2.recv.asyncio.Stream(spead2.ThreadPool())
    stream.add_buffer_reader(open(sys.argv[1], "rb").read())
    first = await stream.get()
    print("first", first.cnt)
    group = spead2.ItemGroup()
    group.update(first)
    async for heap in stream:
        print(heap.cnt, {name: item.value.tolist() for name, item in group.update(heap).items()})
    try:
        await stream.get()
    except spead2.Stopped:
        print("stopped")

asyncio.run(main())
"""

RAW = """
import sys
import spead2.recv as recv
from spead2 import Empty, Stopped, ThreadPool

stream = recv.Stream(ThreadPool(), recv.StreamConfig(explicit_start=True, stop_on_stop_item=False))
stream.add_buffer_reader(memoryview(open(sys.argv[1], "rb").read()))
try:
    stream.get_nowait()
except Empty:
    print("empty")
stream.start()
while True:
    try:
        heap = stream.get()
    except Stopped:
        break
    for item in heap.get_items():
        value = item.immediate_value if item.is_immediate else bytes(item)
        print(heap.cnt, item.id, item.is_immediate, value)
    for descriptor in heap.get_descriptors():
        print(descriptor.id, descriptor.name, descriptor.format, descriptor.shape)
    print(heap.is_end_of_stream())
"""


@pytest.mark.parametrize("program", [SYNCHRONOUS, ASYNCHRONOUS, RAW], ids=["sync", "async", "raw"])
def test_a_program_for_spead2_runs_with_its_imports_renamed(program, tmp_path):
    described = ref_encode.Descriptor(0x1000, b"x", b"an x", b"", (("u", 8),), (None,))
    inline = ref_encode.Inline(0x1234, 5)
    packets = [heap(1, b"abc", more=(described,)), heap(2, b"defg", more=(inline,))]
    packets += [heap(3, b"h"), part(4), heap(5, b"ij"), stop_packet(6), heap(7)]
    (tmp_path / "packets").write_bytes(b"".join(packets))
    said = []
    for package in PACKAGES:
        done = run_script(program.replace("spead2", package), tmp_path, str(tmp_path / "packets"))
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0].count("\n") > 4
