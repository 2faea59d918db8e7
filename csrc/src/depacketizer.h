/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams do with a depacketizer besides what the public header offers. */
#ifndef SPTI_DEPACKETIZER_H
#define SPTI_DEPACKETIZER_H

#include "packet_run.h"
#include "spead_tutorial/spt_recv.h"

/* What becomes of a packet whose heap has no place now: nothing has changed; take it again. */
#define SPTI_NOT_YET ((spt_fate) - 1)

/* Where heaps go, for those who have a place for each, in place of memory that heaps own. Called
 * only from within calls of a depacketizer. */
typedef struct spti_placing {
    void *user;
    /* Find a place for a heap that begins, and has payload: set its payload, user and user_number.
     * It may give up others. SPT_PENDING: there is no place now; an error: no packet of that heap
     * is taken. */
    spt_status (*place)(void *user, spt_received_heap *heap, const spt_received_packet *first);
    /* Packets of a heap have a place: n of them, from a payload offset on, each with so many bytes
     * of payload. NULL for who need not know. */
    void (*placed)(void *user, const spt_received_heap *heap, uint64_t offset, size_t length,
                   size_t n);
    /* Whether nothing is said to have arrived in so many bytes of a heap's place, from an offset
     * on: another heap may have been given it before. NULL: it never is. */
    bool (*is_unmarked)(void *user, const spt_received_heap *heap, uint64_t begin, size_t n_bytes);
} spti_placing;

/* spt_depacketizer_create() for heaps that are placed, and have to say how long they are then; or
 * NULL for memory. */
spt_depacketizer *spti_depacketizer_create(const spt_depacketizer_config *config,
                                           const spti_placing *placing, spt_error *err);

/* End live heaps whose place is wanted for something else, as they are: those of a user. What still
 * comes of them is late. */
void spti_depacketizer_give_up(spt_depacketizer *d, const void *user);

/*
 * Take packets that go on where the one before ended: same heap, same size, no items of their own.
 * It is the same as to parse them, to take them and to copy their payloads one by one, and cheaper.
 * Returns how many of the first ones are such packets, and have been placed. With the one after
 * them nothing has happened: parse it.
 */
size_t spti_depacketizer_take_run(spt_depacketizer *d, const spti_packet_run *run);

/*
 * How many packets that would take at most, 0 for none; bytes of each, and where their payloads
 * belong: one after the other, in a part of the heap of which nothing has arrived. They may be read
 * to there before one knows whether they are the ones that come, if they are looked at before any
 * other packet: what is written there and does not belong there is written over, or is not said to
 * have arrived.
 */
size_t spti_depacketizer_expected(const spt_depacketizer *d, size_t *n_bytes, uint8_t **to);

/* Whether as many bytes there may be written over, for nothing is said to have arrived in them. */
bool spti_depacketizer_may_overwrite(const spt_depacketizer *d, size_t n_bytes);

#endif
