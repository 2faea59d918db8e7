/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns memory that runs out when a test wants it to. What includes this is linked so that it stands
 * for malloc() and its siblings (see `failing` in csrc/meson.build). It may stop failing at any
 * time, but is to begin while no other thread allocates.
 */
#ifndef FAILING_H
#define FAILING_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static _Atomic long allocations, failures;
static _Atomic long failing_n; /* the others are set before it */
static long failing_since;
static bool failing_once;

/* The n-th allocation from now on fails, no other; 0: none. */
__attribute__((unused)) static void fail_once(long n)
{
    failing_since = allocations;
    failing_once = true;
    failures = 0;
    failing_n = n;
}

/* Every n-th allocation from now on fails; 0: none. */
__attribute__((unused)) static void fail_every(long n)
{
    fail_once(0);
    failing_once = false;
    failing_n = n;
}

__attribute__((unused)) static bool has_failed(void)
{
    return failures > 0;
}

/* No more of that; returns how many have failed. */
__attribute__((unused)) static long stop_failing(void)
{
    failing_n = 0;
    return failures;
}

static bool fails(void)
{
    long count = ++allocations;
    long n = failing_n;
    if (n == 0)
        return false;
    count -= failing_since;
    if (failing_once ? count != n : count % n != 0)
        return false;
    failures++;
    errno = ENOMEM;
    return true;
}

/* __real_malloc() and its siblings are memory for the test itself: they do not fail. */
#define FAILING(name, parameters, arguments)                                                       \
    void *__real_##name parameters;                                                                \
    void *__wrap_##name parameters;                                                                \
    void *__wrap_##name parameters                                                                 \
    {                                                                                              \
        return fails() ? NULL : __real_##name arguments;                                           \
    }
FAILING(malloc, (size_t size), (size))
FAILING(calloc, (size_t n, size_t size), (n, size))
FAILING(realloc, (void *memory, size_t size), (memory, size))
FAILING(aligned_alloc, (size_t alignment, size_t size), (alignment, size))

#endif
