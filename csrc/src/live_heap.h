/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap that is being put together: what packets have brought of it so far. */
#ifndef SPTI_LIVE_HEAP_H
#define SPTI_LIVE_HEAP_H

#include "ranges.h"
#include "spead_tutorial/spt_recv.h"

typedef struct spti_live_heap {
    spt_received_heap heap; /* what is handed out: first, so that one can be had from the other */
    spti_ranges ranges;
    spt_received_pointer *pointers;
    size_t room_pointers;
    size_t last_pointers;     /* how many of them the last packet brought */
    uint64_t highest_address; /* of an item */
    uint64_t highest_end;     /* of a packet that came after a loss, or found no memory */
    size_t asked;             /* bytes of payload that were asked for */
    /* The depacketizer's: */
    uint64_t begun;              /* the how-manieth it is */
    struct spti_live_heap *next; /* in the list that it is in */
} spti_live_heap;

/*
 * Begin a heap of which nothing has arrived: one of zeros, or one that has left its payload. It has
 * room for what its first packet says of it: a heap that begins takes that packet, and keeps the
 * length by which it gets its place. False without memory.
 */
bool spti_live_heap_begin(spti_live_heap *it, const spt_received_packet *first);

/* Give it memory for its payload; or for more than it has, as a packet that follows needs it, for
 * which `first` is NULL. False where there is none. */
bool spti_live_heap_make_room(spti_live_heap *it, const spt_received_packet *packet,
                              const spt_received_packet *first,
                              const spt_depacketizer_config *config);

/* Whether a packet's heap is too large, or it does not say how large. */
spt_fate spti_live_heap_check_size(const spt_received_packet *packet,
                                   const spt_depacketizer_config *config);

/* Take what a packet of it brings, but for the payload: that is to be copied. */
spt_fate spti_live_heap_take(spti_live_heap *it, const spt_received_packet *packet,
                             const spt_depacketizer_config *config);

/* No packet is taken any more: fill in how it went. */
void spti_live_heap_end(spti_live_heap *it, bool evicted);

/* Put its payload back, unless somebody has kept it. */
void spti_live_heap_put_payload(spti_live_heap *it, const spt_depacketizer_config *config);

/* Free it, and what it has beside its payload. */
void spti_live_heap_destroy(spti_live_heap *it);

#endif
