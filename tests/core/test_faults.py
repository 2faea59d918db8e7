# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong while heaps are in flight: it is told, nothing hangs, and memory stays alive."""

import asyncio
import errno
import gc
import os
import signal
import subprocess
import sys
import weakref

import numpy as np
import pytest

import spead_tutorial.send.asyncio
from spead_tutorial.send import GroupMode, HeapReference, StreamConfig, UdpStream
from support.heaps import make_heap, slow_config
from support.loops import in_loop
from support.processes import run_script
from support.ref_decode import parse

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream


# ---- The network ----


def test_a_stream_that_must_not_fragment_says_what_fits(lab):
    script = """
import sys, numpy as np
from spead_tutorial.send import ItemGroup, StreamConfig, UdpStream, route_packet_size
for host in sys.argv[2:]:
    group = ItemGroup()
    group.add_item(None, "x", "", (50000,), np.int8, value=np.ones(50000, "i1"))
    fits = route_packet_size(host)
    for size in (fits, fits + 8):
        config = StreamConfig(max_packet_size=size)
        stream = UdpStream(None, [(host, int(sys.argv[1]))], config, dont_fragment=True)
        try:
            print(stream.send_heap(group.get_heap(data="all")) > 50000, fits)
        except OSError as error:
            print(error)
"""
    hosts = {lab.address: 28} | ({lab.address6: 48} if lab.address6 else {})
    argv = [sys.executable, "-P", "-c", script, str(lab.port), *hosts]
    lines = lab.run(argv, capture_output=True, text=True).stdout.splitlines()
    for headers, first, second in zip(hosts.values(), lines[::2], lines[1::2], strict=True):
        fits = (lab.mtu - headers) // 8 * 8
        assert first == f"True {fits}"
        assert f"a packet of {fits + 8} bytes" in second
        assert second.endswith(f"lower max_packet_size to {fits}")


def test_the_route_is_asked_only_for_hosts_that_there_are():
    assert spead_tutorial.send.route_packet_size("127.0.0.1") > 10000
    for host, port, words in (("no such host", 8888, "look up"), ("127.0.0.1", 0, "ports are")):
        with pytest.raises(ValueError, match=words):
            spead_tutorial.send.route_packet_size(host, port)


def test_a_groups_error_names_the_first_heap_that_failed_and_the_rest_goes(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname(), ("127.255.255.255", 9)])  # not allowed
    group = [HeapReference(make_heap(), substream_index=i) for i in (0, 1, 0, 1)]
    with pytest.raises(OSError, match="heap 2:"):
        stream.send_heaps(group, GroupMode.SERIAL)
    assert [parse(receiver.recv(2000)).cnt for _ in range(2)] == [1, 3]
    stats = stream.stats
    assert (stats.errors, stats.packets, stats.errors_by_errno) == (2, 2, {errno.EACCES: 2})


# ---- Memory ----


@in_loop
async def test_an_array_dropped_in_flight_lives_until_its_heap_is_done(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(rate=1e6))
    value = np.full(100000, 42, "i1")
    alive = weakref.ref(value)
    future = stream.async_send_heap(make_heap(samples=value))
    del value
    gone = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda _: gone.set_result(alive() is None))
    gc.collect()
    assert alive() is not None
    await future
    assert await gone
    payload = b""
    while len(payload) < 100000:
        payload += parse(receiver.recv(2000)).payload
    assert payload == bytes([42]) * 100000


@in_loop
async def test_a_cancelled_future_does_not_stop_its_heap(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(rate=1e6))
    first = stream.async_send_heap(make_heap(100000))
    second = stream.async_send_heap(make_heap(10))
    first.cancel()
    await second
    assert first.cancelled()
    assert stream.stats.heaps == 2


@pytest.mark.parametrize("closed", [True, False])
@in_loop
async def test_a_stream_closed_or_deleted_in_flight_still_sends(thread_pool, receiver, closed):
    config = StreamConfig(rate=1e6, max_heaps=9)
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], config)
    futures = [stream.async_send_heap(make_heap(10000)) for _ in range(9)]
    if closed:
        stream.close()
        with pytest.raises(spead_tutorial.Stopped):
            await stream.async_send_heap(make_heap())
    del stream
    gc.collect()
    assert len(set(await asyncio.gather(*futures))) == 1


@in_loop
async def test_stopping_the_pool_fails_what_is_in_flight(own_threads, receiver):
    stream = AsyncUdpStream(own_threads, [receiver.getsockname()], slow_config())
    await stream.async_send_heap(make_heap())
    future = stream.async_send_heap(make_heap())
    own_threads.stop()
    with pytest.raises(spead_tutorial.Stopped, match="heap 2"):
        await future


# ---- Interruptions, threads and processes ----


class InterruptingLoop(asyncio.SelectorEventLoop):
    """An event loop in which Ctrl-C is pressed when the nth callback is asked for."""

    calls_left = -1

    def call_soon(self, *args, **kwargs):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise KeyboardInterrupt
        return super().call_soon(*args, **kwargs)


@pytest.mark.parametrize("interrupted_at", range(1, 12, 2))
def test_an_interruption_loses_no_completion(thread_pool, receiver, interrupted_at):
    config = StreamConfig(max_heaps=10)
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], config)
    loop = InterruptingLoop()
    futures = []

    async def send() -> None:
        for _ in range(10):
            futures.append(stream.async_send_heap(make_heap()))
            futures[-1].add_done_callback(lambda future: None)  # so that the loop is called
        stream.flush()  # all completions wait to be taken, at once
        loop.calls_left = interrupted_at
        await asyncio.sleep(0)
        await stream.async_flush()

    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(send())
    loop.run_until_complete(asyncio.wait_for(stream.async_flush(), 10))
    assert all(future.result() for future in futures)
    loop.close()


#: Starts a script: a slow stream to a socket that nobody reads, with a thread of its own or none.
SLOW = """
import asyncio, gc, os, socket, sys, weakref
import numpy as np
import spead_tutorial, spead_tutorial.send, spead_tutorial.send.asyncio

sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))

def make_heap(value=None):
    value = np.ones(1000, "i1") if value is None else value
    group = spead_tutorial.send.ItemGroup()
    group.add_item(0x1000, "x", "", shape=(1000,), dtype=np.int8, value=value)
    return group.get_heap()

def make_stream(kind, send=spead_tutorial.send, rate=0.1):
    config = spead_tutorial.send.StreamConfig(rate=rate, burst_size=1, max_heaps=10)
    pool = spead_tutorial.ThreadPool() if kind == "thread" else None
    return send.UdpStream(pool, [sink.getsockname()], config)
"""


@pytest.fixture
def run_slow(tmp_path):
    """Run a script that begins like this; return its status and all that it says."""

    def run(text: str) -> tuple[int, str, str]:
        done = run_script(SLOW + text, tmp_path)
        return done.returncode, done.stdout, done.stderr

    return run


def test_a_synchronous_send_can_be_interrupted_and_lets_go_of_its_heap():
    script = f"""{SLOW}
for kind in ("thread", "none"):
    stream = make_stream(kind)
    stream.send_heap(make_heap())
    value = np.ones(1000, "i1")
    alive = weakref.ref(value)
    heap = make_heap(value)
    del value
    try:
        print("sending", flush=True)
        stream.send_heap(heap)
    except KeyboardInterrupt:
        del heap
        gc.collect()
        print("interrupted", alive() is None, flush=True)
"""
    argv = [sys.executable, "-P", "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == "sending\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted True\n"
    assert process.returncode == 0


def test_event_loops_and_the_interpreter_may_end_with_heaps_in_flight(run_slow):
    said = run_slow("""
async def main(kind):
    stream = make_stream(kind, spead_tutorial.send.asyncio)
    await stream.async_send_heap(make_heap())
    return stream, [stream.async_send_heap(make_heap()) for _ in range(4)]

for kind in ("thread", "none"):
    stream, futures = asyncio.run(main(kind))
    gc.collect()
    del stream
    gc.collect()
print("closed", flush=True)

async def end():
    global kept
    kept = [await main(kind) for kind in ("thread", "none")]
    sys.exit(3)

asyncio.run(end())
""")
    assert said == (3, "closed\n", "")


def test_a_stream_may_be_closed_by_what_it_lets_go_of(run_slow):
    said = run_slow("""
async def main(kind):
    stream, heap = make_stream(kind, spead_tutorial.send.asyncio, 0), make_heap()
    weakref.finalize(heap, stream.close)
    sent = stream.async_send_heap(heap)
    del heap
    print(await sent > 0)

for kind in ("thread", "none"):
    asyncio.run(main(kind))
""")
    assert said == (0, "True\nTrue\n", "")


def test_a_stream_that_goes_with_heaps_in_flight_is_not_found_meanwhile(run_slow):
    said = run_slow("""
import threading
sys.setswitchinterval(1e-6)
pool, heap = spead_tutorial.ThreadPool(), make_heap()
queue = spead_tutorial.InprocQueue(max_packets=1)
queue.add_packet(b"x")  # and so it is full

def watch():
    while True:
        stream = alive()
        if stream is not None:
            stream.stats
        del stream

async def main():
    global alive
    stream = spead_tutorial.send.asyncio.InprocStream(pool, [queue])
    alive = weakref.ref(stream)
    stream.async_send_heap(heap)

alive = lambda: None
threading.Thread(target=watch, daemon=True).start()
for _ in range(300):
    asyncio.run(main())
    gc.collect(0)
print("alive")
""")
    assert said == (0, "alive\n", "")


def test_a_forked_child_is_told_to_make_its_own_stream(run_slow):
    said = run_slow("""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of what is tried here
streams = [make_stream(kind, rate=0) for kind in ("thread", "none")]
for stream in streams:
    stream.send_heap(make_heap())
child = os.fork()
for stream in streams:
    try:
        stream.send_heap(make_heap())
    except RuntimeError as error:
        assert child == 0 and "fork" in str(error)
        make_stream("thread" if stream is streams[0] else "none", rate=0).send_heap(make_heap())
        print("child", flush=True)
    else:
        assert child
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("parent", flush=True)
""")
    assert said == (0, "child\nchild\nparent\n", "")


def test_nothing_is_left_open_by_streams_that_have_gone(receiver):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def use() -> None:
        for pool in (spead_tutorial.ThreadPool(), None):
            stream = AsyncUdpStream(pool, [receiver.getsockname()])
            await stream.async_send_heap(make_heap())

    asyncio.run(use())
    gc.collect()
    before = descriptors()
    for _ in range(20):
        asyncio.run(use())
    gc.collect()
    assert descriptors() == before
