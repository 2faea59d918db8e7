# SPDX-License-Identifier: BSD-3-Clause
# cython: language_level=3, binding=True, auto_pickle=False, autotestdict=False
"""The C core for Python: heaps, packets and streams.

Values enter by the buffer protocol and are held until their heap goes. Worker threads never touch
Python: an asynchronous stream's completions come through a C list and one eventfd.
"""

from cpython.bytearray cimport PyByteArray_AsString
from cpython.bytes cimport PyBytes_AsString, PyBytes_FromStringAndSize
from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release,
    PyObject_GetBuffer)
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject_Call
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer,
    PyCapsule_IsValid)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset
cimport cython

from spead_tutorial._spt cimport *
from spead_tutorial._spt_recv cimport *

import errno
import logging
import operator
import os

import numpy as np

from spead_tutorial._types import (
    Empty, Full, GroupMode, ReaderError, Stopped, StreamConfig, StreamStats, whole)
from spead_tutorial.flavour import Flavour

# Cython cuts a float where C wants an integer, and says nothing: this refuses it.
cdef object index = operator.index
cdef object SERIAL = GroupMode.SERIAL
cdef object ROUND_ROBIN = GroupMode.ROUND_ROBIN
cdef object DEFAULT_FLAVOUR = Flavour()
cdef object core_log = logging.getLogger("spead_tutorial")

# How long a wait lasts before signals are looked at.
cdef int64_t SIGNAL_CHECK_NS = 50_000_000

TIMES_DTYPE = np.dtype([
    ("cnt", np.uint64),
    ("bytes", np.uint64),
    ("queued_ns", np.uint64),
    ("first_packet_ns", np.uint64),
    ("last_packet_ns", np.uint64),
    ("completed_ns", np.uint64),
])


# ---- Errors and forks ----

cdef object to_exception(spt_error *err):
    """The exception that says what err says."""
    text = err.message.decode("utf-8", "replace")
    if err.status == SPT_ERR_QUEUE_FULL:
        return BlockingIOError(errno.EAGAIN, text)
    if err.status == SPT_ERR_STOPPED:
        return Stopped(text)
    if err.status == SPT_ERR_BUSY:
        return BufferError(text)
    if err.status == SPT_ERR_MEMORY:
        return MemoryError(text)
    if err.status == SPT_ERR_GROUP:
        return OSError(errno.EINVAL, text)
    if err.status == SPT_ERR_CANCELLED:
        return OSError(errno.ECANCELED, text)
    if err.status == SPT_ERR_SYSTEM:
        return OSError(err.sys_errno, text)
    return ValueError(text)


cdef int check(spt_status status, spt_error *err) except -1:
    if status < 0:
        raise to_exception(err)
    return 0


# A child of fork() has no worker threads: what was made before is of no use there.
# What has not been made at all is of generation 0.
cdef int generation = 1


def _forked():
    global generation
    generation += 1


os.register_at_fork(after_in_child=_forked)


cdef str NOT_MADE = "it has not been made: call the __init__ of the class that yours derives from"


cdef int check_unmade(void *made) except -1:
    if made != NULL:
        raise RuntimeError("it has been made already: make another one")
    return 0


cdef int check_generation(int made) except -1:
    if made == 0:
        raise RuntimeError(NOT_MADE)
    if made != generation:
        raise RuntimeError(
            "this stream or thread pool was made before fork(), and is the parent's: make a new "
            "one in the child"
        )
    return 0


cdef int made_now(void *made, spt_error *err) except -1:
    """The generation of what C has made; an exception where it could not."""
    if made == NULL:
        raise to_exception(err)
    return generation


# ---- Memory ----

@cython.final
cdef class _Array:
    """Memory for some values of C, until it goes; zeros at first."""

    cdef void *memory

    def __cinit__(self, size_t n, size_t size):
        self.memory = calloc(n + 1, size)
        if self.memory == NULL:
            raise MemoryError(f"no memory for {n} times {size} bytes")

    def __dealloc__(self):
        free(self.memory)


@cython.final
@cython.freelist(64)
cdef class _Value:
    """Holds the memory of a value."""

    cdef Py_buffer view

    def __cinit__(self, value):
        PyObject_GetBuffer(value, &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


# ---- Heaps ----

cdef uint64_t item_id(object item) except? 0xFFFFFFFFFFFFFFFF:
    number = index(item.id)
    if not 0 <= number < 1 << 63:
        raise ValueError(f"item id {number} is out of range: ids are not negative, and fit the "
                         "bits that the flavour leaves them")
    return number


cdef class Heap:
    """Heap(flavour=...)
--

    Items that travel together.

    Values are referenced, not copied: what an item's buffer holds when its packets are made is
    what is sent. The heap keeps the buffers alive for as long as it lives itself. A heap can be
    sent many times, also while it is in flight. Its list of items cannot be changed then, or while
    a `PacketGenerator` is at work on it (BufferError), and what its buffers hold must not be:
    nothing guards it.

    Parameters
    ----------
    flavour : Flavour
        How item pointers are divided; by default ``Flavour()``, which is SPEAD-64-40. Anything
        with the attributes ``heap_address_bits`` and ``bug_compat`` will do.

    Attributes
    ----------
    flavour : Flavour
        The flavour that was given.

    Raises
    ------
    ValueError
        For a flavour that there is not.
    """

    cdef object __weakref__
    cdef spt_heap *heap
    cdef readonly object flavour
    cdef list values
    cdef int readers  # packet generators at work

    def __init__(self, flavour=DEFAULT_FLAVOUR):
        cdef spt_flavour c_flavour
        cdef spt_error err
        check_unmade(self.heap)
        if flavour is DEFAULT_FLAVOUR:
            c_flavour.heap_address_bits = 40
            c_flavour.bug_compat = 0
        else:
            check(spt_flavour_init(&c_flavour, index(flavour.heap_address_bits),
                                   index(flavour.bug_compat), &err), &err)
        self.heap = spt_heap_create(&c_flavour, &err)
        if self.heap == NULL:
            raise to_exception(&err)
        self.flavour = flavour
        self.values = []

    def __dealloc__(self):
        spt_heap_destroy(self.heap)

    cdef int check_made(self) except -1:
        if self.heap == NULL:
            raise RuntimeError(NOT_MADE)
        return 0

    cdef int check_idle(self) except -1:
        self.check_made()
        if self.readers:
            raise BufferError("the heap's packets are being generated: finish or drop the "
                              "PacketGenerator before changing the heap")
        return 0

    @property
    def repeat_pointers(self):
        """Whether every packet repeats all item pointers, so that each can be read alone.

        False in a new heap. Where the pointers do not fit in one packet, it is the send that raises
        ValueError.
        """
        self.check_made()
        return spt_heap_repeat_pointers(self.heap)

    @repeat_pointers.setter
    def repeat_pointers(self, value):
        cdef spt_error err
        self.check_idle()
        check(spt_heap_set_repeat_pointers(self.heap, bool(value), &err), &err)

    def add_item(self, item):
        """Add an item's value, after those that are there already.

        Parameters
        ----------
        item : Item
            What has a value. Its buffer is referenced until the heap goes; the item itself is
            not. Anything with the attribute ``id``, the method ``to_buffer()`` (C-contiguous) and
            ``allow_immediate`` (a method or an attribute) will do, such as an item of spead2.

        Raises
        ------
        ValueError
            Where the id does not fit the flavour, the value does not fit the item, or the heap
            would be longer than its addresses reach.
        """
        cdef spt_error err
        cdef spt_item c_item
        cdef _Value value = _Value(item.to_buffer())
        immediate = item.allow_immediate
        if callable(immediate):
            immediate = immediate()
        c_item.id = item_id(item)
        c_item.value = value.view.buf
        c_item.length = <size_t>value.view.len
        c_item.allow_immediate = bool(immediate)
        self.check_idle()  # now: the item's own code may have used the heap
        check(spt_heap_add_item(self.heap, &c_item, &err), &err)
        self.values.append(value)

    def add_descriptor(self, descriptor):
        """Add what an item is: a small packet inside the heap's payload.

        Parameters
        ----------
        descriptor : Descriptor
            What to describe; an `Item` is also a descriptor. It is copied. Anything with a method
            ``to_raw(flavour)`` that returns what `RawDescriptor` has will do.

        Raises
        ------
        ValueError
            Where it does not fit the flavour.
        """
        cdef spt_error err
        cdef spt_descriptor c
        cdef size_t i
        raw = descriptor.to_raw(self.flavour)
        cdef bytes name = _text("name", raw.name)
        cdef bytes description = _text("description", raw.description)
        cdef bytes header = _text("dtype", raw.numpy_header)
        cdef list format = list(raw.format)
        cdef list shape = list(raw.shape)
        cdef _Array field_array = _Array(len(format), sizeof(spt_field))
        cdef _Array size_array = _Array(len(shape), sizeof(int64_t))
        cdef spt_field *fields = <spt_field *>field_array.memory
        cdef int64_t *sizes = <int64_t *>size_array.memory
        try:
            for i, (letter, bits) in enumerate(format):
                fields[i].code = <char>ord(letter)
                fields[i].bits = index(bits)
            for i, size in enumerate(shape):
                sizes[i] = -1 if size is None else index(size)
        except OverflowError as error:
            raise ValueError(f"descriptor of {raw.name!r}: a size is out of range") from error
        c.id = item_id(raw)
        c.name = name
        c.description = description
        c.numpy_header = header
        c.format, c.n_format = fields, <size_t>len(format)
        c.shape, c.n_shape = sizes, <size_t>len(shape)
        self.check_idle()  # now: the descriptor's own code may have used the heap
        check(spt_heap_add_descriptor(self.heap, &c, &err), &err)

    def add_start(self):
        """Add the stream control item that says that a stream starts here."""
        cdef spt_error err
        self.check_idle()
        check(spt_heap_add_start(self.heap, &err), &err)

    def add_end(self):
        """Add the stream control item that says that a stream ends here: receivers stop at it."""
        cdef spt_error err
        self.check_idle()
        check(spt_heap_add_end(self.heap, &err), &err)


cdef bytes _text(str what, object value):
    text = value.encode() if isinstance(value, str) else bytes(value)
    if b"\0" in text:
        raise ValueError(f"the {what} of an item must not contain a NUL character")
    return text


# no_gc_clear: the heap is told when this goes.
@cython.no_gc_clear
cdef class PacketGenerator:
    """PacketGenerator(heap, cnt, max_packet_size)
--

    The packets of a heap, without any socket: an iterator of bytes.

    Parameters
    ----------
    heap : Heap
        What to cut. It refuses to be changed until the last packet has been taken, or this
        generator has gone.
    cnt : int
        Heap count; its low bits are used, as many as the flavour has for an address.
    max_packet_size : int
        Bytes of a packet at most, UDP and IP headers not counted; rounded down to a multiple
        of 8, and at least 56.

    Raises
    ------
    ValueError
        For a packet size that is too small, also for the pointers that a heap with
        `Heap.repeat_pointers` has.
    TypeError
        For a count that is negative, or does not fit 64 bits.

    Examples
    --------
    >>> [len(packet) for packet in PacketGenerator(Heap(), 1, 1472)]
    [49]
    """

    cdef Heap heap
    cdef spt_packetizer packetizer
    cdef _Array scratch, pieces

    def __cinit__(self, Heap heap not None, cnt, max_packet_size):
        cdef spt_error err
        cdef size_t size = whole("max_packet_size", max_packet_size)
        heap.check_made()
        check(spt_packetizer_init(&self.packetizer, heap.heap,
                                  whole("cnt", cnt), size, &err), &err)
        self.scratch = _Array(size, 1)
        self.pieces = _Array(SPT_MAX_PIECES(size), sizeof(iovec))
        self.heap = heap
        heap.readers += 1

    def __dealloc__(self):
        self.release()

    cdef void release(self) noexcept:
        if self.heap is not None:
            self.heap.readers -= 1
            self.heap = None

    def __iter__(self):
        return self

    def __next__(self):
        cdef spt_packet packet
        if self.heap is None:
            raise StopIteration
        cdef iovec *pieces = <iovec *>self.pieces.memory
        if spt_packetizer_next(&self.packetizer, self.scratch.memory, pieces, &packet) == SPT_DONE:
            self.release()
            raise StopIteration
        cdef bytes joined = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>packet.size)
        cdef char *to = PyBytes_AsString(joined)
        cdef size_t i
        for i in range(packet.n_pieces):
            memcpy(to, pieces[i].iov_base, pieces[i].iov_len)
            to += pieces[i].iov_len
        return joined


cdef class HeapReference:
    """HeapReference(heap, *, cnt=-1, substream_index=0, rate=-1.0)
--

    A heap and how to send it, in a group.

    Parameters
    ----------
    heap : Heap
        The heap, which is kept alive.
    cnt : int
        Heap count; negative for the next of the stream's sequence. One that is given does not
        move the sequence on.
    substream_index : int
        Which endpoint to send to, counted from 0.
    rate : float
        Bytes of SPEAD packets per second; negative for the stream's rate, 0 for no limit.

    Attributes
    ----------
    heap : Heap
        Cannot be changed.
    cnt, substream_index : int
        Can be changed until a `HeapReferenceList` is made, or the group is sent.
    rate : float
        Likewise.
    """

    cdef object __weakref__
    cdef readonly Heap heap
    cdef public object cnt
    cdef public object substream_index
    cdef public object rate

    def __init__(self, Heap heap not None, *, cnt=-1, substream_index=0, rate=-1.0):
        heap.check_made()
        if self.heap is not None:
            raise RuntimeError("the reference has been made already")
        self.heap = heap
        self.cnt = cnt
        self.substream_index = substream_index
        self.rate = rate


cdef object NO_CNT = -1
cdef object NO_INDEX = 0
cdef object NO_RATE = -1.0


cdef int fill_reference(spt_heap_reference *to, Heap heap, object cnt, object substream_index,
                        object rate) except -1:
    if heap is None:
        raise RuntimeError("the reference has not been made: call its __init__")
    heap.check_made()
    if cnt is NO_CNT and substream_index is NO_INDEX and rate is NO_RATE:
        to.heap = heap.heap
        to.cnt = -1
        to.substream_index = 0
        to.rate = -1.0
        return 0
    try:
        to.cnt = -1 if cnt < 0 else index(cnt)
        to.substream_index = index(substream_index)
    except OverflowError:
        raise TypeError(f"heap count {cnt} or substream {substream_index} is out of "
                        "range") from None
    to.heap = heap.heap
    to.rate = rate
    return 0


cdef class HeapReferenceList:
    """HeapReferenceList(heaps)
--

    Heap references made ready once, to be sent many times.

    It has a length, and a slice of it is also a HeapReferenceList; single references cannot be
    taken out.

    Parameters
    ----------
    heaps : sequence of HeapReference
        What to send. What they say is copied: changing a reference later makes no difference
        here. Their heaps are kept alive.

    Raises
    ------
    TypeError
        For what is not a `HeapReference`, such as a plain `Heap`, for a negative substream, and
        for a count that no integer of 64 bits holds.
    """

    cdef list heaps
    cdef _Array array
    cdef spt_heap_reference *references  # in it
    cdef size_t n

    def __cinit__(self, heaps):
        cdef size_t i = 0
        cdef HeapReference reference
        self.heaps = list(heaps)
        self.n = <size_t>len(self.heaps)
        self.array = _Array(self.n, sizeof(spt_heap_reference))
        self.references = <spt_heap_reference *>self.array.memory
        for item in self.heaps:
            if not isinstance(item, HeapReference):
                raise TypeError("a group is made of HeapReference objects: write "
                                f"HeapReference(heap), not {type(item).__name__}")
            reference = item
            fill_reference(&self.references[i], reference.heap, reference.cnt,
                           reference.substream_index, reference.rate)
            i += 1

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        if not isinstance(index, slice):
            raise TypeError("a HeapReferenceList is indexed by slices only")
        cdef HeapReferenceList found = HeapReferenceList(())
        cdef size_t i = 0
        cdef size_t at
        found.heaps = self.heaps[index]
        found.n = <size_t>len(found.heaps)
        found.array = _Array(found.n, sizeof(spt_heap_reference))
        found.references = <spt_heap_reference *>found.array.memory
        for at in range(*index.indices(self.n)):
            found.references[i] = self.references[at]
            i += 1
        return found


# ---- Thread pool ----

cdef class HugePages:
    """HugePages(size)
--

    Memory in huge pages, where the system has any, for streams that send without copying.

    It supports the buffer protocol: ``np.ndarray(shape, dtype, buffer=HugePages(size))`` is an
    array in it, which keeps it alive. The memory has been written to, so that it costs nothing to
    touch any more, and holds zeros.

    Parameters
    ----------
    size : int
        Bytes, at least 1; rounded up to whole huge pages.

    Attributes
    ----------
    size : int
        Bytes there are.
    page_size : int
        Bytes in a page of it: 2 MiB, or those of an ordinary page.
    reason : str or None
        Why it is not in huge pages, and what to do about it; None where it is.

    Raises
    ------
    TypeError, ValueError
        For a size that cannot be.
    MemoryError
        Where there is less.
    """

    cdef spt_memory memory

    def __cinit__(self, size):
        cdef spt_error err
        cdef size_t c_size = whole("size", size)
        cdef spt_status status
        with nogil:
            status = spt_alloc(c_size, &self.memory, &err)
        check(status, &err)

    def __dealloc__(self):
        spt_free(&self.memory)

    def __getbuffer__(self, Py_buffer *view, int flags):
        Py_DECREF(None)  # which Cython has put into view.obj
        PyBuffer_FillInfo(view, self, self.memory.data, <Py_ssize_t>self.memory.size, 0, flags)

    @property
    def size(self):
        return self.memory.size

    @property
    def page_size(self):
        return self.memory.page_size

    @property
    def reason(self):
        return None if self.memory.reason == NULL else self.memory.reason.decode()


cdef int c_int(str what, value) except? -1:
    number = index(value)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise TypeError(f"{what} {number} does not fit an int of C")
    return number


cdef int leave_unusable(int *cores, size_t n) except -1:
    """Mark, and speak of, those of the cores that no thread of a pool can run on."""
    cdef spt_error err
    cdef spt_thread_pool *tried
    cdef size_t i
    for i in range(n):
        with nogil:
            tried = spt_thread_pool_create(1, &cores[i], 1, &err)
            spt_thread_pool_destroy(tried)
        if tried == NULL or cores[i] < 0:
            core_log.warning("core %d, for thread %d of a pool, is not there, or not for this "
                             "process: the thread runs on any", cores[i], i)
            cores[i] = -1
    return 0


cdef class ThreadPool:
    """ThreadPool(threads=1, affinity=())
--

    Threads that send for any number of streams.

    At the end of a ``with`` block it is stopped. A stream keeps its pool alive. The threads do not
    survive a fork: make a new pool in the child.

    Parameters
    ----------
    threads : int
        How many, at least 1. One stream is served by one thread at a time.
    affinity : sequence of int
        Cores: thread i runs on ``affinity[i % len(affinity)]``; empty leaves it to the kernel. For
        a core that there is not, or that this process may not use, a warning is logged, and its
        threads are left to the kernel.

    Raises
    ------
    ValueError
        For less than 1 thread.
    TypeError
        For what is not a whole number, or no ``int`` of C.
    OSError
        Where a thread cannot be started.
    """

    cdef object __weakref__
    cdef spt_thread_pool *pool
    cdef int made

    def __init__(self, threads=1, affinity=()):
        cdef spt_error err
        affinity = list(affinity)
        cdef size_t n = len(affinity)
        cdef size_t n_threads = max(0, c_int("threads", threads))
        cdef _Array array = _Array(n, sizeof(int))
        cdef int *cores = <int *>array.memory
        cdef bint usable = True
        check_unmade(self.pool)
        for i, core in enumerate(affinity):
            cores[i] = c_int("core", core)
            usable = usable and cores[i] >= 0
        if usable:
            with nogil:
                self.pool = spt_thread_pool_create(n_threads, cores, n, &err)
            usable = self.pool != NULL or n == 0 or err.sys_errno != errno.EINVAL
        if not usable:
            leave_unusable(cores, min(n, n_threads))
            with nogil:
                self.pool = spt_thread_pool_create(n_threads, cores, n, &err)
        self.made = made_now(self.pool, &err)

    def __dealloc__(self):
        if self.pool != NULL and self.made == generation:
            with nogil:
                spt_thread_pool_destroy(self.pool)

    def stop(self):
        """End the threads. What is still queued fails with `Stopped`. May be repeated.

        Streams that receive end; what they have received can still be got.

        Raises
        ------
        RuntimeError
            In a child of the process that made the pool.
        """
        check_generation(self.made)
        with nogil:
            spt_thread_pool_stop(self.pool)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.stop()

    @staticmethod
    def set_affinity(core):
        """Run the calling thread on one core only.

        Parameters
        ----------
        core : int
            The core's number, from 0. For one that there is not, or that this process may not use,
            a warning is logged, and nothing changes.

        Raises
        ------
        TypeError
            For what is not a whole number, or no ``int`` of C.
        """
        cdef spt_error err
        if spt_set_affinity(c_int("core", core), &err) != SPT_OK:
            core_log.warning("%s", err.message.decode("utf-8", "replace"))


# ---- Queues ----

cdef class InprocQueue:
    """InprocQueue(*, max_packets=0, max_bytes=0)
--

    A queue of packets within the process: a network that loses nothing.

    Several streams may send to it, before or after there is one that receives; streams that
    receive from it get some packets each. Streams keep it alive.

    Parameters
    ----------
    max_packets : int
        How many packets may be in it; 0 for no limit. While it is full, streams that send to it
        wait.
    max_bytes : int
        How many bytes they may have together; 0 for no limit. Not less than the
        `StreamConfig.max_packet_size` of those that send to it, or all of their heaps fail.

    Raises
    ------
    TypeError
        For a negative number, or none.
    """

    cdef object __weakref__
    cdef spt_inproc_queue *queue
    cdef int made

    def __init__(self, *, max_packets=0, max_bytes=0):
        cdef spt_error err
        check_unmade(self.queue)
        self.queue = spt_inproc_queue_create(whole("max_packets", max_packets),
                                             whole("max_bytes", max_bytes), &err)
        self.made = made_now(self.queue, &err)

    def __dealloc__(self):
        if self.made == generation:  # else a thread that did not come along may have its lock
            spt_inproc_queue_destroy(self.queue)

    cdef spt_inproc_queue *checked(self) except NULL:
        check_generation(self.made)
        return self.queue

    def add_packet(self, packet):
        """Put a packet in; it does not wait.

        Parameters
        ----------
        packet : bytes-like, C-contiguous
            It is copied. Whether it is a packet is for the receiver to say.

        Raises
        ------
        Full
            Where there is no room for it now.
        Stopped
            After `stop`.
        ValueError
            For a packet that is larger than ``max_bytes``.
        """
        cdef spt_error err
        cdef spt_status status
        cdef _Value value = _Value(packet)
        cdef spt_inproc_queue *queue = self.checked()
        with nogil:
            status = spt_inproc_queue_add_packet(queue, value.view.buf, <size_t>value.view.len,
                                                 &err)
        if status == SPT_ERR_QUEUE_FULL:
            raise Full(err.message.decode())
        check(status, &err)

    def stop(self):
        """Take no more packets. May be repeated.

        Those in the queue can still be received; then the streams that receive from it end. Heaps
        that are sent to it from now on fail with OSError (ECANCELED).
        """
        cdef spt_inproc_queue *queue = self.checked()
        with nogil:
            spt_inproc_queue_stop(queue)


# ---- Streams ----

# no_gc_clear: the pool must outlive the stream, also where the garbage collector finds both.
@cython.no_gc_clear
cdef class Stream:
    """What synchronous and asynchronous streams share; it is not made itself.

    A stream takes heaps into a queue, and a thread of its pool sends them; without a pool, the
    thread that calls it does. At the end of a ``with`` block it is closed.
    """

    cdef object __weakref__
    cdef spt_stream *stream
    cdef ThreadPool pool
    cdef int made
    cdef size_t in_flight
    cdef size_t callers  # at work on it without the GIL
    cdef bint closed
    cdef object last_stats
    cdef object last_timeline
    cdef size_t substreams
    cdef size_t timeline_size
    # Of an AsyncStream. They are here, and so is what lets go of them, since no weak reference
    # leads here any more when this is let go of.
    cdef object loop        # whose reader watches the stream's fd, or None
    cdef object turn_loop   # which is to take a turn, without a pool, or None
    cdef object last_loop   # whose futures were made last, or None
    cdef dict last_loop_kw  # makes a future of it, or None where only the loop knows how
    cdef list flushers      # (operations to wait for, future)

    def __dealloc__(self):
        # With operations in flight only where their event loop is gone.
        if self.stream != NULL and self.in_flight and self.made == generation:
            abandon(self.stream)
        self.destroy()

    cdef void destroy(self) noexcept:
        cdef spt_stream *stream = self.stream
        self.stream = NULL
        if stream != NULL and self.made == generation:
            with nogil:
                spt_stream_destroy(stream)

    cdef int opened(self, spt_stream *stream, ThreadPool pool, spt_error *err) except -1:
        if stream == NULL:
            raise to_exception(err)
        self.stream = stream
        self.pool = pool
        self.made = generation
        self.substreams = spt_stream_num_substreams(stream)
        return 0

    cdef spt_stream_config convert(self, config) except *:
        config = StreamConfig() if config is None else config
        if not isinstance(config, StreamConfig):
            raise TypeError(f"config must be a spead_tutorial.send.StreamConfig, not {config!r}")
        if self.stream != NULL:
            raise RuntimeError("the stream has been made already")
        self.timeline_size = config.timeline
        return {**vars(config), "poll": isinstance(self, AsyncStream)}

    def _open_udp_stream(self, ThreadPool pool, endpoints, config, *, socket=None, buffer_size=0,
                         ttl=-1, str interface_address="", interface_index=0,
                         bint dont_fragment=False, bint zero_copy=False):
        cdef spt_error err
        cdef spt_stream_config c_config = self.convert(config)
        cdef spt_udp_config c_udp
        cdef list hosts = [_name("host", host) for host, _ in endpoints]
        cdef size_t n = <size_t>len(hosts)
        cdef size_t i
        cdef spt_stream *stream
        cdef bytes interface = _name("interface address", interface_address)
        cdef bint given = socket is not None
        cdef int fd = socket if given else -1
        cdef spt_thread_pool *c_pool = to_pool(pool)
        c_udp.buffer_size, c_udp.ttl, c_udp.gso = buffer_size, ttl, True
        c_udp.interface_address = interface
        c_udp.interface_index = interface_index
        c_udp.dont_fragment, c_udp.zero_copy = dont_fragment, zero_copy
        cdef _Array array = _Array(n, sizeof(spt_endpoint))
        cdef spt_endpoint *c_endpoints = <spt_endpoint *>array.memory
        for i in range(n):
            c_endpoints[i].host = <bytes>hosts[i]
            c_endpoints[i].port = _port(endpoints[i])
        with nogil:
            if given:
                stream = spt_stream_create_udp_socket(c_pool, fd, c_endpoints, n, &c_config,
                                                      &c_udp, &err)
            else:
                stream = spt_stream_create_udp(c_pool, c_endpoints, n, &c_config, &c_udp, &err)
        self.opened(stream, pool, &err)

    def _connect_tcp(self, ThreadPool pool, endpoint, config, buffer_size, str interface_address):
        cdef spt_error err
        cdef spt_stream_config c_config = self.convert(config)
        cdef spt_tcp_config tcp
        cdef spt_endpoint c_endpoint
        cdef spt_stream *stream = NULL
        cdef spt_thread_pool *c_pool = to_pool(pool)
        cdef bytes host = _name("host", endpoint[0])
        cdef bytes interface = _name("interface address", interface_address)
        c_endpoint.host = host
        c_endpoint.port = _port(endpoint)
        tcp.buffer_size = whole("buffer_size", buffer_size)
        tcp.interface_address = interface
        while True:
            with nogil:
                stream = spt_stream_create_tcp(c_pool, &c_endpoint, &c_config, &tcp, &err)
            if stream != NULL or err.status != SPT_ERR_SYSTEM or err.sys_errno != errno.EINTR:
                break
            PyErr_CheckSignals()
        self.opened(stream, pool, &err)

    def _open_tcp_socket(self, ThreadPool pool, int socket, config):
        cdef spt_error err
        cdef spt_stream_config c_config = self.convert(config)
        cdef spt_stream *stream
        cdef spt_thread_pool *c_pool = to_pool(pool)
        with nogil:
            stream = spt_stream_create_tcp_socket(c_pool, socket, &c_config, &err)
        self.opened(stream, pool, &err)

    def _open_inproc_stream(self, ThreadPool pool, list queues, config):
        cdef spt_error err
        cdef spt_stream_config c_config = self.convert(config)
        cdef size_t n = <size_t>len(queues)
        cdef size_t i
        cdef spt_stream *stream
        cdef spt_thread_pool *c_pool = to_pool(pool)
        cdef _Array array = _Array(n, sizeof(spt_inproc_queue *))
        cdef spt_inproc_queue **c_queues = <spt_inproc_queue **>array.memory
        for i in range(n):
            c_queues[i] = (<InprocQueue?>queues[i]).checked()
        with nogil:
            stream = spt_stream_create_inproc(c_pool, c_queues, n, &c_config, &err)
        self.opened(stream, pool, &err)

    cdef int check_open(self) except -1:
        check_generation(self.made)
        if self.closed or self.stream == NULL:
            raise Stopped("the stream is closed: make a new one to send more")
        return 0

    cdef int leave(self) except -1:
        """A caller has the GIL again: another may have closed the stream meanwhile."""
        self.callers -= 1
        return self.close_if_idle()

    @property
    def num_substreams(self):
        """How many endpoints the stream has."""
        return self.substreams

    def set_cnt_sequence(self, next, step):
        """Choose the heap counts that are given out: `next`, ``next + step``, ...

        A new stream counts 1, 2, 3, ... Counts are cut to the bits of the heap's flavour.

        Parameters
        ----------
        next : int
            The next heap's count; 0 to 2**64 - 1.
        step : int
            From one to the next; 1 to 2**64 - 1. Streams that send to the same receiver can share
            the counts: each begins with its own number, and all step by how many they are.

        Raises
        ------
        ValueError
            For a step of 0.
        TypeError
            For a number out of range.
        Stopped
            After `close`.
        """
        cdef spt_error err
        cdef spt_status status
        cdef uint64_t c_next = whole("next", next), c_step = whole("step", step)
        self.check_open()
        self.callers += 1
        with nogil:
            status = spt_stream_set_cnt_sequence(self.stream, c_next, c_step, &err)
        self.leave()
        check(status, &err)

    @property
    def stats(self):
        """Counts since the stream was made, a `StreamStats`; after `close`, the last ones."""
        cdef spt_stats c
        if self.stream == NULL:
            return self.last_stats
        spt_stream_stats(self.stream, &c)
        cdef dict counts = c
        counts["errors_by_errno"] = {
            i: c.errors_by_errno[i] for i in range(SPT_N_ERRNO) if c.errors_by_errno[i]}
        return StreamStats(**counts)

    def timeline(self):
        """Return the times of the last heaps that are complete, oldest first.

        Returns
        -------
        ndarray, shape (n_heaps,), structured, all fields uint64
            ``cnt``, the heap count; ``bytes`` of its SPEAD packets; and in ns of
            ``time.monotonic_ns()``: ``queued_ns``; ``first_packet_ns``, before the call that
            handed over the first packet; ``last_packet_ns``, after the one for the last;
            ``completed_ns``. 0 stands for what did not happen. There are `StreamConfig.timeline`
            heaps at most, and none where that is 0. It is a copy.
        """
        if self.stream == NULL:
            return self.last_timeline
        check_generation(self.made)
        cdef size_t size = self.timeline_size
        buffer = bytearray(size * sizeof(spt_times))
        cdef spt_times *times = <spt_times *>PyByteArray_AsString(buffer)
        cdef size_t n
        self.callers += 1
        with nogil:
            n = spt_stream_timeline(self.stream, times, size)
        self.leave()
        return np.frombuffer(buffer, TIMES_DTYPE)[:n]

    def close(self):
        """Take no more heaps. Those in flight are still sent. May be repeated."""
        self.closed = True
        self.close_if_idle()

    cdef int close_if_idle(self) except -1:
        if self.made != generation:  # a child of the process that made it
            return 0
        if self.closed and self.in_flight == 0 and self.callers == 0 and self.stream != NULL:
            self.callers = 1
            self.last_stats = self.stats
            self.last_timeline = self.timeline()
            self.callers -= 1
            if self.callers == 0:  # else the last of them does it
                self.destroy()
        return 0

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


cdef spt_thread_pool *to_pool(ThreadPool pool) except? NULL:
    """The pool to make a stream with; None, and NULL, for the thread that calls."""
    if pool is None:
        return NULL
    check_generation(pool.made)
    return pool.pool


cdef spt_status queue(Stream stream, spt_heap_reference *references, size_t n, spt_group_mode mode,
                      spt_completion *completion, spt_error *err) noexcept:
    """Queue heaps, which without a pool may also send them."""
    cdef spt_status status
    if stream.pool is not None:
        return send_heaps_to_pool(stream.stream, references, n, mode, completion, err)
    with nogil:
        status = spt_stream_send_heaps(stream.stream, references, n, mode, completion, err)
    return status


cdef bytes _name(str what, str name):
    if name is None:
        raise TypeError(f"{what} must be a str, not None")
    if "\0" in name:
        raise ValueError(f"{what} {name!r} has a NUL character in it")
    return name.encode()


def check_endpoint(endpoint):
    """Raise an error for a host or a port that cannot be."""
    _name("host", endpoint[0])
    _port(endpoint)


cdef int _port(endpoint) except -1:
    port = endpoint[1]
    if not 1 <= port <= 65535:
        kind = TypeError if port else ValueError  # as spead2, which takes 0
        raise kind(f"port {port} of host {endpoint[0]!r} is out of range: ports are 1 to 65535")
    return port


def route_packet_size(host, port=9):
    """Ask the route for the largest packet that goes to a host in one piece.

    Parameters
    ----------
    host : str
        A name or an address, IPv4 or IPv6.
    port : int
        To which port; routes seldom care.

    Returns
    -------
    int
        For `StreamConfig.max_packet_size`, in bytes: the MTU of the way there as far as this
        machine knows it, less the headers of UDP and IP, rounded down to a multiple of 8. Hops
        beyond the first make themselves known when something is too large for them.

    Raises
    ------
    ValueError
        For a host that cannot be looked up, or port 0.
    TypeError
        For other ports that there are not.
    OSError
        Where there is no way to it.

    Examples
    --------
    A stream whose packets are as large as the way to their receiver takes them:

    >>> config = StreamConfig(max_packet_size=route_packet_size("127.0.0.1", 8888))
    >>> config.max_packet_size
    65504
    """
    cdef spt_error err
    cdef spt_endpoint endpoint
    cdef size_t size = 0
    cdef bytes name = _name("host", host)
    cdef spt_status status
    endpoint.host = name
    endpoint.port = _port((host, port))
    with nogil:
        status = spt_route_packet_size(&endpoint, &size, &err)
    check(status, &err)
    return size


cdef spt_group_mode to_mode(mode) except *:
    if mode is SERIAL:
        return SPT_GROUP_SERIAL
    if mode is ROUND_ROBIN:
        return SPT_GROUP_ROUND_ROBIN
    raise TypeError(f"mode must be a GroupMode, not {mode!r}")


cdef HeapReferenceList to_list(heaps):
    if isinstance(heaps, HeapReferenceList):
        return heaps
    return HeapReferenceList(heaps)


@cython.no_gc_clear
cdef class SyncStream(Stream):
    """A stream whose calls return when the heap has been sent; it is not made itself.

    They let other Python threads run meanwhile, and can be interrupted (Ctrl-C): packets that have
    not been handed over are then not sent.
    """

    cdef object send(self, spt_heap_reference *references, size_t n, spt_group_mode mode):
        """Queue, wait, and give up on interruption, so that nothing keeps the heaps after it."""
        cdef spt_error err
        cdef spt_completion completion
        cdef spt_status status
        self.check_open()
        memset(&completion, 0, sizeof(completion))
        self.in_flight += 1
        status = queue(self, references, n, mode, &completion, &err)
        if status != SPT_OK:
            self.in_flight -= 1
            self.close_if_idle()
            raise to_exception(&err)
        try:
            while True:
                with nogil:
                    status = spt_stream_wait(self.stream, &completion, SIGNAL_CHECK_NS, &err)
                if status != SPT_PENDING:
                    break
                PyErr_CheckSignals()
        except BaseException:
            with nogil:
                spt_stream_cancel(self.stream, &completion)
            raise
        finally:
            self.in_flight -= 1
            self.close_if_idle()
        check(status, &err)
        return completion.bytes

    def send_heap(self, Heap heap not None, cnt=-1, substream_index=0, rate=-1.0):
        """Send one heap, and wait until the kernel has all of it.

        Parameters
        ----------
        heap : Heap
            What to send. Its values may be changed again when this returns.
        cnt, substream_index, rate
            As in `HeapReference`.

        Returns
        -------
        int
            Bytes of SPEAD packets sent, UDP and IP headers not counted.

        Raises
        ------
        OSError
            Where a packet could not be sent: the first error. The rest of the heap's packets have
            been tried. EINVAL for a count, substream or rate out of range, and EMSGSIZE for a
            packet size beyond what UDP, or a queue, can carry: then nothing was sent.
        TypeError
            For a negative substream, and a count that no integer of 64 bits holds.
        BlockingIOError
            Where other threads have `StreamConfig.max_heaps` heaps in flight; nothing was sent.
        ValueError
            Where the heap cannot be cut into packets of this size.
        Stopped
            After `close`, or after the pool was stopped.
        """
        cdef spt_heap_reference reference
        fill_reference(&reference, heap, cnt, substream_index, rate)
        return self.send(&reference, 1, SPT_GROUP_SERIAL)

    def send_heaps(self, heaps, mode):
        """Send a group of heaps, and wait until the kernel has all of them.

        Either all of them are queued, or none. It raises what `send_heap` does.

        Parameters
        ----------
        heaps : sequence of HeapReference, or HeapReferenceList
            At least one, and at most `StreamConfig.max_heaps`.
        mode : GroupMode
            How their packets follow each other.

        Returns
        -------
        int
            Bytes of SPEAD packets sent for all of them.

        Raises
        ------
        TypeError
            For a heap that is not in a `HeapReference`, or what is no `GroupMode`.
        """
        cdef HeapReferenceList group = to_list(heaps)
        return self.send(group.references, group.n, to_mode(mode))


@cython.no_gc_clear
cdef class BytesStream(SyncStream):
    """BytesStream(thread_pool, config=None)
--

    A stream that collects its packets in memory, one after the other.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads do it; kept alive. None: the thread that sends does it.
    config : StreamConfig, optional
        How it sends; copied. By default ``StreamConfig()``.
    """

    def __init__(self, ThreadPool thread_pool, config=None):
        cdef spt_error err
        cdef spt_stream_config c_config = self.convert(config)
        cdef spt_thread_pool *c_pool = to_pool(thread_pool)
        cdef spt_stream *stream
        with nogil:
            stream = spt_stream_create_memory(c_pool, &c_config, &err)
        self.opened(stream, thread_pool, &err)

    def getvalue(self):
        """Return all packets so far.

        Returns
        -------
        bytes
            A copy, without anything between the packets.

        Raises
        ------
        Stopped
            After `close`.
        """
        self.check_open()
        cdef size_t size
        cdef bytes value
        cdef char *to
        self.callers += 1
        try:
            with nogil:
                size = spt_stream_memory(self.stream, NULL, 0)
            value = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            to = PyBytes_AsString(value)
            with nogil:
                spt_stream_memory(self.stream, to, size)
        finally:
            self.leave()
        return value


@cython.final
@cython.freelist(256)
@cython.no_gc  # only C refers to it
cdef class _Operation:
    """A send under way: its completion, its future, and what must live until then."""

    cdef spt_completion completion
    cdef object keep
    cdef object future


# Of asyncio, which takes half as long to import as the rest: the first AsyncStream does.
cdef object get_running_loop, get_event_loop, Future, InvalidStateError, plain_create_future


cdef int import_asyncio() except -1:
    global get_running_loop, get_event_loop, Future, InvalidStateError, plain_create_future
    import asyncio
    get_running_loop = asyncio.get_running_loop
    get_event_loop = asyncio.get_event_loop
    Future = asyncio.Future
    InvalidStateError = asyncio.InvalidStateError
    plain_create_future = asyncio.BaseEventLoop.create_future
    return 0


cdef tuple find_loop():
    """The loop that runs in this thread or else that of this thread; whether it runs in another."""
    try:
        return get_running_loop(), False
    except RuntimeError:
        loop = get_event_loop()
    if loop.is_closed():
        raise RuntimeError("the event loop is closed: make a new one to send more")
    return loop, loop.is_running()


cdef void abandon(spt_stream *stream) noexcept:
    """Stop, and let go of what was in flight."""
    cdef spt_completion *done[64]
    cdef size_t n, i
    with nogil:
        spt_stream_stop(stream)
    n = 64
    while n == 64:
        with nogil:
            n = spt_stream_poll(stream, done, 64)
        for i in range(n):
            Py_DECREF(<_Operation>done[i].user)


@cython.no_gc_clear
cdef class AsyncStream(Stream):
    """A stream whose calls return futures; it is not made itself.

    Heaps are queued at the call, so that the order of the calls is the order in which they are
    sent. Their futures are those of the event loop that runs in the thread of the call; where none
    runs, of ``asyncio.get_event_loop()``, which completes them when it runs. Heaps that are in
    flight are sent to the end, also when the stream is deleted meanwhile; but not where their
    event loop ends before: `flush` first.
    """

    cdef unsigned long last_thread  # where it ran, in the type that C has for it
    cdef bint elsewhere     # it runs in another thread
    cdef uint64_t queued    # operations ever
    cdef uint64_t drained

    def __cinit__(self):
        import_asyncio()
        self.flushers = []

    @property
    def fd(self):
        """The file descriptor that becomes readable when a heap has been sent.

        It belongs to the stream. The event loop watches it: there is no need to read from it.
        """
        self.check_open()
        return spt_stream_fd(self.stream)

    cdef object create_future(self):
        """A future of the running loop, or else of the thread's own, which is `last_loop` then.

        To ask asyncio for the loop costs a system call in Python 3.11. That the last one still
        runs, and that this is its thread, says the same.
        """
        cdef object loop = self.last_loop
        if (loop is None or self.elsewhere or self.last_thread != PyThread_get_thread_ident()
                or not loop.is_running()):
            loop, elsewhere = find_loop()
            if (self.in_flight and loop is not self.last_loop and not self.last_loop.is_closed()
                    and (self.last_loop.is_running() or not loop.is_running())):
                raise RuntimeError("heaps that another event loop has queued are in flight: give "
                                   "each event loop a stream of its own")
            self.last_loop = loop
            self.elsewhere = elsewhere
            self.last_thread = PyThread_get_thread_ident()
            plain = getattr(type(loop), "create_future", None) is plain_create_future
            self.last_loop_kw = {"loop": loop} if plain else None
        if self.last_loop_kw is not None:
            return PyObject_Call(Future, (), self.last_loop_kw)
        return loop.create_future()

    cdef object send(self, spt_heap_reference *references, size_t n, spt_group_mode mode,
                     object keep):
        cdef spt_error err
        cdef _Operation operation
        future = self.create_future()
        cdef bint elsewhere = self.elsewhere
        loop = self.last_loop
        if self.closed or self.made != generation or self.stream == NULL:
            try:
                self.check_open()
            except RuntimeError as error:
                future.set_exception(error)
            return future
        operation = _Operation.__new__(_Operation)
        memset(&operation.completion, 0, sizeof(spt_completion))
        operation.completion.user = <void *>operation
        operation.keep = keep
        operation.future = future
        Py_INCREF(operation)  # given back when it is drained
        self.in_flight += 1
        if queue(self, references, n, mode, &operation.completion, &err) != SPT_OK:
            Py_DECREF(operation)
            self.in_flight -= 1
            self.close_if_idle()
            future.set_exception(to_exception(&err))
            return future
        self.queued += 1
        if self.pool is None and not elsewhere and spt_completion_done(&operation.completion):
            self._drain()
        else:
            self.arrange(loop, elsewhere)
        return future

    cdef int arrange(self, loop, bint elsewhere) except -1:
        """See to it that the loop completes the futures.

        Without a pool it also sends what is gathered, as soon as it turns: mostly nothing is left
        to watch then. What watches is changed in the thread of a loop that runs only.
        """
        if self.loop is loop or self.turn_loop is loop:
            return 0
        if self.pool is not None and not elsewhere:
            self.watch(loop)
        else:
            self.turn_loop = loop
            (loop.call_soon_threadsafe if elsewhere else loop.call_soon)(self._turn)
        return 0

    def _turn(self):
        loop, self.turn_loop = self.turn_loop, None
        self._drain()
        if self.in_flight and loop is not None and self.loop is not loop:
            self.watch(loop)

    cdef int watch(self, loop) except -1:
        """Have the loop drain completions. Its reader also keeps the stream alive meanwhile."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.remove_reader(spt_stream_fd(self.stream))
        self.loop = loop
        loop.add_reader(spt_stream_fd(self.stream), self._drain)
        return 0

    def _drain(self):
        """Complete the futures of what has been sent.

        A signal may raise KeyboardInterrupt at any of them: the others are completed all the same,
        then it goes on its way.
        """
        cdef spt_completion *done[64]
        cdef size_t n = 64
        cdef size_t i
        cdef object interruption = None
        self.callers += 1  # what is let go of, or told, may close the stream
        try:
            while n == 64 and self.in_flight:
                with nogil:
                    n = spt_stream_poll(self.stream, done, 64)
                for i in range(n):
                    interruption = self.finish(<_Operation>done[i].user) or interruption
            while self.flushers and self.flushers[0][0] <= self.drained:
                interruption = settle(self.flushers.pop(0)[1], None, None) or interruption
            if self.in_flight == 0:
                loop, self.loop = self.loop, None  # whoever sends from now on arranges it anew
                if loop is not None:
                    loop.remove_reader(spt_stream_fd(self.stream))
        finally:
            self.leave()
        if interruption is not None:
            raise interruption

    def process_callbacks(self):
        """Complete the futures of what has been sent; it does not wait for more.

        The event loop does so by itself. Call this where it runs.

        Raises
        ------
        RuntimeError
            In a child of the process that made the stream.
        """
        check_generation(self.made)
        self._drain()

    cdef object finish(self, _Operation operation):
        cdef spt_error err
        cdef object error = None
        future = operation.future
        Py_DECREF(operation)
        self.in_flight -= 1
        self.drained += 1
        operation.keep = None  # before anyone can see that the future is done
        operation.future = None
        if spt_completion_explain(&operation.completion, &err) != SPT_OK:
            error = to_exception(&err)
        return settle(future, operation.completion.bytes, error)

    def async_send_heap(self, Heap heap not None, cnt=NO_CNT, substream_index=NO_INDEX,
                        rate=NO_RATE):
        """Queue one heap.

        The heap's values are not copied: leave them alone until the future is done.

        Parameters
        ----------
        heap : Heap
            What to send. The stream keeps it alive until just before the future is done.
        cnt, substream_index, rate
            As in `HeapReference`.

        Returns
        -------
        asyncio.Future
            Its result is the bytes of SPEAD packets sent (int), UDP and IP headers not counted.
            What goes wrong is its exception: BlockingIOError where `StreamConfig.max_heaps` heaps
            are in flight already, which is told and not waited for; OSError where a packet could
            not be sent, or EINVAL for a count, substream or rate out of range; ValueError where
            the heap cannot be cut into packets of this size; `Stopped` after `close`.
            Cancelling the future does not stop the heap.

        Raises
        ------
        RuntimeError
            Where no event loop runs, and the thread has none or a closed one. Where heaps of
            another one are in flight that runs, or will have to.
        TypeError
            For a negative substream, and a count that no integer of 64 bits holds.
        """
        cdef spt_heap_reference reference
        fill_reference(&reference, heap, cnt, substream_index, rate)
        return self.send(&reference, 1, SPT_GROUP_SERIAL, heap)

    def async_send_heaps(self, heaps, mode):
        """Queue a group of heaps: all of them, or none.

        Their values are not copied: leave them alone until the future is done.

        Parameters
        ----------
        heaps : sequence of HeapReference, or HeapReferenceList
            At least one, and at most `StreamConfig.max_heaps`. To send the same heaps many times,
            a HeapReferenceList saves looking at each of them every time.
        mode : GroupMode
            How their packets follow each other.

        Returns
        -------
        asyncio.Future
            One for the group: its result is the bytes of SPEAD packets sent for all of them (int),
            its exception the first thing that went wrong, as for `async_send_heap`.

        Raises
        ------
        TypeError
            For a heap that is not in a `HeapReference`, or what is no `GroupMode`; for a negative
            substream, or a count that no integer of 64 bits holds.
        RuntimeError
            Where no event loop runs, and the thread has none or a closed one. Where heaps of
            another one are in flight that runs, or will have to.
        """
        cdef HeapReferenceList group = to_list(heaps)
        return self.send(group.references, group.n, to_mode(mode), group)

    def flush(self):
        """Wait, without the event loop, until all that is queued has been sent.

        The futures are done a little later, when the event loop runs again.
        """
        cdef spt_status status = SPT_PENDING
        if self.stream == NULL:
            return
        check_generation(self.made)
        self.callers += 1
        try:
            while status == SPT_PENDING:
                with nogil:
                    status = spt_stream_flush(self.stream, SIGNAL_CHECK_NS)
                PyErr_CheckSignals()
        finally:
            self.leave()

    async def async_flush(self):
        """Wait until all that was queued before has been sent, and its futures are done.

        Raises
        ------
        RuntimeError
            Where heaps of another event loop are in flight that runs.
        """
        if self.drained == self.queued:
            return
        future = self.create_future()
        self.flushers.append((self.queued, future))
        self.arrange(self.last_loop, self.elsewhere)  # one that has ended left heaps behind
        await future


cdef object settle(future, result, error):
    """Complete a future; return what interrupted that, or None."""
    cdef object interruption = None
    for _ in range(2):  # an interruption may have come before the future was done
        try:
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)
        except InvalidStateError:  # it was done, or its owner has cancelled it
            pass
        except RuntimeError:  # the event loop is closed: nobody is left to be told
            pass
        except BaseException as raised:
            interruption = raised
            continue
        break
    return interruption


include "_recv_memory.pxi"
include "_recv.pxi"
include "_recv_chunks.pxi"
