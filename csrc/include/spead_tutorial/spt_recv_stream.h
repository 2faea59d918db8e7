/* SPDX-License-Identifier: BSD-3-Clause */
/* How heaps are received: sockets, streams, and memory for them. Part of spt_recv.h. */
#ifndef SPEAD_TUTORIAL_SPT_RECV_STREAM_H
#define SPEAD_TUTORIAL_SPT_RECV_STREAM_H

#include "spead_tutorial/spt_received.h"
#include "spead_tutorial/spt_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 6. Sockets ------------------------------------------------------------------------------ */

/** How a UDP socket is read. Start from :c:macro:`SPT_RECEIVE_CONFIG_DEFAULT`. */
typedef struct spt_receive_config {
    /** Bytes of a packet at most, UDP and IP headers not counted; longer ones are malformed. */
    size_t max_size;
    /** Bytes asked for in the socket's receive buffer; 0 leaves the system's. */
    size_t buffer_size;
    /** The address of the interface that a multicast group is joined on (IPv4), or ``NULL``;
     * without a group, it has to be the address to listen at. */
    const char *interface_address;
    /** The interface that a multicast group is joined on (IPv6); 0 leaves it to the system. */
    unsigned interface_index;
    /**
     * Let the kernel hand over runs of equal packets as one (generic receive offload, ``UDP_GRO``
     * in udp(7)) where it can.
     */
    bool gro;
    /**
     * Share the port with other sockets that are opened with this, by the same user
     * (``SO_REUSEPORT`` in socket(7)); not for multicast groups, of which every socket gets all.
     * The kernel chooses a socket for each flow, which is what one socket sends, by a hash of its
     * addresses and ports, and chooses anew for all when one is opened or closed: heaps that are on
     * their way then may be cut in two. So open all of them before anything is sent, and close them
     * when all has come. Other programs of the same user can join in, and take a share.
     */
    bool reuse_port;
} spt_receive_config;

/** The defaults: packets of up to 9200 bytes, a receive buffer of 8 MiB, GRO, no shared port. */
#define SPT_RECEIVE_CONFIG_DEFAULT {9200, 8388608, NULL, 0, true, false}

/** The defaults for TCP, of which all that follows ``buffer_size`` means nothing: packets of up to
 * 65536 bytes, a receive buffer of 208 KiB. */
#define SPT_RECEIVE_TCP_CONFIG_DEFAULT {65536, 212992, NULL, 0, false, false}

/** Counts of a socket since it was opened. */
typedef struct spt_receive_stats {
    uint64_t datagrams; /**< Datagrams that came; of a connection, packets that were found. */
    uint64_t bytes;     /**< Their bytes, UDP and IP headers not counted. */
    /** Messages that the kernel handed them over in: each is one of them, or with GRO a run. */
    uint64_t messages;
    uint64_t calls; /**< System calls made to receive. */
    /** Datagrams whose payload the kernel has written to its place in a heap: it was expected. */
    uint64_t in_place;
    /**
     * What the socket had no room for (``SO_MEMINFO``, see socket(7)), in what the kernel keeps
     * in it: a datagram each, or with GRO a run of them.
     */
    uint64_t dropped;
    /** Bytes of its receive buffer, as the kernel counts them: twice what it says it has. */
    uint64_t buffer_size;
} spt_receive_stats;

/* ---- 7. Streams ------------------------------------------------------------------------------ */

/**
 * Receives heaps: readers bring packets, and those heaps that are finished wait in a ring until
 * you get them. All functions may be called from any thread, but not by what the stream itself
 * calls: its place function, and those of its memory.
 */
typedef struct spt_recv_stream spt_recv_stream;

/** How a stream receives. Start from :c:macro:`SPT_RECV_CONFIG_DEFAULT`. */
typedef struct spt_recv_config {
    spt_depacketizer_config heaps; /**< How heaps are put together. */
    /** Heaps that are finished, and have not been got, at most; at least 1. */
    size_t ring_heaps;
    /**
     * What happens to a heap that the ring has no room for: it is dropped, and counted. Otherwise
     * nothing is read until there is room, so that packets are lost in the socket instead.
     */
    bool drop_when_full;
    /** Whether heaps that something is missing of are dropped, and counted. */
    bool contiguous_only;
    bool explicit_start; /**< Whether nothing is read before :c:func:`spt_recv_stream_start`. */
    /** Whether the stream ends with a packet that says so; otherwise that is an item like others.
     */
    bool stop_on_stop_item;
} spt_recv_config;

/** The defaults: those of the depacketizer, a ring of 4 heaps that is waited for, and an end. */
#define SPT_RECV_CONFIG_DEFAULT {SPT_DEPACKETIZER_CONFIG_DEFAULT, 4, false, false, false, true}

/**
 * Make a stream. Without a reader it receives nothing.
 *
 * Mostly a thread of a pool reads. A stream that is made with ``NULL`` for a pool has none: who
 * asks for a heap with :c:func:`spt_recv_stream_get` reads the sockets, and has the heap while its
 * data is in the cache. What comes while you do not ask waits in the socket's buffer, and is lost
 * where that is full. Threads that ask at once take turns. :c:func:`spt_recv_stream_fd` is then
 * also readable when there is something to read.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_recv_stream_create(spt_thread_pool *pool, const spt_recv_config *config, spt_error *err);

/**
 * Receive from a UDP port.
 *
 * :param endpoint: The address to listen on: one of this machine's, that of a multicast group, or
 *     ``""`` for any, of IPv4 and IPv6; and the port, 0 for one that the system chooses.
 * :param config: Copied; ``NULL`` for the defaults.
 * :return: ``SPT_OK``; ``SPT_ERR_SYSTEM`` where the port is in use; ``SPT_ERR_ARGUMENT``;
 *     ``SPT_ERR_STOPPED``; ``SPT_ERR_MEMORY``; ``SPT_ERR_BUSY`` after
 *     :c:func:`spt_recv_stream_start`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp(spt_recv_stream *stream,
                                                          const spt_endpoint *endpoint,
                                                          const spt_receive_config *config,
                                                          spt_error *err);

/**
 * Receive from a socket of yours.
 *
 * :param socket: A UDP socket that is bound. It is duplicated: it stays yours, and may be closed.
 * :param config: Only ``max_size`` and ``gro`` are looked at. Copied; ``NULL`` for the defaults.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp_socket(spt_recv_stream *stream,
                                                                 int socket,
                                                                 const spt_receive_config *config,
                                                                 spt_error *err);

/**
 * Receive packets that are in memory, one after the other. The first one that is malformed ends
 * them. The stream ends with them.
 *
 * :param bytes: Borrowed until the stream is stopped or destroyed, or has ended.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_memory(spt_recv_stream *stream,
                                                             const void *bytes, size_t n_bytes,
                                                             spt_error *err);

/**
 * Receive from the first TCP connection that a port is asked for; there is no second. The stream
 * ends with it, and the connection with the stream. A packet that is longer than ``max_size`` is
 * counted as malformed as soon as it has said so, and passed over. Behind one that does not say how
 * long it is no other can be found: the stream ends with the error ``EPROTO``. A packet in whose
 * midst the connection ends is also malformed.
 *
 * :param endpoint: The address to listen on, one of this machine's or ``""`` for any, of IPv4 and
 *     IPv6; and the port, 0 for one that the system chooses.
 * :param config: Only ``max_size`` and ``buffer_size`` are looked at. Copied; ``NULL`` for
 *     :c:macro:`SPT_RECEIVE_TCP_CONFIG_DEFAULT`.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_tcp(spt_recv_stream *stream,
                                                          const spt_endpoint *endpoint,
                                                          const spt_receive_config *config,
                                                          spt_error *err);

/**
 * The same, with a socket of yours that listens.
 *
 * :param acceptor: One of TCP. It is duplicated, stays yours, and may be closed; from now on
 *     ``accept()`` does not wait (``O_NONBLOCK``).
 * :param config: Only ``max_size`` is looked at. Copied; ``NULL`` for the defaults.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_tcp_socket(spt_recv_stream *stream,
                                                                 int acceptor,
                                                                 const spt_receive_config *config,
                                                                 spt_error *err);

/**
 * Receive packets from a queue of this process. The stream ends when the queue has been stopped,
 * and is empty. Streams that receive from the same queue get some of its packets each.
 *
 * :param queue: Held until the stream is stopped or destroyed.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_inproc(spt_recv_stream *stream,
                                                             spt_inproc_queue *queue,
                                                             spt_error *err);

/**
 * Receive the UDP datagrams that are in a capture, as a program such as tcpdump writes: a file of
 * pcap or pcapng, of frames of Ethernet (with VLANs or without), of Linux's cooked ones (``-i
 * any``), or of IP. Datagrams that were captured before they were segmented are taken apart.
 * Fragments are not put together. Blocks of pcapng that hold no frame are passed over, whatever
 * their size; a section has up to 65536 interfaces. The stream ends with the file, or where that is
 * damaged; then ``failure`` of its counts says how, and at which byte. It is read through a buffer
 * of 1 MiB.
 *
 * :param path: Of the file.
 * :param filter: Which datagrams, in a part of libpcap's language: ``[ip|ip6] [src|dst]`` and
 *     ``host ADDRESS`` or ``net ADDRESS/BITS``, ``[udp] [src|dst]`` and ``port NUMBER`` or
 *     ``portrange FIRST-LAST``, joined by ``and``, ``or``, ``not`` and parentheses; ``""`` or
 *     ``NULL`` for all. Names are not looked up; VLANs and extension headers make no difference.
 * :return: ``SPT_OK``; ``SPT_ERR_SYSTEM`` where it cannot be opened; ``SPT_ERR_ARGUMENT`` for other
 *     files and filters; ``SPT_ERR_STOPPED``; ``SPT_ERR_MEMORY``; ``SPT_ERR_BUSY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp_pcap(spt_recv_stream *stream,
                                                               const char *path, const char *filter,
                                                               spt_error *err);

/**
 * Begin to read, for a stream that was made to be started. Readers cannot be added any more then.
 * For others it does nothing.
 *
 * :return: ``SPT_OK``; ``SPT_ERR_STOPPED`` after the stream has ended, or was stopped;
 *     ``SPT_ERR_SYSTEM`` where a socket cannot be watched.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_start(spt_recv_stream *stream, spt_error *err);

/**
 * Get the next heap that is finished.
 *
 * :param heap: Filled, for ``SPT_OK``: lent until :c:func:`spt_recv_stream_return`.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the stream
 *     has ended and there is no more.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_get(spt_recv_stream *stream, int64_t timeout_ns,
                                                      spt_received_heap **heap);

/**
 * Give a heap back, before the stream is destroyed. Where its ``payload`` has been set to ``NULL``
 * that is the caller's; otherwise it is put back.
 *
 * :param stream: That handed it out.
 * :param heap: Taken; may be ``NULL``.
 */
SPT_API void spt_recv_stream_return(spt_recv_stream *stream, spt_received_heap *heap);

/** How many heaps are in the ring: ``ring_heaps`` at most. */
SPT_API size_t spt_recv_stream_ready(spt_recv_stream *stream);

/**
 * A file descriptor that is readable while there is something to get, or the stream has ended. It
 * is to be polled, not to be read.
 */
SPT_API int spt_recv_stream_fd(spt_recv_stream *stream);

/**
 * The port that is received from.
 *
 * :return: That of the reader that was added last, which the system may have chosen; 0 where none
 *     has a socket, or after the stream is stopped.
 */
SPT_API int spt_recv_stream_port(spt_recv_stream *stream);

/**
 * Stop: nothing is received any more, ports are free, and live heaps end as they are. What is
 * finished can still be got. May be repeated; where another thread is stopping the stream, this
 * waits until it has.
 */
SPT_API void spt_recv_stream_stop(spt_recv_stream *stream);

/**
 * Stop and free. All heaps have been given back, and no other thread calls anything any more: only
 * one that is stopping the stream is waited for.
 */
SPT_API void spt_recv_stream_destroy(spt_recv_stream *stream);

/** Counts of frames that were read from captures. */
typedef struct spt_capture_stats {
    uint64_t frames; /**< Frames: those that are none of the following hold a whole UDP datagram. */
    uint64_t others; /**< Frames that are of no UDP, or not what the filter asks for. */
    /** Fragments of datagrams. */
    uint64_t fragments;
    uint64_t cut; /**< Frames that were not captured as a whole. */
} spt_capture_stats;

/** Where everything went that came to a stream. */
typedef struct spt_recv_stats {
    spt_account account;       /**< Packets and heaps. */
    spt_receive_stats sockets; /**< All of its sockets together. */
    /** Packets that had been read when the stream ended, and were not looked at any more. */
    uint64_t after_end;
    uint64_t batches;   /**< Times that a reader had a look, and found packets; */
    uint64_t max_batch; /**< the most that it found at once. */
    /** Heaps that were dropped because something of them was missing; */
    uint64_t incomplete_dropped;
    uint64_t incomplete_cnt;      /**< of the last of these, the count, */
    uint64_t incomplete_received; /**< how much of it had arrived, and */
    uint64_t incomplete_length;   /**< how long it is; 0 where no packet had said so. */
    uint64_t ring_dropped;        /**< Heaps that were dropped because the ring was full. */
    uint64_t ring_waits;          /**< Times that a reader had to wait because the ring was full. */
    /** ns that the longest of these waits took. */
    uint64_t longest_ring_wait_ns;
    /**
     * Without a thread: ns that the longest time took in which no call read the sockets, though
     * there may have been something; 0 with one. That ended with the next read. Where a read has
     * found no more, and :c:func:`spt_recv_stream_fd` is used, that is watched, and none begins.
     */
    uint64_t longest_unread_ns;
    /** The ``errno`` with which a socket or a file failed, which ended the stream; else 0. */
    int sys_errno;
    char failure[240];          /**< How a file failed, in a line, and at which byte; else empty. */
    spt_capture_stats captures; /**< All captures together. */
} spt_recv_stats;

/** Read the counts: those of what has been read so far, at one moment. */
SPT_API void spt_recv_stream_stats(spt_recv_stream *stream, spt_recv_stats *stats);

/* ---- 8. Memory for heaps --------------------------------------------------------------------- */

/** How memory is mapped. */
typedef struct spt_mmap_config {
    /**
     * A sum of ``MAP_HUGETLB`` and the size of its pages, ``MAP_LOCKED``, ``MAP_NORESERVE`` and
     * ``MAP_POPULATE`` (see mmap(2)).
     */
    int flags;
    /**
     * Use huge pages where the system has any: reserved ones, or those that it makes by itself.
     * Each heap takes whole ones then.
     */
    bool prefer_huge;
} spt_mmap_config;

/**
 * Memory that is mapped for each heap, and unmapped after it.
 *
 * :param config: Borrowed for as long as the memory is used.
 * :param memory: Filled on success.
 * :return: ``SPT_OK``, or ``SPT_ERR_ARGUMENT`` for other flags.
 */
SPT_API SPT_MUST_CHECK spt_status spt_mmap_memory(const spt_mmap_config *config,
                                                  spt_heap_memory *memory, spt_error *err);

/**
 * Keeps buffers that heaps have left for those that follow: no page of them has to be had from the
 * system again. A heap that needs one while there is none gets a new one; there is no limit.
 *
 * Buffers that can be away at a time: a heap has one while it is live, while it waits in the ring
 * of its stream and before that, and while you have it. That is ``max_heaps * substreams +
 * ring_heaps + 1``, and as many as you have; one that does not say how long it is has two while it
 * grows.
 */
typedef struct spt_memory_pool spt_memory_pool;

/** What a pool keeps. */
typedef struct spt_memory_pool_config {
    size_t lower;    /**< Bytes that are asked for at least; for less, the pool is passed by. */
    size_t upper;    /**< Bytes that are asked for at most, and bytes of a buffer. */
    size_t max_free; /**< Buffers that are kept at most: those that come back above it are freed. */
    size_t initial;  /**< Buffers that are made now, with their pages. */
    /** Where fewer are left, a thread makes others, up to this; 0 for none. */
    size_t low_water;
    /**
     * Where buffers come from; ``{0}`` for malloc and free. Its functions are called from any
     * thread.
     */
    spt_heap_memory base;
} spt_memory_pool_config;

/**
 * Make a pool.
 *
 * :param threads: Borrowed until the pool is destroyed, to make buffers; ``NULL`` without
 *     ``low_water``. A thread that makes one does not read packets meanwhile.
 * :param config: Copied. What ``base`` works on has to stay until all buffers are back.
 */
SPT_API SPT_MUST_CHECK spt_memory_pool *spt_memory_pool_create(spt_thread_pool *threads,
                                                               const spt_memory_pool_config *config,
                                                               spt_error *err);

/**
 * The memory that a pool gives, for any number of depacketizers, streams and threads.
 *
 * :param pool: Borrowed. Nothing is to be got from it once it is destroyed.
 */
SPT_API spt_heap_memory spt_memory_pool_memory(spt_memory_pool *pool);

/**
 * Destroy a pool, after the streams that get from it. Buffers that are away may be put back later,
 * even after its threads have gone: the last of them frees what is left of it.
 */
SPT_API void spt_memory_pool_destroy(spt_memory_pool *pool);

/** What was asked of a pool since it was made, and what it has. */
typedef struct spt_memory_pool_stats {
    /** Requests: the sum of those that got a buffer of the pool, of ``empty`` and ``passed_by``. */
    uint64_t gets;
    uint64_t empty;     /**< Requests that came while the pool had no buffer. */
    uint64_t passed_by; /**< Requests for less than ``lower`` or more than ``upper`` bytes. */
    size_t largest;     /**< Bytes of the largest request. */
    size_t free;        /**< Buffers that it has now, */
    size_t fewest_free; /**< and that it had when they were fewest. */
    size_t in_use;      /**< Buffers of the pool that are away now, */
    size_t most_in_use; /**< and that were away when they were most. */
} spt_memory_pool_stats;

/** Read the counts, at one moment. */
SPT_API void spt_memory_pool_read_stats(spt_memory_pool *pool, spt_memory_pool_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_RECV_STREAM_H */
