/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which packets are expected next: such as go on in the heap of the one before, where that ended.
 * Most packets of large heaps do, and differ in one item pointer, so that they are known by their
 * first bytes.
 */
#ifndef SPTI_EXPECTED_H
#define SPTI_EXPECTED_H

#include "packet_run.h"
#include "spead_tutorial/spt_recv.h"
#include "wire.h"

typedef struct spti_expected {
    const spt_received_heap *heap; /* NULL: nothing is expected */
    size_t size;                   /* of each packet */
    uint64_t begin;                /* of its payload, in the heap's */
    uint8_t prefix[SPTI_PREFIX];   /* what it begins with, */
    uint8_t *offset;               /* and the pointer in there that says where it belongs */
} spti_expected;

/* Expect more packets like the one that has just been placed; all before it has arrived in its
 * heap, which says how long it is. */
void spti_expect(spti_expected *e, const spt_received_heap *heap,
                 const spt_received_packet *packet);

/* How many such packets there can be. The last one of a heap, which completes it, is none. */
size_t spti_expected_count(const spti_expected *e);

/* Look for them at the beginning of a run, and copy their payloads to where they belong. Returns
 * how many there are; from now on, those after them are expected. */
size_t spti_expected_take(spti_expected *e, const spti_packet_run *run);

#endif
