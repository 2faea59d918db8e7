/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns how a fuzzer's bytes become decisions; among them, when there is no memory. */
#ifndef CHOICES_H
#define CHOICES_H

#include "../tests/failing.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                         \
    ((condition) ? (void)0 : (fprintf(stderr, "not so: %s\n", #condition), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes that are left to decide with; zeros when they have run out. */
typedef struct choices {
    const uint8_t *data;
    size_t size;
} choices;

static inline size_t choose(choices *c, size_t below)
{
    size_t value = 0;
    for (size_t range = 1; range < below; range *= 256) {
        value = value * 256 + (c->size > 0 ? *c->data : 0);
        if (c->size > 0) {
            c->data++;
            c->size--;
        }
    }
    return value % below;
}

/* From now on the core is short of memory, in most runs: up to every allocation fails. */
static inline void begin_failing(choices *c)
{
    fail_every((long)choose(c, 12));
}

#endif
