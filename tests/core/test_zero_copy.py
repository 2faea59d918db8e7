# SPDX-License-Identifier: BSD-3-Clause
"""Streams that have the kernel read the memory of heaps in place, and memory made for them.

When a heap is complete, and what is held meanwhile, is tested in C with what stands for a kernel
that takes its time; here, with one that does.
"""

import asyncio
import json
import sys

import numpy as np
import pytest

import spead_tutorial
import spead_tutorial.send.asyncio
from spead_tutorial import HugePages
from spead_tutorial.lab import Lab, accounted
from spead_tutorial.send import StreamConfig
from support.heaps import make_heap
from support.needs import need
from support.ref_decode import parse

SIZE = 100_000


def test_heaps_arrive_as_they_are_and_futures_are_done_when_their_memory_is_free(
    thread_pool, receiver
):
    values = np.random.default_rng(1).integers(-128, 128, (20, SIZE), np.int8)

    async def main() -> None:
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

    asyncio.run(main())


LAB_SCRIPT = """
import json, resource, sys
import numpy as np
import spead_tutorial
from spead_tutorial.send import HeapReference, HeapReferenceList, GroupMode, ItemGroup
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
for _ in range(3):
    try:
        stream.send_heaps(HeapReferenceList(references), GroupMode.SERIAL)
    except OSError as error:
        told = str(error)
s = stream.stats
print(json.dumps([s.heaps, s.packets, s.bytes, s.errors, s.messages, s.zero_copy_messages, told]))
"""


def run_in(lab: Lab, thread_pool: object, packet_size: int, huge: str = "yes") -> list:
    kind = "none" if thread_pool is None else "thread"
    more = lab.address, lab.port, kind, packet_size, huge
    argv = [sys.executable, "-P", "-c", LAB_SCRIPT, *map(str, more)]
    return json.loads(lab.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize(
    ("huge", "slow"),
    [
        ("yes", False),
        pytest.param("no", False, marks=pytest.mark.thorough),
        pytest.param("yes", True, marks=pytest.mark.thorough),
    ],
)
def test_every_packet_reaches_the_device_also_if_that_takes_its_time(
    make_lab, thread_pool, huge, slow
):
    with make_lab() as lab:
        if slow:
            need("tc")
            limit = f"tc qdisc add dev {lab.device} root tbf rate 4gbit burst 200k latency 20ms"
            if lab.run(limit.split(), capture_output=True).returncode:
                pytest.skip("the kernel has no token bucket")
        before = lab.counters()
        result = run_in(lab, thread_pool, 9000, huge)
        grown = lab.counters() - before
    heaps, packets, n_bytes, errors, messages, zero_copy, error = result
    assert (heaps, errors, error) == (48, 0, "")
    assert slow <= zero_copy <= messages < packets
    claim = accounted(
        grown.packets, grown.bytes, packets=packets, messages=messages, spead_bytes=n_bytes
    )
    assert claim.ok, claim.text


@pytest.mark.thorough
def test_packets_that_are_refused_late_do_not_put_heaps_out_of_step(lab, thread_pool):
    heaps, packets, _, errors, _, _, error = run_in(lab, thread_pool, lab.mtu + 1000)
    assert (heaps, packets) == (48, 48)  # the last of each is short enough
    assert errors > 48
    assert "lower max_packet_size to" in error


HOLDING_SCRIPT = """
import asyncio, gc, json, socket, subprocess, sys, weakref
import numpy as np
import spead_tutorial.send.asyncio
from spead_tutorial.send import ItemGroup, StreamConfig

device, kind, *to = sys.argv[1:]
to = to[0], int(to[1])
pool = spead_tutorial.ThreadPool() if kind == "thread" else None
kick = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # after which the queue looks what it may

def let_pass(rate, how="change"):
    queue = ["tc", "qdisc", how, "dev", device, "root", "tbf", "rate", rate]
    subprocess.run([*queue, "burst", "10k", "limit", "1m"], check=True)

def make_heap(samples):
    group = ItemGroup()
    group.add_item(0x1000, "x", "", samples.shape, samples.dtype, value=samples)
    return group.get_heap(descriptors="none", data="all")

async def is_done_soon(sent):
    return bool((await asyncio.wait([sent], timeout=0.1))[0])

async def main():
    config = StreamConfig(max_packet_size=9000)
    stream = spead_tutorial.send.asyncio.UdpStream(pool, [to], config, zero_copy=True)
    samples = np.full(48000, 1, np.int8)
    let_pass("8bit", "add")
    sent = stream.async_send_heap(make_heap(samples))
    early = await is_done_soon(sent)
    let_pass("10gbit")
    kick.sendto(b"", to)
    await sent
    samples.fill(0)
    let_pass("8bit")
    samples = np.full(48000, 2, np.int8)
    sent = stream.async_send_heap(make_heap(samples))
    early = early or await is_done_soon(sent)
    return early, stream.stats.zero_copy_messages, weakref.ref(samples)

early, zero_copy, samples = asyncio.run(main())
gc.collect()  # the stream, which has waited for a while
let_pass("10gbit")
kick.sendto(b"", to)
print(json.dumps([early, zero_copy, samples() is None]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["thread", "none"])
def test_a_device_that_gives_memory_back_late_has_it_for_so_long(make_lab, kind):
    need("tc")
    with make_lab(receiver=True) as lab, lab.receiver.socket() as receiver:
        queue = f"tc qdisc add dev {lab.device} root tbf rate 1gbit burst 10k limit 1m"
        if lab.run(queue.split(), capture_output=True).returncode:
            pytest.skip("the kernel has no token bucket")
        lab.run(f"tc qdisc del dev {lab.device} root".split(), check=True)
        script = [sys.executable, "-P", "-c", HOLDING_SCRIPT]
        argv = [*script, lab.device, kind, lab.address, str(lab.port)]
        done = lab.run(argv, capture_output=True, text=True, check=True)
        receiver.settimeout(10)
        came = {1: b"", 2: b""}
        while len(came[2]) < 48000:
            if packet := receiver.recv(70000):
                came[parse(packet).cnt] += parse(packet).payload
    early, zero_copy, is_free = json.loads(done.stdout)
    assert (early, is_free) == (False, True)
    assert zero_copy >= 4
    assert came == {1: b"\1" * 48000, 2: b"\2" * 48000}


def test_huge_pages_say_what_they_are_and_stay_as_long_as_their_arrays():
    pages = HugePages(5_000_000)
    assert memoryview(pages).nbytes == pages.size >= 5_000_000
    assert not any(bytes(pages))
    assert (pages.reason is None) == (pages.page_size > 4096)
    array = np.ndarray((3, 1000), np.int8, HugePages(3000))
    array[...] = 7
    assert array.sum() == 21000
    assert array.ctypes.data % 4096 == 0
    for size, error in ((0, ValueError), (1 << 50, MemoryError), (-1, TypeError)):
        with pytest.raises(error):
            HugePages(size)
