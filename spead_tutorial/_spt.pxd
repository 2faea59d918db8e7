# SPDX-License-Identifier: BSD-3-Clause
"""What the wrapping uses of spt.h; the header says what each thing means.

Who waits for a lock of the core must not have the GIL: the thread that holds the lock may itself be
waiting for the GIL, in a place function of Python's. Where it is not, all of Python stands still
meanwhile. So each function that takes a lock, or waits, is declared WITHOUT_GIL, here and in
_spt_recv.pxd: where it is called outside of a `with nogil` block, the C compiler refuses it.

The exceptions say so: what every heap needs, and takes leaf locks only. Who holds a leaf lock waits
for nothing else, and calls nothing that could be Python's.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from *:
    """
    /* The variable is the one that Py_UNBLOCK_THREADS sets, and every `with nogil` block has. */
    #define WITHOUT_GIL(function) ((void)_save, function)
    """


cdef extern from "sys/uio.h" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len


cdef extern from "spead_tutorial/spt.h" nogil:
    ctypedef enum spt_status:
        SPT_OK
        SPT_DONE
        SPT_PENDING
        SPT_ERR_MEMORY
        SPT_ERR_SYSTEM
        SPT_ERR_QUEUE_FULL
        SPT_ERR_STOPPED
        SPT_ERR_BUSY
        SPT_ERR_CANCELLED
        SPT_ERR_GROUP

    ctypedef struct spt_error:
        spt_status status
        int sys_errno
        char message[240]

    ctypedef struct spt_flavour:
        uint8_t heap_address_bits
        uint8_t bug_compat

    spt_status spt_flavour_init(spt_flavour *, int, int, spt_error *)

    ctypedef struct spt_item:
        uint64_t id
        const void *value
        size_t length
        bint allow_immediate

    ctypedef struct spt_field:
        char code
        uint32_t bits

    ctypedef struct spt_descriptor:
        uint64_t id
        const char *name
        const char *description
        const char *numpy_header
        const spt_field *format
        size_t n_format
        const int64_t *shape
        size_t n_shape

    ctypedef struct spt_heap:
        pass

    spt_heap *spt_heap_create(const spt_flavour *, spt_error *)
    void spt_heap_destroy(spt_heap *)
    spt_status spt_heap_add_item(spt_heap *, const spt_item *, spt_error *)
    spt_status spt_heap_add_descriptor(spt_heap *, const spt_descriptor *, spt_error *)
    spt_status spt_heap_add_start(spt_heap *, spt_error *)
    spt_status spt_heap_add_end(spt_heap *, spt_error *)
    spt_status spt_heap_set_repeat_pointers(spt_heap *, bint, spt_error *)
    bint spt_heap_repeat_pointers(const spt_heap *)

    size_t SPT_MAX_PIECES(size_t)

    ctypedef struct spt_packet:
        size_t size
        size_t n_pieces

    ctypedef struct spt_packetizer:
        pass

    spt_status spt_packetizer_init(spt_packetizer *, const spt_heap *, uint64_t, size_t,
                                   spt_error *)
    spt_status spt_packetizer_next(spt_packetizer *, void *, iovec *, spt_packet *)

    ctypedef struct spt_thread_pool:
        pass

    spt_thread_pool *spt_thread_pool_create "WITHOUT_GIL(spt_thread_pool_create)"(
        size_t, const int *, size_t, spt_error *)
    void spt_thread_pool_stop "WITHOUT_GIL(spt_thread_pool_stop)"(spt_thread_pool *)
    void spt_thread_pool_destroy "WITHOUT_GIL(spt_thread_pool_destroy)"(spt_thread_pool *)
    spt_status spt_set_affinity(int, spt_error *)

    ctypedef struct spt_stream:
        pass

    ctypedef struct spt_stream_config:
        size_t max_packet_size
        double rate
        size_t burst_size
        double burst_rate_ratio
        size_t max_heaps
        size_t timeline
        bint poll
        bint equal_packets

    ctypedef struct spt_endpoint:
        const char *host
        int port

    ctypedef struct spt_udp_config:
        size_t buffer_size
        int ttl
        const char *interface_address
        unsigned interface_index
        bint gso
        bint dont_fragment
        bint zero_copy

    spt_status spt_route_packet_size "WITHOUT_GIL(spt_route_packet_size)"(
        const spt_endpoint *, size_t *, spt_error *)

    spt_stream *spt_stream_create_udp "WITHOUT_GIL(spt_stream_create_udp)"(
        spt_thread_pool *, const spt_endpoint *, size_t, const spt_stream_config *,
        const spt_udp_config *, spt_error *)
    spt_stream *spt_stream_create_udp_socket "WITHOUT_GIL(spt_stream_create_udp_socket)"(
        spt_thread_pool *, int, const spt_endpoint *, size_t, const spt_stream_config *,
        const spt_udp_config *, spt_error *)
    spt_stream *spt_stream_create_memory "WITHOUT_GIL(spt_stream_create_memory)"(
        spt_thread_pool *, const spt_stream_config *, spt_error *)
    size_t spt_stream_memory "WITHOUT_GIL(spt_stream_memory)"(spt_stream *, void *, size_t)

    ctypedef struct spt_tcp_config:
        size_t buffer_size
        const char *interface_address

    spt_stream *spt_stream_create_tcp "WITHOUT_GIL(spt_stream_create_tcp)"(
        spt_thread_pool *, const spt_endpoint *, const spt_stream_config *, const spt_tcp_config *,
        spt_error *)
    spt_stream *spt_stream_create_tcp_socket "WITHOUT_GIL(spt_stream_create_tcp_socket)"(
        spt_thread_pool *, int, const spt_stream_config *, spt_error *)

    ctypedef struct spt_inproc_queue:
        pass

    spt_inproc_queue *spt_inproc_queue_create(size_t, size_t, spt_error *)
    void spt_inproc_queue_destroy(spt_inproc_queue *)
    void spt_inproc_queue_stop "WITHOUT_GIL(spt_inproc_queue_stop)"(spt_inproc_queue *)
    spt_status spt_inproc_queue_add_packet "WITHOUT_GIL(spt_inproc_queue_add_packet)"(
        spt_inproc_queue *, const void *, size_t, spt_error *)
    spt_stream *spt_stream_create_inproc "WITHOUT_GIL(spt_stream_create_inproc)"(
        spt_thread_pool *, spt_inproc_queue *const *, size_t, const spt_stream_config *,
        spt_error *)

    void spt_stream_stop "WITHOUT_GIL(spt_stream_stop)"(spt_stream *)
    void spt_stream_destroy "WITHOUT_GIL(spt_stream_destroy)"(spt_stream *)
    size_t spt_stream_num_substreams(const spt_stream *)
    spt_status spt_stream_set_cnt_sequence "WITHOUT_GIL(spt_stream_set_cnt_sequence)"(
        spt_stream *, uint64_t, uint64_t, spt_error *)

    ctypedef struct spt_completion:
        void *user
        spt_status status
        uint64_t bytes

    ctypedef struct spt_heap_reference:
        spt_heap *heap
        int64_t cnt
        size_t substream_index
        double rate

    ctypedef enum spt_group_mode:
        SPT_GROUP_ROUND_ROBIN
        SPT_GROUP_SERIAL

    spt_status spt_stream_send_heaps "WITHOUT_GIL(spt_stream_send_heaps)"(
        spt_stream *, const spt_heap_reference *, size_t, spt_group_mode, spt_completion *,
        spt_error *)
    # Of a stream with a thread pool: leaf locks only, of the queue and then of the pool. The GIL
    # also keeps other threads from changing a heap before it counts as being sent.
    spt_status send_heaps_to_pool "spt_stream_send_heaps"(
        spt_stream *, const spt_heap_reference *, size_t, spt_group_mode, spt_completion *,
        spt_error *)
    spt_status spt_stream_wait "WITHOUT_GIL(spt_stream_wait)"(
        spt_stream *, spt_completion *, int64_t, spt_error *)
    spt_status spt_completion_explain(const spt_completion *, spt_error *)
    bint spt_completion_done(const spt_completion *)
    size_t spt_stream_poll "WITHOUT_GIL(spt_stream_poll)"(spt_stream *, spt_completion **, size_t)
    int spt_stream_fd(const spt_stream *)
    spt_status spt_stream_flush "WITHOUT_GIL(spt_stream_flush)"(spt_stream *, int64_t)
    void spt_stream_cancel "WITHOUT_GIL(spt_stream_cancel)"(spt_stream *, spt_completion *)

    enum:
        SPT_N_ERRNO

    ctypedef struct spt_stats:
        uint64_t heaps, packets, bytes
        uint64_t send_calls, messages, gso_messages
        uint64_t zero_copy_messages, zero_copy_copied
        uint64_t waits
        uint64_t looking_ns, waiting_looking_ns
        uint64_t errors
        uint64_t errors_by_errno[134]

    void spt_stream_stats(const spt_stream *, spt_stats *)

    ctypedef struct spt_times:
        pass

    size_t spt_stream_timeline "WITHOUT_GIL(spt_stream_timeline)"(spt_stream *, spt_times *, size_t)

    ctypedef struct spt_memory:
        void *data
        size_t size
        size_t page_size
        const char *reason

    spt_status spt_alloc "WITHOUT_GIL(spt_alloc)"(size_t, spt_memory *, spt_error *)
    void spt_free(spt_memory *)
