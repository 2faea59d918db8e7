/* SPDX-License-Identifier: BSD-3-Clause */
/* What has arrived of something that comes in parts, in any order. */
#ifndef SPTI_RANGES_H
#define SPTI_RANGES_H

#include "spead_tutorial/spt_recv.h"

/* In order of place; no two touch. Set to zeros, it is empty. */
typedef struct spti_ranges {
    spt_range *at;
    size_t n, room;
} spti_ranges;

/* What a part is to those that have arrived. */
typedef enum spti_part {
    SPTI_NEW,
    SPTI_KNOWN,    /* all of it has arrived before */
    SPTI_OVERLAPS, /* some of it has */
    SPTI_NO_ROOM,  /* it is new, but would be one gap too many */
    SPTI_NO_MEMORY,
} spti_part;

/* See to it that the next part is not SPTI_NO_MEMORY. */
bool spti_ranges_reserve(spti_ranges *r);

/* Add [begin, end), which is not empty, if it is new. */
spti_part spti_ranges_add(spti_ranges *r, uint64_t begin, uint64_t end, size_t max_gaps);

/* Forget all, and keep the memory for the next. */
void spti_ranges_clear(spti_ranges *r);

void spti_ranges_fini(spti_ranges *r);

#endif
