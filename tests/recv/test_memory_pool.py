# SPDX-License-Identifier: BSD-3-Clause
"""Memory for heaps in Python: which there is, what is said of a pool, and who keeps what.

How buffers come, go and are counted is tested in C.
"""

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
import spead_tutorial.send as send

SIZE = 20_000
#: Bytes of a heap: the value, and its descriptor where it has one.
UPPER = SIZE + 1000
#: How a pool is made by name that a thread refills.
NAMED = {"lower": 1, "upper": UPPER, "max_free": 8, "initial": 2, "low_water": 2}


def packets(n, descriptors="none"):
    """Heaps of an item full of their count, one after the other, without an end."""
    stream, items = send.BytesStream(None), send.ItemGroup()
    items.add_item(0x3300, "samples", "", (SIZE,), np.uint8)
    for cnt in range(1, n + 1):
        items["samples"].value = np.full(SIZE, cnt % 256, np.uint8)
        stream.send_heap(items.get_heap(descriptors), cnt=cnt)
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


def test_pools_and_mapped_memory_are_allocators_made_by_position_or_by_name(module):
    assert issubclass(module.MemoryPool, module.MemoryAllocator)
    assert issubclass(module.MmapAllocator, module.MemoryAllocator)
    module.MmapAllocator(flags=mmap.MAP_POPULATE, prefer_huge=True)
    module.MmapAllocator(mmap.MAP_POPULATE, False)
    assert module.MemoryPool(1, 2, 3, 4).warn_on_empty is True
    module.MemoryPool(1, 2, 3, 4, None)
    module.MemoryPool(lower=1, upper=2, max_free=3, initial=4, allocator=None)
    pool = module.MemoryPool(1, 2, 3, 4, allocator=module.MemoryPool(1, 2, 3, 4))
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
    with pytest.raises(MemoryError):
        module.MemoryPool(1, 1 << 60, 3, 4)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda _: st.MemoryPool(3, 2, 1, 1), ValueError, "lower is 3 and upper is 2"),
        (lambda t: st.MemoryPool(t, 1, 2, 3, 4), TypeError, "."),
        (lambda _: st.MemoryPool(thread_pool=None, **NAMED), TypeError, "thread_pool is None"),
        (lambda t: st.MemoryPool(t, 1, 2, 3, 3, 4), ValueError, "low_water is 4 and max_free is 3"),
        (lambda _: st.MmapAllocator(1 << 32), ValueError, "32 bits"),
        (lambda _: st.MmapAllocator(-1), TypeError, "negative"),
    ],
)
def test_values_that_make_no_sense_are_named(own_threads, make, error, words):
    with pytest.raises(error, match=words):
        make(own_threads)
    own_threads.stop()
    with pytest.raises(st.Stopped):
        st.MemoryPool(own_threads, 1, 2, 3, 4, 2)


# ---- Receiving into them ----


@pytest.mark.parametrize(
    "make",
    {
        "malloc": lambda _: st.MemoryAllocator(),
        "populated": lambda _: st.MmapAllocator(flags=mmap.MAP_POPULATE),
        "huge": lambda _: st.MmapAllocator(prefer_huge=True),
        "refilled pool": lambda threads: st.MemoryPool(
            threads, 1, UPPER, 8, 2, 2, st.MmapAllocator()
        ),
        "named": lambda threads: st.MemoryPool(thread_pool=threads, **NAMED, allocator=None),
        "pool in a pool": lambda _: st.MemoryPool(1, UPPER, 8, 2, st.MemoryPool(1, UPPER, 8, 8)),
    }.values(),
)
def test_what_is_received_can_be_written_to_unless_its_allocator_says_no(own_threads, make):
    allocator, items = make(own_threads), st.ItemGroup()
    for read_only in (False, True):
        with new_stream(own_threads, allocator) as stream:
            stream.add_buffer_reader(packets(30, "stale"))
            held = []
            for cnt, heap in enumerate(stream, 1):
                items.update(heap)
                held = [*held[-3:], (cnt, items["samples"].value)]
                assert held[-1][1].flags.writeable is not read_only
                for known, array in held:
                    check(array, known)
        assert cnt == 30
        allocator.read_only = True


def test_a_pool_counts_what_it_gave_and_what_is_in_use(own_threads):
    pool = st.MemoryPool(1, UPPER, 4, 4)
    with new_stream(own_threads, pool) as stream:
        stream.add_buffer_reader(packets(3))
        held = list(stream)
    del held[1:]
    assert pool.stats == st.MemoryPoolStats(
        gets=3, empty=0, passed_by=0, largest=SIZE, free=3, fewest_free=1, in_use=1, most_in_use=3
    )


# ---- What is said ----


def test_an_empty_pool_is_told_to_who_gets_heaps_and_when_twice_as_often(own_threads, caplog):
    pool = st.MemoryPool(1, UPPER, 0, 0)
    for n in (40, 39, 2):
        with new_stream(own_threads, pool, n) as stream, caplog.at_level(logging.WARNING):
            before = len(caplog.messages)
            stream.add_buffer_reader(packets(n))
            wait_until(lambda: stream.stats.heaps == n)  # noqa: B023
            assert len(caplog.messages) == before
            assert len(list(stream)) == n
    assert [message.split()[6] for message in caplog.messages] == ["40", "81"]
    said = caplog.messages[0]
    assert said.startswith("a memory pool has been empty 40 times,")
    assert said.endswith("make it with initial=40, and max_free no smaller")
    assert caplog.records[0].name == "spead_tutorial.recv"
    silent = st.MemoryPool(1, UPPER, 0, 0)
    silent.warn_on_empty = False
    with new_stream(own_threads, silent, 5) as stream:
        stream.add_buffer_reader(packets(5))
        assert len(list(stream)) == silent.stats.empty == 5
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("larger", [True, False])
def test_larger_heaps_are_told_of_once_and_smaller_ones_never(own_threads, caplog, larger):
    lower, upper = (1, SIZE - 1) if larger else (SIZE + 1, 2 * SIZE)
    pool = st.MemoryPool(lower, upper, 4, 4)
    for _ in range(2):
        with new_stream(own_threads, pool) as stream:
            stream.add_buffer_reader(packets(5))
            assert len(list(stream)) == 5
    assert caplog.messages == larger * [
        f"heaps of {SIZE} bytes pass by a memory pool whose buffers have {upper}: make it with "
        f"upper={SIZE}"
    ]
    assert (pool.stats.gets, pool.stats.passed_by, pool.stats.free) == (10, 10, 4)


# ---- Who keeps what ----


@pytest.mark.parametrize("order", list(itertools.permutations(["stream", "pool", "threads"])))
def test_arrays_outlive_stream_pool_and_threads_and_nothing_outlives_them(order):
    threads = st.ThreadPool()
    pool = st.MemoryPool(threads, 1, UPPER, 10, 2, 2)
    alive = weakref.ref(pool)
    stream = new_stream(threads, pool)
    stream.add_buffer_reader(packets(10))
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


def test_a_child_of_the_process_may_let_go_of_arrays_and_pools(own_threads):
    pool = st.MemoryPool(own_threads, 1, UPPER, 10, 2, 2)
    with new_stream(own_threads, pool) as stream:
        stream.add_buffer_reader(packets(1))
        array = array_of(stream.get())
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            for use in (
                lambda: pool.stats,
                lambda: st.MemoryPool(1, UPPER, 1, 1, pool),
                lambda: new_stream(None, pool),
            ):
                with pytest.raises(RuntimeError, match="fork"):
                    use()
            del array, stream, pool, own_threads
            gc.collect()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    check(array, 1)
