/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap to send from inside: its items, and what it takes to cut them into packets. */
#ifndef SPTI_HEAP_H
#define SPTI_HEAP_H

#include "spead_tutorial/spt.h"

/* An item of a heap: what its pointer says, and where its value is. */
typedef struct spti_heap_item {
    uint64_t id;
    const uint8_t *value; /* of an immediate: read when the packet is made; NULL: inline_value */
    size_t length;
    bool immediate;
    bool number;           /* of an immediate: value is a uint64_t, whose low bits count */
    uint64_t inline_value; /* of an immediate without value */
    uint64_t address;      /* offset in the payload of all others */
} spti_heap_item;

struct spt_heap {
    spt_flavour flavour;
    bool repeat_pointers;
    size_t in_flight; /* atomic: counted by streams */
    spti_heap_item *items;
    size_t n_items, room;
    size_t payload_length; /* of all values that are not immediates */
    uint8_t **owned;       /* encoded descriptors */
    size_t n_owned;
};

/* The value of an immediate, right-aligned; of a number there may be further bits above. */
uint64_t spti_heap_item_immediate(const spti_heap_item *item);

/* Add an immediate whose value is the low bits of a number, as they are when packets are made. */
spt_status spti_heap_add_number(spt_heap *heap, uint64_t id, const void *number, spt_error *err);

/* Fail with SPT_ERR_BUSY while a heap is being sent. */
spt_status spti_heap_check_not_in_flight(const spt_heap *heap, spt_error *err);

/* Remove what was added after there were so many items, bytes of payload and owned descriptors. */
void spti_heap_cut(spt_heap *heap, size_t n_items, size_t payload_length, size_t n_owned);

/* Count a transmission that begins or ends. */
void spti_heap_borrow(spt_heap *heap);
void spti_heap_return(spt_heap *heap);

/* Make at most so many packets that are as large as they can be and hold nothing but the prefix, of
 * SPTI_PREFIX bytes in scratch, and a piece of the value that the last packet was from: two pieces
 * each. Returns how many, 0 where the next packet is another. Much quicker than one by one. */
size_t spti_packetizer_run(spt_packetizer *p, uint8_t *scratch, struct iovec *pieces, size_t most);

#endif
