/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what only shows when many threads do everything at once, for a while: streams of one pool
 * that are made, used, given up and destroyed while others send. Run with a number of seconds, or
 * for a number of rounds that takes a moment. It is meant for the sanitizers.
 */
#include "support.h"

#include <time.h>

enum { THREADS = 4, POOL_THREADS = 3, HEAPS = 8, ROUNDS = 150, LONG = 20000, SHARED = 4 };

static uint8_t value[LONG];
static time_t end_time; /* 0: ROUNDS */

typedef struct worker {
    pthread_t thread;
    spt_thread_pool *pool;
    spt_stream **shared; /* all send with all of them, all the time */
    size_t sent[SHARED]; /* heaps, with each of those */
    int refused;         /* the port of nobody */
    unsigned seed;
} worker;

static unsigned any(worker *w, unsigned below)
{
    return (unsigned)rand_r(&w->seed) % below;
}

static bool goes_on(int round)
{
    return end_time > 0 ? time(NULL) < end_time : round < ROUNDS;
}

/* A stream into memory, or on a socket that is connected to where nobody listens: there the kernel
 * reports a refusal also while nothing is waited for. It may send without copying. */
static spt_stream *any_stream(worker *w, spt_thread_pool *pool, bool poll)
{
    const spt_stream_config *config =
        STREAM_CONFIG(its.max_heaps = HEAPS, its.poll = poll, its.timeline = any(w, 2) * HEAPS,
                      its.rate = any(w, 4) == 0 ? 1e8 : 0);
    spt_endpoint endpoint = {"127.0.0.1", w->refused};
    if (any(w, 4) == 0)
        return spt_stream_create_memory(pool, config, NULL);
    if (any(w, 3) == 0)
        return spt_stream_create_udp(pool, &endpoint, 1, config, UDP_CONFIG(its.zero_copy = true),
                                     NULL);
    int fd = connect_to_loopback(w->refused);
    spt_stream *stream = spt_stream_create_udp_socket(pool, fd, &endpoint, 1, config, NULL, NULL);
    close(fd);
    return stream;
}

/* Wait until all is complete, as a user of a stream with config.poll does. */
static void take_all(spt_stream *stream, size_t n)
{
    spt_completion *done[3];
    while (n > 0) {
        REQUIRE(is_readable(spt_stream_fd(stream), 10000));
        size_t taken;
        do {
            taken = spt_stream_poll(stream, done, 3);
            n -= taken;
        } while (taken == 3);
    }
}

static void use_and_destroy(worker *w, spt_heap *const *heaps)
{
    bool poll = any(w, 2);
    spt_stream *stream = any_stream(w, any(w, 3) == 0 ? NULL : w->pool, poll);
    REQUIRE(stream != NULL);
    spt_completion sent[HEAPS] = {0};
    size_t n = 1 + any(w, HEAPS);
    for (size_t i = 0; i < n; i++)
        REQUIRE(spt_stream_send_heap(stream, heaps[i], &sent[i], NULL) == SPT_OK);
    switch (any(w, 5)) {
    case 0:
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        break;
    case 1:
        spt_stream_cancel(stream, &sent[any(w, (unsigned)n)]);
        break;
    case 2:
        spt_stream_stop(stream);
        break;
    case 3:
        if (poll)
            take_all(stream, n);
        else
            (void)!spt_stream_wait(stream, &sent[n - 1], -1, NULL);
        break;
    default: /* at once */
        break;
    }
    spt_stream_destroy(stream);
    for (size_t i = 0; i < n; i++)
        CHECK(spt_completion_done(&sent[i]));
}

static void send_with_others(worker *w, spt_heap *heap)
{
    spt_completion sent = {0};
    unsigned which = any(w, SHARED);
    spt_stream *stream = w->shared[which];
    while (spt_stream_send_heap(stream, heap, &sent, NULL) == SPT_ERR_QUEUE_FULL)
        (void)!spt_stream_flush(stream, 1000000);
    if (any(w, 5) == 0)
        spt_stream_cancel(stream, &sent);
    spt_status status = spt_stream_wait(stream, &sent, -1, NULL);
    CHECK(status == SPT_OK || status == SPT_ERR_CANCELLED || status == SPT_ERR_SYSTEM);
    w->sent[which] += status == SPT_OK;
}

static void *work(void *arg)
{
    worker *w = arg;
    spt_heap *heaps[HEAPS];
    for (size_t i = 0; i < HEAPS; i++)
        heaps[i] = new_heap_of(value, i % 2 ? LONG : 1);
    for (int round = 0; goes_on(round); round++) {
        use_and_destroy(w, heaps);
        for (int i = 0; i < 20; i++)
            send_with_others(w, heaps[0]);
    }
    for (size_t i = 0; i < HEAPS; i++) {
        CHECK_EQUAL(spt_heap_in_flight(heaps[i]), 0);
        spt_heap_destroy(heaps[i]);
    }
    return NULL;
}

TEST(streams_come_and_go_while_others_send)
{
    if (check_argument != NULL)
        end_time = time(NULL) + atoi(check_argument);
    int refused;
    close(connect_to_nobody(&refused));
    spt_thread_pool *pool = NEW(spt_thread_pool_create(POOL_THREADS, NULL, 0, NULL));
    worker first = {.pool = pool, .refused = refused, .seed = 0};
    /* With and without a thread; into memory, and elsewhere. */
    spt_stream *shared[SHARED] = {new_memory_stream(NULL), new_memory_stream(pool),
                                  NEW(any_stream(&first, NULL, false)),
                                  NEW(any_stream(&first, pool, false))};
    size_t sent[SHARED] = {0};
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.pool = pool, .shared = shared, .refused = refused, .seed = i};
        workers[i].thread = start_thread(work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int which = 0; which < SHARED; which++)
            sent[which] += workers[i].sent[which];
    }
    for (int which = 0; which < SHARED; which++) {
        size_t in_memory = spt_stream_memory(shared[which], NULL, 0);
        CHECK(in_memory == 49 * sent[which] || (in_memory == 0 && which >= 2));
        spt_stream_destroy(shared[which]);
    }
    spt_thread_pool_destroy(pool);
}
