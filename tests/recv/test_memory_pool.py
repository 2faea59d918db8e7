# SPDX-License-Identifier: BSD-3-Clause
"""Memory for heaps: which there is, how many buffers of a pool are needed, and who keeps what."""

import asyncio
import contextlib
import gc
import itertools
import logging
import mmap
import os
import time
import weakref

import numpy as np
import pytest

import spead_tutorial as st
import spead_tutorial.recv as recv
import spead_tutorial.recv.asyncio as recv_asyncio
import spead_tutorial.send as send

SIZE = 20_000
#: Bytes of a heap: the value, and its descriptor where it has one.
UPPER = SIZE + 1000
#: Flags of mmap(2) on Linux, as the kernel numbers them on most machines.
MAP_HUGETLB, PAGES_OF_1_GIB = 0x40000, 30 << 26


@pytest.fixture
def threads():
    with st.ThreadPool() as made:
        yield made


def made_heap(cnt, size=SIZE):
    """A heap of one item, full of its count."""
    items = send.ItemGroup()
    values = np.full(size, cnt % 256, np.uint8)
    items.add_item(0x3300, "samples", "", (size,), np.uint8, value=values)
    return items.get_heap(descriptors="none", data="all")


def packets(threads, n, size=SIZE):
    """Heaps, one after the other, without an end."""
    with send.BytesStream(threads) as stream:
        for cnt in range(1, n + 1):
            stream.send_heap(made_heap(cnt, size), cnt=cnt)
        return stream.getvalue()


def new_stream(threads, allocator, ring_heaps=4):
    config = recv.StreamConfig(memory_allocator=allocator)
    return recv.Stream(threads, config, recv.RingStreamConfig(heaps=ring_heaps))


def array_of(heap):
    """The array of a heap's samples, which keeps its memory."""
    (item,) = heap.get_items()
    return np.asarray(item)


def check(array, cnt):
    assert array.size == SIZE
    assert (array == cnt % 256).all()


def wait_until(condition):
    while not condition():
        time.sleep(0)


# ---- Making them ----


@pytest.fixture(params=["spead_tutorial", "spead2"])
def module(request):
    return pytest.importorskip(request.param, reason="there is no spead2: pip install spead2")


def test_a_pool_is_made_by_position_or_by_name_from_any_allocator(module):
    assert module.MemoryPool(1, 2, 3, 4).warn_on_empty is True
    module.MemoryPool(1, 2, 3, 4, None)
    module.MemoryPool(lower=1, upper=2, max_free=3, initial=4, allocator=None)
    inner = module.MemoryPool(1, 2, 3, 4, module.MmapAllocator())
    pool = module.MemoryPool(1, 2, 3, 4, allocator=inner)
    pool.warn_on_empty = False
    assert pool.warn_on_empty is False
    module.MemoryPool(0, 5, 0, 0)


@pytest.mark.parametrize(
    "arguments", [(), (1, 2, 3), (-1, 2, 3, 4), (1, 2, 3, 4.5), (1, 2, 3, "x"), (1, 2, 3, 4, 5)]
)
def test_arguments_that_make_no_pool_are_type_errors(module, arguments):
    with pytest.raises(TypeError):
        module.MemoryPool(*arguments)
    with pytest.raises(TypeError):
        module.MemoryPool(1, 2, 3, initial=4, size=5)


def test_a_pool_that_fits_no_memory_is_a_memory_error(module):
    with pytest.raises(MemoryError):
        module.MemoryPool(1, 1 << 60, 3, 4)


def test_pools_and_mapped_memory_are_allocators(module):
    assert issubclass(module.MemoryPool, module.MemoryAllocator)
    assert issubclass(module.MmapAllocator, module.MemoryAllocator)
    module.MmapAllocator(flags=mmap.MAP_POPULATE, prefer_huge=True)
    module.MmapAllocator(mmap.MAP_POPULATE, False)


def test_a_pool_that_is_refilled_is_made_by_position_or_by_name(threads):
    st.MemoryPool(threads, 1, 2, 3, 4, 2)
    st.MemoryPool(threads, 1, 2, 3, 4, 2, st.MmapAllocator())
    st.MemoryPool(
        thread_pool=threads, lower=1, upper=2, max_free=3, initial=4, low_water=2, allocator=None
    )
    with pytest.raises(TypeError):
        st.MemoryPool(threads, 1, 2, 3, 4)
    with pytest.raises(TypeError, match="thread_pool is None"):
        st.MemoryPool(thread_pool=None, lower=1, upper=2, max_free=3, initial=4, low_water=2)
    threads.stop()
    with pytest.raises(st.Stopped):
        st.MemoryPool(threads, 1, 2, 3, 4, 2)


def test_values_that_make_no_sense_are_named(threads):
    with pytest.raises(ValueError, match="lower is 3 and upper is 2"):
        st.MemoryPool(3, 2, 1, 1)
    with pytest.raises(ValueError, match="upper is 0"):
        st.MemoryPool(0, 0, 1, 1)
    with pytest.raises(ValueError, match="low_water is 4 and max_free is 3"):
        st.MemoryPool(threads, 1, 2, 3, 3, 4)


def test_flags_that_would_do_something_else_are_refused():
    with pytest.raises(ValueError, match="MAP_POPULATE"):
        st.MmapAllocator(mmap.MAP_SHARED)
    with pytest.raises(ValueError, match="32 bits"):
        st.MmapAllocator(1 << 32)
    with pytest.raises(TypeError, match="negative"):
        st.MmapAllocator(-1)


# ---- Receiving into them ----


ALLOCATORS = {
    "malloc": lambda threads: st.MemoryAllocator(),
    "mapped": lambda threads: st.MmapAllocator(),
    "populated": lambda threads: st.MmapAllocator(flags=mmap.MAP_POPULATE),
    "huge": lambda threads: st.MmapAllocator(prefer_huge=True),
    "pool": lambda threads: st.MemoryPool(1, UPPER, 8, 2),
    "refilled pool": lambda threads: st.MemoryPool(threads, 1, UPPER, 8, 2, 2),
    "pool of huge pages": lambda threads: st.MemoryPool(
        1, UPPER, 8, 2, st.MmapAllocator(prefer_huge=True)
    ),
    "pool in a pool": lambda threads: st.MemoryPool(1, UPPER, 8, 2, st.MemoryPool(1, UPPER, 8, 8)),
    "pool that is too small": lambda threads: st.MemoryPool(1, SIZE // 2, 8, 2),
}


@pytest.mark.parametrize("kind", ALLOCATORS)
def test_what_is_sent_is_received_whatever_memory_it_is_in(threads, kind):
    with new_stream(threads, ALLOCATORS[kind](threads)) as stream:
        stream.add_buffer_reader(packets(threads, 30))
        held = []
        for cnt, heap in enumerate(stream, 1):
            held = [*held[-3:], (cnt, array_of(heap))]
            for known, array in held:
                check(array, known)
    assert cnt == 30


@pytest.mark.parametrize("kind", ALLOCATORS)
def test_arrays_can_be_written_to_unless_their_allocator_says_otherwise(threads, kind):
    allocator = ALLOCATORS[kind](threads)
    sent, items = send.ItemGroup(), st.ItemGroup()
    sent.add_item(0x3300, "samples", "", (SIZE,), np.uint8, value=np.full(SIZE, 7, np.uint8))
    with send.BytesStream(threads) as sender:
        sender.send_heap(sent.get_heap())
        sent_bytes = sender.getvalue()
    for read_only in (False, True):
        with new_stream(threads, allocator) as stream:
            stream.add_buffer_reader(sent_bytes)
            items.update(stream.get())
        check(items["samples"].value, 7)
        assert items["samples"].value.flags.writeable is not read_only
        allocator.read_only = True


def test_where_there_are_no_huge_pages_that_were_asked_for_packets_are_counted(threads):
    with new_stream(threads, st.MmapAllocator(flags=MAP_HUGETLB | PAGES_OF_1_GIB)) as stream:
        stream.add_buffer_reader(packets(threads, 3))
        if list(stream):
            pytest.skip("huge pages of 1 GiB are reserved: sysctl -w vm.nr_hugepages=0")
        stats = stream.stats
    assert stats.packets_no_memory == stats.packets_received > 0


def test_one_pool_serves_two_streams(threads):
    pool = st.MemoryPool(1, UPPER, 20, 0)
    with new_stream(threads, pool) as one, new_stream(threads, pool) as two:
        one.add_buffer_reader(packets(threads, 10))
        two.add_buffer_reader(packets(threads, 20))
        assert [len(list(stream)) for stream in (one, two)] == [10, 20]
    assert pool.stats.gets == 30


def test_coroutines_receive_into_a_pool(threads):
    pool = st.MemoryPool(1, UPPER, 10, 10)

    async def receive():
        config = recv.StreamConfig(memory_allocator=pool)
        async with recv_asyncio.Stream(threads, config) as stream:
            stream.add_buffer_reader(packets(threads, 10))
            return [array_of(heap)[0] async for heap in stream]

    assert asyncio.run(receive()) == list(range(1, 11))


# ---- How many are needed ----

RING, HELD = 3, 2
#: Waiting in the ring, and one for which there is no room; the program's.
NEEDED = RING + 1 + HELD


def receive_and_hold(threads, pool, n=200):
    """Receive heaps, holding the last of them; always wait until the ring is full again."""
    with new_stream(threads, pool, RING) as stream:
        stream.add_buffer_reader(packets(threads, n))
        held = []
        for cnt in itertools.count(1):
            left = min(RING + 1, n - cnt + 1)
            wait_until(lambda: pool.stats.in_use == len(held) + left)  # noqa: B023
            held = held[-HELD + 1 :]
            try:
                held.append(array_of(stream.get()))
            except st.Stopped:
                return


def test_as_many_buffers_are_needed_as_wait_in_the_ring_and_the_program_holds(threads, caplog):
    pool = st.MemoryPool(1, UPPER, NEEDED, NEEDED)
    receive_and_hold(threads, pool)
    assert pool.stats == st.MemoryPoolStats(
        gets=200, empty=0, passed_by=0, largest=SIZE,
        free=NEEDED, fewest_free=0, in_use=0, most_in_use=NEEDED,
    )  # fmt: skip
    assert caplog.messages == []


def test_with_one_buffer_fewer_the_pool_is_empty_once_and_has_enough_from_then_on(threads):
    pool = st.MemoryPool(1, UPPER, NEEDED, NEEDED - 1)
    receive_and_hold(threads, pool)
    stats = pool.stats
    assert (stats.empty, stats.fewest_free, stats.most_in_use) == (1, 0, NEEDED)
    assert stats.free == NEEDED


def test_buffers_beyond_max_free_do_not_stay(threads):
    pool = st.MemoryPool(1, UPPER, 2, 0)
    receive_and_hold(threads, pool)
    assert (pool.stats.free, pool.stats.empty) == (2, NEEDED)
    receive_and_hold(threads, pool)
    assert (pool.stats.free, pool.stats.empty) == (2, NEEDED + NEEDED - 2)


def test_a_pool_that_runs_low_is_refilled(threads):
    pool = st.MemoryPool(threads, 1, UPPER, 20, 0, 4)
    wait_until(lambda: pool.stats.free == 4)
    with new_stream(threads, pool, 10) as stream:
        stream.add_buffer_reader(packets(threads, 3))
        held = list(stream)
        wait_until(lambda: pool.stats.free == 4)
        assert pool.stats.in_use == len(held) == 3
    assert pool.stats.empty == 0


# ---- What is said ----


def received_at_once(threads, pool, n, size=SIZE):
    """A stream that has received heaps, none of which has been got."""
    stream = new_stream(threads, pool, n)
    stream.add_buffer_reader(packets(threads, n, size))
    wait_until(lambda: stream.stats.heaps == n)
    return stream


def test_an_empty_pool_is_spoken_of_by_whoever_gets_heaps_not_once_a_heap(threads, caplog):
    pool = st.MemoryPool(1, UPPER, 0, 0)
    with received_at_once(threads, pool, 40) as stream, caplog.at_level(logging.WARNING):
        assert caplog.messages == []
        assert len(list(stream)) == 40
    (said,) = caplog.messages
    assert said.startswith("a memory pool has been empty 40 times,")
    assert said.endswith("make it with initial=40, and max_free no smaller")
    assert caplog.records[0].name == "spead_tutorial.recv"


def test_it_is_said_again_when_it_has_happened_twice_as_often(threads, caplog):
    pool = st.MemoryPool(1, UPPER, 0, 0)
    for n in (3, 2, 2):
        with received_at_once(threads, pool, n) as stream:
            assert len(list(stream)) == n
    assert [message.split()[6] for message in caplog.messages] == ["3", "7"]


def test_an_empty_pool_is_not_spoken_of_where_that_is_not_wanted(threads, caplog):
    pool = st.MemoryPool(1, UPPER, 0, 0)
    pool.warn_on_empty = False
    with received_at_once(threads, pool, 5) as stream:
        assert len(list(stream)) == 5
    assert pool.stats.empty == 5
    assert caplog.messages == []


def test_heaps_that_are_larger_than_buffers_pass_by_and_it_is_said_once(threads, caplog):
    pool = st.MemoryPool(1, SIZE - 1, 4, 4)
    for _ in range(2):
        with received_at_once(threads, pool, 5) as stream:
            assert len(list(stream)) == 5
    assert caplog.messages == [
        f"heaps of {SIZE} bytes pass by a memory pool whose buffers have {SIZE - 1}: make it with "
        f"upper={SIZE}"
    ]
    assert (pool.stats.gets, pool.stats.passed_by, pool.stats.free) == (10, 10, 4)


def test_heaps_that_are_smaller_than_a_pool_is_for_pass_by_in_silence(threads, caplog):
    pool = st.MemoryPool(SIZE + 1, 2 * SIZE, 4, 4)
    with received_at_once(threads, pool, 5) as stream:
        assert len(list(stream)) == 5
    assert (pool.stats.passed_by, pool.stats.free) == (5, 4)
    assert caplog.messages == []


# ---- Who keeps what ----


def test_arrays_that_are_held_stay_as_they_are_while_the_stream_goes_on(threads):
    pool = st.MemoryPool(1, UPPER, 10, 10)
    with new_stream(threads, pool) as stream:
        stream.add_buffer_reader(packets(threads, 200))
        held = [array_of(stream.get()) for _ in range(3)]
        assert len([array_of(heap) for heap in stream]) == 197
    for cnt, array in enumerate(held, 1):
        check(array, cnt)


@pytest.mark.parametrize("order", list(itertools.permutations(["stream", "pool", "threads"])))
def test_arrays_outlive_stream_pool_and_threads_and_nothing_outlives_them(order):
    threads = st.ThreadPool()
    pool = st.MemoryPool(threads, 1, UPPER, 10, 2, 2)
    alive = weakref.ref(pool)
    stream = new_stream(threads, pool)
    stream.add_buffer_reader(packets(threads, 10))
    parts = {"stream": stream, "pool": pool, "threads": threads}
    array = array_of(stream.get())
    del stream, pool, threads
    for name in order:
        del parts[name]
        gc.collect()
        check(array, 1)
    assert alive() is not None  # the array's memory goes back to it
    del array
    gc.collect()
    assert alive() is None


def test_a_child_of_the_process_may_let_go_of_arrays_and_pools(threads):
    pool = st.MemoryPool(threads, 1, UPPER, 10, 2, 2)
    with new_stream(threads, pool) as stream:
        stream.add_buffer_reader(packets(threads, 1))
        array = array_of(stream.get())
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            del array, stream, pool, threads
            gc.collect()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    check(array, 1)
