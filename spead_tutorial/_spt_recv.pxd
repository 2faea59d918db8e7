# SPDX-License-Identifier: BSD-3-Clause
"""What the wrapping uses of spt_recv.h; the header says what each thing means."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from spead_tutorial._spt cimport (
    spt_endpoint, spt_error, spt_field, spt_inproc_queue, spt_status, spt_thread_pool)


cdef extern from "spead_tutorial/spt_recv.h" nogil:
    ctypedef struct spt_received_packet:
        pass

    ctypedef enum spt_heap_state:
        SPT_HEAP_INCOMPLETE

    ctypedef struct spt_range:
        uint64_t begin, end

    ctypedef struct spt_received_heap:
        uint64_t cnt
        uint8_t heap_address_bits
        spt_heap_state state
        bint has_length
        uint64_t length, received_length
        uint8_t *payload
        size_t room
        const spt_range *ranges
        size_t n_ranges, n_pointers

    ctypedef struct spt_received_item:
        uint64_t id
        bint is_immediate
        uint64_t immediate, offset, length

    size_t spt_received_heap_items(const spt_received_heap *, spt_received_item *)

    ctypedef struct spt_bytes:
        const uint8_t *data
        size_t length

    ctypedef struct spt_received_descriptor:
        uint64_t id
        spt_bytes name, description, numpy_header
        size_t n_format, n_shape

    bint spt_received_descriptor_parse(spt_received_descriptor *, const void *, size_t, int)
    spt_field spt_received_descriptor_field(const spt_received_descriptor *, size_t)
    int64_t spt_received_descriptor_dimension(const spt_received_descriptor *, size_t)

    # A memory pool's take its leaf lock only.
    ctypedef struct spt_heap_memory:
        void *user
        void *(*get)(void *, size_t, const spt_received_packet *) noexcept nogil
        void (*put)(void *, void *, size_t) noexcept nogil

    ctypedef struct spt_depacketizer_config:
        size_t max_heaps, substreams
        bint allow_out_of_order, allow_unsized_heaps, by_sender
        uint64_t max_heap_size
        spt_heap_memory memory

    enum:
        SPT_N_FATES
        SPT_N_FAULTS

    ctypedef struct spt_account:
        uint64_t packets
        uint64_t fates[10]
        uint64_t faults[8]
        uint64_t placed_bytes
        uint64_t heaps_begun, heaps_complete, heaps_evicted, heaps_flushed, heaps_dropped
        uint64_t heaps_live
        uint64_t incomplete_bytes, heaps_never_begun, counts_skipped, sender_mismatches
        uint64_t single_packet_heaps, searches

    ctypedef struct spt_receive_config:
        size_t max_size, buffer_size
        const char *interface_address
        unsigned interface_index
        bint gro, reuse_port

    ctypedef struct spt_receive_stats:
        uint64_t datagrams, bytes, messages, calls, in_place, dropped, buffer_size

    ctypedef struct spt_recv_stream:
        pass

    ctypedef struct spt_recv_config:
        spt_depacketizer_config heaps
        size_t ring_heaps
        bint drop_when_full, contiguous_only, explicit_start, stop_on_stop_item

    spt_recv_stream *spt_recv_stream_create "WITHOUT_GIL(spt_recv_stream_create)"(
        spt_thread_pool *, const spt_recv_config *, spt_error *)
    spt_status spt_recv_stream_add_udp "WITHOUT_GIL(spt_recv_stream_add_udp)"(
        spt_recv_stream *, const spt_endpoint *, const spt_receive_config *, spt_error *)
    spt_status spt_recv_stream_add_udp_socket "WITHOUT_GIL(spt_recv_stream_add_udp_socket)"(
        spt_recv_stream *, int, const spt_receive_config *, spt_error *)
    spt_status spt_recv_stream_add_memory "WITHOUT_GIL(spt_recv_stream_add_memory)"(
        spt_recv_stream *, const void *, size_t, spt_error *)
    spt_status spt_recv_stream_add_tcp "WITHOUT_GIL(spt_recv_stream_add_tcp)"(
        spt_recv_stream *, const spt_endpoint *, const spt_receive_config *, spt_error *)
    spt_status spt_recv_stream_add_tcp_socket "WITHOUT_GIL(spt_recv_stream_add_tcp_socket)"(
        spt_recv_stream *, int, const spt_receive_config *, spt_error *)
    spt_status spt_recv_stream_add_inproc "WITHOUT_GIL(spt_recv_stream_add_inproc)"(
        spt_recv_stream *, spt_inproc_queue *, spt_error *)
    spt_status spt_recv_stream_add_udp_pcap "WITHOUT_GIL(spt_recv_stream_add_udp_pcap)"(
        spt_recv_stream *, const char *, const char *, spt_error *)
    spt_status spt_recv_stream_start "WITHOUT_GIL(spt_recv_stream_start)"(
        spt_recv_stream *, spt_error *)
    spt_status spt_recv_stream_get "WITHOUT_GIL(spt_recv_stream_get)"(
        spt_recv_stream *, int64_t, spt_received_heap **)
    void spt_recv_stream_return "WITHOUT_GIL(spt_recv_stream_return)"(
        spt_recv_stream *, spt_received_heap *)
    size_t spt_recv_stream_ready(spt_recv_stream *)
    int spt_recv_stream_fd "WITHOUT_GIL(spt_recv_stream_fd)"(spt_recv_stream *)
    int spt_recv_stream_port "WITHOUT_GIL(spt_recv_stream_port)"(spt_recv_stream *)
    void spt_recv_stream_stop "WITHOUT_GIL(spt_recv_stream_stop)"(spt_recv_stream *)
    void spt_recv_stream_destroy "WITHOUT_GIL(spt_recv_stream_destroy)"(spt_recv_stream *)

    ctypedef struct spt_capture_stats:
        uint64_t frames, others, fragments, cut

    ctypedef struct spt_recv_stats:
        spt_account account
        spt_receive_stats sockets
        uint64_t after_end, batches, max_batch
        uint64_t incomplete_dropped, incomplete_cnt, incomplete_received, incomplete_length
        uint64_t ring_dropped, ring_waits, longest_ring_wait_ns, longest_unread_ns
        int sys_errno
        char failure[240]
        spt_capture_stats captures

    void spt_recv_stream_stats "WITHOUT_GIL(spt_recv_stream_stats)"(
        spt_recv_stream *, spt_recv_stats *)

    ctypedef struct spt_mmap_config:
        int flags
        bint prefer_huge

    spt_status spt_mmap_memory(const spt_mmap_config *, spt_heap_memory *, spt_error *)

    ctypedef struct spt_memory_pool:
        pass

    ctypedef struct spt_memory_pool_config:
        size_t lower, upper, max_free, initial, low_water
        spt_heap_memory base

    spt_memory_pool *spt_memory_pool_create "WITHOUT_GIL(spt_memory_pool_create)"(
        spt_thread_pool *, const spt_memory_pool_config *, spt_error *)
    spt_heap_memory spt_memory_pool_memory(spt_memory_pool *)
    void spt_memory_pool_destroy "WITHOUT_GIL(spt_memory_pool_destroy)"(spt_memory_pool *)

    ctypedef struct spt_memory_pool_stats:
        uint64_t gets, empty, passed_by
        size_t largest, free, fewest_free, in_use, most_in_use

    # Its leaf lock only.
    void spt_memory_pool_read_stats(spt_memory_pool *, spt_memory_pool_stats *)

    ctypedef struct spt_chunk:
        void *data
        size_t data_size
        uint8_t *present
        size_t present_size
        uint8_t *extra
        size_t extra_size
        int64_t chunk_id
        uint64_t stream_id
        void *user

    ctypedef struct spt_chunk_ring:
        pass

    spt_chunk_ring *spt_chunk_ring_create(size_t, spt_error *)
    void spt_chunk_ring_destroy(spt_chunk_ring *)
    spt_status spt_chunk_ring_put "WITHOUT_GIL(spt_chunk_ring_put)"(
        spt_chunk_ring *, spt_chunk *, int64_t)
    spt_status spt_chunk_ring_get "WITHOUT_GIL(spt_chunk_ring_get)"(
        spt_chunk_ring *, int64_t, spt_chunk **)
    size_t spt_chunk_ring_size "WITHOUT_GIL(spt_chunk_ring_size)"(spt_chunk_ring *)
    size_t spt_chunk_ring_capacity(const spt_chunk_ring *)
    void spt_chunk_ring_stop "WITHOUT_GIL(spt_chunk_ring_stop)"(spt_chunk_ring *)
    void spt_chunk_ring_add_producer "WITHOUT_GIL(spt_chunk_ring_add_producer)"(spt_chunk_ring *)
    bint spt_chunk_ring_remove_producer "WITHOUT_GIL(spt_chunk_ring_remove_producer)"(
        spt_chunk_ring *)
    int spt_chunk_ring_data_fd "WITHOUT_GIL(spt_chunk_ring_data_fd)"(spt_chunk_ring *)
    int spt_chunk_ring_space_fd "WITHOUT_GIL(spt_chunk_ring_space_fd)"(spt_chunk_ring *)

    ctypedef struct spt_place_data:
        pass

    ctypedef void (*spt_place_function)(spt_place_data *, size_t, void *) noexcept nogil

    ctypedef char spt_bool "bool"

    ctypedef struct spt_chunk_config:
        spt_place_function place
        void *place_user
        const uint64_t *items
        size_t n_items, max_chunks, max_heap_extra, packet_payload_size, n_stats
        const spt_bool *stat_is_maximum
        uint64_t stream_id
        spt_chunk_ring *data_ring
        spt_chunk_ring *free_ring

    spt_recv_stream *spt_recv_stream_create_chunks "WITHOUT_GIL(spt_recv_stream_create_chunks)"(
        spt_thread_pool *, const spt_recv_config *, const spt_chunk_config *, spt_error *)

    ctypedef struct spt_chunk_stats:
        uint64_t too_old_heaps, rejected_heaps, misplaced_heaps
        uint64_t chunks, chunk_waits, longest_chunk_wait_ns, room_waits, longest_room_wait_ns
        char misplaced[160]

    void spt_recv_stream_chunk_stats "WITHOUT_GIL(spt_recv_stream_chunk_stats)"(
        spt_recv_stream *, spt_chunk_stats *, uint64_t *)

    ctypedef struct spt_chunk_group:
        pass
    ctypedef struct spt_chunk_group_config:
        size_t max_chunks
        spt_bool lossless
        spt_chunk_ring *data_ring
        spt_chunk_ring *free_ring
    ctypedef struct spt_chunk_group_stats:
        uint64_t member_waits, longest_member_wait_ns
        spt_bool waits
        size_t slow_member
        int64_t slow_chunk_id
        uint64_t slow_ns

    spt_chunk_group *spt_chunk_group_create(const spt_chunk_group_config *, spt_error *)
    spt_recv_stream *spt_chunk_group_add "WITHOUT_GIL(spt_chunk_group_add)"(
        spt_chunk_group *, spt_thread_pool *, const spt_recv_config *, const spt_chunk_config *,
        spt_error *)
    void spt_chunk_group_stop "WITHOUT_GIL(spt_chunk_group_stop)"(spt_chunk_group *)
    void spt_chunk_group_destroy "WITHOUT_GIL(spt_chunk_group_destroy)"(spt_chunk_group *)
    void spt_chunk_group_read_stats "WITHOUT_GIL(spt_chunk_group_read_stats)"(
        spt_chunk_group *, spt_chunk_group_stats *)


cdef extern from *:
    """
    #define SPTI_NAME(name, value, text) #name,
    #define SPTI_TEXT(name, value, text) text,
    static const spt_recv_config recv_defaults = SPT_RECV_CONFIG_DEFAULT;
    static const char *const fate_names[] = {SPT_FATE_LIST(SPTI_NAME)};
    static const char *const fate_texts[] = {SPT_FATE_LIST(SPTI_TEXT)};
    static const char *const fault_names[] = {SPT_FAULT_LIST(SPTI_NAME)};
    static const char *const fault_texts[] = {SPT_FAULT_LIST(SPTI_TEXT)};
    """
    const spt_recv_config recv_defaults
    const char *fate_names[]
    const char *fate_texts[]
    const char *fault_names[]
    const char *fault_texts[]
