/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock that all times are of: the monotonic one, in nanoseconds. */
#ifndef SPTI_CLOCK_H
#define SPTI_CLOCK_H

#include <stdbool.h>
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

/* When a wait ends that may last so long; one of less than 0 never does. */
static inline uint64_t spti_deadline(int64_t timeout_ns)
{
    return timeout_ns < 0 ? UINT64_MAX : spti_now_ns() + (uint64_t)timeout_ns;
}

/* Say, for a system call that waits, how long it is until then; false where that is over. */
static inline bool spti_time_left(uint64_t deadline_ns, struct timespec *left)
{
    uint64_t now = spti_now_ns();
    *left = spti_timespec(deadline_ns > now ? deadline_ns - now : 0);
    return deadline_ns > now;
}

#endif
