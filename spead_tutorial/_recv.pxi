# SPDX-License-Identifier: BSD-3-Clause
# The receiver, a part of _core.pyx. A heap that is got takes its payload along: the C heap goes
# back to its stream at once, and the memory to its allocator when the last array of it goes.

#: What becomes of a packet, and what can be wrong with one by itself: the core's words.
FATES = {fate_names[i].decode()[len("SPT_"):].lower(): fate_texts[i].decode()
         for i in range(SPT_N_FATES)}
FAULTS = {fault_names[i].decode()[len("SPT_FAULT_"):].lower(): fault_texts[i].decode()
          for i in range(1, SPT_N_FAULTS)}


# ---- Received heaps ----

@cython.final
@cython.freelist(64)
@cython.no_gc
cdef class RawItem:
    """An item of a received heap: its bytes, by the buffer protocol.

    Attributes
    ----------
    id : int
        Its id.
    is_immediate : bool
        Whether its value came inside the item pointer.
    immediate_value : int
        The value of an immediate. ValueError for others, whose value is in the buffer.

    Notes
    -----
    The buffer is of bytes: an address's worth of an immediate, big-endian; otherwise the memory of
    the heap, which it keeps alive.
    """

    cdef readonly uint64_t id
    cdef readonly bint is_immediate
    cdef uint64_t value
    cdef HeapBase heap
    cdef uint8_t *data
    cdef size_t length
    cdef uint8_t bytes[8]

    @property
    def immediate_value(self):
        if not self.is_immediate:
            raise ValueError(f"item {self.id:#x} is not an immediate: its value is its buffer")
        return self.value

    def __getbuffer__(self, Py_buffer *view, int flags):
        if self.heap is None:
            raise BufferError("this item is of no heap")
        Py_DECREF(None)  # which Cython has put into view.obj
        PyBuffer_FillInfo(view, self, self.data, <Py_ssize_t>self.length,
                          self.heap.read_only and not self.is_immediate, flags)


cdef RawItem raw_item(HeapBase heap, spt_received_item *c):
    cdef RawItem item = RawItem.__new__(RawItem)
    cdef uint64_t value = c.immediate
    cdef size_t i
    item.heap = heap
    item.id = c.id
    item.is_immediate = c.is_immediate
    item.value = value
    item.data = item.bytes
    item.length = <size_t>c.length
    if c.is_immediate:
        item.length = heap.address_bits // 8
        for i in range(item.length):
            item.bytes[item.length - 1 - i] = <uint8_t>(value >> (8 * i))
    elif c.length > 0:
        item.data = heap.payload + c.offset
    return item


cdef bytes to_bytes(const spt_bytes *text):
    return PyBytes_FromStringAndSize(<const char *>text.data, <Py_ssize_t>text.length)


cdef object raw_descriptor(const spt_received_descriptor *c):
    cdef list format = []
    cdef list shape = []
    cdef size_t i
    cdef spt_field field
    cdef int64_t size
    for i in range(c.n_format):
        field = spt_received_descriptor_field(c, i)
        format.append((bytes([<uint8_t>field.code]).decode("latin-1"), field.bits))
    for i in range(c.n_shape):
        size = spt_received_descriptor_dimension(c, i)
        shape.append(None if size < 0 else size)
    return RawDescriptor(c.id, to_bytes(&c.name), to_bytes(&c.description),
                         to_bytes(&c.numpy_header), format, shape)


cdef object RawDescriptor = None  # of items.py, which is imported when the first one is needed

cdef enum:
    DESCRIPTOR_ID = 5
    CONTROL_ID = 6
    MOST_PARTS = 1 << 20  # fields and dimensions of a heap's descriptors


# no_gc_clear: the allocator has to be there when the payload goes back.
@cython.no_gc_clear
cdef class HeapBase:
    """What `Heap` and `IncompleteHeap` share; it is not made itself.

    Streams make heaps. A heap's memory lives as long as it does itself, or any array or buffer of
    it.

    Attributes
    ----------
    cnt : int
        Its heap count.
    flavour : Flavour
        Its flavour; ``bug_compat`` is the stream's.
    """

    cdef object __weakref__
    cdef readonly uint64_t cnt
    cdef readonly object flavour
    cdef unsigned address_bits
    cdef MemoryAllocator allocator
    cdef bint read_only
    cdef bint has_payload
    cdef uint8_t *payload
    cdef size_t room
    cdef int made
    cdef spt_received_item *items
    cdef size_t n_items

    def __dealloc__(self):
        free(self.items)
        if self.payload == NULL:
            return
        if self.allocator.memory.put == NULL:
            free(self.payload)
        elif self.made == generation:  # else a thread that did not come along may have its lock
            self.allocator.memory.put(self.allocator.memory.user, self.payload, self.room)

    cdef int fill(self, HeapStream stream, spt_received_heap *c, bint with_payload) except -1:
        self.made = generation
        self.cnt = c.cnt
        self.address_bits = c.heap_address_bits
        self.flavour = stream.flavour(c.heap_address_bits)
        self.allocator = stream.allocator
        self.read_only = stream.allocator.read_only
        self.items = <spt_received_item *>malloc((c.n_pointers + 1) * sizeof(spt_received_item))
        if self.items == NULL:
            raise MemoryError("no memory for the items of a heap")
        self.n_items = spt_received_heap_items(c, self.items)
        self.has_payload = with_payload
        if with_payload:
            self.payload, self.room = c.payload, c.room
            c.payload = NULL
        return 0

    cdef bint has_control(self, uint64_t value) noexcept:
        cdef size_t i
        for i in range(self.n_items):
            if (self.items[i].id == CONTROL_ID and self.items[i].is_immediate
                    and self.items[i].immediate == value):
                return True
        return False

    def get_items(self):
        """Return the items that have arrived as a whole, but for descriptors.

        Returns
        -------
        list of RawItem
            Those with an address in the order in which they lie in the heap, then immediates as
            they were sent. Of an incomplete heap, only immediates.
        """
        cdef size_t i
        return [raw_item(self, &self.items[i]) for i in range(self.n_items)
                if self.items[i].is_immediate
                or (self.items[i].id != DESCRIPTOR_ID and self.has_payload)]

    def get_descriptors(self):
        """Return the descriptors in the heap.

        Returns
        -------
        list of RawDescriptor
            In the order in which they lie there. Left out, with a warning, is what cannot be read,
            has no name or an id of the protocol's own, or would make more than 1048576 fields and
            dimensions of all.
        """
        cdef size_t i
        cdef size_t parts = 0, unread = 0, beyond = 0
        cdef spt_received_descriptor c
        cdef list found = []
        global RawDescriptor
        if RawDescriptor is None:
            from spead_tutorial.items import RawDescriptor as imported
            RawDescriptor = imported
        for i in range(self.n_items):
            if (self.items[i].is_immediate or self.items[i].id != DESCRIPTOR_ID
                    or self.payload == NULL):
                continue
            if not spt_received_descriptor_parse(&c, self.payload + self.items[i].offset,
                                                 <size_t>self.items[i].length,
                                                 self.flavour.bug_compat):
                unread += 1
            elif c.n_format + c.n_shape > MOST_PARTS - parts:
                beyond += 1
            else:
                parts += c.n_format + c.n_shape
                found.append(raw_descriptor(&c))
        self.say_left_out(unread, "cannot be read, have no name, or an id of the protocol's own: "
                          "spead_tutorial.wire says which")
        self.say_left_out(beyond, f"would make more than {MOST_PARTS} fields and dimensions of all")
        return found

    cdef int say_left_out(self, size_t n, str why) except -1:
        if n > 0:
            log.warning("heap %d: %d of its descriptors are left out, as they %s", self.cnt, n, why)
        return 0

    def is_start_of_stream(self):
        """Whether the heap says that a stream starts here."""
        return self.has_control(0)

    def is_end_of_stream(self):
        """Whether the heap says that a stream ends here."""
        return self.has_control(2)

    def __repr__(self):
        return f"<{type(self).__name__} {self.cnt}, {self.address_bits} address bits>"


@cython.no_gc_clear
cdef class IncompleteHeap(HeapBase):
    """A heap that something is missing of: it has no payload, and its items are immediates only.

    Attributes
    ----------
    cnt : int
        Its heap count.
    flavour : Flavour
        Its flavour.
    heap_length : int
        Bytes of its payload; -1 where no packet that arrived says so.
    received_length : int
        Bytes of it that have arrived, wherever they belong.
    payload_ranges : list of (int, int)
        Which bytes have arrived, as pairs of begin and end, in order; empty unless
        ``incomplete_keep_payload_ranges`` is set.
    """

    cdef readonly object heap_length
    cdef readonly object received_length
    cdef readonly list payload_ranges

    def __repr__(self):
        known = self.heap_length is not None and self.heap_length >= 0
        length = self.heap_length if known else "an unknown number of"
        return f"<IncompleteHeap {self.cnt}, {self.received_length} of {length} bytes>"


cdef object wrap(HeapStream stream, spt_received_heap *c):
    """A heap of Python's that takes over what it needs of one of C's."""
    cdef HeapBase heap
    cdef IncompleteHeap incomplete
    cdef size_t i
    if c.state != SPT_HEAP_INCOMPLETE:
        heap = stream.Heap.__new__(stream.Heap)
        heap.fill(stream, c, True)
        return heap
    incomplete = IncompleteHeap.__new__(IncompleteHeap)
    incomplete.fill(stream, c, False)
    incomplete.heap_length = c.length if c.has_length else -1
    incomplete.received_length = c.received_length
    incomplete.payload_ranges = []
    if stream.keep_ranges:
        for i in range(c.n_ranges):
            incomplete.payload_ranges.append((c.ranges[i].begin, c.ranges[i].end))
    return incomplete


# ---- Streams that receive ----

cdef dict counted(const spt_recv_stats *c):
    """What all streams count, by its names and in the order of its places in `StreamStats`."""
    return {
        # What spead2's also count.
        "heaps": c.account.heaps_complete + c.account.heaps_evicted + c.account.heaps_flushed,
        "incomplete_heaps_evicted": c.account.heaps_evicted,
        "incomplete_heaps_flushed": c.account.heaps_flushed,
        "packets": c.account.packets - c.account.fates[1],
        "batches": c.batches,
        "max_batch": c.max_batch,
        "single_packet_heaps": c.account.single_packet_heaps,
        "search_dist": c.account.searches,
        "worker_blocked": c.ring_waits,
        # Packets that came, which is the sum of what became of them; why some are malformed.
        "packets_received": c.account.packets + c.after_end,
        **{f"packets_{name}": c.account.fates[i] for i, name in enumerate(FATES)},
        "packets_after_end": c.after_end,
        **{f"malformed_{name}": c.account.faults[i] for i, name in enumerate(FAULTS, 1)},
        # Heaps: "heaps" are those that ended; dropped ones brought the stop.
        "heaps_begun": c.account.heaps_begun,
        "heaps_complete": c.account.heaps_complete,
        "heaps_live": c.account.heaps_live,
        "heaps_dropped": c.account.heaps_dropped,
        "heaps_never_begun": c.account.heaps_never_begun,
        "counts_skipped": c.account.counts_skipped,
        "sender_mismatches": c.account.sender_mismatches,
        "incomplete_heaps_dropped": c.incomplete_dropped,
        # Bytes of payload: in their place, and of heaps that something is missing of.
        "payload_bytes": c.account.placed_bytes,
        "incomplete_bytes": c.account.incomplete_bytes,
        # The sockets, all together.
        "socket_datagrams": c.sockets.datagrams,
        "socket_bytes": c.sockets.bytes,
        "socket_messages": c.sockets.messages,
        "socket_calls": c.sockets.calls,
        "socket_in_place": c.sockets.in_place,
        "socket_dropped": c.sockets.dropped,
        "socket_buffer": c.sockets.buffer_size,
        # The ring.
        "ring_dropped": c.ring_dropped,
        "longest_ring_wait_ns": c.longest_ring_wait_ns,
        # Without a thread.
        "longest_unread_ns": c.longest_unread_ns,
        # Captures, all together: frames, and those that are no whole UDP datagram.
        "capture_frames": c.captures.frames,
        "capture_others": c.captures.others,
        "capture_fragments": c.captures.fragments,
        "capture_cut": c.captures.cut,
    }


cdef spt_recv_stats no_stats
#: Their names.
COUNTS = list(counted(&no_stats))


cdef int own_port(port) except -1:
    """A port to listen on."""
    if whole("port", port) > 65535:
        raise TypeError(f"port {port} is out of range: ports are 1 to 65535, and 0 lets the system "
                        "choose")
    return port


# no_gc_clear: pool and allocator must outlive the stream.
@cython.no_gc_clear
cdef class ReceiveStream:
    """What streams that receive share with all kinds of heaps; it is not made itself."""

    cdef object __weakref__
    cdef spt_recv_stream *stream
    cdef ThreadPool pool
    cdef MemoryAllocator allocator
    cdef int made
    cdef list buffers  # that are read from
    cdef tuple kept  # what streams of chunks use, until no weak reference leads here any more
    cdef bint is_member  # of a group, which has the stream of C

    def __dealloc__(self):
        cdef spt_recv_stream *stream = NULL if self.is_member else self.stream
        self.stream = NULL
        if stream != NULL and self.made == generation:
            with nogil:
                spt_recv_stream_destroy(stream)

    cdef int configure(self, ThreadPool pool, config, spt_recv_config *c) except -1:
        """What all streams have of a configuration."""
        if self.stream != NULL:
            raise RuntimeError("the stream has been made already")
        c[0] = recv_defaults
        self.pool = pool
        self.allocator = config.memory_allocator
        self.allocator.check()
        self.buffers = []
        c.heaps.max_heaps = config.max_heaps
        c.heaps.substreams = config.substreams
        c.heaps.allow_out_of_order = config.allow_out_of_order
        c.heaps.allow_unsized_heaps = config.allow_unsized_heaps
        c.heaps.by_sender = config.by_sender
        c.heaps.max_heap_size = config.max_heap_size
        c.heaps.memory = self.allocator.memory
        c.explicit_start = config.explicit_start
        c.stop_on_stop_item = config.stop_on_stop_item
        return 0

    cdef int check_made(self) except -1:
        if self.stream == NULL:
            raise RuntimeError("the stream has not been made: call its __init__")
        return check_generation(self.made)

    def _listen(self, bint tcp, str host, port, max_size, buffer_size, str interface_address="",
                interface_index=0, bint gro=False, bint reuse_port=False):
        """Receive from a port of this machine, or a multicast group."""
        cdef spt_error err
        cdef spt_status status
        cdef spt_endpoint endpoint
        cdef spt_receive_config config
        cdef bytes name = _name("host", host)
        cdef bytes interface = _name("interface address", interface_address)
        self.check_made()
        endpoint.host = name
        endpoint.port = own_port(port)
        config.max_size = whole("max_size", max_size)
        config.buffer_size = whole("buffer_size", buffer_size)
        config.interface_address = interface
        config.interface_index = whole("interface_index", interface_index, 32)
        config.gro = gro
        config.reuse_port = reuse_port
        with nogil:
            if tcp:
                status = spt_recv_stream_add_tcp(self.stream, &endpoint, &config, &err)
            else:
                status = spt_recv_stream_add_udp(self.stream, &endpoint, &config, &err)
        self.added(status, &err)

    def _add_given(self, bint tcp, int socket, max_size, bint gro=False):
        """Receive from a socket that is given: one that is bound or, of TCP, listens."""
        cdef spt_error err
        cdef spt_status status
        cdef spt_receive_config config
        self.check_made()
        memset(&config, 0, sizeof(config))
        config.max_size = whole("max_size", max_size)
        config.gro = gro
        with nogil:
            if tcp:
                status = spt_recv_stream_add_tcp_socket(self.stream, socket, &config, &err)
            else:
                status = spt_recv_stream_add_udp_socket(self.stream, socket, &config, &err)
        self.added(status, &err)

    def add_buffer_reader(self, buffer):
        """Receive the packets in a buffer, one after the other.

        The first one that is malformed ends them; the stream ends with them.

        Parameters
        ----------
        buffer : bytes-like, C-contiguous
            Packets without anything in between, such as `spead_tutorial.send.BytesStream`
            collects. It is kept until the stream stops, and must not be changed.

        Raises
        ------
        Stopped
            After the stream has ended.
        RuntimeError
            After `start`, of a stream that was to be started.
        """
        cdef spt_error err
        cdef spt_status status
        self.check_made()
        cdef _Value value = _Value(buffer)
        self.buffers.append(value)
        with nogil:
            status = spt_recv_stream_add_memory(self.stream, value.view.buf,
                                                <size_t>value.view.len, &err)
        self.added(status, &err)

    def add_inproc_reader(self, InprocQueue queue not None):
        """Receive the packets of a queue in this process.

        The stream ends when the queue has been stopped, and is empty.

        Parameters
        ----------
        queue : InprocQueue
            Others may also receive from it: each gets some packets.

        Raises
        ------
        Stopped, RuntimeError
            As `add_buffer_reader`.
        """
        cdef spt_error err
        cdef spt_status status
        self.check_made()
        cdef spt_inproc_queue *c_queue = queue.checked()
        with nogil:
            status = spt_recv_stream_add_inproc(self.stream, c_queue, &err)
        self.added(status, &err)

    def add_udp_pcap_file_reader(self, filename, str filter=""):
        """Receive the UDP datagrams in a capture, as tcpdump writes: a file of pcap or pcapng.

        The stream ends with the file. Where that is damaged it ends there, with what came before,
        and an error is logged that names the byte. Frames are counted in the stream's ``stats``.

        Parameters
        ----------
        filename : str or path-like
            Of frames of Ethernet, with or without VLANs, of Linux's cooked ones (``-i any``), or of
            IP. Datagrams that were captured before they were segmented are taken apart; fragments
            are not put together.
        filter : str
            Which datagrams, in a part of libpcap's language: ``host``, ``net``, ``port`` and
            ``portrange``, after ``src`` or ``dst`` or neither, joined by ``and``, ``or``, ``not``
            and parentheses, as in ``"udp dst port 8888 and not host 10.0.0.9"``. All by default.

        Raises
        ------
        OSError
            Where the file cannot be opened (also a RuntimeError).
        ValueError
            For a file that is no capture, and for other filters.
        Stopped, RuntimeError
            As `add_buffer_reader`.
        """
        cdef spt_error err
        cdef spt_status status
        cdef bytes path = os.fsencode(filename)
        cdef bytes conditions = _name("filter", filter)
        cdef const char *c_path = path
        cdef const char *c_filter = conditions
        if b"\0" in path:
            raise ValueError(f"file name {filename!r} has a NUL character in it")
        self.check_made()
        with nogil:
            status = spt_recv_stream_add_udp_pcap(self.stream, c_path, c_filter, &err)
        self.added(status, &err)

    cdef int added(self, spt_status status, spt_error *err) except -1:
        if status == SPT_ERR_BUSY:
            raise RuntimeError(err.message.decode("utf-8", "replace"))
        if status == SPT_ERR_SYSTEM:
            raise ReaderError(err.sys_errno, err.message.decode("utf-8", "replace"))
        return check(status, err)

    def start(self):
        """Begin to receive, where the stream's ``explicit_start`` is set; else nothing happens.

        Readers cannot be added any more then.

        Raises
        ------
        Stopped
            After the stream has ended, or its thread pool has been stopped.
        """
        cdef spt_error err
        cdef spt_status status
        self.check_made()
        with nogil:
            status = spt_recv_stream_start(self.stream, &err)
        check(status, &err)

    def stop(self):
        """Receive no more. Heaps that have arrived can still be got. May be repeated.

        Where another thread is stopping the stream, this waits until it has. Ports are free
        afterwards. Heaps of which packets were still awaited end as they are.
        """
        self.check_made()
        with nogil:
            spt_recv_stream_stop(self.stream)
        self.buffers.clear()

    @property
    def port(self):
        """The port that is received from: that of the reader that was added last.

        The system may have chosen it. 0 without a socket, and after `stop`.
        """
        cdef int port
        self.check_made()
        with nogil:
            port = spt_recv_stream_port(self.stream)
        return port

    def _counts(self):
        """All counts, at one moment: those of `COUNTS`, and what warnings tell of."""
        cdef spt_recv_stats c
        self.check_made()
        with nogil:
            spt_recv_stream_stats(self.stream, &c)
        return {
            **counted(&c),
            "incomplete_cnt": c.incomplete_cnt,
            "incomplete_received": c.incomplete_received,
            "incomplete_length": c.incomplete_length,
            "sys_errno": c.sys_errno,
            "failure": c.failure.decode("utf-8", "replace"),
        }


@cython.no_gc_clear
cdef class HeapStream(ReceiveStream):
    """What `spead_tutorial.recv.Stream` is made of: heaps are got one by one."""

    cdef int bug_compat
    cdef bint keep_ranges
    cdef dict flavours
    cdef type Heap  # of those that are complete

    def _open(self, ThreadPool pool, config, ring_config, type Heap):
        """Make the stream as it is configured, of heaps of that type; None: who gets them reads."""
        cdef spt_error err
        cdef spt_recv_config c
        cdef spt_thread_pool *c_pool = to_pool(pool)
        self.configure(pool, config, &c)
        self.bug_compat = config.bug_compat
        self.keep_ranges = ring_config.incomplete_keep_payload_ranges
        self.flavours = {}
        self.Heap = Heap
        c.ring_heaps = ring_config.heaps
        c.drop_when_full = ring_config.drop_when_full
        c.contiguous_only = ring_config.contiguous_only
        with nogil:
            self.stream = spt_recv_stream_create(c_pool, &c, &err)
        self.made = made_now(self.stream, &err)

    cdef object flavour(self, uint8_t address_bits):
        found = self.flavours.get(address_bits)
        if found is None:
            found = Flavour(4, 64, address_bits, self.bug_compat)
            self.flavours[address_bits] = found
        return found

    cdef object get_for(self, int64_t timeout_ns):
        """The next heap; it is waited for with a timeout that is not 0, until signals come."""
        cdef spt_received_heap *c = NULL
        cdef spt_status status
        self.check_made()
        self.allocator.tell()
        with nogil:
            status = spt_recv_stream_get(self.stream, 0, &c)
        while status == SPT_PENDING and timeout_ns != 0:
            self._waiting()
            with nogil:
                status = spt_recv_stream_get(self.stream, timeout_ns, &c)
            if status == SPT_PENDING:
                PyErr_CheckSignals()
        if status == SPT_PENDING:
            raise Empty("no heap is ready")
        if status == SPT_DONE:
            self._ended()
            raise Stopped("the stream has ended, and all of its heaps have been got")
        try:
            return wrap(self, c)
        finally:
            with nogil:
                spt_recv_stream_return(self.stream, c)

    def _ended(self):
        """Called when there is nothing more to be got."""

    def _waiting(self):
        """Called now and then while there is nothing to be got."""

    def _get(self):
        """Wait for a heap."""
        return self.get_for(SIGNAL_CHECK_NS)

    def get_nowait(self):
        """Return the next heap, if there is one.

        A stream without a thread reads for it what has arrived: a bounded share at a time, so that
        there may be more to read after `Empty`, of which `fd` tells.

        Returns
        -------
        Heap or IncompleteHeap
            As `get`.

        Raises
        ------
        Empty
            Where there is none yet.
        Stopped
            Where there will be none any more.
        """
        return self.get_for(0)

    @property
    def fd(self):
        """A file descriptor that is readable while `get` need not wait.

        It belongs to the stream: it is to be polled, not to be read. That of a stream without a
        thread is readable at first, and whenever something has arrived, of which there may be no
        heap yet: then `get_nowait` reads it.
        """
        cdef int fd
        self.check_made()
        with nogil:
            fd = spt_recv_stream_fd(self.stream)
        return fd

    def _ready(self):
        """How many heaps are in the ring."""
        self.check_made()
        return spt_recv_stream_ready(self.stream)
