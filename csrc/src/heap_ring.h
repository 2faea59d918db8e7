/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of finished heaps, between who receives them and those who get them. It has a lock of its
 * own, under which no other one is taken; what is for who receives is called by one thread at a
 * time.
 */
#ifndef SPTI_HEAP_RING_H
#define SPTI_HEAP_RING_H

#include "sink.h"

#include <pthread.h>

typedef struct spti_heap_ring {
    spti_sink sink; /* first, so that one can be had from the other */
    /* Of who receives: */
    size_t capacity;
    bool drops; /* nobody waits for room */
    bool contiguous_only;
    spt_depacketizer *depacketizer; /* that heaps are of */
    spt_recv_stats *stats;          /* for heaps that are dropped */
    unsigned quiet;                 /* batches since somebody was told of heaps, */
    uint64_t untold;                /* and bytes of those that have come since */
    /* Of everybody: */
    pthread_mutex_t lock;
    spt_received_heap *first, *last; /* each has the next one as its `user` */
    size_t n;                        /* also read without the lock */
    bool blocked;                    /* there was no room since a heap was got last */
    spt_received_heap *returned;     /* atomic; each has the next one as its `user` */
    bool ended;                      /* also read without the lock */
    bool fd_used;
    bool signalled;     /* event_fd is readable */
    size_t n_waiting;   /* for the next: */
    uint32_t announced; /* a futex, so that a signal ends the wait */
    int event_fd;
} spti_heap_ring;

/* Also where it fails, spti_heap_ring_fini() follows. Its depacketizer and stats are to be set. */
spt_status spti_heap_ring_init(spti_heap_ring *ring, const spt_recv_config *config, spt_error *err);
void spti_heap_ring_fini(spti_heap_ring *ring);

/* ---- For who receives ---- */

/* Recycle heaps that have come back. */
void spti_heap_ring_recycle(spti_heap_ring *ring);

/* Nothing is put in any more, and heaps that come back are recycled only when somebody does. */
void spti_heap_ring_end(spti_heap_ring *ring);

/* ---- For everybody ---- */

/* Tell those who wait, and who watch the descriptor, of heaps or of the end. */
void spti_heap_ring_announce(spti_heap_ring *ring);

/* As spt_recv_stream_get(); says whether somebody has waited for the room that it makes. */
spt_status spti_heap_ring_get(spti_heap_ring *ring, int64_t timeout_ns, spt_received_heap **heap,
                              bool *room_wanted);

/* Give a heap back. Returns whether it has ended. */
bool spti_heap_ring_return(spti_heap_ring *ring, spt_received_heap *heap);

/* How many there are: at its end, there may be more than it has room for. */
size_t spti_heap_ring_size(const spti_heap_ring *ring);

/* It is readable while there is a heap, or the end. */
int spti_heap_ring_fd(spti_heap_ring *ring);

#endif
