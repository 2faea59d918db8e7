# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong while heaps are in flight: it is told, nothing hangs, and memory stays alive."""

import asyncio
import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

import spead_tutorial
import spead_tutorial.send
import spead_tutorial.send.asyncio
from spead_tutorial import wire
from spead_tutorial.send import GroupMode, HeapReference, StreamConfig, UdpStream
from support.heaps import make_heap, slow_config
from support.needs import need
from support.processes import run_script

AsyncUdpStream = spead_tutorial.send.asyncio.UdpStream
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2

#: Starts a script, which is told whose thread sends: a slow stream to a socket that nobody reads.
SLOW = """
import asyncio, gc, os, socket, sys
import numpy as np
import spead_tutorial, spead_tutorial.send, spead_tutorial.send.asyncio

sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
make_pool = spead_tutorial.ThreadPool if sys.argv[1:] == ["its thread"] else lambda: None

def make_heap():
    group = spead_tutorial.send.ItemGroup()
    group.add_item(0x1000, "x", "", shape=(1000,), dtype=np.int8, value=np.ones(1000, "i1"))
    return group.get_heap()

def make_stream():
    config = spead_tutorial.send.StreamConfig(rate=0.1, burst_size=1, max_heaps=10)
    pool = make_pool()
    return spead_tutorial.send.asyncio.UdpStream(pool, [sink.getsockname()], config)
"""


#: Runs a test of scripts for both kinds of streams.
both_kinds = pytest.mark.parametrize("thread", ["its thread", "the caller's"])


class InterruptingLoop(asyncio.SelectorEventLoop):
    """An event loop in which Ctrl-C is pressed when the nth callback is asked for."""

    calls_left = -1

    def call_soon(self, *args, **kwargs):
        self.calls_left -= 1
        if self.calls_left == 0:
            raise KeyboardInterrupt
        return super().call_soon(*args, **kwargs)


# ---- The network ----


def test_packets_larger_than_the_path_takes_fail_with_emsgsize(thread_pool, lab):
    with lab.socket() as sock:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        config = StreamConfig(max_packet_size=lab.mtu - 28 + 8)
        stream = UdpStream(thread_pool, sock, [(lab.address, lab.port)], config)
        with pytest.raises(OSError, match=r"heap 1: a packet of \d+ bytes.*lower") as caught:
            stream.send_heap(make_heap(50000))
        assert caught.value.errno == errno.EMSGSIZE
        stats = stream.stats
        assert stats.errors_by_errno == {errno.EMSGSIZE: stats.errors}
        assert stats.packets == 1  # the last is short, and is sent all the same


def test_the_one_error_of_a_batch_names_the_first_heap_that_failed(thread_pool, lab):
    too_long, short = lab.mtu, 100
    heaps = [make_heap(size) for size in (short, too_long, short, too_long)]
    with lab.socket() as sock:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        config = StreamConfig(max_packet_size=2 * too_long)
        stream = UdpStream(thread_pool, sock, [(lab.address, lab.port)], config)
        with pytest.raises(OSError, match="heap 2: a packet of"):
            stream.send_heaps([HeapReference(heap) for heap in heaps], GroupMode.SERIAL)
        assert (stream.stats.errors, stream.stats.packets) == (2, 2)  # the others were sent


def test_a_packet_of_exactly_the_mtu_less_28_bytes_is_sent_whole(thread_pool, lab):
    with lab.socket() as sock:
        sock.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        size = lab.mtu - 28 - (lab.mtu - 28) % 8
        config = StreamConfig(max_packet_size=size)
        stream = UdpStream(thread_pool, sock, [(lab.address, lab.port)], config)
        stream.send_heap(make_heap(50000))
        assert stream.stats.errors == 0


def test_a_stream_that_must_not_fragment_says_what_fits(thread_pool, make_lab, tmp_path):
    lab = make_lab()
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, spead_tutorial\n"
        "from spead_tutorial.send import ItemGroup, StreamConfig, UdpStream, route_packet_size\n"
        "host, port = sys.argv[1], int(sys.argv[2])\n"
        "pool = spead_tutorial.ThreadPool() if sys.argv[3] == 'thread' else None\n"
        "group = ItemGroup()\n"
        "group.add_item(None, 'x', '', (50000,), np.int8, value=np.ones(50000, 'i1'))\n"
        "fits = route_packet_size(host)\n"
        "for size in (fits, fits + 8):\n"
        "    config = StreamConfig(max_packet_size=size)\n"
        "    stream = UdpStream(pool, [(host, port)], config, dont_fragment=True)\n"
        "    try:\n"
        "        print(stream.send_heap(group.get_heap(data='all')) > 50000, fits)\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    kind = "thread" if thread_pool is not None else "none"
    for host, headers in ((lab.address, 28), (lab.address6, 48)):
        if host is None:
            continue
        argv = [sys.executable, script, host, str(lab.port), kind]
        done = lab.run(argv, capture_output=True, text=True)
        fits = (lab.mtu - headers) // 8 * 8
        first, second = done.stdout.splitlines()
        assert first == f"True {fits}"
        assert f"a packet of {fits + 8} bytes" in second
        assert second.endswith(f"lower max_packet_size to {fits}")


def test_the_route_is_asked_only_for_hosts_that_there_are():
    assert spead_tutorial.send.route_packet_size("127.0.0.1") > 10000
    with pytest.raises(ValueError, match="look up"):
        spead_tutorial.send.route_packet_size("no such host")
    with pytest.raises(ValueError, match="ports are"):
        spead_tutorial.send.route_packet_size("127.0.0.1", 0)


def test_a_refused_connection_is_told(thread_pool):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        address = closed.getsockname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(address)
        stream = UdpStream(thread_pool, sock, [address])

    def send_some() -> None:
        for _ in range(10):  # the answer to one packet is told with the next
            stream.send_heap(make_heap())

    with pytest.raises(ConnectionRefusedError, match="nothing listens"):
        send_some()


def test_no_stream_is_made_on_a_closed_socket_and_no_other_socket_instead(tmp_path, make_lab):
    script = tmp_path / "script.py"
    script.write_text(
        "import socket, sys\n"
        "import spead_tutorial, spead_tutorial.send\n"
        "with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:\n"
        "    pass\n"
        "pool = spead_tutorial.ThreadPool()\n"
        "try:\n"
        "    stream = spead_tutorial.send.UdpStream(pool, sock, [(sys.argv[1], 8888)])\n"
        "    stream.send_heap(spead_tutorial.send.Heap())\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    with make_lab() as lab:  # where it would be counted
        done = lab.run([sys.executable, script, lab.address], capture_output=True, text=True)
        assert "the socket that was given is closed" in done.stdout
        assert lab.counters().packets == 0


def test_an_unreachable_network_is_told(thread_pool, lab):
    with lab.socket() as sock:
        stream = UdpStream(thread_pool, sock, [("10.1.2.3", 8888)])
        with pytest.raises(OSError, match="no way to the destination") as caught:
            stream.send_heap(make_heap())
        assert caught.value.errno == errno.ENETUNREACH


def test_a_device_that_goes_down_fails_the_heaps_and_a_device_that_comes_up_sends(
    thread_pool, make_lab
):
    async def main() -> None:
        with make_lab() as lab, lab.socket() as sock:
            config = StreamConfig(max_heaps=100)
            stream = AsyncUdpStream(thread_pool, sock, [(lab.address, lab.port)], config)
            await stream.async_send_heap(make_heap())
            lab.set_link(up=False)
            futures = [stream.async_send_heap(make_heap()) for _ in range(50)]
            results = await asyncio.gather(*futures, return_exceptions=True)
            numbers = {result.errno for result in results if isinstance(result, OSError)}
            assert numbers <= {errno.ENETUNREACH, errno.ENETDOWN}
            assert len(numbers) == 1
            assert stream.stats.errors == 50
            lab.set_link(up=True)
            await stream.async_send_heap(make_heap())

    asyncio.run(main())


def test_a_full_socket_is_waited_for_and_loses_nothing(thread_pool, make_lab):
    with make_lab() as lab, lab.socket() as sock:
        limit = "tbf rate 400mbit burst 20kb limit 1mb"
        slow = f"tc qdisc replace dev {lab.device} root {limit}".split()
        need("tc")
        if lab.rootless or lab.run(slow).returncode != 0:
            pytest.skip("only root can make the device slow, where the kernel has token buckets")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 30000)
        config = StreamConfig(max_packet_size=8000)
        stream = UdpStream(thread_pool, sock, [(lab.address, lab.port)], config)
        sent = sum(stream.send_heap(make_heap(50000)) for _ in range(20))
        stats = stream.stats
        assert stats.waits > 0
        assert (stats.errors, stats.bytes) == (0, sent)
        deadline = time.monotonic() + 30  # what is queued still has to get out
        while lab.counters().bytes < sent and time.monotonic() < deadline:
            os.sched_yield()
        assert lab.counters().bytes >= sent


def test_the_first_error_of_a_group_is_its_result_and_the_rest_is_still_sent(thread_pool, receiver):
    stream = UdpStream(thread_pool, [receiver.getsockname(), ("255.255.255.255", 9)])  # not allowed
    group = [HeapReference(make_heap(), substream_index=i) for i in (1, 0, 1)]
    with pytest.raises(OSError, match="heap 1:"):
        stream.send_heaps(group, GroupMode.SERIAL)
    assert wire.parse(receiver.recv(2000)).heap_cnt == 2


# ---- Memory ----


def test_an_array_dropped_in_flight_stays_alive_and_is_sent(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(rate=1e6))
        value = np.full(100000, 42, "i1")
        alive = weakref.ref(value)
        group = spead_tutorial.send.ItemGroup()
        group.add_item(0x3300, "x", "", shape=value.shape, dtype=np.int8, value=value)
        future = stream.async_send_heap(group.get_heap(descriptors="none"))
        del value, group
        gc.collect()
        assert alive() is not None
        await future
        gc.collect()
        assert alive() is None

    asyncio.run(main())
    payload = b""
    while len(payload) < 100000:
        payload += wire.parse(receiver.recv(2000)).payload
    assert payload == bytes([42]) * 100000


def test_a_cancelled_future_does_not_stop_its_heap(thread_pool, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], StreamConfig(rate=1e6))
        first = stream.async_send_heap(make_heap(100000))
        second = stream.async_send_heap(make_heap(10))
        first.cancel()
        await second
        assert first.cancelled()
        assert stream.stats.heaps == 2

    asyncio.run(main())


def test_a_stream_deleted_in_flight_still_sends(thread_pool, receiver):
    async def main() -> list[int]:
        stream = AsyncUdpStream(
            thread_pool, [receiver.getsockname()], StreamConfig(rate=1e6, max_heaps=9)
        )
        futures = [stream.async_send_heap(make_heap(10000)) for _ in range(9)]
        del stream
        gc.collect()
        return await asyncio.gather(*futures)

    assert len(asyncio.run(main())) == 9


def test_a_stream_closed_in_flight_still_sends(thread_pool, receiver):
    async def main() -> None:
        config = StreamConfig(rate=1e6, max_heaps=9)
        stream = AsyncUdpStream(thread_pool, [receiver.getsockname()], config)
        futures = [stream.async_send_heap(make_heap(10000)) for _ in range(9)]
        stream.close()
        with pytest.raises(spead_tutorial.Stopped):
            await stream.async_send_heap(make_heap())
        await asyncio.gather(*futures)
        assert stream.stats.heaps == 9

    asyncio.run(main())


def test_stopping_the_pool_fails_what_is_in_flight(own_threads, receiver):
    async def main() -> None:
        stream = AsyncUdpStream(own_threads, [receiver.getsockname()], slow_config())
        await stream.async_send_heap(make_heap())
        future = stream.async_send_heap(make_heap())
        own_threads.stop()
        with pytest.raises(spead_tutorial.Stopped, match="heap 2"):
            await future

    asyncio.run(main())


# ---- Interruptions ----


@pytest.mark.parametrize("interrupted_at", range(1, 12, 2))
def test_an_interruption_loses_no_completion_and_a_later_flush_ends(
    thread_pool, receiver, interrupted_at
):
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


def test_a_flush_ends_in_a_loop_that_follows_the_one_of_the_heaps(thread_pool, receiver):
    stream = AsyncUdpStream(thread_pool, [receiver.getsockname()])

    async def send() -> None:
        stream.async_send_heap(make_heap())

    async def flush() -> None:
        await asyncio.wait_for(stream.async_flush(), 10)

    asyncio.run(send())
    asyncio.run(flush())


# ---- Processes ----


@both_kinds
def test_a_synchronous_send_can_be_interrupted_and_lets_go_of_its_heap(tmp_path, thread):
    script = tmp_path / "script.py"
    script.write_text(
        SLOW
        + """
import weakref
config = spead_tutorial.send.StreamConfig(rate=0.1, burst_size=1)
stream = spead_tutorial.send.UdpStream(make_pool(), [sink.getsockname()], config)
stream.send_heap(make_heap())
value = np.ones(1000, "i1")
alive = weakref.ref(value)
group = spead_tutorial.send.ItemGroup()
group.add_item(0x1000, "x", "", shape=(1000,), dtype=np.int8, value=value)
heap = group.get_heap()
del value, group
try:
    print("sending", flush=True)
    stream.send_heap(heap)
except KeyboardInterrupt:
    del heap
    gc.collect()
    print("interrupted", alive() is None, flush=True)
"""
    )
    with subprocess.Popen(
        [sys.executable, script, thread], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "sending\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    assert out == "interrupted True\n"
    assert process.returncode == 0


@both_kinds
def test_an_event_loop_may_close_with_heaps_in_flight(tmp_path, thread):
    done = run_script(
        SLOW
        + """
async def main():
    stream = make_stream()
    await stream.async_send_heap(make_heap())
    stream.async_send_heap(make_heap())
    return stream

stream = asyncio.run(main())
gc.collect()
del stream
gc.collect()
print("end")
""",
        tmp_path,
        thread,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@both_kinds
def test_the_interpreter_may_exit_with_heaps_in_flight(tmp_path, thread):
    done = run_script(
        SLOW
        + """
async def main():
    global stream, future
    stream = make_stream()
    for _ in range(5):
        future = stream.async_send_heap(make_heap())
    await asyncio.sleep(0)
    os.write(1, b"end")
    sys.exit(3)

asyncio.run(main())
""",
        tmp_path,
        thread,
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "end", "")


@both_kinds
def test_a_forked_child_is_told_to_make_its_own_stream(tmp_path, thread):
    done = run_script(
        SLOW
        + """
config = spead_tutorial.send.StreamConfig()
pool = make_pool()
stream = spead_tutorial.send.UdpStream(pool, [sink.getsockname()], config)
stream.send_heap(make_heap())
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of what is tried here
child = os.fork()
try:
    stream.send_heap(make_heap())
except RuntimeError as error:
    assert child == 0 and "fork" in str(error)
    pool = make_pool()
    stream = spead_tutorial.send.UdpStream(pool, [sink.getsockname()], config)
    stream.send_heap(make_heap())
    print("child", flush=True)
else:
    assert os.waitpid(child, 0)[1] == 0
    print("parent", flush=True)
""",
        tmp_path,
        thread,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "child\nparent\n", "")


def test_ten_threads_may_send_on_one_stream(thread_pool, receiver):
    from concurrent.futures import ThreadPoolExecutor

    stream = UdpStream(thread_pool, [receiver.getsockname()], StreamConfig(max_heaps=10))
    with ThreadPoolExecutor(10) as threads:
        sent = list(threads.map(lambda _: stream.send_heap(make_heap(100)), range(500)))
    counts = sorted(wire.parse(receiver.recv(2000)).heap_cnt for _ in sent)
    assert counts == list(range(1, 501))


@both_kinds
def test_nothing_is_left_open_by_streams_that_have_gone(receiver, thread):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def use() -> None:
        pool = spead_tutorial.ThreadPool() if thread == "its thread" else None
        stream = AsyncUdpStream(pool, [receiver.getsockname()])
        await stream.async_send_heap(make_heap())

    asyncio.run(use())
    gc.collect()
    before = descriptors()
    for _ in range(20):
        asyncio.run(use())
    gc.collect()
    assert descriptors() == before
