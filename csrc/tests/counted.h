/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns heap memory that is counted, and that there may be none of. Any thread may ask for it. */
#ifndef COUNTED_H
#define COUNTED_H

#include "support.h"

/* All of it is atomic. */
static struct {
    size_t calls;      /* for memory */
    size_t fails_from; /* this call on there is none; 0: there always is */
    size_t away, most_away, bytes_away;
} counted;

static inline size_t count(const size_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static inline void fail_from(size_t call)
{
    __atomic_store_n(&counted.fails_from, call, __ATOMIC_SEQ_CST);
}

static inline void *get_counted(void *user, size_t size, const spt_received_packet *first)
{
    CHECK(user == &counted && (first == NULL || first->cnt > 0));
    size_t call = __atomic_add_fetch(&counted.calls, 1, __ATOMIC_SEQ_CST);
    size_t fails = count(&counted.fails_from);
    if (fails > 0 && call >= fails)
        return NULL;
    size_t away = __atomic_add_fetch(&counted.away, 1, __ATOMIC_SEQ_CST);
    if (away > count(&counted.most_away))
        __atomic_store_n(&counted.most_away, away, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&counted.bytes_away, size, __ATOMIC_SEQ_CST);
    return malloc(size);
}

static inline void put_counted(void *user, void *memory, size_t size)
{
    CHECK(user == &counted && memory != NULL);
    __atomic_sub_fetch(&counted.away, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&counted.bytes_away, size, __ATOMIC_SEQ_CST);
    free(memory);
}

static const spt_heap_memory counted_memory = {&counted, get_counted, put_counted};

#endif
