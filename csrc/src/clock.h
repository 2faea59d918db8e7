/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that all times are of: the monotonic one, in nanoseconds. */
#ifndef SPTI_CLOCK_H
#define SPTI_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { SPTI_SECOND_NS = 1000000000 };

static inline uint64_t spti_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SPTI_SECOND_NS + (uint64_t)now.tv_nsec;
}

/* For system calls: a time, or how long something lasts. */
static inline struct timespec spti_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / SPTI_SECOND_NS), (long)(ns % SPTI_SECOND_NS)};
}

#endif
