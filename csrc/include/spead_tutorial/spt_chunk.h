/* SPDX-License-Identifier: BSD-3-Clause */
/* Heaps that are gathered in chunks: rings, streams, and groups of those. Part of spt_recv.h. */
#ifndef SPEAD_TUTORIAL_SPT_CHUNK_H
#define SPEAD_TUTORIAL_SPT_CHUNK_H

#include "spead_tutorial/spt_recv_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 9. Rings of chunks ---------------------------------------------------------------------- */

/** Memory that many heaps share. It is yours, and in one ring or stream at a time. */
typedef struct spt_chunk {
    void *data;       /**< Where payload goes. What is not marked in ``present`` may be anything. */
    size_t data_size; /**< Bytes of it. */
    uint8_t *present; /**< A byte for each heap, or packet: 1 where it has arrived, else 0. */
    /** Bytes of it. */
    size_t present_size;
    uint8_t *extra;     /**< What the place function tells of heaps; or ``NULL``. */
    size_t extra_size;  /**< Bytes of it. */
    int64_t chunk_id;   /**< Which chunk it is, once a stream has filled it. */
    uint64_t stream_id; /**< Which stream has filled it. */
    void *user;         /**< Yours. */
    /* Private: the next one in the ring. */
    struct spt_chunk *next_;
} spt_chunk;

/**
 * A queue of chunks that has an end, in both senses. All functions may be called from any thread.
 */
typedef struct spt_chunk_ring spt_chunk_ring;

/**
 * Make a ring.
 *
 * :param capacity: Chunks in it at most, at least 1; streams that end may put in more.
 */
SPT_API SPT_MUST_CHECK spt_chunk_ring *spt_chunk_ring_create(size_t capacity, spt_error *err);

/** Free a ring; chunks that are in it are the caller's. No stream uses it any more. */
SPT_API void spt_chunk_ring_destroy(spt_chunk_ring *ring);

/**
 * Put a chunk in.
 *
 * :param chunk: Borrowed until it is got.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_ERR_STOPPED``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_chunk_ring_put(spt_chunk_ring *ring, spt_chunk *chunk,
                                                     int64_t timeout_ns);

/**
 * Get the chunk that has been in it for longest; from a ring of free chunks, from the first stream
 * on that has it as that, the one that was put in last: its memory is most likely in the cache.
 *
 * :param chunk: Filled, for ``SPT_OK``; else ``NULL``.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the ring has
 *     been stopped and is empty.
 */
SPT_API SPT_MUST_CHECK spt_status spt_chunk_ring_get(spt_chunk_ring *ring, int64_t timeout_ns,
                                                     spt_chunk **chunk);

/** How many chunks are in a ring. */
SPT_API size_t spt_chunk_ring_size(spt_chunk_ring *ring);

/** How many chunks a ring has room for. */
SPT_API size_t spt_chunk_ring_capacity(const spt_chunk_ring *ring);

/** Stop: nothing can be put in any more; what is in it can still be got. */
SPT_API void spt_chunk_ring_stop(spt_chunk_ring *ring);

/** Say that one more puts chunks in. Streams do so by themselves. */
SPT_API void spt_chunk_ring_add_producer(spt_chunk_ring *ring);

/**
 * Say that one of them puts no chunks in any more. The ring stops with the last of them.
 *
 * :return: Whether it was the last.
 */
SPT_API bool spt_chunk_ring_remove_producer(spt_chunk_ring *ring);

/**
 * A file descriptor that is readable while there is something to get, or the ring is stopped. It is
 * to be polled, not to be read. Where streams without a thread fill the ring, it is also readable
 * when there is something to read for them: then there may be nothing to get yet.
 */
SPT_API int spt_chunk_ring_data_fd(spt_chunk_ring *ring);

/** The same for room, or the ring is stopped. */
SPT_API int spt_chunk_ring_space_fd(spt_chunk_ring *ring);

/* ---- 10. Streams of chunks ------------------------------------------------------------------- */

/** What a place function is told of a heap, and says of it: 80 bytes. */
typedef struct spt_place_data {
    const uint8_t *packet; /**< The heap's first packet that came. */
    size_t packet_size;    /**< Bytes of it. */
    /** A value for each item that was asked for: its immediate in this packet, or -1 without. */
    const int64_t *items;
    /** To be set: the chunk that the heap belongs to; it is refused where this stays negative. */
    int64_t chunk_id;
    uint64_t heap_index;   /**< To be set: which byte of ``present`` is the heap's. */
    uint64_t heap_offset;  /**< To be set: where in the chunk's data the heap begins. */
    uint64_t *batch_stats; /**< Counters to be changed: see ``n_stats`` in the configuration. */
    uint8_t *extra;        /**< Room for what the chunk is to be told of the heap. */
    uint64_t extra_offset; /**< To be set: where in the chunk's ``extra`` that goes. */
    uint64_t extra_size;   /**< To be set: bytes of it; 0 at first. */
} spt_place_data;

/**
 * Say where a heap belongs. It is called by the worker, at the first packet of each heap that has
 * payload. What it says is checked: a heap is written nowhere but in its chunk. It
 * calls no function of a stream that receives, nor of a ring of chunks: their locks are held.
 *
 * :param data: To be read, and filled in.
 * :param data_size: Bytes of it.
 * :param user: As configured.
 */
typedef void (*spt_place_function)(spt_place_data *data, size_t data_size, void *user);

/** How a stream fills chunks. */
typedef struct spt_chunk_config {
    spt_place_function place; /**< Decides. */
    void *place_user;         /**< Handed to it. */
    const uint64_t *items;    /**< Ids of the items that it wants to know the values of. Copied. */
    size_t n_items;           /**< How many. */
    /** Chunks that are filled at a time, at least 1: a newer one pushes out the oldest. */
    size_t max_chunks;
    size_t max_heap_extra; /**< Bytes that a place function may put into ``extra``. */
    /**
     * Bytes of payload in a packet, where ``present`` has a byte for each packet: from a heap's
     * index on, one for each run of this length in bytes. 0 where it has one for each heap.
     */
    size_t packet_payload_size;
    size_t n_stats; /**< Counters in ``batch_stats``. */
    /** Whether such a counter keeps the largest value of a batch; otherwise batches are added. */
    const bool *stat_is_maximum;
    uint64_t stream_id; /**< What chunks have as their ``stream_id``. */
    /** Where chunks go that are filled. Borrowed until the stream is destroyed. */
    spt_chunk_ring *data_ring;
    /** Where chunks come from, the newest first. Borrowed until the stream is destroyed. */
    spt_chunk_ring *free_ring;
} spt_chunk_config;

/** Chunk ids that are believed: fewer bits than any item can have. */
#define SPT_MAX_CHUNK_ID ((INT64_C(1) << 56) - 1)
/** How far a chunk may be ahead of the newest: a heap further away is refused. */
#define SPT_MAX_CHUNK_STEP (INT64_C(1) << 32)

/**
 * Make a stream that fills chunks: readers are added as to any other, and there are no heaps to be
 * got. It waits for free chunks, and for room for those that are filled. It ends as others do: then
 * those that it has begun are put into the ring for them, which stops when no stream puts chunks
 * in any more. :c:func:`spt_recv_stream_stop` stops both rings.
 *
 * Where it has no pool, who asks the ring of filled chunks for one with
 * :c:func:`spt_chunk_ring_get` reads, and :c:func:`spt_chunk_ring_data_fd` is readable when a
 * socket has something to read. Streams that fill chunks for the same ring take turns, and so do
 * threads that ask at once.
 *
 * :param config: Copied. Memory and the ring of heaps are not used, nor are heaps taken that do not
 *     say how long they are.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_recv_stream_create_chunks(spt_thread_pool *pool, const spt_recv_config *config,
                              const spt_chunk_config *chunks, spt_error *err);

/** What became of heaps and chunks. */
typedef struct spt_chunk_stats {
    uint64_t too_old_heaps; /**< Heaps whose chunk had been pushed out. */
    /** Heaps that were refused by the place function, or for what it said. */
    uint64_t rejected_heaps;
    /** Those of the latter that it had a place for where there is none. */
    uint64_t misplaced_heaps;
    uint64_t chunks;                /**< Chunks that were put into the ring. */
    uint64_t chunk_waits;           /**< Times that the worker waited for a free chunk. */
    uint64_t longest_chunk_wait_ns; /**< ns that the longest of these waits took. */
    /** Times that the worker waited for room for one that was filled. */
    uint64_t room_waits;
    uint64_t longest_room_wait_ns; /**< ns that the longest of these waits took. */
    /** What was wrong with the last place that there is not; empty before. */
    char misplaced[160];
} spt_chunk_stats;

/**
 * Read the counts, those of what has been read so far.
 *
 * :param stream: That fills chunks.
 * :param place_stats: Filled with what the place function has counted in all batches: room for
 *     ``n_stats`` of them; or ``NULL``.
 */
SPT_API void spt_recv_stream_chunk_stats(spt_recv_stream *stream, spt_chunk_stats *stats,
                                         uint64_t *place_stats);

/* ---- 11. Groups of streams that fill the same chunks ----------------------------------------- */

/**
 * Streams that share one sequence of chunks, each of which writes a part of every chunk: never the
 * same bytes as another. All functions may be called from any thread, but not by what a stream
 * itself calls.
 */
typedef struct spt_chunk_group spt_chunk_group;

/** What the streams of a group share. */
typedef struct spt_chunk_group_config {
    /**
     * Chunks that are filled at a time, at least 1: a newer one pushes out the oldest. Each stream
     * fills ``max_chunks`` of its own among them, up to the newest that it has seen.
     */
    size_t max_chunks;
    /**
     * Whether a chunk that is pushed out waits until every stream has left it. One that receives
     * nothing then holds up all, from the first chunk on: :c:func:`spt_chunk_group_read_stats` says
     * which. Otherwise streams that lag are made to leave it at once: their heaps in it end, and
     * those that come for it afterwards are too old.
     */
    bool lossless;
    /** Where chunks go that are filled. Borrowed until the group is destroyed. */
    spt_chunk_ring *data_ring;
    /** Where chunks come from. Borrowed until the group is destroyed. */
    spt_chunk_ring *free_ring;
} spt_chunk_group_config;

/** Make a group, to which streams are to be added. */
SPT_API SPT_MUST_CHECK spt_chunk_group *spt_chunk_group_create(const spt_chunk_group_config *config,
                                                               spt_error *err);

/**
 * Add a stream, as :c:func:`spt_recv_stream_create_chunks` makes them: all of them before the first
 * reader. Chunks leave in the order of their ids, each once. A stream that ends by itself leaves
 * the others alone; with the last one the ring for data stops. To stop one of them with
 * :c:func:`spt_recv_stream_stop` stops all, and both rings.
 *
 * :param group: Owns the stream, which is not to be destroyed by itself.
 * :param pool: Borrowed until the group is destroyed. It has a thread for each stream of the group
 *     that it is given for. ``NULL`` for streams without a thread.
 * :param chunks: Copied. Its rings are those of the group, and no others. ``max_chunks`` is at
 *     most the group's. ``stream_id`` is that of the chunks which this stream was the first to
 *     need.
 * :param err: Details of a failure, or ``NULL``: ``SPT_ERR_ARGUMENT``, or ``SPT_ERR_BUSY`` after a
 *     reader was added, or the group was stopped.
 * :return: Lent until the group is destroyed; or ``NULL``.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_chunk_group_add(spt_chunk_group *group, spt_thread_pool *pool, const spt_recv_config *config,
                    const spt_chunk_config *chunks, spt_error *err);

/** Stop all streams, and both rings. What has been filled, or begun, can still be got. */
SPT_API void spt_chunk_group_stop(spt_chunk_group *group);

/** Stop, and free the group and its streams. No other thread calls anything of them any more. */
SPT_API void spt_chunk_group_destroy(spt_chunk_group *group);

/** How the streams of a group wait for each other. */
typedef struct spt_chunk_group_stats {
    /** Times that streams waited for another one to leave the oldest chunk. */
    uint64_t member_waits;
    uint64_t longest_member_wait_ns; /**< ns that the longest of these waits took. */
    /** Whether they do now; the rest says for whom, else it is 0: */
    bool waits;
    size_t slow_member;    /**< how many streams were added before that one, */
    int64_t slow_chunk_id; /**< which chunk it holds, */
    uint64_t slow_ns;      /**< and for how many ns it has been waited for. */
} spt_chunk_group_stats;

/** Read the counts, at one moment. Those of packets, heaps and chunks are the streams' own. */
SPT_API void spt_chunk_group_read_stats(spt_chunk_group *group, spt_chunk_group_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_CHUNK_H */
