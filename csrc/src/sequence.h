/* SPDX-License-Identifier: BSD-3-Clause */
/* How many heaps are missing in a sequence of heap counts, whose step is found out. */
#ifndef SPTI_SEQUENCE_H
#define SPTI_SEQUENCE_H

#include <stdint.h>

/* Set to zeros, it is empty. */
typedef struct spti_sequence {
    uint64_t seen;         /* heaps that were begun, or refused a place */
    uint64_t last_cnt;     /* of the last of them */
    int64_t at, low, high; /* how far it is from the first; the lowest and the highest so far */
    uint64_t step;         /* what all distances are a multiple of; 0 until there is one */
} spti_sequence;

/* Note the count of a heap that begins. Counts may start again from 0, and come in any order. */
void spti_sequence_note(spti_sequence *s, uint64_t cnt, unsigned address_bits);

/* How many there are between the first and the last that were not noted. */
uint64_t spti_sequence_missing(const spti_sequence *s);

#endif
