# SPDX-License-Identifier: BSD-3-Clause
# Memory of heaps that are received, a part of _core.pyx. Threads that read packets get and put it,
# and never touch Python: the thread that gets heaps says what is to be said of it.

from spead_tutorial._types import MemoryPoolStats

cdef object log = logging.getLogger("spead_tutorial.recv")


cdef class MemoryAllocator:
    """MemoryAllocator()
--

    Gives the payload of heaps its memory: here, what ``malloc`` gives.

    Derived classes give other memory. One allocator can serve many streams. It is kept alive by
    the streams that have it, and by all heaps and arrays whose memory it gave.

    Attributes
    ----------
    read_only : bool
        Whether arrays of heaps that are got from now on can only be read; False unless it is set.
    """

    cdef object __weakref__
    cdef spt_heap_memory memory  # zeros are malloc and free; derived classes fill it in
    cdef public bint read_only

    cdef int tell(self) except -1:
        """Say what there is to be said, and has not been."""
        return 0

    cdef int check(self) except -1:
        """Refuse what another process has made, of which a thread may have a lock."""
        return 0


cdef class MmapAllocator(MemoryAllocator):
    """MmapAllocator(flags=0, prefer_huge=False)
--

    Maps memory for each heap, and unmaps it when the last array of that goes.

    Parameters
    ----------
    flags : int
        A sum of ``MAP_HUGETLB`` and the size of its pages, ``MAP_LOCKED``, ``MAP_NORESERVE`` and
        ``MAP_POPULATE``, as in mmap(2); the module ``mmap`` has some of them. Where the system
        cannot do that, packets are counted as ``packets_no_memory``.
    prefer_huge : bool
        Whether to use huge pages where the system has any: reserved ones, or those that it makes
        by itself. Each heap takes whole ones then.

    Raises
    ------
    ValueError
        For other flags.
    TypeError
        For flags that are not a whole number, or negative.
    """

    cdef spt_mmap_config config

    def __cinit__(self, flags=0, prefer_huge=False):
        cdef spt_error err
        number = whole("flags", flags)
        if number > 0xFFFFFFFF:
            raise ValueError(f"flags is {number:#x}: flags of mmap(2) have 32 bits")
        self.config.flags = <int><unsigned int>number
        self.config.prefer_huge = bool(prefer_huge)
        check(spt_mmap_memory(&self.config, &self.memory, &err), &err)


_POOL_FORMS = ("it takes (lower, upper, max_free, initial, allocator) or (thread_pool, lower, "
               "upper, max_free, initial, low_water, allocator)")


def _pool(lower, upper, max_free, initial, allocator=None):
    return None, lower, upper, max_free, initial, 0, allocator


def _refilled_pool(thread_pool, lower, upper, max_free, initial, low_water, allocator=None):
    return thread_pool, lower, upper, max_free, initial, low_water, allocator


# no_gc_clear: threads and allocator must outlive the pool.
@cython.no_gc_clear
cdef class MemoryPool(MemoryAllocator):
    """MemoryPool(thread_pool, lower, upper, max_free, initial, low_water, allocator=None)
--

    Keeps buffers that heaps have left for those that follow.

    With `thread_pool` and `low_water` a thread refills it. Otherwise both are left out:
    ``MemoryPool(lower, upper, max_free, initial, allocator=None)``.

    Heaps of `lower` to `upper` bytes get buffers of `upper` bytes; what comes back last is given
    first. Other sizes pass by the pool. Without a buffer, a heap gets a new one, without
    a limit: that is counted, and a warning says so when the next heap is got. Buffers that
    can be away at a time: ``max_heaps * substreams`` of `spead_tutorial.recv.StreamConfig`,
    ``heaps`` of `spead_tutorial.recv.RingStreamConfig`, one that finds no room there, and as many
    as the program holds. A heap that does not say how long it is has two while it grows.

    Parameters
    ----------
    thread_pool : ThreadPool
        Whose threads make buffers, kept alive. While a thread makes one it reads no packets: one
        more than there are streams is enough.
    lower : int
        Bytes of a heap that gets a buffer, at least.
    upper : int
        Bytes of a heap that gets a buffer, at most; and those of each buffer, at least 1.
    max_free : int
        Buffers that are kept at most. Others are freed when they come back.
    initial : int
        Buffers that are made now, with their pages.
    low_water : int
        Where fewer are left, a thread makes others, up to this; at most `max_free`.
    allocator : MemoryAllocator
        Where buffers come from; by default ``MemoryAllocator()``.

    Attributes
    ----------
    warn_on_empty : bool
        Whether it is said that the pool was empty: the first time, and whenever that has happened
        twice as often. True in a new pool.
    read_only : bool
        As in `MemoryAllocator`.
    stats : MemoryPoolStats
        What was asked of it, and what it has.

    Raises
    ------
    TypeError
        For arguments of neither form, and for negative ones.
    ValueError
        For `lower` above `upper`, an `upper` of 0, or `low_water` above `max_free`.
    MemoryError
        Where there is no memory for the initial buffers.
    Stopped
        Where the thread pool has been stopped.
    """

    cdef spt_memory_pool *pool
    cdef ThreadPool threads
    cdef MemoryAllocator base
    cdef int made
    cdef spt_memory_pool_config config
    cdef uint64_t next_empty  # how often it has been empty when that is said again
    cdef bint said_larger
    cdef public bint warn_on_empty

    def __cinit__(self, *args, **kwargs):
        cdef spt_error err
        cdef spt_thread_pool *threads
        with_threads = "thread_pool" in kwargs or (args and isinstance(args[0], ThreadPool))
        try:
            (self.threads, lower, upper, max_free, initial, low_water, allocator) = (
                _refilled_pool if with_threads else _pool)(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"MemoryPool{str(error).partition('()')[2]}; {_POOL_FORMS}") from None
        if with_threads and self.threads is None:
            raise TypeError("thread_pool is None: leave it and low_water out")
        self.base = MemoryAllocator() if allocator is None else allocator
        self.base.check()
        self.config.lower = whole("lower", lower)
        self.config.upper = whole("upper", upper)
        self.config.max_free = whole("max_free", max_free)
        self.config.initial = whole("initial", initial)
        self.config.low_water = whole("low_water", low_water)
        self.config.base = self.base.memory
        threads = to_pool(self.threads)
        with nogil:
            self.pool = spt_memory_pool_create(threads, &self.config, &err)
        self.made = made_now(self.pool, &err)
        self.memory = spt_memory_pool_memory(self.pool)
        self.warn_on_empty = True
        self.next_empty = 1

    def __dealloc__(self):
        if self.pool != NULL and self.made == generation:
            with nogil:
                spt_memory_pool_destroy(self.pool)

    @property
    def stats(self):
        cdef spt_memory_pool_stats c
        self.check()
        self.tell()
        spt_memory_pool_read_stats(self.pool, &c)
        return MemoryPoolStats(**c)

    cdef int check(self) except -1:
        return check_generation(self.made)

    cdef int tell(self) except -1:
        cdef spt_memory_pool_stats c
        self.base.tell()
        spt_memory_pool_read_stats(self.pool, &c)
        if c.empty >= self.next_empty and self.warn_on_empty:
            self.next_empty = 2 * c.empty
            log.warning(
                "a memory pool has been empty %d time%s, where a new buffer of %d bytes was made; "
                "at most %d of its buffers were in use at once: make it with initial=%d, and "
                "max_free no smaller",
                c.empty, "" if c.empty == 1 else "s", self.config.upper, c.most_in_use,
                c.most_in_use)
        if c.largest > self.config.upper and not self.said_larger:
            self.said_larger = True
            log.warning(
                "heaps of %d bytes pass by a memory pool whose buffers have %d: make it with "
                "upper=%d", c.largest, self.config.upper, c.largest)
        return 0
