# SPDX-License-Identifier: BSD-3-Clause
# Memory of heaps that are received, a part of _core.pyx.


cdef class MemoryAllocator:
    """MemoryAllocator()
--

    Gives the payload of heaps its memory: here, what ``malloc`` gives.

    Derived classes give other memory. One allocator can serve many streams. It is kept alive by
    the streams that have it, and by all heaps and arrays whose memory it gave.

    Attributes
    ----------
    read_only : bool
        Whether arrays of heaps that are got from now on can only be read. False, unless a derived
        class says otherwise.
    """

    cdef object __weakref__
    cdef spt_heap_memory memory  # zeros are malloc and free; derived classes fill it in
    cdef public bint read_only


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
