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

static long allocations; /* atomic, as is `failures` */
static long failures;
static long failing_n; /* atomic, too; the others are set before it */
static long failing_since;
static bool failing_once;

/* The n-th allocation from now on fails, no other; 0: none. */
__attribute__((unused)) static void fail_once(long n)
{
    failing_since = __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
    failing_once = true;
    __atomic_store_n(&failures, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failing_n, n, __ATOMIC_SEQ_CST);
}

/* Every n-th allocation from now on fails; 0: none. */
__attribute__((unused)) static void fail_every(long n)
{
    fail_once(0);
    failing_once = false;
    __atomic_store_n(&failing_n, n, __ATOMIC_SEQ_CST);
}

__attribute__((unused)) static bool has_failed(void)
{
    return __atomic_load_n(&failures, __ATOMIC_SEQ_CST) > 0;
}

/* No more of that; returns how many have failed. */
__attribute__((unused)) static long stop_failing(void)
{
    __atomic_store_n(&failing_n, 0, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
}

static bool fails(void)
{
    long count = __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST);
    long n = __atomic_load_n(&failing_n, __ATOMIC_SEQ_CST);
    if (n == 0)
        return false;
    count -= failing_since;
    if (failing_once ? count != n : count % n != 0)
        return false;
    __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return true;
}

/* Memory for the test itself: it does not fail. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
