/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the chunks that streams fill: which there are, who may write to them, and when the oldest
 * leaves. Knows nothing of heaps, nor of what streams are.
 *
 * A member that has a chunk writes to it without a lock. So a chunk leaves only when no member
 * holds it. Where a member that lags is not waited for, it is told what is wanted, and leaves by
 * itself when it runs next: nobody else could know when it does not write.
 *
 * The lock is taken by members that hold one of their own; under it only those of rings are taken.
 */
#include "chunk_window.h"

#include "chunk_ring.h"
#include "status.h"
#include "sync.h"

#include <stdlib.h>
#include <string.h>

enum { NOTHING = 0 }; /* ids are not negative */
#define NO_ID INT64_MAX

struct spti_window {
    spt_chunk_ring *data_ring, *free_ring;
    pthread_mutex_t stop_lock;
    int64_t max_chunks;
    bool lossless; /* members that lag are waited for */

    pthread_mutex_t lock;
    spti_member *members, **last;
    size_t n_active;
    bool closed;       /* nobody joins any more */
    spt_chunk **slots; /* that of an id is at its remainder */
    int64_t oldest;    /* id; all below are too old */
    int64_t n;
    bool begun;
    int64_t wanted;  /* atomic: the highest id that was to be the oldest */
    bool waited_for; /* somebody found that a member holds the oldest chunk */
    spti_waits for_members;
};

/* ---- In and out, under the lock -------------------------------------------------------------- */

static spt_chunk **slot(const spti_window *w, int64_t id)
{
    return &w->slots[id % w->max_chunks];
}

static spt_status note_wait(spti_waits *waits, spt_status status)
{
    spti_waits_note(waits, status == SPT_PENDING);
    return status;
}

/* The oldest chunk, which nobody holds, is handed over. */
static spt_status push_out(spti_window *w, spti_member *m)
{
    spt_status status = spti_chunk_ring_try_put(w->data_ring, *slot(w, w->oldest));
    if (status == SPT_OK) {
        w->oldest++;
        w->n--;
        m->chunks++;
    }
    return note_wait(&m->for_room, status);
}

/* A free chunk becomes the newest. */
static spt_status take_in(spti_window *w, spti_member *m)
{
    spt_chunk *chunk;
    spt_status status = spti_chunk_ring_try_get(w->free_ring, &chunk);
    if (status == SPT_OK) {
        if (chunk->present_size > 0)
            memset(chunk->present, 0, chunk->present_size);
        chunk->chunk_id = w->oldest + w->n;
        chunk->stream_id = m->stream_id;
        *slot(w, chunk->chunk_id) = chunk;
        w->n++;
    }
    return note_wait(&m->for_chunk, status);
}

/* The member that holds the lowest id. */
static const spti_member *lowest(const spti_window *w)
{
    const spti_member *found = w->members;
    for (const spti_member *it = found->next; it != NULL; it = it->next)
        if (it->holds < found->holds)
            found = it;
    return found;
}

/* Have everything below an id leave. */
static spt_status make_way(spti_window *w, spti_member *m, int64_t oldest)
{
    while (w->oldest < oldest) {
        int64_t held = lowest(w)->holds;
        if (held <= w->oldest) {
            w->waited_for = true;
            /* Those who lag are to hear once what is wanted. */
            m->news = m->news || (!w->lossless && m->asked < oldest);
            m->asked = oldest;
            spti_waits_note(&w->for_members, true);
            spti_waits_note(&m->for_room, false);
            return SPT_PENDING;
        }
        spti_waits_note(&w->for_members, false);
        if (w->n > 0)
            SPTI_TRY(push_out(w, m));
        else
            w->oldest = held < oldest ? held : oldest; /* those in between there never were */
    }
    return SPT_OK;
}

/* Those who wait for members are to be told that one has left. */
static void note_leaving(spti_window *w, spti_member *m)
{
    m->news = m->news || w->waited_for;
    w->waited_for = false;
}

/* Hand over what there is. */
static void hand_over_all(spti_window *w, spti_member *m)
{
    bool stopped = spti_chunk_ring_stopped(w->data_ring);
    for (; w->n > 0; w->n--, w->oldest++) {
        /* One that nobody would get is free again: whoever has the rings has all chunks. */
        spt_chunk_ring *ring = stopped ? w->free_ring : w->data_ring;
        spti_chunk_ring_put_last(ring, *slot(w, w->oldest));
        m->chunks += !stopped;
    }
    spti_waits_note(&w->for_members, false);
}

/* ---- For members ----------------------------------------------------------------------------- */

spt_status spti_window_join(spti_window *w, spti_member *m, spt_error *err)
{
    SPTI_HOLD(&w->lock);
    if (w->closed)
        return spti_fail(err, SPT_ERR_BUSY,
                         "the group has readers, or was stopped: all of its streams are to be "
                         "added before the first reader");
    /* One that is waited for is so from the beginning. */
    m->holds = w->lossless ? NOTHING : NO_ID;
    *w->last = m;
    w->last = &m->next;
    w->n_active++;
    spt_chunk_ring_add_producer(w->data_ring);
    return SPT_OK;
}

void spti_window_begin(spti_window *w)
{
    SPTI_HOLD(&w->lock);
    w->closed = true;
}

spt_chunk *spti_window_at(const spti_window *w, int64_t id)
{
    return *slot(w, id);
}

int64_t spti_window_end_of(spti_window *w, spti_member *m)
{
    SPTI_HOLD(&w->lock);
    m->oldest = m->oldest < w->oldest ? w->oldest : m->oldest;
    return w->begun ? w->oldest + w->n : SPT_MAX_CHUNK_ID;
}

int64_t spti_window_wanted(const spti_window *w)
{
    return w->lossless ? NOTHING : __atomic_load_n(&w->wanted, __ATOMIC_RELAXED);
}

void spti_window_leave(spti_window *w, spti_member *m, int64_t oldest)
{
    SPTI_HOLD(&w->lock);
    m->oldest = oldest;
    m->holds = m->holds < oldest ? oldest : m->holds;
    note_leaving(w, m);
}

spt_status spti_window_reach(spti_window *w, spti_member *m, int64_t id)
{
    SPTI_HOLD(&w->lock);
    int64_t oldest = id < w->max_chunks ? 0 : id - w->max_chunks + 1;
    if (!w->begun && !w->lossless) /* else members may still come with earlier ones */
        w->oldest = oldest;
    if (oldest > w->wanted)
        __atomic_store_n(&w->wanted, oldest, __ATOMIC_RELAXED);
    if (id < w->oldest)
        return SPT_ERR_ARGUMENT;
    SPTI_TRY(make_way(w, m, oldest));
    w->begun = true;
    spti_waits_note(&m->for_room, false); /* it may be another member that found some */
    while (w->oldest + w->n <= id)
        SPTI_TRY(take_in(w, m));
    m->oldest = m->oldest < w->oldest ? w->oldest : m->oldest;
    m->end = w->oldest + w->n;
    m->holds = m->holds > m->oldest ? m->oldest : m->holds;
    return SPT_OK;
}

void spti_window_end(spti_window *w, spti_member *m)
{
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    m->holds = NO_ID;
    m->end = NOTHING;
    note_leaving(w, m);
    spti_waits_note(&w->for_members, false); /* others that wait note it again */
    if (--w->n_active == 0)
        hand_over_all(w, m);
    pthread_mutex_unlock(&w->lock);
    spti_waits_note(&m->for_chunk, false);
    spti_waits_note(&m->for_room, false);
    (void)spti_chunk_ring_leave(w->data_ring);
}

/* ---- For all of them ------------------------------------------------------------------------- */

/* The list does not change any more. */
static const spti_member *first(spti_window *w)
{
    SPTI_HOLD(&w->lock);
    w->closed = true;
    return w->members;
}

void spti_window_wake_others(spti_window *w, const spti_member *m)
{
    for (const spti_member *it = first(w); it != NULL; it = it->next)
        if (it != m)
            it->wake(it->user);
}

pthread_mutex_t *spti_window_stop_lock(spti_window *w)
{
    return &w->stop_lock;
}

void spti_window_for_all(spti_window *w, void (*act)(void *user))
{
    for (const spti_member *it = first(w); it != NULL; it = it->next)
        act(it->user);
}

void spti_window_stats(spti_window *w, spt_chunk_group_stats *stats)
{
    SPTI_HOLD(&w->lock);
    *stats = (spt_chunk_group_stats){
        .member_waits = w->for_members.n,
        .longest_member_wait_ns = w->for_members.longest_ns,
        .waits = w->for_members.since_ns != 0,
    };
    if (stats->waits) {
        const spti_member *slow = lowest(w);
        for (const spti_member *it = w->members; it != slow; it = it->next)
            stats->slow_member++;
        stats->slow_chunk_id = w->oldest;
        stats->slow_ns = spti_now_ns() - w->for_members.since_ns;
    }
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

spti_window *spti_window_create(size_t max_chunks, bool lossless, spt_chunk_ring *data_ring,
                                spt_chunk_ring *free_ring, spt_error *err)
{
    if (max_chunks == 0 || max_chunks > SIZE_MAX / 64)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT,
                         "max_chunks is %zu: it must be at least 1, and chunks must fit memory",
                         max_chunks);
    if (data_ring == NULL || free_ring == NULL)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT,
                         "a ring is missing: set data_ring and free_ring, made by "
                         "spt_chunk_ring_create()");
    spti_window *w = calloc(1, sizeof(*w));
    spt_chunk **slots = calloc(max_chunks, sizeof(spt_chunk *));
    if (w == NULL || slots == NULL) {
        free(w);
        free(slots);
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a window of %zu chunks", max_chunks);
    }
    w->data_ring = data_ring;
    w->free_ring = free_ring;
    spti_chunk_ring_newest_first(free_ring);
    w->max_chunks = (int64_t)max_chunks;
    w->lossless = lossless;
    w->last = &w->members;
    w->slots = slots;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->stop_lock, NULL);
    return w;
}

void spti_window_destroy(spti_window *w)
{
    if (w == NULL)
        return;
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->stop_lock);
    free(w->slots);
    free(w);
}
