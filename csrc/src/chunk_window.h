/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that streams fill together, each of them on a thread of its own: a window of ids that
 * follow each other. A stream by itself is the only member of one.
 */
#ifndef SPTI_CHUNK_WINDOW_H
#define SPTI_CHUNK_WINDOW_H

#include "spead_tutorial/spt_recv.h"
#include "waits.h"

#include <pthread.h>

typedef struct spti_window spti_window;

/* A stream that fills chunks of a window. One thread at a time makes a member's calls. */
typedef struct spti_member {
    /* To be set before it joins. */
    size_t max_chunks; /* in its own window, which is a part of the other */
    uint64_t stream_id;
    void (*wake)(void *user); /* it is worth trying again; not called under a lock */
    void *user;
    /* Its own window, to be looked at: */
    int64_t oldest; /* lower ids are too old for it */
    int64_t end;    /* ids from the oldest up to here have a chunk that it may write to */
    uint64_t chunks;
    spti_waits for_chunk, for_room;
    bool news; /* for other members, once no lock is held: spti_window_wake_others() */
    /* Private to the window, under its lock. */
    int64_t holds; /* from this id on, chunks must not leave */
    int64_t asked; /* what others were last told to leave for it */
    struct spti_member *next;
} spti_member;

/* Both rings are borrowed. NULL for what cannot be. */
spti_window *spti_window_create(size_t max_chunks, bool lossless, spt_chunk_ring *data_ring,
                                spt_chunk_ring *free_ring, spt_error *err);
void spti_window_destroy(spti_window *w);

/* Become a member, until spti_window_end(). SPT_ERR_BUSY after spti_window_begin(). */
spt_status spti_window_join(spti_window *w, spti_member *m, spt_error *err);

/* A member has a reader: nobody joins any more. */
void spti_window_begin(spti_window *w);

/* One that a member may write to. */
spt_chunk *spti_window_at(const spti_window *w, int64_t id);

/* The id after the newest; SPT_MAX_CHUNK_ID before there is one. What the member may still write to
 * is brought up to date. */
int64_t spti_window_end_of(spti_window *w, spti_member *m);

/* What others want to be the oldest, where it is not waited for members. Any thread may ask. */
int64_t spti_window_wanted(const spti_window *w);

/* The member writes to nothing below an id any more. */
void spti_window_leave(spti_window *w, spti_member *m, int64_t oldest);

/*
 * Have the window reach up to an id, which is not further from what the member has left than its
 * own window is wide. It can be called again where it has to wait: SPT_PENDING. SPT_ERR_ARGUMENT:
 * it has become too old meanwhile; SPT_DONE, SPT_ERR_STOPPED: a ring is stopped.
 */
spt_status spti_window_reach(spti_window *w, spti_member *m, int64_t id);

/* The member does nothing any more. The last one hands over what there is. */
void spti_window_end(spti_window *w, spti_member *m);

/* Not under a lock: wake the members but for one, or do something with the user of each. */
void spti_window_wake_others(spti_window *w, const spti_member *m);
pthread_mutex_t *spti_window_stop_lock(spti_window *w); /* for those who stop the users */
void spti_window_for_all(spti_window *w, void (*act)(void *user));

void spti_window_stats(spti_window *w, spt_chunk_group_stats *stats);

#endif
