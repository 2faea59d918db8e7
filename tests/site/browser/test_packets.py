# SPDX-License-Identifier: BSD-3-Clause
"""In the page, heaps become packets, messages and calls, and fill sockets, as they really do."""

import random
import socket

import pytest

from spead_tutorial import ThreadPool
from spead_tutorial.measure.verify import make_group
from spead_tutorial.send import GroupMode, HeapReference, PacketGenerator, StreamConfig, UdpStream
from support.browser import functions_of
from support.sockets import messages, udp_socket


@pytest.fixture
def packets(page):
    return functions_of(page, "packets")


def chapters_heap(size):
    return make_group(size).get_heap(descriptors="none", data="all")


#: Heap, packet, heaps: what just fits a call, a message, and the scratch memory of a batch.
LIMITS = ((16384, 9000, 64), (16384, 9000, 65), (9296, 9352, 7), (1616, 1472, 190))


def some_groups(rng):
    """Sizes of heaps and packets, whether these are equal, and heaps in a call."""
    for heap, packet, heaps in LIMITS:
        yield {"heap": heap, "packet": packet, "equal": False, "heaps": heaps}
    for packet in (512, 1472, 8240, 9000, 9184, 30000):
        sizes = [1024, 8192, 16384, 32752, 32768, 65536, 1 << 20, 8200 - rng.randint(0, 20)]
        for heap in [*sizes, rng.randint(1000, 60 * packet)]:
            for equal in (False, True):
                heaps = rng.choice([1, rng.randint(2, 40), 1 + 524288 // heap])
                yield {"heap": heap, "packet": packet, "equal": equal, "heaps": heaps}


def test_the_page_cuts_and_sends_heaps_as_the_stream_does(packets):
    seen = set()
    with udp_socket() as sink, ThreadPool() as pool:
        for group in some_groups(random.Random(1)):
            config = StreamConfig(max_packet_size=group["packet"], max_heaps=group["heaps"])
            config.equal_packets = group["equal"]
            stream = UdpStream(pool, [sink.getsockname()], config)
            heap = chapters_heap(group["heap"])
            stream.send_heaps([HeapReference(heap)] * group["heaps"], GroupMode.SERIAL)
            stats = stream.stats
            if stats.gso_messages == 0 and stats.messages == stats.packets > 1:
                pytest.skip("this kernel does not cut messages into packets")
            said = packets("group", group)
            sizes = [one["size"] for one in said["packets"]]
            if not group["equal"]:
                assert sizes == list(map(len, PacketGenerator(heap, 1, group["packet"]))), group
            assert stats.packets == group["heaps"] * len(sizes) == sum(said["runs"]), group
            assert stats.bytes == group["heaps"] * sum(sizes), group
            assert (stats.messages, stats.send_calls) == (len(said["runs"]), said["calls"]), group
            seen.add((group["equal"], len(sizes) > 1 == len(set(sizes)), said["calls"] > 1))
    assert len(seen) > 5, "there is too little of one kind"


@pytest.mark.parametrize(("heap", "packet"), [(1024, 256), (8192, 1472), (16384, 9000)])
def test_of_heaps_that_nobody_reads_the_kernel_keeps_what_the_page_says(packets, heap, packet):
    said = packets("waiting", {"buffer": 200_000, "packet": packet, "heap": heap})
    cut = list(PacketGenerator(chapters_heap(heap), 1, packet))
    with udp_socket() as sink, udp_socket() as sender:
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
        for one in cut * (2 * int(said["heaps"]) + 2):
            sender.sendto(one, sink.getsockname())
        kept = sum(map(len, messages(sink)))
    assert said["length"] == sum(map(len, cut))
    assert kept == pytest.approx(said["heaps"] * said["length"], rel=0.15)


# ---- As a reader uses it ----


def said(page):
    return page.locator(".play .said").inner_text().replace("\u00a0", " ")


def test_equal_packets_share_messages_that_shorter_ones_end(page):
    page.goto("tutorial/11-batches-of-heaps.html")
    first = page.locator(".messages .line").first.locator(".bar")
    assert "One call for 32 heaps sends 32 messages, in 1 system call" in said(page)
    assert first.all_inner_texts() == ["0", "0"]
    page.get_by_label("Equal packets").check()
    alone = said(page)
    assert "2 equal packets of 8240 bytes" in alone
    assert first.all_inner_texts() == list("0011223")
    page.goto("tutorial/16-equal-packets.html")
    assert said(page) == alone
    page.get_by_label("Samples of a heap").focus()
    page.keyboard.press("ArrowRight")
    assert "4 equal packets" in said(page)
    page.keyboard.press("ArrowRight")
    assert "they cannot be cut equally" in said(page)


def test_a_pause_is_as_long_as_the_page_says_and_shorter_with_small_packets(page):
    page.goto("tutorial/17-receive-where-the-data-is-read.html")
    assert said(page).startswith("1 MiB / 50 MB/s = 21 ms.")
    assert "about 23 ms: 0.27 heaps of 4 MiB" in said(page)
    page.get_by_label("Packet size").focus()
    page.keyboard.press("Home")
    assert "packets of 256 bytes, about 8.4 ms" in said(page)
    page.get_by_label("Rate").press("ArrowRight")
    assert said(page).startswith("1 MiB / 100 MB/s = 10 ms.")
    page.goto("tutorial/7-keep-up.html")
    assert said(page).startswith("4 MiB / 1 GB/s = 4.2 ms.")
