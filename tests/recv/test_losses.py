# SPDX-License-Identifier: BSD-3-Clause
"""What is told of what did not arrive.

What becomes of packets, and of heaps that lack some, is tested in C, and by `test_oracle`.
"""

import os
import socket
from typing import Any

import pytest

import spead_tutorial
from spead_tutorial import recv
from support import ref_encode
from support.processes import resident_bytes
from support.sockets import udp_socket


def received(data: list[bytes]) -> tuple[Any, Any]:
    """Return the heaps that these packets are, incomplete ones too, and what was counted."""
    ring = recv.RingStreamConfig(heaps=100, contiguous_only=False)
    stream = recv.Stream(spead_tutorial.ThreadPool(), ring_config=ring)
    stream.add_buffer_reader(b"".join(data))
    heaps = list(stream)
    stream.stop()
    return heaps, stream.stats


@pytest.mark.parametrize("has_thread", [True, False])
def test_what_the_kernel_dropped_is_counted_and_all_that_was_sent_is_accounted_for(has_thread):
    ring = recv.RingStreamConfig(heaps=1)
    stream = recv.Stream(spead_tutorial.ThreadPool() if has_thread else None, ring_config=ring)
    n_sent = 3000
    with udp_socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10000)
        stream.add_udp_reader(sock)
        for cnt in range(n_sent):
            sock.sendto(ref_encode.packet(cnt, 1000, 0, bytes(1000)), sock.getsockname())
    got = 0
    while stream.stats.packets_received + stream.stats.socket_dropped < n_sent:
        try:
            stream.get_nowait()
            got += 1
        except spead_tutorial.Empty:
            os.sched_yield()
    stream.stop()
    got += len(list(stream))
    stats = stream.stats
    assert stats.socket_dropped > 0
    assert stats.packets_received + stats.socket_dropped == n_sent
    assert got == stats.heaps == stats.packets_placed
    assert stats.worker_blocked > 0
    assert (stats.longest_unread_ns > 0) == (not has_thread)


def test_a_heap_that_claims_to_be_large_takes_no_memory_before_it_arrives():
    claims = [ref_encode.packet(cnt, 1 << 29, 0, bytes(8)) for cnt in range(4)]
    received(claims)
    before = resident_bytes()
    _, stats = received(claims)
    assert stats.packets_placed == 4
    assert resident_bytes() - before < 1 << 27


def test_an_item_group_takes_in_the_immediates_of_an_incomplete_heap():
    number = ref_encode.Descriptor(0x1000, b"x", b"", b"", (("u", 40),), ())
    group = spead_tutorial.ItemGroup()
    (heap,), _ = received(ref_encode.encode_heap([number], 1, 1472))
    group.update(heap)
    (heap,), _ = received([ref_encode.packet(2, 32, 0, bytes(16), [(True, 0x1000, 77)])])
    assert isinstance(heap, recv.IncompleteHeap)
    assert list(group.update(heap)) == ["x"]
    assert group["x"].value == 77
