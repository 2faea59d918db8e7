# SPDX-License-Identifier: BSD-3-Clause
"""Streams that are stopped, deleted, forked, interrupted, full or waited for: nothing hangs."""

import asyncio
import errno
import gc
import os
import select
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator

import pytest

import spead_tutorial.recv.asyncio
from spead_tutorial import recv
from support import ROOT
from support.loops import in_loop
from support.processes import run_script
from support.ref_encode import one_packet as heap
from support.sockets import udp_socket


def full(pool: spead_tutorial.ThreadPool | None) -> recv.Stream:
    """A stream whose ring is full, and whose reader waits."""
    stream = recv.Stream(pool)
    stream.add_buffer_reader(b"".join(heap(cnt) for cnt in range(20)))
    if pool is None:
        stream.get()
    while stream.stats.worker_blocked == 0:
        os.sched_yield()
    return stream


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    """A socket that sends to whom it is connected."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        yield sock


def udp(stream: recv.Stream, sender: socket.socket) -> None:
    """Have the stream receive what the sender sends."""
    with udp_socket() as sock:
        sender.connect(sock.getsockname())
        stream.add_udp_reader(sock)


# ---- Stopped and deleted ------------------------------------------------------------------------


def test_streams_are_deleted_in_every_state(thread_pool, sender):
    recv.Stream(thread_pool)
    full(thread_pool)
    with_reader = recv.Stream(thread_pool)
    udp(with_reader, sender)
    stopped = full(thread_pool)
    stopped.stop()
    waiting = recv.Stream(thread_pool, recv.StreamConfig(explicit_start=True))
    waiting.add_buffer_reader(heap(1))
    del with_reader, stopped, waiting
    gc.collect()
    last = recv.Stream(thread_pool)
    last.add_buffer_reader(heap(7))
    assert [heap.cnt for heap in last] == [7], "the pool does its work"


def test_a_port_is_free_when_its_stream_has_gone(thread_pool, sender):
    stream = recv.Stream(thread_pool)
    udp(stream, sender)
    port = sender.getpeername()[1]
    with pytest.raises(OSError, match=rf"{port}.*in use: end what") as raised:
        recv.Stream(thread_pool).add_udp_reader(port, bind_hostname="127.0.0.1")
    assert isinstance(raised.value, RuntimeError)
    assert raised.value.errno == errno.EADDRINUSE
    del stream
    gc.collect()
    recv.Stream(thread_pool).add_udp_reader(port, bind_hostname="127.0.0.1")


def test_a_with_block_stops_its_stream_which_takes_no_reader_then(thread_pool, sender):
    with recv.Stream(thread_pool) as stream:
        udp(stream, sender)
        sender.send(heap(1))
        assert stream.get().cnt == 1
    port = sender.getpeername()[1]
    for use in (
        stream.get,
        lambda: stream.add_buffer_reader(heap(1)),
        lambda: stream.add_udp_reader(port, bind_hostname="127.0.0.1"),
    ):
        with pytest.raises(spead_tutorial.Stopped):
            use()
    recv.Stream(thread_pool).add_udp_reader(port, bind_hostname="127.0.0.1")


def test_a_full_ring_keeps_no_other_stream_of_its_pool_waiting(own_threads):
    blocked = full(own_threads)
    other = recv.Stream(own_threads)
    other.add_buffer_reader(heap(5) + heap(6))
    assert [heap.cnt for heap in other] == [5, 6]
    assert [heap.cnt for heap in blocked] == list(range(20))


def test_a_buffer_that_is_read_from_is_kept_until_the_stream_stops(thread_pool):
    packets = bytearray(b"".join(heap(cnt) for cnt in range(20)))
    stream = recv.Stream(thread_pool)
    stream.add_buffer_reader(packets)
    with pytest.raises(BufferError):
        packets.clear()
    stream.stop()
    packets.clear()


def test_only_who_lets_go_of_the_gil_may_wait_for_a_lock_of_the_core(tmp_path):
    blocks = {"held": "if True", "free": "with nogil"}
    for name, block in blocks.items():
        (tmp_path / f"{name}.pyx").write_text(
            f"from spead_tutorial._spt_recv cimport *\n{block}:\n    spt_recv_stream_stop(NULL)\n"
        )
    cython = [sys.executable, "-m", "cython", "-3", "-I", ROOT, *(f"{name}.pyx" for name in blocks)]
    subprocess.run(cython, cwd=tmp_path, check=True)
    include = [f"-I{folder}" for folder in (ROOT / "csrc/include", sysconfig.get_path("include"))]
    for name in blocks:
        command = ["cc", "-fsyntax-only", *include, f"{name}.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == (name == "free"), done.stderr
        assert ("WITHOUT_GIL" in done.stderr) == (name == "held")


# ---- Interrupted and forked ---------------------------------------------------------------------

STREAM = """
import os, signal, socket, sys, threading
import spead_tutorial
from spead_tutorial import recv

def make(has_thread):
    stream = recv.Stream(spead_tutorial.ThreadPool() if has_thread else None)
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    stream.add_udp_reader(sock)
    return stream, sock.getsockname()

packet = bytes.fromhex(sys.argv[1])
"""


@pytest.mark.parametrize("has_thread", [True, False])
def test_getting_is_interrupted_and_goes_on_and_a_child_makes_its_own(tmp_path, has_thread):
    done = run_script(
        STREAM
        + """
has_thread = sys.argv[2] == "True"
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
stream, address = make(has_thread)
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    stream.get()
except KeyboardInterrupt:
    print("interrupted", flush=True)
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of what is tried here
sender.sendto(packet, address)
before = stream.get()
child = os.fork()
if child == 0:
    for use in (stream.get, stream.stop, lambda: stream.stats):
        try:
            use()
        except RuntimeError as error:
            assert "fork" in str(error), error
        else:
            sys.exit("it was used")
    assert bytes(before.get_items()[0]) == b"abc"
    del stream, before
    stream, address = make(has_thread)
sender.sendto(packet, address)
cnt = stream.get().cnt
if child:
    assert os.waitpid(child, 0)[1] == 0
print("child" if child == 0 else "parent", cnt, flush=True)
""",
        tmp_path,
        heap(7).hex(),
        str(has_thread),
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\nchild 7\nparent 7\n")
    assert done.stderr == ""


@pytest.mark.parametrize("end", ["sys.exit(3)", pytest.param("pass", marks=pytest.mark.thorough)])
def test_a_program_ends_although_its_streams_receive(tmp_path, end):
    done = run_script(
        STREAM
        + f"""
full = recv.Stream(spead_tutorial.ThreadPool())
full.add_buffer_reader(packet * 20)
while full.stats.worker_blocked == 0:
    os.sched_yield()
for has_thread in (True, False):
    threading.Thread(target=make(has_thread)[0].get, daemon=True).start()
heap = full.get()
{end}
""",
        tmp_path,
        heap(7).hex(),
    )
    assert (done.returncode, done.stderr) == (0 if end == "pass" else 3, "")


def test_a_program_ends_although_a_place_function_of_pythons_is_asked_for(tmp_path):
    done = run_script(
        """
import sys
sys.path.insert(0, sys.argv[1])
from support.chunks import Setup, heap
setup = Setup(place=lambda said: None)
for _ in range(4):
    setup.stream.add_buffer_reader(heap(0) * 100000)
while setup.stream.stats.heaps < 100:
    pass
""",
        tmp_path,
        str(ROOT / "tests"),
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- asyncio ------------------------------------------------------------------------------------


def test_a_stream_is_got_from_in_one_event_loop_after_another(thread_pool, sender):
    stream = recv.asyncio.Stream(thread_pool)
    udp(stream, sender)

    async def leave_someone_waiting() -> None:
        waiting = asyncio.ensure_future(stream.get())
        await asyncio.sleep(0)
        assert not waiting.done()

    asyncio.run(leave_someone_waiting())
    for cnt in range(3):
        sender.send(heap(cnt))
        assert asyncio.run(stream.get()).cnt == cnt


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_is_closed_while_someone_waits_keeps_no_heap(thread_pool, sender):
    stream = recv.asyncio.Stream(thread_pool)
    udp(stream, sender)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(stream.get())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    sender.send(heap(1))
    assert asyncio.run(stream.get()).cnt == 1
    assert not waiting.done()
    waiting.get_coro().close()


@in_loop
async def test_an_asyncio_stream_is_stopped_while_many_wait(thread_pool, sender):
    async with recv.asyncio.Stream(thread_pool) as stream:
        udp(stream, sender)
        waiting = [asyncio.ensure_future(stream.get()) for _ in range(10)]
        await asyncio.sleep(0)
        stream.stop()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [spead_tutorial.Stopped] * 10


# ---- Nothing grows ------------------------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_streams_that_have_gone_leave_nothing_open(thread_pool, sender):
    def use() -> None:
        stream = recv.asyncio.Stream(thread_pool)
        udp(stream, sender)
        sender.send(heap(1))
        asyncio.run(stream.get())
        with pytest.raises(OSError, match="port"):
            stream.add_udp_reader(sender.getpeername()[1], bind_hostname="127.0.0.1")
        fd = stream.fd
        with pytest.raises(spead_tutorial.Empty):
            stream.get_nowait()
        assert select.select([fd], [], [], 0)[0] == []

    use()
    gc.collect()
    before = descriptors(), threading.active_count()
    for _ in range(30):
        use()
    gc.collect()
    assert (descriptors(), threading.active_count()) == before
