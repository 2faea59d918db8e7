# SPDX-License-Identifier: BSD-3-Clause
"""What is sent arrives: on loopback, from memory and from captures, and what does not is told.

What becomes of packets, and of heaps that lack some, is tested in C, and by `test_oracle`.
"""

import asyncio
import errno
import logging
import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest

import spead_tutorial as st
import spead_tutorial.recv as recv
import spead_tutorial.recv.asyncio as recv_asyncio
import spead_tutorial.send as send
from support import captures, ref_encode
from support.loops import in_loop
from support.processes import resident_bytes
from support.sockets import free_port, udp_socket

N_SAMPLES = 20_000


@pytest.fixture
def listening():
    """A socket with room for all that is sent."""
    with udp_socket() as made:
        yield made


def group():
    made = send.ItemGroup()
    made.add_item(0x1600, "timestamp", "", (), format=[("u", 40)])
    made.add_item(0x3300, "samples", "", (N_SAMPLES,), np.uint16)
    return made


def samples(i):
    return np.arange(i, i + N_SAMPLES, dtype=np.uint16)


def send_heaps(stream, n):
    items = group()
    for i in range(n):
        items["timestamp"].value = i
        items["samples"].value = samples(i)
        stream.send_heap(items.get_heap())
    stream.send_heap(items.get_end())


def in_memory(n):
    stream = send.BytesStream(None)
    send_heaps(stream, n)
    return stream.getvalue()


@pytest.mark.parametrize("how", [{}, {"gro": False}], ids=["merged", "one by one"])
def test_heaps_over_udp_arrive_whole_in_order_and_accounted_for(thread_pool, listening, how):
    with (
        recv.Stream(thread_pool) as receiver,
        send.UdpStream(thread_pool, [listening.getsockname()]) as sender,
    ):
        receiver.add_udp_reader(listening, **how)
        send_heaps(sender, 20)
        items = st.ItemGroup()
        for i, heap in enumerate(receiver):
            assert items.update(heap).keys() == {"timestamp", "samples"}
            assert items["timestamp"].value == i
            assert items["samples"].value.tolist() == samples(i).tolist()
        assert i == 19
        stats, sent = receiver.stats, sender.stats
    assert stats.heaps == stats.heaps_complete == 20
    assert stats.heaps_never_begun == 0
    assert stats.packets_received == stats.packets_placed == stats.packets == sent.packets
    assert stats.socket_datagrams == sent.packets
    assert (stats.socket_messages < sent.packets) == (not how)
    assert stats.socket_bytes == sent.bytes
    assert stats.socket_dropped == 0


def test_what_a_dropped_heap_lacks_is_said(thread_pool, caplog):
    packets = in_memory(1)[: -1472 - 57]  # without the last packet but the end's
    with recv.Stream(thread_pool) as receiver, caplog.at_level(logging.WARNING):
        receiver.add_buffer_reader(packets)
        assert list(receiver) == []
        assert receiver.stats.incomplete_heaps_flushed == 1
        assert receiver.stats.incomplete_heaps_dropped == 1
    (said,) = caplog.messages
    assert said.startswith("1 incomplete heap was dropped; of the last one, heap 1,")


def test_packets_that_have_to_say_how_long_their_heap_is_are_missed_aloud(thread_pool, caplog):
    sized = next(iter(send.PacketGenerator(send.Heap(), 1, 1472)))
    unsized = sized[:6] + b"\0\4" + sized[8:16] + sized[24:]  # without its second pointer
    config = recv.StreamConfig(allow_unsized_heaps=False)
    with recv.Stream(thread_pool, config) as receiver, caplog.at_level(logging.WARNING):
        receiver.add_buffer_reader(3 * unsized)
        assert list(receiver) == []
    assert [message.rpartition(": ")[2] for message in caplog.messages] == ["3"]
    assert "do not say how long their heap is" in caplog.text


def test_a_socket_that_has_less_room_than_was_asked_for_is_said(thread_pool, caplog):
    allowed = int(Path("/proc/sys/net/core/rmem_max").read_text())
    most, too_much = min(allowed, 2**30 - 1), 2**31 - 1  # the kernel counts twice as many in an int
    with recv.Stream(thread_pool) as receiver, caplog.at_level(logging.WARNING):
        receiver.add_udp_reader(0, buffer_size=most, bind_hostname="127.0.0.1")
        assert caplog.messages == []
        receiver.add_udp_reader(0, buffer_size=too_much, bind_hostname="127.0.0.1")
        (said,) = caplog.messages
        words = f"has {most} bytes, not {too_much}: allow more with"
        assert said.endswith(f"{words} 'sysctl -w net.core.rmem_max={too_much}'")
        (port,) = re.findall(r"buffer of port (\d+) has", said)  # which the system has chosen
        with socket.socket(type=socket.SOCK_DGRAM) as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", int(port)))


def test_what_cannot_be_delivered_by_the_same_socket_does_not_end_a_stream(thread_pool, listening):
    with udp_socket() as nobody:
        address = nobody.getsockname()
    listening.connect(address)
    with recv.Stream(thread_pool) as receiver, socket.socket(type=socket.SOCK_DGRAM) as somebody:
        receiver.add_udp_reader(listening)
        listening.send(b"refused, which the next call on the socket is told")
        somebody.bind(address)
        config = send.StreamConfig(max_packet_size=9000)
        with send.UdpStream(thread_pool, somebody, [listening.getsockname()], config) as sender:
            send_heaps(sender, 1)
        (heap,) = receiver
    assert heap.cnt == 1


def test_a_socket_that_fails_ends_the_stream_and_says_so(thread_pool, caplog, monkeypatch):
    with recv.Stream(thread_pool) as receiver:
        counts = receiver._counts() | {"sys_errno": errno.EIO}
        monkeypatch.setattr(receiver, "_counts", lambda: counts)
    for _ in range(2):
        with pytest.raises(st.Stopped):
            receiver.get()
    assert caplog.messages == ["a socket failed, which ended the stream: Input/output error"]


def test_a_reader_takes_no_packet_longer_than_it_allows_itself(own_threads, listening):
    with recv.Stream(own_threads) as receiver:
        receiver.add_udp_reader(listening, max_size=100)
        receiver.add_udp_reader(port := free_port(), max_size=100, bind_hostname="127.0.0.1")
        for to in (listening.getsockname(), ("127.0.0.1", port)):
            listening.sendto(ref_encode.one_packet(1, bytes(200)), to)
        while receiver.stats.packets_received < 2:
            pass
        assert receiver.stats.malformed_surplus == 2


@in_loop
async def test_other_tasks_have_their_turn_while_heaps_are_always_ready(own_threads):
    config = recv.RingStreamConfig(heaps=400)
    stream = recv_asyncio.Stream(own_threads, ring_config=config)
    stream.add_buffer_reader(in_memory(300))
    while stream.stats.heaps < 300:
        await asyncio.sleep(0)
    other = asyncio.ensure_future(asyncio.sleep(0))
    first, *_, last = [other.done() async for _ in stream]
    assert (first, last) == (False, True)


@in_loop
async def test_without_a_thread_other_tasks_have_their_turn_after_a_few_reads():
    stream = recv_asyncio.Stream(None, ring_config=recv.RingStreamConfig(heaps=1))
    stream.add_buffer_reader(in_memory(10))
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    assert [turned.is_set() async for _ in stream] == 4 * [False] + 6 * [True]


def test_a_stream_without_a_thread_starts_none_and_reads_only_what_it_is_asked_for(listening):
    before = len(os.listdir("/proc/self/task"))
    with recv.Stream(None) as receiver, send.UdpStream(None, [listening.getsockname()]) as sender:
        receiver.add_udp_reader(listening)
        send_heaps(sender, 1)
        assert receiver.stats.packets_received == 0
        assert receiver.get_nowait().cnt == 1
        assert len(os.listdir("/proc/self/task")) == before


# ---- Losses -------------------------------------------------------------------------------------


def test_what_the_kernel_dropped_is_counted_and_all_that_was_sent_is_accounted_for(thread_pool):
    stream = recv.Stream(thread_pool, ring_config=recv.RingStreamConfig(heaps=1))
    n_sent, got = 3000, 0
    with udp_socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10000)
        stream.add_udp_reader(sock)
        for cnt in range(n_sent):
            sock.sendto(ref_encode.packet(cnt, 1000, 0, bytes(1000)), sock.getsockname())
    while stream.stats.packets_received + stream.stats.socket_dropped < n_sent:
        try:
            stream.get_nowait()
            got += 1
        except st.Empty:
            os.sched_yield()
    stream.stop()
    got += len(list(stream))
    stats = stream.stats
    assert stats.socket_dropped > 0
    assert stats.packets_received + stats.socket_dropped == n_sent
    assert got == stats.heaps == stats.packets_placed
    assert stats.worker_blocked > 0
    assert (stats.longest_unread_ns > 0) == (thread_pool is None)


def of_packets(data):
    """Return the heaps that these packets are, incomplete ones too, and what was counted."""
    ring = recv.RingStreamConfig(heaps=100, contiguous_only=False)
    with recv.Stream(st.ThreadPool(), ring_config=ring) as stream:
        stream.add_buffer_reader(b"".join(data))
        return list(stream), stream.stats


def test_a_heap_that_claims_to_be_large_takes_no_memory_before_it_arrives():
    claims = [ref_encode.packet(cnt, 1 << 29, 0, bytes(8)) for cnt in range(4)]
    of_packets(claims)
    before = resident_bytes()
    _, stats = of_packets(claims)
    assert stats.packets_placed == 4
    assert resident_bytes() - before < 1 << 27


def test_heaps_that_have_gone_leave_nothing_behind():
    more = [ref_encode.Inline(0x2000 + i, i) for i in range(100)]
    data = [ref_encode.one_packet(cnt, b"abc", *more) for cnt in range(80)]
    of_packets(data)
    before = resident_bytes()
    for _ in range(50):  # 22 MB, were their lists of items kept
        of_packets(data)
    assert resident_bytes() - before < 1 << 23


def test_a_heap_of_metadata_is_taken_in_with_all_of_its_items():
    """As a correlator sends it, with many more fields and dimensions in all than items."""
    shape, n = (None, 2, 2, 2), 20000
    many = [
        ref_encode.Descriptor(0x1000 + i, b"x%d" % i, b"", b"", (("u", 8),), shape)
        for i in range(n)
    ]
    (heap,), _ = of_packets(ref_encode.encode_heap(many, 1, 60_000))
    items = st.ItemGroup()
    items.update(heap)
    assert (len(items), items.left_out, items["x9999"].shape) == (n, 0, shape)


def test_fields_of_a_heaps_descriptors_are_bounded_together_and_what_is_beyond_is_said(caplog):
    fields = (("u", 8),) * 60000
    many = [ref_encode.Descriptor(0x1000 + i, b"x", b"", b"", fields, ()) for i in range(19)]
    (heap,), _ = of_packets(
        ref_encode.encode_heap([*many, small := ref_encode.described(7)], 1, 60_000)
    )
    with caplog.at_level(logging.WARNING):
        found = heap.get_descriptors()
    assert [len(one.format) for one in found] == [*[60000] * 17, len(small.format)]
    assert "heap 1: 2 of its descriptors are left out, as they would make more" in caplog.text


def test_descriptors_that_cannot_be_read_are_left_out_and_said(caplog):
    wrong = [
        ref_encode.Value(5, b"no packet", allow_immediate=False),
        ref_encode.Descriptor(0x1000, b"", b"", b"", (("u", 8),), ()),
        ref_encode.Descriptor(6, b"x", b"", b"", (("u", 8),), ()),
    ]
    (heap,), _ = of_packets(ref_encode.encode_heap([*wrong, ref_encode.described()], 1, 1472))
    with caplog.at_level(logging.WARNING):
        assert len(heap.get_descriptors()) == 1
    assert "heap 1: 3 of its descriptors are left out, as they cannot be read" in caplog.text


def test_an_item_group_takes_in_the_immediates_of_an_incomplete_heap():
    number = ref_encode.Descriptor(0x1000, b"x", b"", b"", (("u", 40),), ())
    items = st.ItemGroup()
    (heap,), _ = of_packets(ref_encode.encode_heap([number], 1, 1472))
    items.update(heap)
    (heap,), _ = of_packets([ref_encode.packet(2, 32, 0, bytes(16), [(True, 0x1000, 77)])])
    assert isinstance(heap, recv.IncompleteHeap)
    assert list(items.update(heap)) == ["x"]
    assert items["x"].value == 77


# ---- Captures -----------------------------------------------------------------------------------


def test_a_capture_is_received_and_counted_up_to_where_it_is_damaged(thread_pool, tmp_path, caplog):
    path, made = tmp_path / "night.pcap", [captures.frame(b"else", port=53)]
    made += [captures.frame(ref_encode.one_packet(cnt)) for cnt in range(3)]
    captures.write(path, made)
    for n_lacking, found in ((0, [0, 1, 2]), (7, [0, 1])):
        path.write_bytes(path.read_bytes()[: path.stat().st_size - n_lacking])
        with recv.Stream(thread_pool) as stream, caplog.at_level(logging.ERROR):
            stream.add_udp_pcap_file_reader(path, filter="udp dst port 8888")
            assert [heap.cnt for heap in stream] == found
            stats = stream.stats
        assert (stats.capture_frames, stats.capture_others) == (len(found) + 1, 1)
        assert recv.Account(stats).is_whole
        assert f"frames   {len(found) + 1}  captured\n" in str(recv.Account(stats))
    (said,) = caplog.messages
    at = path.stat().st_size + 7 - len(made[-1]) - 16
    assert said.endswith(f"night.pcap is damaged at byte {at}: the file ends in the midst of this")


@pytest.mark.parametrize(
    ("name", "filter", "error", "words"),
    [
        ("none.pcap", "", OSError, "No such file"),
        ("a.pcap", "tcp", ValueError, "tcpdump -r FILE"),
        ("a.pcap", b"", TypeError, "filter"),
        (3, "", TypeError, "PathLike"),
        ("a\0b", "", ValueError, "NUL"),
    ],
)
def test_what_is_no_capture_is_refused(thread_pool, elsewhere, name, filter, error, words):
    captures.write(elsewhere / "a.pcap", [])
    with pytest.raises(error, match=words):
        recv.Stream(thread_pool).add_udp_pcap_file_reader(name, filter)
