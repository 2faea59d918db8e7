/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the bookkeeping of what has arrived. Knows numbers only: what they count is its users'. */
#include "ranges.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 };

/* The first range that ends at a place or after it; most often the last one, or there is none. */
static size_t find(const spti_ranges *r, uint64_t place)
{
    if (r->n == 0 || r->at[r->n - 1].end < place)
        return r->n;
    size_t low = 0, high = r->n - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->at[middle].end < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool spti_ranges_reserve(spti_ranges *r)
{
    if (r->n < r->room)
        return true;
    size_t room = r->room == 0 ? FIRST_ROOM : 2 * r->room;
    spt_range *at = realloc(r->at, room * sizeof(*at));
    if (at == NULL)
        return false;
    r->at = at;
    r->room = room;
    return true;
}

spti_part spti_ranges_add(spti_ranges *r, uint64_t begin, uint64_t end, size_t max_gaps)
{
    size_t i = find(r, begin);
    if (i < r->n && r->at[i].begin <= begin && end <= r->at[i].end)
        return SPTI_KNOWN;
    bool follows = i < r->n && r->at[i].end == begin;
    size_t next = follows ? i + 1 : i;
    if (next < r->n && r->at[next].begin < end)
        return SPTI_OVERLAPS;
    bool precedes = next < r->n && r->at[next].begin == end;
    if (follows && precedes) {
        r->at[i].end = r->at[next].end;
        memmove(&r->at[next], &r->at[next + 1], (r->n - next - 1) * sizeof(*r->at));
        r->n--;
    } else if (follows) {
        r->at[i].end = end;
    } else if (precedes) {
        r->at[next].begin = begin;
    } else {
        if (r->n > max_gaps)
            return SPTI_NO_ROOM;
        if (!spti_ranges_reserve(r))
            return SPTI_NO_MEMORY;
        memmove(&r->at[next + 1], &r->at[next], (r->n - next) * sizeof(*r->at));
        r->at[next] = (spt_range){begin, end};
        r->n++;
    }
    return SPTI_NEW;
}

void spti_ranges_clear(spti_ranges *r)
{
    r->n = 0;
}

void spti_ranges_fini(spti_ranges *r)
{
    free(r->at);
    *r = (spti_ranges){0};
}
