/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of memory_pool.c: which buffer is given, what is counted, and who frees what. */
#define CHECK_AFTER end

#include "counted.h"

#include <sched.h>
#include <sys/mman.h>

enum { LOWER = 100, UPPER = 1000, MANY = 100 };

static spt_thread_pool *threads; /* that fill the pool, or NULL */
static spt_memory_pool *pool;
static void *buffers[MANY];

/* At the end of a test all buffers are back. */
static void end(void)
{
    END(spt_memory_pool, pool);
    END(spt_thread_pool, threads);
    CHECK_EQUAL(counted.away, 0, counted.bytes_away, 0);
}

static spt_memory_pool_config configured(size_t max_free, size_t initial)
{
    counted.calls = 0;
    return (spt_memory_pool_config){
        .lower = LOWER,
        .upper = UPPER,
        .max_free = max_free,
        .initial = initial,
        .base = counted_memory,
    };
}

static void begin(size_t max_free, size_t initial)
{
    spt_memory_pool_config config = configured(max_free, initial);
    pool = NEW(spt_memory_pool_create(NULL, &config, NULL));
}

/* One that a thread fills. */
static void begin_filled(size_t max_free, size_t initial, size_t low_water)
{
    spt_memory_pool_config config = configured(max_free, initial);
    config.low_water = low_water;
    threads = new_pool(1);
    pool = NEW(spt_memory_pool_create(threads, &config, NULL));
}

static void *get(size_t size)
{
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    return memory.get(memory.user, size, NULL);
}

static void put(void *buffer, size_t size)
{
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    memory.put(memory.user, buffer, size);
}

static void get_buffers(int n)
{
    for (int i = 0; i < n; i++)
        buffers[i] = get(UPPER);
}

static void put_buffers(int n)
{
    for (int i = 0; i < n; i++)
        put(buffers[i], UPPER);
}

static spt_memory_pool_stats stats(void)
{
    spt_memory_pool_stats now;
    spt_memory_pool_read_stats(pool, &now);
    return now;
}

TEST(sizes_from_lower_to_upper_get_buffers_of_upper_and_others_pass_by)
{
    static const size_t sizes[] = {1, LOWER - 1, LOWER, UPPER, UPPER + 1};
    static const size_t taken[] = {1, LOWER - 1, UPPER, UPPER, UPPER + 1};
    begin(2, 0);
    for (size_t i = 0; i < 5; i++) {
        uint8_t *buffer = NEW(get(sizes[i]));
        memset(buffer, 1, taken[i]);
        CHECK_EQUAL(counted.bytes_away, taken[i] + (sizes[i] > UPPER ? UPPER : 0));
        put(buffer, sizes[i]);
        CHECK_EQUAL(counted.away, taken[i] == UPPER || sizes[i] > UPPER);
    }
    CHECK_EQUAL(stats().gets, 5, stats().passed_by, 3, stats().largest, UPPER + 1);
    CHECK_EQUAL(stats().empty, 1); /* the second had the buffer of the first */
}

TEST(the_buffer_that_came_last_goes_first)
{
    begin(3, 3);
    get_buffers(3);
    put_buffers(3);
    for (int i = 3; i-- > 0;)
        CHECK(get(LOWER) == buffers[i]);
    CHECK_EQUAL(counted.calls, 3);
    put_buffers(3);
}

TEST(buffers_that_come_back_are_kept_up_to_max_free_and_all_are_counted)
{
    static const struct {
        size_t max_free, initial;
        int taken;
        size_t empty, fewest_free, kept;
    } cases[] = {
        {2, 0, 4, 4, 0, 2}, {SIZE_MAX, 0, MANY, MANY, 0, MANY},
        {1, 3, 3, 0, 0, 1}, /* more are made at first than are kept */
        {4, 2, 4, 2, 0, 4}, {4, 4, 2, 0, 2, 4},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        size_t taken = (size_t)cases[i].taken;
        begin(cases[i].max_free, cases[i].initial);
        CHECK_EQUAL(stats().free, cases[i].initial, stats().fewest_free, cases[i].initial);
        get_buffers(cases[i].taken);
        CHECK_EQUAL(stats().empty, cases[i].empty, stats().in_use, taken);
        CHECK_EQUAL(stats().free, cases[i].initial + cases[i].empty - taken);
        put_buffers(cases[i].taken);
        CHECK_EQUAL(stats().free, cases[i].kept, stats().fewest_free, cases[i].fewest_free);
        CHECK_EQUAL(stats().in_use, 0, stats().most_in_use, taken, counted.away, cases[i].kept);
        end();
    }
}

TEST(buffers_that_are_made_at_first_have_their_pages)
{
    enum { LARGE = 1 << 20 };
    static spt_mmap_config mapped;
    spt_memory_pool_config config = {.upper = LARGE, .max_free = 1, .initial = 1};
    REQUIRE(spt_mmap_memory(&mapped, &config.base, NULL) == SPT_OK);
    pool = NEW(spt_memory_pool_create(NULL, &config, NULL));
    for (int made = 1; made >= 0; made--) { /* and later ones have not */
        uint8_t *buffer = buffers[made] = NEW(get(LARGE));
        unsigned char resident = 0;
        CHECK_EQUAL(mincore(buffer + LARGE / 2, 1, &resident), 0, resident & 1, made);
    }
    put(buffers[1], LARGE);
    put(buffers[0], LARGE);
}

TEST(a_pool_may_have_its_buffers_from_another)
{
    begin(4, 2);
    spt_memory_pool_config config = configured(4, 2);
    config.base = spt_memory_pool_memory(pool);
    spt_memory_pool *outer = NEW(spt_memory_pool_create(NULL, &config, NULL));
    spt_heap_memory memory = spt_memory_pool_memory(outer);
    CHECK_EQUAL(stats().in_use, 2);
    void *buffer = memory.get(memory.user, LOWER, NULL);
    spt_memory_pool_destroy(outer);
    END(spt_memory_pool, pool);
    memory.put(memory.user, buffer, LOWER); /* what is left of either knows the way back */
}

TEST(buffers_may_come_back_after_the_pool_and_its_threads_have_gone)
{
    begin_filled(2, 2, 1);
    uint8_t *buffer = get(UPPER), *passed_by = get(1);
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    END(spt_memory_pool, pool);
    END(spt_thread_pool, threads);
    memset(buffer, 1, UPPER);
    *passed_by = 1;
    CHECK_EQUAL(counted.away, 2);
    memory.put(memory.user, buffer, UPPER);
    memory.put(memory.user, passed_by, 1);
}

static void wait_for_free(size_t n)
{
    while (stats().free < n)
        sched_yield();
}

TEST(a_pool_that_runs_low_is_refilled_by_a_thread)
{
    begin_filled(8, 1, 3);
    for (int i = 0; i < 5; i++) {
        wait_for_free(3);
        buffers[i] = get(UPPER);
    }
    wait_for_free(3);
    CHECK_EQUAL(stats().empty, 0, stats().fewest_free, 1); /* at the very first */
    put_buffers(5);
    end();
    CHECK_EQUAL(counted.calls, 8);
}

TEST(a_thread_that_finds_no_memory_waits_for_the_next_request)
{
    counted.fails_from = 5;
    begin_filled(4, 4, 4);
    void *buffer = get(UPPER);
    while (counted.calls < 5)
        sched_yield();
    spt_thread_pool_stop(threads);
    CHECK_EQUAL(counted.calls, 5); /* it has tried, and not again */
    counted.fails_from = 0;
    put(buffer, UPPER);
}

TEST(without_its_threads_a_pool_goes_on_unfilled)
{
    begin_filled(2, 2, 1);
    spt_thread_pool_stop(threads);
    get_buffers(3);
    CHECK_EQUAL(stats().empty, 1);
    put_buffers(3);
}

TEST(a_pool_that_cannot_be_is_not_made)
{
    spt_memory_pool_config good = configured(4, 4), bad[] = {good, good, good, good, good};
    bad[0].lower = bad[0].upper = 0;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "upper is 0", spt_memory_pool_create(threads, &bad[0], &err));
    bad[1].lower = 2000;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "lower is 2000",
                  spt_memory_pool_create(threads, &bad[1], &err));
    bad[2].low_water = 5;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "low_water is 5",
                  spt_memory_pool_create(threads, &bad[2], &err));
    bad[3].base.put = NULL;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "get and put", spt_memory_pool_create(threads, &bad[3], &err));
    bad[4].low_water = 1;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "thread", spt_memory_pool_create(threads, &bad[4], &err));
    threads = new_pool(1);
    spt_thread_pool_stop(threads);
    CHECK_REFUSED(SPT_ERR_STOPPED, "", spt_memory_pool_create(threads, &bad[4], &err));
    counted.fails_from = counted.calls + 3;
    CHECK_REFUSED(SPT_ERR_MEMORY, "4 buffers of 1000 bytes: there was enough for 2",
                  spt_memory_pool_create(threads, &good, &err));
    counted.fails_from = 0;
}

TEST(a_request_that_finds_no_memory_changes_nothing)
{
    begin(2, 1);
    void *buffer = get(UPPER);
    counted.fails_from = 1;
    CHECK(get(UPPER) == NULL && get(1) == NULL);
    counted.fails_from = 0;
    CHECK_EQUAL(stats().in_use, 1, stats().gets, 3);
    put(buffer, UPPER);
}

enum { THREADS = 4, ROUNDS = 3000, HELD = 3 };

static void *work(void *arg)
{
    uint8_t number = *(uint8_t *)arg, *held[HELD] = {0};
    size_t sizes[HELD] = {0};
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t at = i % HELD;
        if (held[at] != NULL) {
            CHECK(held[at][0] == number && held[at][sizes[at] - 1] == number);
            put(held[at], sizes[at]);
        }
        sizes[at] = 1 + (i * 131) % (UPPER + 50);
        held[at] = NEW(get(sizes[at]));
        memset(held[at], number, sizes[at]);
    }
    for (size_t at = 0; at < HELD; at++)
        put(held[at], sizes[at]);
    return NULL;
}

TEST(many_threads_get_and_put_while_another_refills)
{
    static uint8_t numbers[THREADS] = {0, 1, 2, 3};
    pthread_t workers[THREADS];
    begin_filled(6, 2, 3);
    for (uint8_t i = 0; i < THREADS; i++)
        workers[i] = start_thread(work, &numbers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i], NULL);
    CHECK_EQUAL(stats().gets, THREADS * ROUNDS, stats().in_use, 0);
    CHECK(stats().most_in_use <= (size_t)THREADS * HELD && stats().free <= 6);
}
