/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what each test of a stream has: a pool, a heap, completions, and the stream, once the test
 * has made one. All tests are run with a thread, and then without one.
 */
#ifndef SENDING_H
#define SENDING_H

#define CHECK_CASES "", ", without a thread"
#define CHECK_AFTER end_sending

#include "support.h"

enum { SENT = 8 };

static spt_thread_pool *pool; /* or NULL: the test's thread does the work */
static spt_stream *stream;
static spt_heap *heap;
static spt_completion sent[SENT];
static uint8_t value[10000];
static bool all_done; /* is to be before the stream is destroyed, too */

static inline void check_all_done(void)
{
    for (int i = 0; i < SENT; i++)
        CHECK(spt_completion_done(&sent[i]));
    CHECK(heap == NULL || spt_heap_in_flight(heap) == 0);
}

static void end_sending(void)
{
    if (all_done)
        check_all_done();
    END(spt_stream, stream);
    check_all_done();
    END(spt_thread_pool, pool);
    END(spt_heap, heap);
}

/* End what was before; the heap has so many bytes. */
static inline void begin_sending(size_t n_threads, size_t length)
{
    end_sending();
    memset(sent, 0, sizeof(sent));
    pool = check_case == 0 ? new_pool(n_threads) : NULL;
    heap = new_heap_of(value, length);
}

static inline spt_status send_heap(int i)
{
    return spt_stream_send_heap(stream, heap, &sent[i], NULL);
}

static inline spt_status send_group(int i, size_t n, spt_group_mode mode)
{
    const spt_heap_reference r = {heap, -1, 0, -1};
    const spt_heap_reference group[] = {r, r, r, r};
    REQUIRE(n <= LENGTH(group));
    return spt_stream_send_heaps(stream, group, n, mode, &sent[i], NULL);
}

static inline spt_status wait_for(int i, int64_t timeout_ns)
{
    return spt_stream_wait(stream, &sent[i], timeout_ns, NULL);
}

static inline spt_stats stats(void)
{
    return stats_of_sender(stream);
}

/* These are the heap counts of packets: CHECK_COUNTS(got, n_got, 1, 1, 2). */
#define CHECK_COUNTS(got, n_got, ...)                                                              \
    do {                                                                                           \
        static const uint64_t counts_[] = {__VA_ARGS__};                                           \
        CHECK_EQUAL(n_got, LENGTH(counts_));                                                       \
        CHECK_BYTES(got, counts_, sizeof(counts_));                                                \
    } while (0)

#endif
