/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is known of a sequence of heap counts. Knows nothing of what became of heaps. */
#include "sequence.h"

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void spti_sequence_note(spti_sequence *s, uint64_t cnt, unsigned address_bits)
{
    if (s->seen++ > 0) {
        /* How far it is from the last one, the shorter way round. */
        unsigned unused = 64 - address_bits;
        int64_t moved = (int64_t)((cnt - s->last_cnt) << unused) >> unused;
        s->at = (int64_t)((uint64_t)s->at + (uint64_t)moved);
        s->low = s->at < s->low ? s->at : s->low;
        s->high = s->at > s->high ? s->at : s->high;
        s->step = common_divisor(s->step, moved < 0 ? -(uint64_t)moved : (uint64_t)moved);
    }
    s->last_cnt = cnt;
}

uint64_t spti_sequence_missing(const spti_sequence *s)
{
    if (s->step == 0)
        return 0;
    uint64_t wanted = ((uint64_t)s->high - (uint64_t)s->low) / s->step + 1;
    return wanted > s->seen ? wanted - s->seen : 0; /* some may have been sent twice */
}
