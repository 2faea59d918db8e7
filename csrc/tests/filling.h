/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what tests of chunks have: rings, chunks of four heaps each, the packets of heap n, whose
 * place follows from n, and sockets that they come through.
 */
#ifndef FILLING_H
#define FILLING_H

#include "support.h"

enum {
    HEAP = 100, /* bytes */
    HALF = HEAP / 2,
    HEAPS = 4,   /* in a chunk */
    CHUNKS = 12, /* that there are */
    TIMESTAMP = 0x1600,
};

static spt_thread_pool *pool;
static spt_thread_pool *reads; /* that one, or NULL: who asks for chunks reads */
static spt_chunk_ring *data_ring, *free_ring;
static spt_chunk chunks[CHUNKS];
static int out[HEAPS] = {-1, -1, -1, -1}; /* sockets that send */
static made_packet made;

static inline void end_filling(void)
{
    END(spt_thread_pool, pool);
    END(spt_chunk_ring, data_ring);
    END(spt_chunk_ring, free_ring);
    for (int i = 0; i < CHUNKS; i++)
        free_chunk(&chunks[i]);
    for (int i = 0; i < HEAPS; i++)
        end_fd(&out[i]);
}

/* Rings, of which that for full chunks has so much room, and so many free chunks. */
static inline void begin_rings(size_t room, size_t n_free)
{
    data_ring = NEW(spt_chunk_ring_create(room, NULL));
    free_ring = NEW(spt_chunk_ring_create(CHUNKS, NULL));
    for (size_t i = 0; i < n_free; i++)
        put_chunk(free_ring, &chunks[i]);
}

static inline void begin_filling(bool has_threads, size_t room, size_t n_free, size_t marks)
{
    pool = new_pool(HEAPS);
    reads = has_threads ? pool : NULL;
    for (int i = 0; i < CHUNKS; i++)
        chunks[i] = make_chunk(HEAPS * HEAP, marks, HEAPS);
    begin_rings(room, n_free);
}

/* Where a heap belongs, for streams that ask of each its TIMESTAMP. */
static inline void place_by_timestamp(spt_place_data *data, size_t size, void *user)
{
    (void)size, (void)user;
    uint64_t n = (uint64_t)data->items[0];
    data->chunk_id = (int64_t)(n / HEAPS);
    data->heap_index = n % HEAPS;
    data->heap_offset = n % HEAPS * HEAP;
}

static inline spt_chunk_config chunks_by_timestamp(size_t max_chunks)
{
    static const uint64_t id = TIMESTAMP;
    return (spt_chunk_config){
        .place = place_by_timestamp,
        .items = &id,
        .n_items = 1,
        .max_chunks = max_chunks,
        .data_ring = data_ring,
        .free_ring = free_ring,
    };
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Half of a heap: the first one, or the second. */
static inline void make_half(uint64_t n, int which)
{
    make_part(&made, n + 1, HEAP, which ? HALF : 0, HALF);
    make_add(&made, true, TIMESTAMP, n);
    make_end_of(&made, n, which ? HALF : 0, HALF);
}

static inline void append_half(made_series *to, uint64_t n, int which)
{
    make_half(n, which);
    series_add(to, &made);
}

static inline void append_heap(made_series *to, uint64_t n)
{
    append_half(to, n, 0);
    append_half(to, n, 1);
}

static inline void receive_from(spt_recv_stream *by, const made_series *s)
{
    REQUIRE(spt_recv_stream_add_memory(by, s->bytes, s->at[s->n], NULL) == SPT_OK);
}

/* Have a stream listen with a socket, in so many readers, and another one send there. */
static inline void add_socket(spt_recv_stream *to, int which, int readers)
{
    int port, listening = listen_on_loopback(&port, 212992);
    out[which] = connect_to_loopback(port);
    for (int i = 0; i < readers; i++)
        REQUIRE(spt_recv_stream_add_udp_socket(to, listening, NULL, NULL) == SPT_OK);
    close(listening);
}

static inline void send_made(int which)
{
    REQUIRE(send(out[which], made.bytes, made.size, 0) == (ssize_t)made.size);
}

static inline void send_half(int which, uint64_t n, int half)
{
    make_half(n, half);
    send_made(which);
}

static inline void send_heap(int which, uint64_t n)
{
    send_half(which, n, 0);
    send_half(which, n, 1);
}

/* Have the readers of streams without a thread run. */
static inline void read_on(spt_recv_stream *any)
{
    if (reads == NULL)
        (void)get_none_of(any, 0);
}

static inline void wait_for_packets(spt_recv_stream *of, uint64_t n)
{
    while (stats_of(of).account.packets < n)
        read_on(of);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* What is present has the bytes of its heap. */
static inline void check_bytes_of(const spt_chunk *chunk)
{
    for (uint64_t i = 0; i < HEAPS; i++) {
        const uint8_t *heap = (uint8_t *)chunk->data + i * HEAP;
        for (uint64_t at = 0; chunk->present[i] == 1 && at < HEAP; at++)
            CHECK_EQUAL(heap[at], byte_of((uint64_t)chunk->chunk_id * HEAPS + i, at));
    }
}

/* The next chunk is this one, and so it says of its heaps. */
static inline spt_chunk *check_chunk(int64_t id, const char *present)
{
    spt_chunk *chunk = get_chunk_of(data_ring);
    CHECK_EQUAL(chunk->chunk_id, id);
    for (size_t i = 0; i < HEAPS; i++)
        CHECK_EQUAL(chunk->present[i], present[i] - '0');
    check_bytes_of(chunk);
    return chunk;
}

/* The chunks from one up to another are next. */
static inline void check_chunks(int64_t first, int64_t end, const char *present)
{
    for (int64_t id = first; id < end; id++)
        check_chunk(id, present);
}

/* Gets chunks, looks at them, counts their heaps, and gives them back. */
static inline void *consume(void *count)
{
    spt_chunk *chunk;
    int64_t last = -1;
    while (spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK) {
        CHECK(chunk->chunk_id > last);
        last = chunk->chunk_id;
        check_bytes_of(chunk);
        for (int i = 0; i < HEAPS; i++)
            *(uint64_t *)count += chunk->present[i];
        if (spt_chunk_ring_put(free_ring, chunk, 0) != SPT_OK)
            break; /* it was stopped */
    }
    return NULL;
}

#endif
