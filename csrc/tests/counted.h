/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns heap memory that is counted, and that there may be none of. Any thread may ask for it. */
#ifndef COUNTED_H
#define COUNTED_H

#include "support.h"

static struct {
    _Atomic size_t calls;      /* for memory */
    _Atomic size_t fails_from; /* this call on there is none; 0: there always is */
    _Atomic size_t away, most_away, bytes_away;
} counted;

static inline void *get_counted(void *user, size_t size, const spt_received_packet *first)
{
    CHECK(user == &counted && (first == NULL || first->cnt > 0));
    size_t call = ++counted.calls;
    if (counted.fails_from > 0 && call >= counted.fails_from)
        return NULL;
    size_t away = ++counted.away;
    if (away > counted.most_away)
        counted.most_away = away;
    counted.bytes_away += size;
    return malloc(size);
}

static inline void put_counted(void *user, void *memory, size_t size)
{
    CHECK(user == &counted && memory != NULL);
    counted.away--;
    counted.bytes_away -= size;
    free(memory);
}

static const spt_heap_memory counted_memory = {&counted, get_counted, put_counted};

#endif
