# SPDX-License-Identifier: BSD-3-Clause
"""Streams of chunks in Python: as spead2's where that is right, and what ours does where it is not.

Place functions are Python's here, called by ctypes: so each test says what it wants said.
"""

import asyncio
import ctypes
import gc
import logging
import select
import weakref

import numba
import numpy as np
import pytest
import scipy
import spead2.recv
from numba import types

import spead_tutorial as st
import spead_tutorial.recv as recv
import spead_tutorial.recv.asyncio
from spead_tutorial.numba import intp_to_voidptr
from spead_tutorial.recv.numba import chunk_place_data
from spead_tutorial.send import ItemGroup, PacketGenerator
from support import ROOT, chunks
from support.chunks import HEAP, HEAPS, STOP, TIMESTAMP, Place, Setup, by_timestamp, heap, packet
from support.loops import in_loop
from support.processes import run_script


def two_timestamps(n, m):
    return packet(n + 1, HEAP, 0, b"12345678", (TIMESTAMP, n * HEAP), (TIMESTAMP, m * HEAP))


def with_two_marks(said):
    by_timestamp(said)
    said.heap_index *= 2


def with_extra(said):
    by_timestamp(said)
    said.extra[0] = 40 + said.heap_index
    said.extra_offset, said.extra_size = said.heap_index, 1


SCENARIOS = {
    "in order": [heap(n) for n in range(12)],
    "mixed": [heap(n) for n in (0, 4, 1, 5, 2, 8, 6, 3, 7)],
    "the first is not that of id 0": [heap(20), heap(21)],
    "skipped": [heap(0), heap(12), heap(40), heap(37)],
    "too old": [heap(40), heap(8), heap(9), heap(41), heap(37)],
    "without the item": [heap(0), packet(9, HEAP, 0, b"12345678"), heap(2)],
    "without payload": [heap(0), packet(9, 0, 0, b"", (TIMESTAMP, 8)), heap(2)],
    "said twice": [two_timestamps(0, 2)],
    "of unknown length": [heap(0), packet(9, None, 0, b"12345678", (TIMESTAMP, 8)), heap(2)],
    "incomplete": [heap(0, 4), heap(1), heap(2, 4), heap(5)],
    "ended by a packet": [heap(0), heap(1), STOP, heap(2)],
}
ONE_BY_ONE = [
    packet(1, HEAP, 0, b"1234", (TIMESTAMP, 0)),
    *(heap(1, 4), packet(2, HEAP, 4, b"5678"), heap(3, 4)),
]


@pytest.mark.parametrize(
    ("packets", "settings"),
    [
        *((packets, {}) for packets in SCENARIOS.values()),
        (ONE_BY_ONE, {"payload_size": 4, "place": with_two_marks}),
        ([heap(0), heap(2)], {"max_heap_extra": 1, "place": with_extra}),
    ],
    ids=[*SCENARIOS, "packets marked one by one", "extra"],
)
def test_chunks_are_those_of_spead2(packets, settings):
    ours, theirs = (Setup(module, packets=packets, **settings) for module in (st, spead2))
    chunks = ours.got()
    assert chunks == theirs.got() == Setup(thread=False, packets=packets, **settings).got()
    if settings:
        marks, extra = chunks[0][1], chunks[0][3]
        assert (marks, extra) in (
            ([1, 0, 1, 1, 0, 0, 1, 0], [0, 0, 0, 0]),
            ([1, 0, 1, 0], [40, 0, 42, 0]),
        )
    theirs.stream.stop()  # its counts lag behind
    for name in ("heaps", "packets", "too_old_heaps", "rejected_heaps", "worker_blocked"):
        assert ours.stream.stats[name] == theirs.stream.stats[name], name
    # The indices agree, too: of spead2's counts ours has all, in order.
    assert list(ours.stream.stats)[: len(theirs.stream.stats)] == list(theirs.stream.stats)


@pytest.mark.parametrize("marks", [{}, {"payload_size": 4}], ids=["heaps", "packets"])
def test_the_heap_that_senders_end_a_stream_with_ends_it_without_a_place(marks):
    (end,) = PacketGenerator(ItemGroup().get_end(), 99, 1472)  # it has a byte of payload
    ours, theirs = (Setup(m, packets=[heap(0), end, heap(1)], **marks) for m in (st, spead2))
    assert ours.got() == theirs.got()
    stats = ours.stream.stats
    assert (stats.rejected_heaps, stats.packets_no_place) == (0, 0)
    theirs.stream.stop()  # its counts lag behind
    assert theirs.stream.stats["rejected_heaps"] == 1  # its place function is asked


def test_a_heap_that_says_stop_is_one_like_others_to_a_stream_that_goes_on():
    config = recv.StreamConfig(stop_on_stop_item=False)
    packets = [packet(1, HEAP, 0, b"12345678", (6, 2), (TIMESTAMP, 0)), heap(1)]
    assert Setup(config=config, packets=packets).got()[0][1] == [1, 1, 0, 0]


def test_a_place_function_counts_what_it_likes():
    config = recv.StreamConfig()
    heaps = config.add_stat("my_heaps")
    latest = config.add_stat("my_latest", recv.StreamStatConfig.Mode.MAXIMUM)

    def count(said):
        by_timestamp(said)
        said.batch_stats[heaps] += 1
        said.batch_stats[latest] = max(said.batch_stats[latest], said.items[0])

    setup = Setup(place=count, config=config, packets=[heap(n) for n in (0, 3, 2)])
    setup.got()
    stats = setup.stream.stats
    assert (stats["my_heaps"], stats["my_latest"]) == (3, 3 * HEAP)
    assert stats[heaps] == 3
    assert stats[latest + 1] == stats["too_old_heaps"] == 0
    found = setup.stream.config
    assert [found.get_stat_index(name) for name in stats] == list(range(len(stats)))
    assert found.get_stat_index("too_old_heaps") == latest + 1
    again = Setup(config=found)  # which adds them to what the user has, and not to themselves
    assert list(again.stream.stats) == list(stats)
    with pytest.raises(IndexError):
        config.get_stat_index("too_old_heaps")
    assert (stats + stats)["my_latest"] == 3 * HEAP


def test_a_place_that_there_is_not_is_refused_and_said_and_heaps_after_it_arrive(caplog):
    def wrong(said):
        by_timestamp(said)
        if said.items[0] == HEAP:
            said.heap_index = HEAPS

    setup = Setup(place=wrong, packets=[heap(n) for n in range(3)])
    with caplog.at_level(logging.WARNING):
        assert [present for _, present, *_ in setup.got()] == [[1, 0, 1, 0]]
    stats = setup.stream.stats
    assert (stats.rejected_heaps, stats.misplaced_heaps) == (1, 1)
    (record,) = caplog.records
    assert "the place function said" in record.message
    assert "heap_index" in record.message


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_place_function_that_raises_refuses_its_heap_which_is_not_one_that_never_came():
    def fail(said):
        if said.items[0] == HEAP:
            raise ZeroDivisionError
        by_timestamp(said)

    setup = Setup(place=fail, packets=[heap(n) for n in (0, 1, 2, 4)])
    assert [present for _, present, *_ in setup.got()] == [[1, 0, 1, 0], [1, 0, 0, 0]]
    stats = setup.stream.stats
    assert (stats.rejected_heaps, stats.heaps_begun, stats.counts_skipped) == (1, 3, 1)


@numba.cfunc(
    types.void(types.CPointer(chunk_place_data), types.size_t, types.CPointer(types.int64))
)
def compiled(data_ptr, data_size, mine):
    data = numba.carray(data_ptr, 1)[0]
    n = numba.carray(intp_to_voidptr(data.items), 2, np.int64)[0] // HEAP
    data.chunk_id, data.heap_index = n // HEAPS, n % HEAPS
    data.heap_offset = data.heap_index * HEAP
    numba.carray(intp_to_voidptr(data.extra), 1, np.uint8)[0] = 40 + n
    data.extra_offset, data.extra_size = data.heap_index, 1
    numba.carray(intp_to_voidptr(data.batch_stats), 100, np.uint64)[mine[0]] += 2


def test_a_place_function_may_be_compiled_by_numba():
    config, mine = recv.StreamConfig(), np.zeros(1, np.int64)
    mine[0] = config.add_stat("mine")
    place = scipy.LowLevelCallable(
        compiled.ctypes, ctypes.c_void_p(mine.ctypes.data), "void (void *, size_t, void *)"
    )
    setup = Setup(place=place, config=config, max_heap_extra=1, packets=[heap(1), heap(6)])
    found = [(id, present, extra) for id, present, _, extra in setup.got()]
    assert found == [(0, [0, 1, 0, 0], [0, 41, 0, 0]), (1, [0, 0, 1, 0], [0, 0, 46, 0])]
    assert setup.stream.stats["mine"] == 4


def test_without_numba_one_line_says_what_to_install(tmp_path):
    program = "import sys; sys.modules['numba'] = None; import spead_tutorial.recv.numba"
    done = run_script(program, tmp_path)
    assert done.returncode == 1
    assert "pip install 'spead-tutorial[numba]'" in done.stderr.splitlines()[-1]


# A place function holds the stream, and waits for another thread. That one comes to run only if the
# main thread lets go of Python while it waits for the stream: it asks for the port, to say that the
# buffer is smaller than it should be. Then several threads stop a stream, which one has not yet
# done, as a place function is under way.
HELD = """
import sys, threading
sys.path.insert(0, sys.argv[1])
from support.chunks import Setup, heap, recv

def held():
    asked, answered = threading.Event(), threading.Event()
    def place(said):
        asked.set()
        answered.wait()
    return place, asked, answered

for _ in range(5):
    place, asked, answered = held()
    stream = Setup(place=place, config=recv.StreamConfig(explicit_start=True)).stream
    for _ in range(8):
        stream.add_buffer_reader(heap(0))
    stream.start()
    asked.wait()
    threads = [threading.Thread(target=stream.stop, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    answered.set()
    for thread in threads:
        thread.join()
print("stopped")

place, asked, answered = held()
looking = threading.Event()

class Stream(recv.ChunkRingStream):
    @property
    def port(self):
        self.add_buffer_reader(heap(0))
        asked.wait()
        looking.set()
        return super().port

def answer():
    looking.wait()
    answered.set()

recv.ChunkRingStream = Stream
setup = Setup(place=place)
threading.Thread(target=answer, daemon=True).start()
sys.setswitchinterval(1000)  # Python goes on elsewhere where it waits only
setup.stream.add_udp_reader(0, buffer_size=2**31 - 1, bind_hostname="127.0.0.1")
print(answered.is_set())
"""


def test_while_a_place_function_of_python_is_asked_readers_are_added_and_streams_stopped(tmp_path):
    done = run_script(HELD, tmp_path, str(ROOT / "tests"))
    assert (done.returncode, done.stdout) == (0, "stopped\nTrue\n"), done.stderr


def test_waiting_for_a_free_chunk_is_counted():
    setup = Setup(free=1, max_chunks=1, packets=[heap(0), heap(HEAPS), STOP])
    first = setup.data.get()
    while setup.stream.stats.chunk_waits == 0:
        continue
    setup.stream.add_free_chunk(first)
    assert setup.got()[0][:2] == (1, [1, 0, 0, 0])
    stats = setup.stream.stats
    assert stats.chunk_waits == stats.worker_blocked == 1
    assert stats.longest_chunk_wait_ns > 0
    assert (stats.room_waits, stats.longest_room_wait_ns) == (0, 0)


def test_a_stop_item_ends_the_data_ring_alone_and_a_stop_both():
    setup = Setup(packets=[heap(0), STOP])
    assert len(setup.got()) == 1
    with pytest.raises(st.Stopped):
        setup.data.get_nowait()
    setup.free.get()
    mine = setup.chunk()
    setup.stream.add_free_chunk(mine)
    assert (mine.data, setup.free.qsize()) == (None, 9)
    setup.stream.stop()
    setup.stream.stop()
    mine = setup.chunk()
    setup.stream.add_free_chunk(mine)  # in silence
    assert mine.data is not None
    with pytest.raises(st.Stopped):
        setup.free.put(mine)
    assert len(list(setup.free)) == 9


class Mine(recv.Chunk):
    """With something of its own."""

    note = "none"


def test_what_comes_out_of_a_ring_is_what_went_in():
    ring = recv.ChunkRingbuffer(2)
    for put, none, error, match in (
        (ring.put, recv.Chunk(), ValueError, "data is not set"),
        (ring.put_nowait, recv.Chunk(data=bytearray(4)), ValueError, "present is not set"),
        (ring.put, None, TypeError, None),
    ):
        with pytest.raises(error, match=match):
            put(none)
    assert ring.empty()
    data, present = bytearray(4), np.zeros(3, np.uint8)
    chunk = Mine(data=data, present=present, chunk_id=7)
    chunk.note = "mine"
    ring.put(chunk)
    assert (chunk.data, chunk.present, chunk.extra) == (None, None, None)
    assert chunk.chunk_id == 7
    with pytest.raises(ValueError, match="in a ring"):
        ring.put(chunk)
    with pytest.raises(ValueError, match="in a ring"):
        chunk.data = bytearray(4)
    again = ring.get()
    assert again is chunk
    assert (again.note, again.data, again.present) == ("mine", data, present)
    with pytest.raises(BufferError):
        data.clear()  # it is held
    chunk.data = None
    data.clear()


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"data": b"abc"}, BufferError, "not writable"),
        ({"data": np.zeros((4, 4))[:, ::2]}, ValueError, "C-contiguous"),
        ({"data": np.zeros((4, 4), order="F")}, ValueError, "C-contiguous"),
        ({"present": 3}, TypeError, "bytes-like"),
        ({"stream_id": -1}, TypeError, "stream_id"),
        ({"chunk_id": 1.5}, TypeError, "integer"),
        ({"other": 1}, TypeError, "other"),
    ],
)
def test_a_chunk_that_cannot_be_is_refused(kwargs, error, match):
    with pytest.raises(error, match=match):
        recv.Chunk(**kwargs)


def test_a_ring_says_how_full_it_is_in_numbers_exceptions_and_descriptors():
    def readable(fd):
        return bool(select.select([fd], [], [], 0)[0])

    ring = recv.ChunkRingbuffer(1)
    chunk = recv.Chunk(data=bytearray(4), present=bytearray(4))
    assert (ring.maxsize, ring.qsize(), ring.empty(), ring.full()) == (1, 0, True, False)
    assert (readable(ring.data_fd), readable(ring.space_fd)) == (False, True)
    with pytest.raises(st.Empty):
        ring.get_nowait()
    ring.put(chunk)
    assert (ring.qsize(), ring.empty(), ring.full()) == (1, False, True)
    assert (readable(ring.data_fd), readable(ring.space_fd)) == (True, False)
    other = recv.Chunk(data=bytearray(4), present=bytearray(4))
    with pytest.raises(st.Full):
        ring.put_nowait(other)
    assert other.data is not None
    ring.add_producer()
    assert ring.remove_producer()
    assert not ring.remove_producer()
    with pytest.raises(st.Stopped):
        ring.put(other)
    assert list(ring) == [chunk]
    with pytest.raises(st.Stopped):
        ring.get()


def test_a_free_chunk_is_cleaned_and_one_too_many_is_refused():
    setup = Setup(free=0)
    chunk = setup.chunk()
    present = chunk.present
    assert list(present) == [1] * HEAPS
    setup.stream.add_free_chunk(chunk)
    assert list(present) == [0] * HEAPS
    for _ in range(9):
        setup.stream.add_free_chunk(setup.chunk())
    with pytest.raises(st.Full):
        setup.stream.add_free_chunk(setup.chunk())
    assert setup.stream.free_ringbuffer is setup.free
    assert setup.stream.data_ringbuffer is setup.data


def test_chunks_go_when_rings_and_streams_do():
    setup = Setup(free=0, packets=[heap(0), heap(4), heap(8), heap(12)])
    chunks = [setup.chunk() for _ in range(4)]
    gone = [weakref.ref(chunk) for chunk in chunks]
    for chunk in chunks:
        setup.stream.add_free_chunk(chunk)
    first = setup.data.get()
    del chunks, chunk, setup
    gc.collect()
    assert [there for ref in gone if (there := ref()) is not None] == [first]
    assert first.present[0] == 1


def test_a_configuration_keeps_its_place_and_what_packets_mark():
    config = recv.ChunkStreamConfig()
    assert (config.items, config.place) == ([], None)
    config.place = place = (chunks.capsule(8, b"void (void *, size_t)", None), "whatever")
    assert config.place is place
    with pytest.raises(ValueError, match="payload_size"):
        config.enable_packet_presence(0)
    assert config.enable_packet_presence(5).packet_presence_payload_size == 5
    assert config.disable_packet_presence().packet_presence_payload_size == 0


def test_a_stream_wants_a_place_function_and_rings():
    ring, pool, config = recv.ChunkRingbuffer(1), st.ThreadPool(), recv.ChunkStreamConfig()
    both = {"data_ringbuffer": ring, "free_ringbuffer": ring}
    for make, error, match in (
        (lambda: recv.ChunkRingbuffer(0), ValueError, "at least 1"),
        (lambda: recv.ChunkRingStream(pool, None, config, **both), ValueError, "place is not set"),
        (
            lambda: recv.ChunkRingStream(pool, None, config, None, ring),
            TypeError,
            "data_ringbuffer",
        ),
        (lambda: recv.ChunkRingStream(pool), TypeError, "chunk_stream_config"),
    ):
        with pytest.raises(error, match=match):
            make()


@in_loop
async def test_coroutines_wait_in_turn_and_one_who_is_cancelled_loses_nothing():
    ring = recv.asyncio.ChunkRingbuffer(1)
    chunks = [recv.Chunk(data=bytearray(1), present=bytearray(1)) for _ in range(3)]
    first, second, third = (asyncio.create_task(ring.get()) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await ring.put(chunks[0])
    assert await first is chunks[0]
    await ring.put(chunks[1])
    assert await third is chunks[1]
    await ring.put(chunks[0])
    waiting = asyncio.create_task(ring.put(chunks[2]))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert await ring.get() is chunks[0]
    await waiting
    ring.stop()
    assert [chunk async for chunk in ring] == [chunks[2]]
    with pytest.raises(st.Stopped):
        await ring.get()
    with pytest.raises(st.Stopped):
        await ring.put(chunks[0])


@in_loop
async def test_other_tasks_have_their_turn_while_there_are_chunks():
    ring, turned = recv.asyncio.ChunkRingbuffer(1), asyncio.Event()
    ring.put_nowait(recv.Chunk(data=bytearray(1), present=bytearray(1)))
    asyncio.get_running_loop().call_soon(turned.set)
    await ring.get()
    assert turned.is_set()


def test_those_who_wait_have_their_turn_in_each_of_several_loops():
    turns, loops = recv.asyncio._Turns(), [asyncio.new_event_loop() for _ in range(2)]
    first, other, again = (turns.of(loops[i]) for i in (0, 1, 0))
    assert first is again
    assert first is not other
    for loop in loops:
        loop.close()
    last = asyncio.new_event_loop()
    turns.of(last)
    last.close()
    assert [*turns._locks] == [last]  # no loop is kept for ever


@in_loop
async def test_chunks_of_a_stream_are_awaited(thread_pool):
    data, free = recv.asyncio.ChunkRingbuffer(2), recv.asyncio.ChunkRingbuffer(2)
    places = recv.ChunkStreamConfig(items=[TIMESTAMP], place=Place.of(by_timestamp))
    config = recv.StreamConfig(stream_id=7)
    stream = recv.ChunkRingStream(thread_pool, config, places, data, free)
    for _ in range(2):
        stream.add_free_chunk(recv.Chunk(data=bytearray(32), present=bytearray(4)))
    stream.add_buffer_reader(b"".join(heap(n) for n in range(20)))
    found = []
    async for chunk in data:
        found.append((chunk.stream_id, chunk.chunk_id))
        stream.add_free_chunk(chunk)
    assert found == [(7, n) for n in range(5)]
