# SPDX-License-Identifier: BSD-3-Clause
"""Memory for heaps: which there is, and what is received into it."""

import asyncio
import mmap

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


# ---- Making them ----


@pytest.fixture(params=["spead_tutorial", "spead2"])
def module(request):
    return pytest.importorskip(request.param)


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


def test_arrays_in_a_pool_are_read_only_unless_it_says_otherwise(threads):
    def received(allocator):
        with new_stream(threads, allocator) as stream:
            stream.add_buffer_reader(packets(threads, 1))
            return array_of(stream.get())

    pool = st.MemoryPool(1, UPPER, 4, 4)
    assert pool.read_only is True
    with pytest.raises(ValueError, match="read-only"):
        received(pool)[0] = 1
    assert received(pool).flags.writeable is False
    pool.read_only = False
    received(pool)[0] = 1
    received(st.MemoryAllocator())[0] = 1
    received(st.MmapAllocator())[0] = 1


def test_values_of_items_in_a_pool_are_read_only_too(threads):
    sent = send.ItemGroup()
    sent.add_item(0x3300, "samples", "", (SIZE,), np.uint8, value=np.full(SIZE, 7, np.uint8))
    with send.BytesStream(threads) as sender:
        sender.send_heap(sent.get_heap())
        sent_bytes = sender.getvalue()
    pool = st.MemoryPool(1, UPPER, 4, 4)
    items = st.ItemGroup()
    with new_stream(threads, pool) as stream:
        stream.add_buffer_reader(sent_bytes)
        items.update(stream.get())
    check(items["samples"].value, 7)
    assert not items["samples"].value.flags.writeable
    assert pool.stats.in_use == 1


def test_where_there_are_no_huge_pages_that_were_asked_for_packets_are_counted(threads):
    with new_stream(threads, st.MmapAllocator(flags=MAP_HUGETLB | PAGES_OF_1_GIB)) as stream:
        stream.add_buffer_reader(packets(threads, 3))
        if list(stream):
            pytest.skip("huge pages of 1 GiB are reserved here")
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
