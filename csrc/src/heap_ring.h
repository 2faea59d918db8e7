/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of finished heaps, between who receives them and those who get them, with a lock of its
 * own: no other one is taken under it.
 */
#ifndef SPTI_HEAP_RING_H
#define SPTI_HEAP_RING_H

#include "spead_tutorial/spt_recv.h"

#include <pthread.h>

typedef struct spti_heap_ring {
    pthread_mutex_t lock;
    size_t capacity;
    bool drops;                      /* nobody waits for room */
    spt_received_heap *first, *last; /* each has the next one as its `user` */
    size_t n;                        /* also read without the lock */
    bool blocked;                    /* there was no room since a heap was got last */
    spt_received_heap *returned;
    bool ended;
    bool fd_used;
    bool signalled;     /* event_fd is readable */
    size_t n_waiting;   /* for the next: */
    uint32_t announced; /* a futex, so that a signal ends the wait */
    int event_fd;
} spti_heap_ring;

/* Also where it fails, spti_heap_ring_fini() follows. */
spt_status spti_heap_ring_init(spti_heap_ring *ring, const spt_recv_config *config, spt_error *err);
void spti_heap_ring_fini(spti_heap_ring *ring);

/* ---- For who receives ---- */

/* Put a heap in if there is room, or if it has to be. Nobody is told of it yet. Where there is no
 * room, who gets a heap next says that it is wanted. */
bool spti_heap_ring_put(spti_heap_ring *ring, spt_received_heap *heap, bool in_any_case);

/* Nothing is put in any more. */
void spti_heap_ring_end(spti_heap_ring *ring);

/* Tell those who wait, and who watch the descriptor, of heaps or of the end. */
void spti_heap_ring_announce(spti_heap_ring *ring);

/* Take the heaps that were given back: a list, by their `user`. */
spt_received_heap *spti_heap_ring_take_returned(spti_heap_ring *ring);

/* ---- For those who get ---- */

/* As spt_recv_stream_get(); says whether somebody has waited for the room that it makes. */
spt_status spti_heap_ring_get(spti_heap_ring *ring, int64_t timeout_ns, spt_received_heap **heap,
                              bool *room_wanted);

/* Give a heap back. Returns whether nobody is going to take it from there by itself. */
bool spti_heap_ring_return(spti_heap_ring *ring, spt_received_heap *heap);

size_t spti_heap_ring_size(const spti_heap_ring *ring);

/* It is readable while there is a heap, or the end. */
int spti_heap_ring_fd(spti_heap_ring *ring);

#endif
