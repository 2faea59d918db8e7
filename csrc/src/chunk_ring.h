/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams need of rings of chunks: they never wait in them, but are told when it is worth
 * trying again. */
#ifndef SPTI_CHUNK_RING_H
#define SPTI_CHUNK_RING_H

#include "thread_pool.h"

#include "spead_tutorial/spt_recv.h"

/* Somebody who may be waiting for a ring. */
typedef struct spti_chunk_watch {
    void (*tell)(void *user); /* not called under a lock that the calls below take */
    void *user;
    struct spti_chunk_watch *next; /* private to the ring */
} spti_chunk_watch;

/* The pool without threads of a ring, which is the ring's, made for the first that needs it: its
 * tasks are run by who asks for a chunk. NULL where it could not be. */
spt_thread_pool *spti_chunk_ring_pool(spt_chunk_ring *ring, spt_error *err);

/* Say that a ring has free chunks: the one that was put in last is got first. */
void spti_chunk_ring_newest_first(spt_chunk_ring *ring);

void spti_chunk_ring_watch(spt_chunk_ring *ring, spti_chunk_watch *watch);

/* Once it has returned, the watch is not told any more. */
void spti_chunk_ring_unwatch(spt_chunk_ring *ring, spti_chunk_watch *watch);

/* Put or get without waiting. After SPT_PENDING those who watch are told once there is room, or a
 * chunk, or the ring is stopped. */
spt_status spti_chunk_ring_try_put(spt_chunk_ring *ring, spt_chunk *chunk);
spt_status spti_chunk_ring_try_get(spt_chunk_ring *ring, spt_chunk **chunk);

/* Put although there is no room, and also where the ring is stopped: what a stream that ends has
 * left. It tells nobody who watches. */
void spti_chunk_ring_put_last(spt_chunk_ring *ring, spt_chunk *chunk);

/* Tell those who watch of what was put last, once the stream's locks are free. */
void spti_chunk_ring_tell(spt_chunk_ring *ring);

/* spt_chunk_ring_remove_producer() that tells nobody who watches. */
bool spti_chunk_ring_leave(spt_chunk_ring *ring);

bool spti_chunk_ring_stopped(spt_chunk_ring *ring);

#endif
