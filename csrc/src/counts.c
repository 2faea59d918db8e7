/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the memory of which heap counts were seen. Knows nothing of what is in heaps. */
#include "counts.h"

#include <stdlib.h>

bool spti_counts_init(spti_counts *c, size_t max_live, size_t n_recent)
{
    *c = (spti_counts){.n_recent = n_recent, .shift = 63};
    size_t size = 2;
    while (size < 2 * (max_live + n_recent + 1)) {
        size *= 2;
        c->shift--;
    }
    c->mask = size - 1;
    c->table = calloc(size, sizeof(*c->table));
    c->recent = calloc(n_recent, sizeof(*c->recent));
    return c->table != NULL && c->recent != NULL;
}

void spti_counts_fini(spti_counts *c)
{
    free(c->table);
    free(c->recent);
    *c = (spti_counts){0};
}

/* Counts follow each other, often in steps of a power of 2: a product's high bits spread them. */
static size_t home(const spti_counts *c, spti_key key)
{
    return (size_t)((key.cnt ^ key.source) * UINT64_C(0x9e3779b97f4a7c15) >> c->shift);
}

static bool is_same(spti_key a, spti_key b)
{
    return a.cnt == b.cnt && a.source == b.source;
}

/* Where a count is, or would be. */
static size_t place(const spti_counts *c, spti_key key)
{
    size_t i = home(c, key);
    while (c->table[i].known != SPTI_UNKNOWN && !is_same(c->table[i].key, key))
        i = (i + 1) & c->mask;
    return i;
}

spti_seen *spti_counts_find(const spti_counts *c, spti_key key, uint64_t within)
{
    spti_seen *found = &c->table[place(c, key)];
    if (found->known == SPTI_UNKNOWN)
        return NULL;
    return found->known == SPTI_LIVE || c->ended - found->ended <= within ? found : NULL;
}

/* Empty a place, and close the gap: what comes after it may have wanted to be there. */
static void remove_at(spti_counts *c, size_t gap)
{
    for (size_t i = gap;;) {
        i = (i + 1) & c->mask;
        if (c->table[i].known == SPTI_UNKNOWN)
            break;
        size_t wanted = home(c, c->table[i].key);
        if (((i - wanted) & c->mask) >= ((i - gap) & c->mask)) {
            c->table[gap] = c->table[i];
            gap = i;
        }
    }
    c->table[gap].known = SPTI_UNKNOWN;
}

void spti_counts_begin(spti_counts *c, spti_key key, void *heap)
{
    c->table[place(c, key)] = (spti_seen){.key = key, .heap = heap, .known = SPTI_LIVE};
}

/* Make room in the ring: the oldest is forgotten, unless its count has come again since. */
static void forget_oldest(spti_counts *c)
{
    size_t oldest = place(c, c->recent[c->ended % c->n_recent]);
    const spti_seen *it = &c->table[oldest];
    bool same = it->known != SPTI_UNKNOWN && it->known != SPTI_LIVE;
    if (same && it->ended == c->ended - c->n_recent)
        remove_at(c, oldest);
}

void spti_counts_end(spti_counts *c, spti_key key, spti_known how)
{
    if (c->ended >= c->n_recent)
        forget_oldest(c);
    c->table[place(c, key)] = (spti_seen){.key = key, .ended = c->ended, .known = how};
    c->recent[c->ended % c->n_recent] = key;
    c->ended++;
}
