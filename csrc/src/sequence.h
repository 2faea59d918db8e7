/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which heaps are missing, as far as heap counts tell. No sender has to count by ones, nor every
 * heap that it sends to here, so a gap says little by itself. Counts of a sender that are near each
 * other are a line, whose step divides all their distances: metadata that is counted apart, a
 * restart, or a stray count begins a line of its own. In a line of at least 16 counts, of which at
 * most one in 16 is missing, those that are missing were lost; lines of a sender with the same step
 * count as one. Where more are missing, or one at every same distance, the sender may as well have
 * sent them to somebody else.
 */
#ifndef SPTI_SEQUENCE_H
#define SPTI_SEQUENCE_H

#include "counts.h"

enum {
    SPTI_LINES = 16,  /* of the senders of a bucket */
    SPTI_BUCKETS = 32 /* a power of 2 */
};

/* Of n counts, where i = 0 is the highest. */
typedef struct spti_line {
    uint64_t source;
    uint64_t last;   /* the highest count */
    uint64_t step;   /* 0 where there is but one count */
    uint64_t span;   /* from the lowest count to the highest */
    uint64_t seen;   /* counts; 0 where there is no line */
    uint64_t recent; /* bit i: whether last - i * step was seen */
    uint64_t early;  /* places that were empty when it was young */
    /* Places, counted in steps from the lowest one, that are too far behind to be filled: */
    uint64_t last_gap, gaps, period;
    bool uneven; /* whether they are at different distances */
    uint8_t address_bits;
} spti_line;

/* Set to zeros, it is empty. */
typedef struct spti_sequence {
    spti_line lines[SPTI_BUCKETS][SPTI_LINES]; /* the one that was used last comes first */
    uint64_t missing, skipped;                 /* of lines that have gone */
} spti_sequence;

/* Note the count of a heap that begins. Counts may start again from 0, and come in any order. That
 * of a heap that ends a stream only says something where it goes on in a line: it may be any. */
void spti_sequence_note(spti_sequence *s, spti_key key, unsigned address_bits, bool ends);

/* How many heaps are missing, and how many may be. */
void spti_sequence_missing(const spti_sequence *s, uint64_t *missing, uint64_t *skipped);

#endif
