# SPDX-License-Identifier: BSD-3-Clause
"""Streams that have the kernel read the memory of heaps in place, and memory made for them.

When a heap is complete, and what is held meanwhile, is tested in C, where the kernel can be made to
take its time.
"""

import asyncio
import json
import socket
import sys

import numpy as np
import pytest

import spead_tutorial
import spead_tutorial.send.asyncio
from spead_tutorial import HugePages, wire
from spead_tutorial.lab import Lab, accounted
from spead_tutorial.send import Heap, ItemGroup, StreamConfig, UdpStream
from support.needs import need

SIZE = 100_000


def make_heap(samples: np.ndarray) -> Heap:
    group = ItemGroup()
    group.add_item(0x1000, "x", "", samples.shape, samples.dtype, value=samples)
    return group.get_heap(descriptors="none", data="all")


def receive(receiver: socket.socket, n_bytes: int) -> list[wire.Packet]:
    packets = []
    while sum(packet.payload_length for packet in packets) < n_bytes:
        packets.append(wire.parse(receiver.recv(70000)))
    return packets


def payload(packets: list[wire.Packet], cnt: int) -> bytes:
    parts = {p.payload_offset: bytes(p.payload) for p in packets if p.heap_cnt == cnt}
    return b"".join(part for _, part in sorted(parts.items()))


@pytest.mark.parametrize("packet_size", [9000, 1472])
def test_heaps_arrive_as_they_are(thread_pool, receiver, packet_size):
    values = np.random.default_rng(1).integers(-128, 128, (20, SIZE), np.int8)
    config = StreamConfig(max_packet_size=packet_size, max_heaps=20)
    stream = UdpStream(thread_pool, [receiver.getsockname()], config, zero_copy=True)
    for cnt, samples in enumerate(values, 1):
        assert stream.send_heap(make_heap(samples)) > SIZE
        assert payload(receive(receiver, SIZE), cnt) == samples.tobytes()
    assert stream.stats.errors == 0
    assert 0 < stream.stats.zero_copy_messages <= stream.stats.messages
    assert stream.stats.zero_copy_copied == stream.stats.zero_copy_messages  # it is loopback


def test_futures_are_done_when_the_memory_is_free_again(thread_pool, receiver):
    async def main() -> None:
        config = StreamConfig(max_packet_size=9000)
        stream = spead_tutorial.send.asyncio.UdpStream(
            thread_pool, [receiver.getsockname()], config, zero_copy=True
        )
        for cnt in range(1, 9):
            samples = np.full(SIZE, cnt, np.int8)
            assert await stream.async_send_heap(make_heap(samples)) > SIZE
            assert stream.stats.zero_copy_copied == stream.stats.zero_copy_messages
            samples.fill(0)
            assert set(payload(receive(receiver, SIZE), cnt)) == {cnt}

    asyncio.run(main())


def test_the_callers_socket_is_refused(thread_pool, receiver):
    with pytest.raises(TypeError):
        UdpStream(thread_pool, receiver, [receiver.getsockname()], zero_copy=True)


LAB_SCRIPT = """
import json, resource, sys
import numpy as np
import spead_tutorial
from spead_tutorial.send import Heap, HeapReference, HeapReferenceList, GroupMode, ItemGroup
from spead_tutorial.send import StreamConfig, UdpStream

host, port, kind, packet_size, huge = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))  # of who is not root
pool = spead_tutorial.ThreadPool() if kind == "thread" else None
size, n = 1 << 20, 16
samples = np.ndarray((n, size), np.int8, spead_tutorial.HugePages(n * size))
if huge == "no":
    samples = np.ones((n, size), np.int8)
references = []
for row in samples:
    group = ItemGroup()
    group.add_item(0x1000, "x", "", row.shape, row.dtype, value=row)
    references.append(HeapReference(group.get_heap(descriptors="none", data="all")))
config = StreamConfig(max_packet_size=int(packet_size), max_heaps=n)
stream = UdpStream(pool, [(host, port)], config, dont_fragment=True, zero_copy=True)
told = ""
for _ in range(20):
    try:
        stream.send_heaps(HeapReferenceList(references), GroupMode.SERIAL)
    except OSError as error:
        told = str(error)
s = stream.stats
print(json.dumps([s.heaps, s.packets, s.bytes, s.errors, s.messages, s.zero_copy_messages, told]))
"""


def run_in(lab: Lab, thread_pool: object, packet_size: int, huge: str) -> list:
    kind = "none" if thread_pool is None else "thread"
    argv = [sys.executable, "-P", "-c", LAB_SCRIPT, lab.address, lab.port, kind, packet_size, huge]
    done = lab.run(list(map(str, argv)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("huge", ["yes", "no"])
def test_every_packet_reaches_the_device(lab, thread_pool, huge):
    before = lab.counters()
    heaps, packets, n_bytes, errors, messages, zero_copy, told = run_in(
        lab, thread_pool, 9000, huge
    )
    grown = lab.counters() - before
    assert (heaps, errors, told) == (320, 0, "")
    assert zero_copy <= messages < packets
    claim = accounted(
        grown.packets, grown.bytes, packets=packets, messages=messages, spead_bytes=n_bytes
    )
    assert claim.ok, claim.text


def test_heaps_are_held_by_a_device_that_takes_its_time(make_lab, thread_pool):
    with make_lab() as lab:
        limit = "tc qdisc add dev DEVICE root tbf rate 4gbit burst 200k latency 20ms"
        need("tc")
        done = lab.run(limit.replace("DEVICE", lab.device).split(), capture_output=True)
        if done.returncode:
            pytest.skip("the kernel has no token bucket")
        before = lab.counters()
        _, packets, n_bytes, errors, messages, zero_copy, _ = run_in(lab, thread_pool, 9000, "yes")
        grown = lab.counters() - before
    assert errors == 0
    assert zero_copy > 0
    claim = accounted(
        grown.packets, grown.bytes, packets=packets, messages=messages, spead_bytes=n_bytes
    )
    assert claim.ok, claim.text


def test_packets_that_are_refused_late_do_not_put_heaps_out_of_step(lab, thread_pool):
    heaps, packets, _, errors, _, _, told = run_in(lab, thread_pool, lab.mtu + 1000, "yes")
    assert (heaps, packets) == (320, 320)  # the last of each is short enough
    assert errors > 320
    assert "lower max_packet_size to" in told


def test_an_array_keeps_its_huge_pages():
    array = np.ndarray((3, 1000), np.int8, HugePages(3000))
    array[...] = 7
    assert array.sum() == 21000
    assert array.ctypes.data % 4096 == 0


def test_huge_pages_say_what_they_are():
    pages = HugePages(5_000_000)
    assert memoryview(pages).nbytes == pages.size >= 5_000_000
    assert not any(bytes(pages))
    assert (pages.reason is None) == (pages.page_size > 4096)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="0 bytes"):
        HugePages(0)
    with pytest.raises(MemoryError):
        HugePages(1 << 50)
    with pytest.raises(TypeError, match="negative"):
        HugePages(-1)
