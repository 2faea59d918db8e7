# SPDX-License-Identifier: BSD-3-Clause
# Memory of heaps that are received, a part of _core.pyx.


cdef class MemoryAllocator:
    """MemoryAllocator()
--

    Gives the payload of heaps its memory: here, what ``malloc`` gives.

    Derived classes give other memory. One allocator can serve many streams. It is kept alive by
    the streams that have it, and by all heaps and arrays whose memory it gave.
    """

    cdef object __weakref__
    cdef spt_heap_memory memory  # zeros are malloc and free; derived classes fill it in
    cdef bint read_only          # whether arrays of what was received may be written to
