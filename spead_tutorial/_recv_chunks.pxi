# SPDX-License-Identifier: BSD-3-Clause
# Chunks, a part of _core.pyx. A chunk that is in a ring, or being filled, is kept alive by a
# reference that whoever gets it takes over. All that may wait for a worker is done without the GIL:
# a place function that is Python's needs it.


# ---- Chunks and their rings ----

# no_gc_clear: buffers are to be released, not forgotten.
@cython.no_gc_clear
cdef class Chunk:
    """Chunk(*, data=None, present=None, extra=None, chunk_id=-1, stream_id=0)
--

    Memory that many heaps share.

    It goes to a stream through a ring, and comes back through another, filled. It may be subclassed
    and have attributes of its own: what comes back is the same object.

    Parameters
    ----------
    data : writable buffer, C-contiguous
        Where payload goes: an array of any shape and type. What is not marked in `present` may
        be anything.
    present : writable buffer, C-contiguous, dtype uint8
        A byte for each heap, or packet: 1 where it has arrived, else 0.
    extra : writable buffer, C-contiguous, optional
        What the place function tells of heaps.
    chunk_id : int
        Which chunk it is; a stream sets it.
    stream_id : int
        Which stream has filled it; a stream sets it.

    Attributes
    ----------
    data, present, extra
        As they were given; None while the chunk is in a ring, or being filled. They can be set
        again at other times.
    chunk_id, stream_id : int
        As above.

    Raises
    ------
    BufferError, ValueError, TypeError
        For what is not such a buffer.
    """

    cdef object __weakref__
    cdef spt_chunk c
    cdef bint away  # in a ring, or being filled
    cdef object given_data, given_present, given_extra
    cdef Py_buffer data_view, present_view, extra_view

    def __cinit__(self, *args, **kwargs):
        self.c.user = <void *>self

    def __init__(self, *, data=None, present=None, extra=None, chunk_id=-1, stream_id=0):
        self.data = data
        self.present = present
        self.extra = extra
        self.chunk_id = chunk_id
        self.stream_id = stream_id

    def __dealloc__(self):
        PyBuffer_Release(&self.data_view)
        PyBuffer_Release(&self.present_view)
        PyBuffer_Release(&self.extra_view)

    cdef int check_here(self) except -1:
        if self.away:
            raise ValueError("the chunk is in a ring, or being filled: get it first")
        return 0

    cdef int leave(self) except -1:
        """Before it goes into a ring."""
        self.check_here()
        if self.given_data is None:
            raise ValueError("the chunk's data is not set")
        if self.given_present is None:
            raise ValueError("the chunk's present is not set")
        self.c.data, self.c.data_size = self.data_view.buf, <size_t>self.data_view.len
        self.c.present = <uint8_t *>self.present_view.buf
        self.c.present_size = <size_t>self.present_view.len
        self.c.extra = <uint8_t *>self.extra_view.buf
        self.c.extra_size = <size_t>self.extra_view.len
        self.away = True
        return 0

    @property
    def data(self):
        return None if self.away else self.given_data

    @data.setter
    def data(self, value):
        self.given_data = replace_buffer(self, &self.data_view, value)

    @property
    def present(self):
        return None if self.away else self.given_present

    @present.setter
    def present(self, value):
        self.given_present = replace_buffer(self, &self.present_view, value)

    @property
    def extra(self):
        return None if self.away else self.given_extra

    @extra.setter
    def extra(self, value):
        self.given_extra = replace_buffer(self, &self.extra_view, value)

    @property
    def chunk_id(self):
        return self.c.chunk_id

    @chunk_id.setter
    def chunk_id(self, value):
        self.c.chunk_id = index(value)

    @property
    def stream_id(self):
        return self.c.stream_id

    @stream_id.setter
    def stream_id(self, value):
        self.c.stream_id = whole("stream_id", value)

    def __repr__(self):
        return f"<{type(self).__name__} {self.chunk_id}{', away' if self.away else ''}>"


cdef object replace_buffer(Chunk chunk, Py_buffer *view, value):
    """Hold the memory of a value, which is returned, instead of another's; None is nobody's."""
    cdef Py_buffer taken
    chunk.check_here()
    memset(&taken, 0, sizeof(taken))
    if value is not None:
        PyObject_GetBuffer(value, &taken, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
    PyBuffer_Release(view)
    view[0] = taken
    return value


cdef class ChunkRing:
    """ChunkRing(maxsize)
--

    What `spead_tutorial.recv.ChunkRingbuffer` is made of; it is not made itself.
    """

    cdef object __weakref__
    cdef spt_chunk_ring *ring
    cdef int made

    def __init__(self, maxsize):
        cdef spt_error err
        check_unmade(self.ring)
        self.ring = spt_chunk_ring_create(whole("maxsize", maxsize), &err)
        self.made = made_now(self.ring, &err)

    def __dealloc__(self):
        cdef spt_chunk *c
        cdef spt_status status = SPT_OK
        if self.ring == NULL or self.made != generation:
            return
        while status == SPT_OK:
            with nogil:
                status = spt_chunk_ring_get(self.ring, 0, &c)
            if status == SPT_OK:
                come_back(c)
        spt_chunk_ring_destroy(self.ring)

    cdef Chunk get_for(self, int64_t timeout_ns):
        """The next chunk; it is waited for with a timeout that is not 0, until signals come."""
        cdef spt_chunk *c
        cdef spt_status status
        check_generation(self.made)
        with nogil:
            status = spt_chunk_ring_get(self.ring, 0, &c)
        while status == SPT_PENDING and timeout_ns != 0:
            self._waiting()
            with nogil:
                status = spt_chunk_ring_get(self.ring, timeout_ns, &c)
            if status == SPT_PENDING:
                PyErr_CheckSignals()
        if status == SPT_DONE:
            self._ended()
            raise Stopped("the ring has been stopped, and all of its chunks have been got")
        if status == SPT_PENDING:
            raise Empty("there is no chunk in the ring")
        return come_back(c)

    cdef int put_for(self, Chunk chunk, int64_t timeout_ns) except -1:
        """Put a chunk in; wait for room with a timeout that is not 0, until signals come."""
        cdef spt_status status
        check_generation(self.made)
        chunk.leave()
        Py_INCREF(chunk)  # whoever gets it may do so before this goes on
        try:
            with nogil:
                status = spt_chunk_ring_put(self.ring, &chunk.c, 0)
            while status == SPT_PENDING and timeout_ns != 0:
                with nogil:
                    status = spt_chunk_ring_put(self.ring, &chunk.c, timeout_ns)
                if status == SPT_PENDING:
                    PyErr_CheckSignals()
            if status == SPT_OK:
                return 0
            if status == SPT_ERR_STOPPED:
                raise Stopped("the ring has been stopped: it takes no more chunks")
            raise Full("there is no room in the ring")
        except BaseException:
            chunk.away = False
            Py_DECREF(chunk)
            raise

    def _get(self):
        """Wait for a chunk."""
        return self.get_for(SIGNAL_CHECK_NS)

    def get_nowait(self):
        """Return the next chunk, if there is one.

        Where streams without a thread fill the ring, it reads for them what has arrived: a bounded
        share at a time.

        Returns
        -------
        Chunk
            The one that has been in the ring for longest; from a ring of free chunks, the one that
            was put in last.

        Raises
        ------
        Empty
            Where there is none.
        Stopped
            Where the ring has been stopped, and is empty.
        """
        return self.get_for(0)

    def _put_free(self, Chunk chunk not None):
        """Put a chunk in that is to be filled, if there is room; nothing after `stop`."""
        chunk.check_here()
        if chunk.given_present is not None:
            memset(chunk.present_view.buf, 0, <size_t>chunk.present_view.len)
        try:
            self.put_for(chunk, 0)
        except Stopped:
            pass

    def _put(self, Chunk chunk not None):
        """Put a chunk in, and wait for room."""
        self.put_for(chunk, SIGNAL_CHECK_NS)

    def put_nowait(self, Chunk chunk not None):
        """Put a chunk in, if there is room.

        Parameters
        ----------
        chunk : Chunk
            With data and present.

        Raises
        ------
        Full
            Where there is none.
        Stopped
            Where the ring has been stopped.
        ValueError
            For a chunk without data or present, or one that is in a ring.
        """
        self.put_for(chunk, 0)

    def _ended(self):
        """Called when there is nothing more to be got."""

    def _waiting(self):
        """Called now and then while there is nothing to be got."""

    @property
    def maxsize(self):
        """How many chunks the ring has room for."""
        check_generation(self.made)
        return spt_chunk_ring_capacity(self.ring)

    def qsize(self):
        """Return how many chunks are in the ring. A stream that ends may put in more than fit."""
        cdef size_t size
        check_generation(self.made)
        with nogil:
            size = spt_chunk_ring_size(self.ring)
        return size

    def empty(self):
        """Return whether there is no chunk in the ring."""
        return self.qsize() == 0

    def full(self):
        """Return whether there is no room in the ring."""
        return self.qsize() >= self.maxsize

    def stop(self):
        """Let nothing in any more. What is in the ring can still be got.

        Streams that need the ring end, once they notice.

        Returns
        -------
        bool
            True, like the last `remove_producer`: the ring has stopped.
        """
        check_generation(self.made)
        with nogil:
            spt_chunk_ring_stop(self.ring)
        return True

    def add_producer(self):
        """Say that one more puts chunks in. Streams do so by themselves."""
        check_generation(self.made)
        with nogil:
            spt_chunk_ring_add_producer(self.ring)

    def remove_producer(self):
        """Say that one of them puts no chunks in any more. With the last of them the ring stops.

        Returns
        -------
        bool
            Whether it was the last.
        """
        cdef bint last
        check_generation(self.made)
        with nogil:
            last = spt_chunk_ring_remove_producer(self.ring)
        return last

    @property
    def data_fd(self):
        """A file descriptor that is readable while `get` need not wait; it is to be polled only.

        Where streams without a thread fill the ring, it is readable when something has arrived for
        them, too, of which there may be no chunk yet: then `get_nowait` reads it.
        """
        cdef int fd
        check_generation(self.made)
        with nogil:
            fd = spt_chunk_ring_data_fd(self.ring)
        return fd

    @property
    def space_fd(self):
        """A file descriptor that is readable while `put` need not wait; it is to be polled only."""
        cdef int fd
        check_generation(self.made)
        with nogil:
            fd = spt_chunk_ring_space_fd(self.ring)
        return fd


cdef Chunk come_back(spt_chunk *c):
    """The chunk that was got, with the reference that the ring had."""
    cdef Chunk chunk = <Chunk>c.user
    chunk.away = False
    Py_DECREF(chunk)
    return chunk


# ---- Place functions ----

ctypedef void (*plain_place)(void *, size_t) noexcept nogil

cdef char *PLAIN = "void (void *, size_t)"
cdef char *WITH_CONTEXT = "void (void *, size_t, void *)"


cdef void call_plain(spt_place_data *data, size_t size, void *function) noexcept nogil:
    (<plain_place>function)(data, size)


cdef int read_place(place, spt_place_function *function, void **user) except -1:
    """The function and its context, of a tuple that begins with a capsule."""
    cdef const char *name
    if not isinstance(place, tuple):
        raise TypeError("place must be a tuple that begins with a capsule, such as a "
                        f"scipy.LowLevelCallable, not {type(place).__name__}")
    if len(place) == 0:
        raise IndexError("place is an empty tuple: it must begin with a capsule")
    capsule = tuple.__getitem__(place, 0)  # some hide theirs
    if not PyCapsule_CheckExact(capsule):
        raise TypeError("place must begin with a capsule, as a scipy.LowLevelCallable does")
    if PyCapsule_IsValid(capsule, PLAIN):
        function[0] = &call_plain
        user[0] = PyCapsule_GetPointer(capsule, PLAIN)
    elif PyCapsule_IsValid(capsule, WITH_CONTEXT):
        function[0] = <spt_place_function>PyCapsule_GetPointer(capsule, WITH_CONTEXT)
        user[0] = PyCapsule_GetContext(capsule)
    else:
        name = PyCapsule_GetName(capsule)
        said = name.decode("utf-8", "replace") if name != NULL else ""
        raise ValueError(f"the place function's signature is {said!r}: it has to be "
                         f"{PLAIN.decode()!r} or {WITH_CONTEXT.decode()!r}, spelled like that")
    return 0


def check_place(place):
    """Raise an exception for what is no place function."""
    cdef spt_place_function function
    cdef void *user
    read_place(place, &function, &user)


# ---- Streams of chunks ----

# no_gc_clear: what streams use must outlive them.
@cython.no_gc_clear
cdef class ChunkGroup:
    """ChunkGroup(max_chunks, lossless, data_ring, free_ring)
--

    What the streams of a `spead_tutorial.recv.ChunkStreamRingGroup` share.

    It owns their streams of C, and is there for as long as one of them.
    """

    cdef object __weakref__
    cdef spt_chunk_group *group
    cdef ChunkRing data_ring, free_ring
    cdef list used  # by its streams
    cdef int made

    def __cinit__(self, max_chunks, bint lossless, ChunkRing data_ring not None,
                  ChunkRing free_ring not None):
        cdef spt_error err
        cdef spt_chunk_group_config config
        check_generation(data_ring.made)
        check_generation(free_ring.made)
        self.data_ring, self.free_ring, self.used = data_ring, free_ring, []
        config.max_chunks, config.lossless = max_chunks, lossless
        config.data_ring, config.free_ring = data_ring.ring, free_ring.ring
        self.group = spt_chunk_group_create(&config, &err)
        self.made = made_now(self.group, &err)

    def __dealloc__(self):
        if self.group != NULL and self.made == generation:
            with nogil:
                spt_chunk_group_destroy(self.group)

    def stop(self):
        check_generation(self.made)
        with nogil:
            spt_chunk_group_stop(self.group)

    def counts(self):
        cdef spt_chunk_group_stats c
        check_generation(self.made)
        with nogil:
            spt_chunk_group_read_stats(self.group, &c)
        return c


# no_gc_clear: the rings, or the group, must outlive the stream.
@cython.no_gc_clear
cdef class ChunkStream(ReceiveStream):
    """What streams of chunks share; it is not made itself."""

    cdef ChunkRing data_ring, free_ring
    cdef ChunkGroup group  # that owns the stream of C, or None
    cdef object place
    cdef size_t n_stats

    def _open(self, ThreadPool pool, config, chunk_config, ChunkRing data_ring not None,
              ChunkRing free_ring not None, maxima, ChunkGroup group):
        """Make the stream as it is configured, in a group or, with None, by itself.

        maxima says of each count whether it is one.
        """
        cdef spt_error err
        cdef spt_recv_config c
        cdef spt_chunk_config how
        cdef spt_thread_pool *c_pool = to_pool(pool)
        cdef size_t i
        cdef _Array items = _Array(len(chunk_config.items), sizeof(uint64_t))
        cdef _Array modes = _Array(len(maxima), 1)
        check_generation(data_ring.made)
        check_generation(free_ring.made)
        self.configure(pool, config, &c)
        memset(&how, 0, sizeof(how))
        self.place = chunk_config.place
        self.data_ring, self.free_ring = data_ring, free_ring
        read_place(self.place, &how.place, &how.place_user)
        for i, item in enumerate(chunk_config.items):
            (<uint64_t *>items.memory)[i] = item
        for i, maximum in enumerate(maxima):
            (<char *>modes.memory)[i] = bool(maximum)
        how.items, how.n_items = <uint64_t *>items.memory, len(chunk_config.items)
        how.max_chunks = chunk_config.max_chunks
        how.max_heap_extra = chunk_config.max_heap_extra
        how.packet_payload_size = chunk_config.packet_presence_payload_size
        how.n_stats = self.n_stats = len(maxima)
        how.stat_is_maximum = <const spt_bool *>modes.memory
        how.stream_id = config.stream_id
        how.data_ring, how.free_ring = data_ring.ring, free_ring.ring
        self.group, self.is_member = group, group is not None
        self.kept = (data_ring, free_ring, group, self.place)
        if group is None:
            with nogil:
                self.stream = spt_recv_stream_create_chunks(c_pool, &c, &how, &err)
        else:
            check_generation(group.made)
            group.used.append((pool, self.allocator, self.place, self.buffers))
            with nogil:
                self.stream = spt_chunk_group_add(group.group, c_pool, &c, &how, &err)
        if self.stream == NULL and err.status == SPT_ERR_BUSY:
            raise RuntimeError(err.message.decode("utf-8", "replace"))
        self.made = made_now(self.stream, &err)

    def _share(self, ChunkStream other not None):
        """Be another object for a stream of a group, which owns it."""
        self.stream, self.made, self.is_member = other.stream, other.made, True
        self.pool, self.allocator, self.buffers = other.pool, other.allocator, other.buffers
        self.data_ring, self.free_ring, self.group = other.data_ring, other.free_ring, other.group
        self.place, self.n_stats, self.kept = other.place, other.n_stats, other.kept

    def _counts(self):
        """Those of all streams, those of chunks, and, as ``place``, those of the place function."""
        cdef spt_chunk_stats c
        cdef size_t i
        cdef dict counts = ReceiveStream._counts(self)
        cdef _Array counted = _Array(self.n_stats, sizeof(uint64_t))
        cdef uint64_t *place = <uint64_t *>counted.memory
        with nogil:
            spt_recv_stream_chunk_stats(self.stream, &c, place)
        counts.update(c)
        counts["heaps"] += c.too_old_heaps + c.rejected_heaps
        counts["misplaced"] = c.misplaced.decode("utf-8", "replace")
        counts["place"] = [place[i] for i in range(self.n_stats)]
        return counts
