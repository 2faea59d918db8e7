/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which heap counts have been seen lately, of which sender, and what became of them. Of those that
 * are finished, a fixed number is remembered, the oldest of them forgotten first.
 */
#ifndef SPTI_COUNTS_H
#define SPTI_COUNTS_H

#include "spead_tutorial/spt_recv.h"

typedef enum spti_known {
    SPTI_UNKNOWN, /* never seen, or forgotten */
    SPTI_LIVE,
    SPTI_FINISHED,
    SPTI_REFUSED, /* there was no memory for it */
} spti_known;

typedef struct spti_key {
    uint64_t cnt;
    uint64_t source; /* who has sent it; 0 where that is not known */
} spti_key;

typedef struct spti_seen {
    spti_key key;
    uint64_t ended; /* of those that are not live: the how-manieth that ended */
    void *heap;     /* of those that are live */
    spti_known known;
} spti_seen;

typedef struct spti_counts {
    spti_seen *table; /* open addressing: a count is where its hash says, or after that */
    size_t mask;      /* of the table's size, a power of 2 */
    unsigned shift;
    spti_key *recent; /* counts that have ended, as a ring */
    size_t n_recent;  /* how many of them are remembered */
    uint64_t ended;   /* how many have ended so far */
} spti_counts;

/* For so many live ones at a time, and so many that are remembered; false without memory. */
bool spti_counts_init(spti_counts *c, size_t max_live, size_t n_recent);
void spti_counts_fini(spti_counts *c);

/* Find a count; NULL where it is not known, or ended so many ago that others may have it. */
spti_seen *spti_counts_find(const spti_counts *c, spti_key key, uint64_t within);

/* A count becomes live. There must be room: not more than max_live are. */
void spti_counts_begin(spti_counts *c, spti_key key, void *heap);

/* A live or unknown count ends: it is finished, or refused. */
void spti_counts_end(spti_counts *c, spti_key key, spti_known how);

#endif
