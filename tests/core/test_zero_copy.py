# SPDX-License-Identifier: BSD-3-Clause
"""Streams that have the kernel read the memory of heaps in place, and memory made for them.

When a heap is complete, and what is held meanwhile, is tested in C.
"""

import json
import sys

import numpy as np
import pytest

import spead_tutorial.send.asyncio
from spead_tutorial import HugePages
from spead_tutorial.lab import accounted
from spead_tutorial.send import StreamConfig
from support.heaps import make_heap
from support.loops import in_loop
from support.needs import need
from support.ref_decode import parse

SIZE = 100_000


@in_loop
async def test_heaps_arrive_as_they_are_and_are_done_when_their_memory_is_free(
    thread_pool, receiver
):
    values = np.random.default_rng(1).integers(-128, 128, (20, SIZE), np.int8)
    config = StreamConfig(max_packet_size=9000)
    stream = spead_tutorial.send.asyncio.UdpStream(
        thread_pool, [receiver.getsockname()], config, zero_copy=True
    )
    for cnt, sent in enumerate(values, 1):
        samples = sent.copy()
        assert await stream.async_send_heap(make_heap(samples=samples)) > SIZE
        assert stream.stats.zero_copy_copied == stream.stats.zero_copy_messages  # on loopback
        samples.fill(0)
        parts = {}
        while sum(map(len, parts.values())) < SIZE:
            packet = parse(receiver.recv(70000))
            assert packet.cnt == cnt
            parts[packet.offset] = packet.payload
        assert b"".join(part for _, part in sorted(parts.items())) == sent.tobytes()
    assert stream.stats.errors == 0
    assert 0 < stream.stats.zero_copy_messages <= stream.stats.messages


LAB_SCRIPT = """
import json, resource, sys
import numpy as np
import spead_tutorial
from spead_tutorial.send import HeapReference, HeapReferenceList, GroupMode, ItemGroup
from spead_tutorial.send import StreamConfig, UdpStream

resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))  # of who is not root
size, n = 1 << 20, 16
references = []
for row in np.ndarray((n, size), np.int8, spead_tutorial.HugePages(n * size)):
    group = ItemGroup()
    group.add_item(0x1000, "x", "", row.shape, row.dtype, value=row)
    references.append(HeapReference(group.get_heap(descriptors="none", data="all")))
config = StreamConfig(max_packet_size=9000, max_heaps=n)
for pool in (spead_tutorial.ThreadPool(), None):
    stream = UdpStream(pool, [(sys.argv[1], int(sys.argv[2]))], config, zero_copy=True)
    for _ in range(3):
        stream.send_heaps(HeapReferenceList(references), GroupMode.SERIAL)
    s = stream.stats
    print(json.dumps([s.heaps, s.packets, s.bytes, s.messages, s.zero_copy_messages]))
"""


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_every_packet_reaches_the_device_also_if_that_takes_its_time(make_lab, slow):
    with make_lab() as lab:
        if slow:
            need("tc")
            limit = f"tc qdisc add dev {lab.device} root tbf rate 4gbit burst 200k latency 20ms"
            if lab.run(limit.split(), capture_output=True).returncode:
                pytest.skip("the kernel has no token bucket")
        before = lab.counters()
        argv = [sys.executable, "-P", "-c", LAB_SCRIPT, lab.address, str(lab.port)]
        done = lab.run(argv, capture_output=True, text=True, check=True)
        grown = lab.counters() - before
    streams = [json.loads(line) for line in done.stdout.splitlines()]
    for heaps, packets, _, messages, zero_copy in streams:
        assert heaps == 48
        assert slow <= zero_copy <= messages < packets
    _, packets, n_bytes, messages, _ = map(sum, zip(*streams, strict=True))
    claim = accounted(
        grown.packets, grown.bytes, packets=packets, messages=messages, spead_bytes=n_bytes
    )
    assert claim.ok, claim.text


def test_huge_pages_say_what_they_are_and_stay_as_long_as_their_arrays():
    pages = HugePages(5_000_000)
    assert memoryview(pages).nbytes == pages.size >= 5_000_000
    assert not any(bytes(pages))
    assert (pages.reason is None) == (pages.page_size > 4096)
    before = sys.getrefcount(None)
    for _ in range(1000):
        memoryview(pages)
    assert abs(sys.getrefcount(None) - before) < 100
    array = np.ndarray((3, 1000), np.int8, HugePages(3000))
    array[...] = 7
    assert array.sum() == 21000
    assert array.ctypes.data % 4096 == 0
    for size, error in ((0, ValueError), (1 << 50, MemoryError), (-1, TypeError)):
        with pytest.raises(error):
            HugePages(size)
