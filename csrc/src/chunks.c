/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the chunks that a stream fills: a window of ids that follow each other, from the oldest
 * chunk that heaps are still placed into up to the newest. Knows nothing of readers or locks.
 *
 * What a place function says is believed only as far as it lies within its chunk, and its id not
 * further ahead than any stream would jump: a wrong id that is believed leaves all that come after
 * it too old.
 */
#include "chunks.h"

#include "chunk_ring.h"
#include "status.h"
#include "waits.h"
#include "wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spti_chunks {
    spti_sink sink; /* first, so that one can be had from the other */
    spti_placing placing;
    spt_chunk_config config;
    uint64_t *items;
    int64_t *values;
    uint8_t *extra;
    uint64_t *batch_stats, *place_stats;
    bool *stat_is_maximum;
    spt_depacketizer *d;

    spt_chunk **window; /* that of an id is at its remainder */
    int64_t oldest;     /* id; all below are too old */
    size_t n;
    bool begun;
    bool stops; /* at a heap that says so, which has no place */

    spt_place_data decision;    /* what was said of a heap that has to wait, */
    const uint8_t *decided_for; /* whose packet is there, or NULL; */
    uint64_t decided_cnt;       /* which may be lost for want of memory: then others come there */
    spti_waits for_chunk, for_room;
    spti_chunk_watch data_watch, free_watch;
    spt_chunk_stats stats;
};

static spt_status note_wait(spti_waits *w, spt_status status)
{
    spti_waits_note(w, status == SPT_PENDING);
    return status;
}

/* ---- The window ------------------------------------------------------------------------------ */

static spt_chunk **at(const spti_chunks *c, int64_t id)
{
    return &c->window[(size_t)id % c->config.max_chunks];
}

/* The oldest chunk is handed over. Its heaps end before, so that nothing is written any more. */
static spt_status push_out(spti_chunks *c)
{
    spt_chunk *chunk = *at(c, c->oldest);
    spti_depacketizer_give_up(c->d, chunk);
    spt_status status = spti_chunk_ring_try_put(c->config.data_ring, chunk);
    if (status == SPT_OK) {
        c->oldest++;
        c->n--;
        c->stats.chunks++;
    }
    return note_wait(&c->for_room, status);
}

/* A free chunk becomes the newest. */
static spt_status take_in(spti_chunks *c)
{
    spt_chunk *chunk;
    spt_status status = spti_chunk_ring_try_get(c->config.free_ring, &chunk);
    if (status == SPT_OK) {
        if (chunk->present_size > 0)
            memset(chunk->present, 0, chunk->present_size);
        chunk->chunk_id = c->oldest + (int64_t)c->n;
        chunk->stream_id = c->config.stream_id;
        *at(c, chunk->chunk_id) = chunk;
        c->n++;
    }
    return note_wait(&c->for_chunk, status);
}

/* Have the window reach up to an id. It can be called again where it has to wait. */
static spt_status move_up_to(spti_chunks *c, int64_t id)
{
    int64_t span = (int64_t)c->config.max_chunks;
    int64_t oldest = id < span ? 0 : id - span + 1;
    c->begun = true;
    while (c->n > 0 && c->oldest < oldest)
        SPTI_TRY(push_out(c));
    if (c->oldest < oldest)
        c->oldest = oldest; /* those in between there never were */
    while (c->oldest + (int64_t)c->n <= id)
        SPTI_TRY(take_in(c));
    return SPT_OK;
}

/* ---- Placing heaps --------------------------------------------------------------------------- */

/* Ask the place function. */
static void ask(spti_chunks *c, const spt_received_packet *first)
{
    unsigned bits = first->heap_address_bits;
    for (size_t i = 0; i < c->config.n_items; i++)
        c->values[i] = -1;
    for (size_t i = 0; i < first->n_pointers && c->config.n_items > 0; i++) {
        uint64_t word = spti_get(first->pointers + SPTI_POINTER * i, SPTI_POINTER);
        for (size_t j = 0; spti_is_immediate(word) && j < c->config.n_items; j++)
            if (c->items[j] == spti_pointer_id(word, bits))
                c->values[j] = (int64_t)(word & spti_address_mask(bits));
    }
    c->decision = (spt_place_data){
        .packet = first->pointers - SPTI_POINTER,
        .packet_size = first->size,
        .items = c->values,
        .chunk_id = -1,
        .batch_stats = c->batch_stats,
        .extra = c->extra,
    };
    c->config.place(&c->decision, sizeof(c->decision), c->config.place_user);
}

/* Refuse a heap for what was said of it. */
__attribute__((format(printf, 3, 4))) static spt_status
misplaced(spti_chunks *c, const spt_received_packet *first, const char *format, ...)
{
    char said[100];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
    c->stats.rejected_heaps++;
    c->stats.misplaced_heaps++;
    snprintf(c->stats.misplaced, sizeof(c->stats.misplaced),
             "heap %" PRIu64 " has %" PRIu64 " bytes; the place function said %s", first->cnt,
             first->heap_length, said);
    return SPT_ERR_ARGUMENT;
}

/* Whether a heap belongs to a chunk that there is, or may be. */
static spt_status check_id(spti_chunks *c, const spt_received_packet *first)
{
    int64_t id = c->decision.chunk_id;
    if (id < 0) {
        c->stats.rejected_heaps++;
        return SPT_ERR_ARGUMENT;
    }
    int64_t newest = c->begun ? c->oldest + (int64_t)c->n : SPT_MAX_CHUNK_ID;
    int64_t most = SPT_MAX_CHUNK_ID - newest < SPT_MAX_CHUNK_STEP ? SPT_MAX_CHUNK_ID
                                                                  : newest + SPT_MAX_CHUNK_STEP;
    if (id > most)
        return misplaced(
            c, first, "chunk_id %" PRId64 ", and the most that is believed is %" PRId64, id, most);
    if (c->begun && id < c->oldest) {
        c->stats.too_old_heaps++;
        return SPT_ERR_ARGUMENT;
    }
    return SPT_OK;
}

/* Whether all of a heap lies within its chunk. */
static spt_status check_place(spti_chunks *c, const spt_chunk *chunk,
                              const spt_received_packet *first)
{
    const spt_place_data *said = &c->decision;
    uint64_t packet = c->config.packet_payload_size;
    uint64_t marks = packet == 0 ? 1 : (first->heap_length - 1) / packet + 1;
    if (first->heap_length > chunk->data_size ||
        said->heap_offset > chunk->data_size - first->heap_length)
        return misplaced(c, first, "heap_offset %" PRIu64 ", and its chunk has %zu bytes of data",
                         said->heap_offset, chunk->data_size);
    if (marks > chunk->present_size || said->heap_index > chunk->present_size - marks)
        return misplaced(c, first, "heap_index %" PRIu64 ", and its chunk has room for %zu",
                         said->heap_index, chunk->present_size);
    if (said->extra_size == 0)
        return SPT_OK;
    if (said->extra_size > c->config.max_heap_extra)
        return misplaced(c, first, "extra_size %" PRIu64 ", and max_heap_extra is %zu",
                         said->extra_size, c->config.max_heap_extra);
    if (said->extra_size > chunk->extra_size ||
        said->extra_offset > chunk->extra_size - said->extra_size)
        return misplaced(c, first, "extra_offset %" PRIu64 ", and its chunk has %zu bytes of extra",
                         said->extra_offset, chunk->extra_size);
    return SPT_OK;
}

static spt_status find_place(spti_chunks *c, spt_received_heap *heap,
                             const spt_received_packet *first)
{
    const spt_place_data *said = &c->decision;
    SPTI_TRY(check_id(c, first));
    spt_status status = move_up_to(c, said->chunk_id);
    if (status == SPT_DONE || status == SPT_ERR_STOPPED) {
        c->sink.closed = true;
        c->stats.rejected_heaps++;
        return SPT_ERR_STOPPED;
    }
    SPTI_TRY(status);
    spt_chunk *chunk = *at(c, said->chunk_id);
    SPTI_TRY(check_place(c, chunk, first));
    if (said->extra_size > 0)
        memcpy(chunk->extra + said->extra_offset, c->extra, said->extra_size);
    heap->user = chunk;
    heap->user_number = said->heap_index;
    heap->payload = (uint8_t *)chunk->data + said->heap_offset;
    return SPT_OK;
}

/* A heap that had to wait comes again with its packet, and is not asked for again. */
static spt_status place(void *user, spt_received_heap *heap, const spt_received_packet *first)
{
    spti_chunks *c = user;
    if (first->is_stop && c->stops)
        return SPT_OK;
    if (c->decided_for != first->pointers || c->decided_cnt != first->cnt)
        ask(c, first);
    spt_status status = find_place(c, heap, first);
    c->decided_for = status == SPT_PENDING ? first->pointers : NULL;
    c->decided_cnt = first->cnt;
    return status;
}

/* ---- Marks of packets ------------------------------------------------------------------------ */

static void mark(void *user, const spt_received_heap *heap, uint64_t offset, size_t length,
                 size_t n)
{
    const spti_chunks *c = user;
    const spt_chunk *chunk = heap->user;
    if (chunk == NULL || length == 0)
        return; /* as it is for the heap that stops the stream */
    for (size_t i = 0; i < n; i++)
        chunk->present[heap->user_number + (offset + i * length) / c->config.packet_payload_size] =
            1;
}

static bool is_unmarked(void *user, const spt_received_heap *heap, uint64_t begin, size_t n_bytes)
{
    const spti_chunks *c = user;
    const spt_chunk *chunk = heap->user;
    const uint8_t *marks = chunk->present + heap->user_number;
    uint64_t each = c->config.packet_payload_size;
    if (each == 0)
        return marks[0] == 0;
    /* The heap's own packets may have set the mark that they end in. */
    size_t first = begin / each + (begin % each > 0), end = (begin + n_bytes - 1) / each + 1;
    return first >= end || memchr(marks + first, 1, end - first) == NULL;
}

const spti_placing *spti_chunks_placing(const spti_chunks *c)
{
    return &c->placing;
}

/* ---- Heaps that are finished ----------------------------------------------------------------- */

static bool take(spti_sink *sink, spt_received_heap *heap, bool last)
{
    spti_chunks *c = (spti_chunks *)sink;
    const spt_chunk *chunk = heap->user; /* NULL for a heap that goes nowhere */
    (void)last;
    if (heap->state == SPT_HEAP_COMPLETE && chunk != NULL && c->config.packet_payload_size == 0)
        chunk->present[heap->user_number] = 1;
    spt_depacketizer_recycle(c->d, heap);
    return true;
}

/* Hand over what there is. */
static void end(spti_chunks *c)
{
    bool stopped = spti_chunk_ring_stopped(c->config.data_ring);
    for (; c->n > 0; c->n--, c->oldest++) {
        /* One that nobody would get is free again: whoever has the rings has all chunks. */
        spt_chunk_ring *ring = stopped ? c->config.free_ring : c->config.data_ring;
        spti_chunk_ring_put_last(ring, *at(c, c->oldest));
        c->stats.chunks += !stopped;
    }
    spti_waits_note(&c->for_chunk, false);
    spti_waits_note(&c->for_room, false);
    (void)spti_chunk_ring_leave(c->config.data_ring);
}

/* Add up what the place function has counted. */
static bool settle(spti_sink *sink, spti_pace pace)
{
    spti_chunks *c = (spti_chunks *)sink;
    for (size_t i = 0; i < c->config.n_stats; i++) {
        uint64_t of_batch = c->batch_stats[i], *all = &c->place_stats[i];
        c->batch_stats[i] = 0;
        *all = !c->stat_is_maximum[i] ? *all + of_batch : *all > of_batch ? *all : of_batch;
    }
    if (pace == SPTI_END)
        end(c);
    return false;
}

spti_sink *spti_chunks_sink(spti_chunks *c)
{
    return &c->sink;
}

void spti_chunks_stats(const spti_chunks *c, spt_chunk_stats *stats, uint64_t *place_stats)
{
    *stats = c->stats;
    stats->chunk_waits = c->for_chunk.n;
    stats->longest_chunk_wait_ns = c->for_chunk.longest_ns;
    stats->room_waits = c->for_room.n;
    stats->longest_room_wait_ns = c->for_room.longest_ns;
    if (place_stats != NULL && c->config.n_stats > 0)
        memcpy(place_stats, c->place_stats, c->config.n_stats * sizeof(*place_stats));
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static spt_status check_config(const spt_chunk_config *config, spt_error *err)
{
    if (config->place == NULL)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "place is not set: a stream of chunks has to know where heaps belong");
    if (config->max_chunks == 0 || config->max_chunks > SIZE_MAX / 64)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_chunks is %zu: it must be at least 1, and chunks must fit memory",
                         config->max_chunks);
    if (config->data_ring == NULL || config->free_ring == NULL)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "a ring is missing: set data_ring and free_ring, made by "
                         "spt_chunk_ring_create()");
    return SPT_OK;
}

/* Memory for so many, none of which is beyond what can be written to. */
static void *zeros(size_t n, size_t size)
{
    return calloc(n > 0 ? n : 1, size);
}

static bool allocate(spti_chunks *c)
{
    const spt_chunk_config *config = &c->config;
    c->items = zeros(config->n_items, sizeof(*c->items));
    c->values = zeros(config->n_items, sizeof(*c->values));
    c->extra = zeros(config->max_heap_extra, 1);
    c->batch_stats = zeros(config->n_stats, sizeof(*c->batch_stats));
    c->place_stats = zeros(config->n_stats, sizeof(*c->place_stats));
    c->stat_is_maximum = zeros(config->n_stats, sizeof(*c->stat_is_maximum));
    c->window = zeros(config->max_chunks, sizeof(*c->window));
    if (c->items == NULL || c->values == NULL || c->extra == NULL || c->batch_stats == NULL ||
        c->place_stats == NULL || c->stat_is_maximum == NULL || c->window == NULL)
        return false;
    for (size_t i = 0; i < config->n_items; i++)
        c->items[i] = config->items[i];
    for (size_t i = 0; i < config->n_stats && config->stat_is_maximum != NULL; i++)
        c->stat_is_maximum[i] = config->stat_is_maximum[i];
    return true;
}

spti_chunks *spti_chunks_create(const spt_chunk_config *config, bool stops, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    spti_chunks *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->sink = (spti_sink){.take = take, .settle = settle};
        c->placing = (spti_placing){c, place, mark, is_unmarked};
        if (config->packet_payload_size == 0)
            c->placing.placed = NULL;
        c->config = *config;
        c->stops = stops;
    }
    if (c == NULL || !allocate(c)) {
        spti_chunks_destroy(c);
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a window of %zu chunks",
                        config->max_chunks);
        return NULL;
    }
    return c;
}

void spti_chunks_serve(spti_chunks *c, spt_depacketizer *d)
{
    c->d = d;
    spt_chunk_ring_add_producer(c->config.data_ring);
}

void spti_chunks_watch(spti_chunks *c, void (*tell)(void *user), void *user)
{
    c->data_watch = c->free_watch = (spti_chunk_watch){.tell = tell, .user = user};
    spti_chunk_ring_watch(c->config.data_ring, &c->data_watch);
    spti_chunk_ring_watch(c->config.free_ring, &c->free_watch);
}

void spti_chunks_tell_of_free(spti_chunks *c)
{
    spti_chunk_ring_tell(c->config.free_ring);
}

void spti_chunks_stop_rings(spti_chunks *c)
{
    spt_chunk_ring_stop(c->config.data_ring);
    spt_chunk_ring_stop(c->config.free_ring);
}

void spti_chunks_destroy(spti_chunks *c)
{
    if (c == NULL)
        return;
    spti_chunk_ring_unwatch(c->config.data_ring, &c->data_watch);
    spti_chunk_ring_unwatch(c->config.free_ring, &c->free_watch);
    free(c->items);
    free(c->values);
    free(c->extra);
    free(c->batch_stats);
    free(c->place_stats);
    free(c->stat_is_maximum);
    free(c->window);
    free(c);
}
