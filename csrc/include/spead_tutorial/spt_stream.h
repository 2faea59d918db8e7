/* SPDX-License-Identifier: BSD-3-Clause */
/* How it is sent: threads, streams, and completions. Part of spt.h. */
#ifndef SPEAD_TUTORIAL_SPT_STREAM_H
#define SPEAD_TUTORIAL_SPT_STREAM_H

#include "spead_tutorial/spt_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 7. Thread pool -------------------------------------------------------------------------- */

/**
 * Threads that send for any number of streams. After ``fork()`` they, and the streams, are the
 * parent's: a child leaves these alone, not even destroying them, and makes its own.
 */
typedef struct spt_thread_pool spt_thread_pool;

/**
 * Start the threads.
 *
 * :param n_threads: At least 1.
 * :param affinity: Cores to run on: thread i on ``affinity[i % n_affinity]``, or wherever the
 *     kernel likes where that is negative. Copied.
 * :param n_affinity: 0 leaves the choice to the kernel.
 */
SPT_API SPT_MUST_CHECK spt_thread_pool *
spt_thread_pool_create(size_t n_threads, const int *affinity, size_t n_affinity, spt_error *err);

/**
 * End the threads. Heaps that are still queued complete with ``SPT_ERR_STOPPED``. May be repeated;
 * where another thread is stopping the pool, this waits until it has.
 */
SPT_API void spt_thread_pool_stop(spt_thread_pool *pool);

/** Stop and free. Its streams must have been destroyed before. */
SPT_API void spt_thread_pool_destroy(spt_thread_pool *pool);

/**
 * Run the calling thread on one core only.
 *
 * :param core: Its number.
 * :return: ``SPT_OK``; ``SPT_ERR_ARGUMENT`` for no core's number, ``SPT_ERR_SYSTEM`` for one that
 *     there is not, or that this process may not use.
 */
SPT_API SPT_MUST_CHECK spt_status spt_set_affinity(int core, spt_error *err);

/* ---- 8. Streams ------------------------------------------------------------------------------ */

/**
 * A queue of heaps and what sends them. All functions on it may be called from any thread.
 *
 * Mostly a thread of a pool sends. A stream that is made with ``NULL`` for a pool has none: the
 * threads that call it do the work, which costs least where they also prepare the data, for it is
 * still in their cache. Heaps are gathered until they are 256 KiB, and sent in the call that makes
 * them so; what is left is sent by a call that waits, flushes or polls. No send ever waits for the
 * socket or for a rate. Nothing happens between calls: in an event loop, watch
 * :c:func:`spt_stream_fd`.
 */
typedef struct spt_stream spt_stream;

/** How a stream sends. Start from :c:macro:`SPT_STREAM_CONFIG_DEFAULT`. */
typedef struct spt_stream_config {
    size_t max_packet_size; /**< Bytes of a packet at most, UDP and IP headers not counted. */
    double rate;            /**< Bytes of SPEAD packets per second; 0 for no limit. */
    size_t burst_size;      /**< Bytes sent back to back before looking at the clock. */
    /** A late stream catches up at no more than ``rate * burst_rate_ratio``; at least 1. */
    double burst_rate_ratio;
    size_t max_heaps; /**< Heaps between queueing and completion, at most; at least 1. */
    /** Keep the times of this many heaps for :c:func:`spt_stream_timeline`; 0 keeps none. */
    size_t timeline;
    /**
     * Completions are listed for :c:func:`spt_stream_poll`, and announced on
     * :c:func:`spt_stream_fd`; false: they are only waited for.
     */
    bool poll;
    /** Cut each heap into equal packets where it can be: see :c:func:`spt_equal_packet_size`. */
    bool equal_packets;
} spt_stream_config;

/** The defaults: 1472 bytes fill an Ethernet frame of 1500 under IPv4. */
#define SPT_STREAM_CONFIG_DEFAULT {1472, 0.0, 65536, 1.05, 4, 0, false, false}

/** Where a substream goes. */
typedef struct spt_endpoint {
    const char *host; /**< A name or an address, IPv4 or IPv6. */
    int port;         /**< 1 to 65535. */
} spt_endpoint;

/** How a UDP socket is made. Start from :c:macro:`SPT_UDP_CONFIG_DEFAULT`. */
typedef struct spt_udp_config {
    size_t buffer_size; /**< Bytes asked for in the socket's send buffer; 0 leaves the system's. */
    /** Multicast time to live (IPv4) or hop limit (IPv6); -1 leaves the system's. */
    int ttl;
    /** The address of the interface to send from (IPv4), or ``NULL``. */
    const char *interface_address;
    /** The interface for IPv6 multicast; 0 leaves the choice to the system. */
    unsigned interface_index;
    /** Let the kernel cut runs of equal packets (generic segmentation offload) where it can. */
    bool gso;
    /**
     * Packets that are larger than the path takes fail with ``EMSGSIZE`` (``IP_PMTUDISC_DO``, see
     * ip(7)); false: they are fragmented without an error.
     */
    bool dont_fragment;
    /**
     * Have the kernel read the memory of heaps in place instead of copying it (``MSG_ZEROCOPY``,
     * see msg_zerocopy.rst of the kernel's documentation), where it can and that pays; a heap is
     * complete only once the kernel does not read it any more. It is for data that is in
     * memory already: what has just been written is in a cache, from where copying is cheap. See
     * :c:func:`spt_alloc` for the memory, and ``zero_copy_messages`` of the statistics for what
     * became of it.
     */
    bool zero_copy;
} spt_udp_config;

/** The defaults: a send buffer of 512 KiB, GSO where the kernel has it, fragments, and copies. */
#define SPT_UDP_CONFIG_DEFAULT {524288, -1, NULL, 0, true, false, false}

/**
 * Ask the route for the largest packet that goes to an endpoint in one piece (``IP_MTU``, see
 * ip(7), less the headers of UDP and IP).
 *
 * :param size: Filled: a ``max_packet_size``, a multiple of 8. It is what this machine knows: hops
 *     beyond the first make themselves known when something is too large for them.
 * :return: ``SPT_OK``; ``SPT_ERR_ARGUMENT`` for no such host or port; ``SPT_ERR_SYSTEM`` where
 *     there is no way to it.
 */
SPT_API SPT_MUST_CHECK spt_status spt_route_packet_size(const spt_endpoint *endpoint, size_t *size,
                                                        spt_error *err);

/**
 * Make a stream that sends over UDP, with a socket of its own.
 *
 * :param endpoints: One for each substream, of one address family. Copied.
 * :param n_endpoints: At least 1.
 * :param udp: Copied; ``NULL`` for the defaults.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_udp(spt_thread_pool *pool, const spt_endpoint *endpoints, size_t n_endpoints,
                      const spt_stream_config *config, const spt_udp_config *udp, spt_error *err);

/**
 * Make a stream that sends over UDP, with a socket of yours.
 *
 * :param socket: A UDP socket. It is duplicated: it stays yours, and may be closed.
 * :param endpoints: One for each substream, of the socket's address family. Copied.
 * :param n_endpoints: At least 1.
 * :param udp: Only ``gso`` is looked at: how the socket is set up is yours to say. Copied;
 *     ``NULL`` for the defaults. ``zero_copy`` is an ``SPT_ERR_ARGUMENT``: the kernel would count
 *     also what others send through the socket.
 * :param err: Details of a failure, or ``NULL``. No socket is ever made instead: a closed one
 *     (a negative number) is an ``SPT_ERR_ARGUMENT``.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_udp_socket(spt_thread_pool *pool, int socket, const spt_endpoint *endpoints,
                             size_t n_endpoints, const spt_stream_config *config,
                             const spt_udp_config *udp, spt_error *err);

/** Make a stream that collects its packets in memory, one after the other. */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_memory(spt_thread_pool *pool, const spt_stream_config *config, spt_error *err);

/**
 * Copy out what a memory stream has collected.
 *
 * :param stream: Made by :c:func:`spt_stream_create_memory`.
 * :param to: Filled with the first ``size`` bytes; may be ``NULL`` when ``size`` is 0.
 * :param size: Room in ``to``.
 * :return: Bytes collected so far; 0 for other streams.
 */
SPT_API size_t spt_stream_memory(spt_stream *stream, void *to, size_t size);

/** How a TCP connection is made. Start from :c:macro:`SPT_TCP_CONFIG_DEFAULT`. */
typedef struct spt_tcp_config {
    size_t buffer_size; /**< Bytes asked for in the socket's send buffer; 0 leaves the system's. */
    /** The address of the interface to send from, or ``NULL``. */
    const char *interface_address;
} spt_tcp_config;

/** The defaults: a send buffer of 208 KiB. */
#define SPT_TCP_CONFIG_DEFAULT {212992, NULL}

/**
 * Connect to a receiver, and make a stream that sends over TCP. Packets follow each other with
 * nothing in between; large ones (65536 bytes) cost least. Where the connection ends, that heap and
 * all later ones fail, with ``EPIPE`` or ``ECONNRESET``.
 *
 * :param endpoint: The only substream. Copied.
 * :param tcp: Copied; ``NULL`` for the defaults.
 * :param err: Details of a failure, or ``NULL``: ``ECONNREFUSED`` without a listener, ``EINTR``
 *     where a signal came meanwhile.
 */
SPT_API SPT_MUST_CHECK spt_stream *spt_stream_create_tcp(spt_thread_pool *pool,
                                                         const spt_endpoint *endpoint,
                                                         const spt_stream_config *config,
                                                         const spt_tcp_config *tcp, spt_error *err);

/**
 * Make a stream that sends over TCP, with a socket of yours.
 *
 * :param socket: One of TCP that is connected. It is duplicated: it stays yours, and may be closed.
 */
SPT_API SPT_MUST_CHECK spt_stream *spt_stream_create_tcp_socket(spt_thread_pool *pool, int socket,
                                                                const spt_stream_config *config,
                                                                spt_error *err);

/**
 * A queue of packets within the process, from streams that send to streams that receive: a network
 * that loses nothing. It outlives its owner for as long as a stream has it. All functions may be
 * called from any thread.
 */
typedef struct spt_inproc_queue spt_inproc_queue;

/**
 * Make a queue.
 *
 * :param max_packets: How many may be in it; 0 for no limit. While it is full, streams that send
 *     to it wait.
 * :param max_bytes: How many bytes these may have; 0 for no limit. Not less than a sender's
 *     ``max_packet_size``, or all of its heaps fail.
 */
SPT_API SPT_MUST_CHECK spt_inproc_queue *spt_inproc_queue_create(size_t max_packets,
                                                                 size_t max_bytes, spt_error *err);

/**
 * Put a packet in; it does not wait.
 *
 * :param bytes: Copied. Whether they are a packet is for the receiver to say.
 * :return: ``SPT_OK``; ``SPT_ERR_QUEUE_FULL``; ``SPT_ERR_STOPPED``; ``SPT_ERR_ARGUMENT`` for more
 *     bytes than ever fit; ``SPT_ERR_MEMORY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_inproc_queue_add_packet(spt_inproc_queue *queue,
                                                              const void *bytes, size_t n_bytes,
                                                              spt_error *err);

/**
 * Take no more packets. Those in the queue can still be received, then the streams that receive
 * from it end. May be repeated.
 */
SPT_API void spt_inproc_queue_stop(spt_inproc_queue *queue);

/** Let go of it. It is not stopped by that, and is freed with the last stream that has it. */
SPT_API void spt_inproc_queue_destroy(spt_inproc_queue *queue);

/**
 * Make a stream that sends to queues of this process. While one is full, the stream waits; packets
 * for one that has been stopped fail with ``ECANCELED``.
 *
 * :param queues: One for each substream; held until the stream is destroyed.
 * :param n_queues: At least 1.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_inproc(spt_thread_pool *pool, spt_inproc_queue *const *queues, size_t n_queues,
                         const spt_stream_config *config, spt_error *err);

/**
 * Stop: what is still queued completes with ``SPT_ERR_STOPPED``, and further sends are refused.
 * May be repeated. Call :c:func:`spt_stream_flush` before, to have everything sent.
 */
SPT_API void spt_stream_stop(spt_stream *stream);

/** Stop and free. */
SPT_API void spt_stream_destroy(spt_stream *stream);

/** How many endpoints a stream has: at least 1; for a memory stream, 1. */
SPT_API size_t spt_stream_num_substreams(const spt_stream *stream);

/**
 * Choose the heap counts that are given out: next, next + step, ... The first is 1, the step 1.
 *
 * :param next: The next heap's count.
 * :param step: Not 0.
 * :return: ``SPT_OK`` or ``SPT_ERR_ARGUMENT``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_set_cnt_sequence(spt_stream *stream, uint64_t next,
                                                              uint64_t step, spt_error *err);

/* ---- 9. Completions -------------------------------------------------------------------------- */

/**
 * Tells that a heap, or a group of heaps, has been sent, or why not. It lies in your memory, so
 * that sending allocates nothing: set it to zeros (``= {0}``), fill in ``user`` if you like, and
 * hand it to a send.
 *
 * The completion, and every heap sent with it, and every value of those heaps, is borrowed from the
 * send until it is complete. Then it can be used again; on a stream with ``config.poll``, the
 * completion itself only when :c:func:`spt_stream_poll` has handed it out, or with the stream's
 * end.
 */
typedef struct spt_completion {
    void *user;                /**< Yours. */
    spt_status status;         /**< ``SPT_OK``, or the first thing that went wrong. */
    int sys_errno;             /**< The ``errno`` behind ``SPT_ERR_SYSTEM``. */
    uint64_t bytes;            /**< Bytes of SPEAD packets handed over. */
    uint64_t failed_cnt;       /**< Where it first went wrong: the heap count. */
    size_t failed_packet_size; /**< Where it first went wrong: bytes of the packet. */
    /** With ``EMSGSIZE``: the packet size that would have gone through; 0 where unknown. */
    size_t fitting_packet_size;
    /* Private. */
    int state_;
    struct spt_completion *next_;
} spt_completion;

/** One heap of a group. */
typedef struct spt_heap_reference {
    spt_heap *heap; /**< The heap; borrowed until its completion is complete. */
    /**
     * The heap count, or -1 for the next of the stream's sequence. One that is given does not move
     * the sequence on.
     */
    int64_t cnt;
    size_t substream_index; /**< Which endpoint to send to, counted from 0. */
    /** Bytes of SPEAD packets per second: negative for the stream's, 0 for no limit. */
    double rate;
} spt_heap_reference;

/** How the packets of a group's heaps follow each other. */
typedef enum spt_group_mode {
    SPT_GROUP_ROUND_ROBIN = 0, /**< A packet of each heap in turn. */
    SPT_GROUP_SERIAL = 1,      /**< All of one heap, then all of the next. */
} spt_group_mode;

/**
 * Queue a group of heaps; all of them or none. Nothing is copied, and nothing is waited for;
 * without a thread they may also be sent.
 *
 * :param heaps: Copied; the heaps and their values are borrowed until the completion is complete.
 * :param n_heaps: At least 1.
 * :param mode: The order of their packets.
 * :param completion: Borrowed until complete; not in use.
 * :return: ``SPT_OK``; ``SPT_ERR_QUEUE_FULL`` where ``max_heaps`` leaves no room;
 *     ``SPT_ERR_GROUP`` for no heaps, or a count, a substream or a rate that there is not;
 *     ``SPT_ERR_ARGUMENT`` for a heap that does not fit the packet size, or a completion in use;
 *     ``SPT_ERR_SYSTEM`` with ``EMSGSIZE`` where packets would be larger than the transport takes;
 *     ``SPT_ERR_STOPPED``. After a failure nothing is borrowed and no heap count was used up.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_heaps(spt_stream *stream,
                                                        const spt_heap_reference *heaps,
                                                        size_t n_heaps, spt_group_mode mode,
                                                        spt_completion *completion, spt_error *err);

/**
 * Queue one heap, with the next heap count, on the first substream, at the stream's rate.
 *
 * :param heap: It and its values are borrowed until the completion is complete.
 * :param completion: Borrowed until complete; not in use.
 * :return: As :c:func:`spt_stream_send_heaps`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_heap(spt_stream *stream, spt_heap *heap,
                                                       spt_completion *completion, spt_error *err);

/**
 * Say to every endpoint that the stream ends, after all that is queued, and wait until that is
 * sent: a heap with :c:func:`spt_heap_add_end`, to each.
 *
 * :param stream: Borrowed; one without ``config.poll``, where completions are yours to take. It can
 *     send afterwards, but receivers no longer listen.
 * :param flavour: That of the heaps before; copied. ``NULL`` for SPEAD-64-40.
 * :return: As :c:func:`spt_stream_send_heap` and :c:func:`spt_stream_wait`; ``SPT_ERR_ARGUMENT``
 *     for a stream with ``config.poll``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_end(spt_stream *stream,
                                                      const spt_flavour *flavour, spt_error *err);

/** Whether a completion is complete, without waiting; so is one that was never used. */
SPT_API bool spt_completion_done(const spt_completion *completion);

/**
 * Wait until a completion is complete.
 *
 * :param stream: The stream it was sent with.
 * :param completion: Returned to the caller when complete; with ``config.poll``, by
 *     :c:func:`spt_stream_poll` alone. One that was never used is complete.
 * :param err: If something went wrong, says which heap and why, or ``NULL``.
 * :return: ``SPT_PENDING`` after the time, else the completion's status.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_wait(spt_stream *stream, spt_completion *completion,
                                                  int64_t timeout_ns, spt_error *err);

/**
 * Put into words what went wrong with a completion.
 *
 * :param completion: Complete.
 * :param err: Filled unless the status is ``SPT_OK``; or ``NULL``.
 * :return: The completion's status.
 */
SPT_API spt_status spt_completion_explain(const spt_completion *completion, spt_error *err);

/**
 * Take what is complete from a stream with ``config.poll``, in order of completion.
 *
 * :param completions: Filled with pointers that were handed to sends.
 * :param n: Room in ``completions``.
 * :return: How many were filled in; call again when it is ``n``.
 */
SPT_API size_t spt_stream_poll(spt_stream *stream, spt_completion **completions, size_t n);

/**
 * The file descriptor of a stream with ``config.poll``: readable when something has been completed
 * since :c:func:`spt_stream_poll` last emptied the list, which also makes it unreadable again.
 * Without a thread, also when there is something to send, and nothing holds it up: polling does it.
 *
 * :return: The descriptor, or -1.
 */
SPT_API int spt_stream_fd(const spt_stream *stream);

/**
 * Wait until all that is queued now is complete.
 *
 * :return: ``SPT_OK`` or ``SPT_PENDING``. Whether it went well is in the completions.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_flush(spt_stream *stream, int64_t timeout_ns);

/**
 * Give up on a completion: packets that have not been handed over are not sent, and it is complete
 * when this returns; with ``SPT_ERR_CANCELLED``, unless all of them had been, or one has failed.
 * With ``zero_copy`` this waits for a second at most: a device that is slower may read on.
 *
 * :param stream: The stream it was sent with.
 * :param completion: Returned as by :c:func:`spt_stream_wait`.
 */
SPT_API void spt_stream_cancel(spt_stream *stream, spt_completion *completion);

/* ---- 10. What a stream can tell about itself ------------------------------------------------- */

/** Limits of statistics. */
enum {
    SPT_N_ERRNO = 134, /**< Errors are counted for each ``errno`` below this. */
};

/** Counts since the stream was made. */
typedef struct spt_stats {
    uint64_t heaps;              /**< Heaps completed, whether well or not. */
    uint64_t packets;            /**< Packets that the transport took. */
    uint64_t bytes;              /**< Bytes in those packets, UDP and IP headers not counted. */
    uint64_t send_calls;         /**< System calls made to send. */
    uint64_t messages;           /**< Messages in those calls that were taken. */
    uint64_t gso_messages;       /**< Those of the messages that carried several packets. */
    uint64_t zero_copy_messages; /**< Messages whose memory the kernel was to read in place. */
    /** Those of the messages that it has copied after all, as it does on loopback. */
    uint64_t zero_copy_copied;
    uint64_t waits; /**< Times the socket was full and had to be waited for. */
    /** ns in which the thread of the pool did not sleep, but looked whether there is more to do. */
    uint64_t looking_ns;
    /**
     * The same of threads that wait for a completion and, on a stream without a thread, of those
     * that send for it. What several do at once is added up.
     */
    uint64_t waiting_looking_ns;
    uint64_t errors;                       /**< Packets that failed. */
    uint64_t errors_by_errno[SPT_N_ERRNO]; /**< Packets that failed, by ``errno``. */
} spt_stats;

/** Read the counts. Complete for all heaps whose completion has been seen. */
SPT_API void spt_stream_stats(const spt_stream *stream, spt_stats *stats);

/** When things happened to a heap; ns of ``CLOCK_MONOTONIC``, 0 for what did not happen. */
typedef struct spt_times {
    uint64_t cnt;             /**< The heap count. */
    uint64_t bytes;           /**< Bytes of its SPEAD packets. */
    uint64_t queued_ns;       /**< When it was queued. */
    uint64_t first_packet_ns; /**< Before the call that handed over its first packet. */
    uint64_t last_packet_ns;  /**< After the call that handed over its last packet. */
    uint64_t completed_ns;    /**< When it was complete: the memory is its owner's again. */
} spt_times;

/**
 * Copy out the times that are kept, oldest first.
 *
 * :param times: Filled.
 * :param n: Room in ``times``; where it is less, the newest are left out.
 * :return: How many were filled in: at most ``config.timeline``.
 */
SPT_API size_t spt_stream_timeline(spt_stream *stream, spt_times *times, size_t n);

/* ---- 11. Memory ------------------------------------------------------------------------------ */

/** Memory, and what it consists of. */
typedef struct spt_memory {
    void *data;       /**< Where it begins: at the beginning of a page. */
    size_t size;      /**< Its bytes: what was asked for, rounded up to whole huge pages. */
    size_t page_size; /**< Bytes in a page of it: 2 MiB, or those of an ordinary page. */
    /** Why it is not in huge pages, and what to do about it; ``NULL`` where it is. Not yours. */
    const char *reason;
} spt_memory;

/**
 * Allocate memory in huge pages, where the system has any: reserved ones, or those that it makes by
 * itself (see transhuge.rst of the kernel's documentation). The memory has been written
 * to, so that it costs nothing to touch any more, and holds zeros.
 *
 * A message that is sent without copying has a limit of pages: 7 packets of 9000 bytes where
 * they are huge, 4 where they are not.
 *
 * :param size: Bytes; at least 1.
 * :param memory: Filled; to be given to :c:func:`spt_free`, also after a failure, if to anything.
 * :return: ``SPT_OK``, with the pages that there are; ``SPT_ERR_MEMORY``, or ``SPT_ERR_ARGUMENT``
 *     for sizes that cannot be.
 */
SPT_API SPT_MUST_CHECK spt_status spt_alloc(size_t size, spt_memory *memory, spt_error *err);

/**
 * Free such memory.
 *
 * :param memory: What is in it is taken; all of it is set to zero. Once no heap that is being sent
 *     references it.
 */
SPT_API void spt_free(spt_memory *memory);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_STREAM_H */
