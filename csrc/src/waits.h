/* SPDX-License-Identifier: BSD-3-Clause */
/* How often something was waited for, and for how long at most. */
#ifndef SPTI_WAITS_H
#define SPTI_WAITS_H

#include "clock.h"

#include <stdbool.h>

/* Set to zeros, it was never. */
typedef struct spti_waits {
    uint64_t since_ns; /* 0: not now */
    uint64_t n, longest_ns;
} spti_waits;

static inline void spti_waits_note(spti_waits *w, bool waiting)
{
    if (waiting && w->since_ns == 0) {
        w->since_ns = spti_now_ns();
        w->n++;
    } else if (!waiting && w->since_ns != 0) {
        uint64_t ns = spti_now_ns() - w->since_ns;
        w->longest_ns = ns > w->longest_ns ? ns : w->longest_ns;
        w->since_ns = 0;
    }
}

#endif
