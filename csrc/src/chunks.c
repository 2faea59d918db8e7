/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns where a stream's heaps go: into which chunk of its window, which others may fill, too, and
 * where in it. Knows nothing of readers or locks.
 *
 * What a place function says is believed only as far as it lies within its chunk, and its id not
 * further ahead than any stream would jump: a wrong id that is believed leaves all that come after
 * it too old.
 */
#include "chunks.h"

#include "chunk_ring.h"
#include "status.h"
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

    spti_window *window, *own_window; /* one that is nobody else's, or NULL */
    spti_member member;
    bool stops; /* at a heap that says so, which has no place */

    spt_place_data decision;    /* what was said of a heap that has to wait, */
    const uint8_t *decided_for; /* whose packet is there, or NULL; */
    uint64_t decided_cnt;       /* which may be lost for want of memory: then others come there */
    spti_chunk_watch data_watch, free_watch;
    spt_chunk_stats stats;
};

/* ---- The window ------------------------------------------------------------------------------ */

/* Leave chunks that are too old. Their heaps end before, so that nothing is written any more. */
static void leave(spti_chunks *c, int64_t oldest)
{
    const spti_member *m = &c->member;
    for (int64_t id = m->oldest; id < oldest && id < m->end; id++)
        spti_depacketizer_give_up(c->d, spti_window_at(c->window, id));
    spti_window_leave(c->window, &c->member, oldest);
}

void spti_chunks_catch_up(spti_chunks *c)
{
    int64_t wanted = spti_window_wanted(c->window);
    if (wanted > c->member.oldest)
        leave(c, wanted);
}

/* Whether an id is in the stream's own window, and has a chunk. */
static bool is_open(const spti_chunks *c, int64_t id)
{
    const spti_member *m = &c->member;
    return id >= m->oldest && id < m->end && (uint64_t)(id - m->oldest) < m->max_chunks;
}

/* Have the window reach up to an id. It can be called again where it has to wait. */
static spt_status move_up_to(spti_chunks *c, int64_t id)
{
    int64_t oldest = id - (int64_t)c->member.max_chunks + 1;
    if (oldest > c->member.oldest)
        leave(c, oldest);
    return spti_window_reach(c->window, &c->member, id);
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

static spt_status too_old(spti_chunks *c)
{
    c->stats.too_old_heaps++;
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
    if (is_open(c, id))
        return SPT_OK;
    int64_t newest = spti_window_end_of(c->window, &c->member);
    int64_t most = SPT_MAX_CHUNK_ID - newest < SPT_MAX_CHUNK_STEP ? SPT_MAX_CHUNK_ID
                                                                  : newest + SPT_MAX_CHUNK_STEP;
    if (id > most)
        return misplaced(
            c, first, "chunk_id %" PRId64 ", and the most that is believed is %" PRId64, id, most);
    if (id < c->member.oldest)
        return too_old(c);
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
    spt_status status = is_open(c, said->chunk_id) ? SPT_OK : move_up_to(c, said->chunk_id);
    if (status == SPT_ERR_ARGUMENT)
        return too_old(c); /* others were faster */
    if (status == SPT_DONE || status == SPT_ERR_STOPPED) {
        c->sink.closed = true;
        c->stats.rejected_heaps++;
        return SPT_ERR_STOPPED;
    }
    SPTI_TRY(status);
    spt_chunk *chunk = spti_window_at(c->window, said->chunk_id);
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
    if (status != SPT_PENDING) {
        spti_waits_note(&c->member.for_chunk, false);
        spti_waits_note(&c->member.for_room, false);
    }
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
        spti_window_end(c->window, &c->member);
    bool news = c->member.news;
    c->member.news = false;
    return news;
}

spti_sink *spti_chunks_sink(spti_chunks *c)
{
    return &c->sink;
}

void spti_chunks_stats(const spti_chunks *c, spt_chunk_stats *stats, uint64_t *place_stats)
{
    *stats = c->stats;
    stats->chunks = c->member.chunks;
    stats->chunk_waits = c->member.for_chunk.n;
    stats->longest_chunk_wait_ns = c->member.for_chunk.longest_ns;
    stats->room_waits = c->member.for_room.n;
    stats->longest_room_wait_ns = c->member.for_room.longest_ns;
    if (place_stats != NULL && c->config.n_stats > 0)
        memcpy(place_stats, c->place_stats, c->config.n_stats * sizeof(*place_stats));
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

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
    if (c->items == NULL || c->values == NULL || c->extra == NULL || c->batch_stats == NULL ||
        c->place_stats == NULL || c->stat_is_maximum == NULL)
        return false;
    for (size_t i = 0; i < config->n_items; i++)
        c->items[i] = config->items[i];
    for (size_t i = 0; i < config->n_stats && config->stat_is_maximum != NULL; i++)
        c->stat_is_maximum[i] = config->stat_is_maximum[i];
    return true;
}

/* Have a window: that of a group, or one of its own. */
static spt_status find_window(spti_chunks *c, spti_window *of_group, spt_error *err)
{
    const spt_chunk_config *config = &c->config;
    if (config->place == NULL)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "place is not set: a stream of chunks has to know where heaps belong");
    if (of_group == NULL)
        c->own_window = spti_window_create(config->max_chunks, false, config->data_ring,
                                           config->free_ring, err);
    c->window = of_group != NULL ? of_group : c->own_window;
    c->member.max_chunks = config->max_chunks;
    c->member.stream_id = config->stream_id;
    return c->window == NULL ? SPT_ERR_ARGUMENT : SPT_OK;
}

spti_chunks *spti_chunks_create(const spt_chunk_config *config, spti_window *of_group, bool stops,
                                spt_error *err)
{
    spti_chunks *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for chunks");
    c->sink = (spti_sink){.take = take, .settle = settle};
    c->placing = (spti_placing){c, place, mark, is_unmarked};
    if (config->packet_payload_size == 0)
        c->placing.placed = NULL;
    c->config = *config;
    c->stops = stops;
    spt_status status = find_window(c, of_group, err);
    if (status == SPT_OK && !allocate(c))
        status = spti_fail(err, SPT_ERR_MEMORY, "no memory for what is said of chunks");
    if (status == SPT_OK)
        return c;
    spti_chunks_destroy(c);
    return NULL;
}

spt_status spti_chunks_serve(spti_chunks *c, spt_depacketizer *d, void (*wake)(void *user),
                             void *user, spt_error *err)
{
    c->d = d;
    c->member.wake = wake;
    c->member.user = user;
    SPTI_TRY(spti_window_join(c->window, &c->member, err));
    c->data_watch = c->free_watch = (spti_chunk_watch){.tell = wake, .user = user};
    spti_chunk_ring_watch(c->config.data_ring, &c->data_watch);
    spti_chunk_ring_watch(c->config.free_ring, &c->free_watch);
    return SPT_OK;
}

spti_window *spti_chunks_window(const spti_chunks *c)
{
    return c->window;
}

void spti_chunks_tell(spti_chunks *c, bool ended)
{
    spti_window_wake_others(c->window, &c->member);
    if (ended) /* some may be free again, which other streams wait for */
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
    if (c->data_watch.tell != NULL) {
        spti_chunk_ring_unwatch(c->config.data_ring, &c->data_watch);
        spti_chunk_ring_unwatch(c->config.free_ring, &c->free_watch);
    }
    spti_window_destroy(c->own_window);
    free(c->items);
    free(c->values);
    free(c->extra);
    free(c->batch_stats);
    free(c->place_stats);
    free(c->stat_is_maximum);
    free(c);
}
