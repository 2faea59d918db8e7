/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPTI_HEAP_H
#define SPTI_HEAP_H

#include "spead_tutorial/spt.h"

/* An item of a heap: what its pointer says, and where its value is. */
typedef struct spti_heap_item {
    uint64_t id;
    const uint8_t *value; /* of an immediate: read when the packet is made; NULL: inline_value */
    size_t length;
    bool immediate;
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

/* The value of an immediate, right-aligned. */
uint64_t spti_heap_item_immediate(const spti_heap_item *item);

/* Count a transmission that begins or ends. */
void spti_heap_borrow(spt_heap *heap);
void spti_heap_return(spt_heap *heap);

#endif
