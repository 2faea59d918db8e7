/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of memory_pool.c: which buffer is given, what is counted, and who frees what. */
#include "spead_tutorial/spt_recv.h"

#include "check.h"
#include "make_packet.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

enum { LOWER = 100, UPPER = 1000, FOR_EVER = -1 };

/* Where the buffers of these tests come from: malloc, with an account. All of it is atomic. */
static size_t calls, away, bytes_away, fails_from;

static void *get_counted(void *user, size_t size, const spt_received_packet *first)
{
    (void)user;
    (void)first;
    size_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    size_t fails = __atomic_load_n(&fails_from, __ATOMIC_SEQ_CST);
    if (fails > 0 && call >= fails)
        return NULL;
    __atomic_add_fetch(&away, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&bytes_away, size, __ATOMIC_SEQ_CST);
    return malloc(size);
}

static void put_counted(void *user, void *memory, size_t size)
{
    (void)user;
    __atomic_sub_fetch(&away, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&bytes_away, size, __ATOMIC_SEQ_CST);
    free(memory);
}

static size_t count(const size_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static void fail_from(size_t call)
{
    __atomic_store_n(&fails_from, call, __ATOMIC_SEQ_CST);
}

static spt_memory_pool_config configured(size_t max_free, size_t initial)
{
    calls = 0;
    return (spt_memory_pool_config){
        .lower = LOWER,
        .upper = UPPER,
        .max_free = max_free,
        .initial = initial,
        .base = {NULL, get_counted, put_counted},
    };
}

static spt_memory_pool *new_pool(size_t max_free, size_t initial)
{
    spt_memory_pool_config config = configured(max_free, initial);
    spt_memory_pool *pool = spt_memory_pool_create(NULL, &config, NULL);
    REQUIRE(pool != NULL);
    return pool;
}

static void *get(spt_memory_pool *pool, size_t size)
{
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    return memory.get(memory.user, size, NULL);
}

static void put(spt_memory_pool *pool, void *buffer, size_t size)
{
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    memory.put(memory.user, buffer, size);
}

static spt_memory_pool_stats stats_of(spt_memory_pool *pool)
{
    spt_memory_pool_stats stats;
    spt_memory_pool_read_stats(pool, &stats);
    return stats;
}

static void check_all_is_back(void)
{
    CHECK_EQUAL(count(&away), 0);
    CHECK_EQUAL(count(&bytes_away), 0);
}

static void test_sizes_from_lower_to_upper_get_buffers_of_upper_and_others_pass_by(void)
{
    static const size_t sizes[] = {1, LOWER - 1, LOWER, UPPER, UPPER + 1};
    static const size_t taken[] = {1, LOWER - 1, UPPER, UPPER, UPPER + 1};
    spt_memory_pool *pool = new_pool(2, 0);
    for (size_t i = 0; i < 5; i++) {
        uint8_t *buffer = get(pool, sizes[i]);
        REQUIRE(buffer != NULL);
        memset(buffer, 1, taken[i]);
        bool pooled = taken[i] == UPPER;
        CHECK_EQUAL(count(&bytes_away), taken[i] + (sizes[i] > UPPER ? UPPER : 0));
        put(pool, buffer, sizes[i]);
        CHECK_EQUAL(count(&away), pooled || sizes[i] > UPPER);
    }
    spt_memory_pool_stats stats = stats_of(pool);
    CHECK_EQUAL(stats.gets, 5);
    CHECK_EQUAL(stats.passed_by, 3);
    CHECK_EQUAL(stats.empty, 1); /* the second had the buffer of the first */
    CHECK_EQUAL(stats.largest, UPPER + 1);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_the_buffer_that_came_last_goes_first(void)
{
    spt_memory_pool *pool = new_pool(3, 3);
    void *buffers[3];
    for (int i = 0; i < 3; i++)
        buffers[i] = get(pool, UPPER);
    for (int i = 0; i < 3; i++)
        put(pool, buffers[i], UPPER);
    for (int i = 3; i-- > 0;)
        CHECK(get(pool, LOWER) == buffers[i]);
    CHECK_EQUAL(calls, 3);
    for (int i = 0; i < 3; i++)
        put(pool, buffers[i], LOWER);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_buffers_that_come_back_to_max_free_are_freed(void)
{
    spt_memory_pool *pool = new_pool(2, 0);
    void *buffers[4];
    for (int i = 0; i < 4; i++)
        buffers[i] = get(pool, UPPER);
    for (int i = 0; i < 4; i++)
        put(pool, buffers[i], UPPER);
    CHECK_EQUAL(count(&away), 2);
    CHECK_EQUAL(stats_of(pool).free, 2);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_a_pool_without_limits_keeps_all_that_comes_back(void)
{
    spt_memory_pool *pool = new_pool(SIZE_MAX, 0);
    void *buffers[100];
    for (int i = 0; i < 100; i++)
        buffers[i] = get(pool, UPPER);
    for (int i = 0; i < 100; i++)
        put(pool, buffers[i], UPPER);
    CHECK_EQUAL(stats_of(pool).free, 100);
    CHECK(get(pool, UPPER) == buffers[99]);
    put(pool, buffers[99], UPPER);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_more_may_be_made_at_first_than_are_kept(void)
{
    spt_memory_pool *pool = new_pool(1, 3);
    CHECK_EQUAL(stats_of(pool).free, 3);
    void *buffers[3];
    for (int i = 0; i < 3; i++)
        buffers[i] = get(pool, UPPER);
    CHECK_EQUAL(stats_of(pool).empty, 0);
    for (int i = 0; i < 3; i++)
        put(pool, buffers[i], UPPER);
    CHECK_EQUAL(stats_of(pool).free, 1);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_an_empty_pool_gives_new_buffers_and_counts(void)
{
    spt_memory_pool *pool = new_pool(4, 2);
    void *buffers[4];
    for (int i = 0; i < 4; i++)
        buffers[i] = get(pool, UPPER);
    spt_memory_pool_stats stats = stats_of(pool);
    CHECK_EQUAL(stats.empty, 2);
    CHECK_EQUAL(stats.free, 0);
    CHECK_EQUAL(stats.in_use, 4);
    for (int i = 0; i < 4; i++)
        put(pool, buffers[i], UPPER);
    stats = stats_of(pool);
    CHECK_EQUAL(stats.free, 4);
    CHECK_EQUAL(stats.fewest_free, 0);
    CHECK_EQUAL(stats.in_use, 0);
    CHECK_EQUAL(stats.most_in_use, 4);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_the_fewest_that_were_free_are_known(void)
{
    spt_memory_pool *pool = new_pool(4, 4);
    CHECK_EQUAL(stats_of(pool).fewest_free, 4);
    void *one = get(pool, UPPER), *two = get(pool, UPPER);
    put(pool, one, UPPER);
    put(pool, two, UPPER);
    CHECK_EQUAL(stats_of(pool).fewest_free, 2);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

static void test_buffers_that_are_made_at_first_have_their_pages(void)
{
    enum { LARGE = 1 << 20 };
    spt_mmap_config mapped = {0};
    spt_memory_pool_config config = {.upper = LARGE, .max_free = 1, .initial = 1};
    REQUIRE(spt_mmap_memory(&mapped, &config.base, NULL) == SPT_OK);
    spt_memory_pool *pool = spt_memory_pool_create(NULL, &config, NULL);
    REQUIRE(pool != NULL);
    uint8_t *made = get(pool, LARGE), *later = get(pool, LARGE);
    REQUIRE(made != NULL && later != NULL);
    unsigned char resident = 0;
    CHECK(mincore(made + LARGE / 2, 1, &resident) == 0 && (resident & 1) != 0);
    CHECK(mincore(later + LARGE / 2, 1, &resident) == 0 && (resident & 1) == 0);
    put(pool, made, LARGE);
    put(pool, later, LARGE);
    spt_memory_pool_destroy(pool);
}

static void test_a_pool_may_have_its_buffers_from_another(void)
{
    spt_memory_pool *inner = new_pool(4, 2);
    spt_memory_pool_config config = configured(4, 2);
    config.base = spt_memory_pool_memory(inner);
    spt_memory_pool *outer = spt_memory_pool_create(NULL, &config, NULL);
    REQUIRE(outer != NULL);
    CHECK_EQUAL(stats_of(inner).in_use, 2);
    void *buffer = get(outer, LOWER);
    spt_memory_pool_destroy(outer);
    spt_memory_pool_destroy(inner);
    put(outer, buffer, LOWER); /* what is left of either knows the way back */
    check_all_is_back();
}

static void test_buffers_may_come_back_after_the_pool_and_its_threads_have_gone(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_memory_pool_config config = configured(2, 2);
    config.low_water = 1;
    spt_memory_pool *pool = spt_memory_pool_create(threads, &config, NULL);
    REQUIRE(pool != NULL);
    uint8_t *buffer = get(pool, UPPER), *passed_by = get(pool, 1);
    spt_heap_memory memory = spt_memory_pool_memory(pool);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    memset(buffer, 1, UPPER);
    *passed_by = 1;
    CHECK_EQUAL(count(&away), 2);
    memory.put(memory.user, buffer, UPPER);
    memory.put(memory.user, passed_by, 1);
    check_all_is_back();
}

/* ---- Refilling ------------------------------------------------------------------------------- */

static void wait_for_free(spt_memory_pool *pool, size_t n)
{
    while (stats_of(pool).free < n)
        sched_yield();
}

static void test_a_pool_that_runs_low_is_refilled_by_a_thread(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_memory_pool_config config = configured(8, 1);
    config.low_water = 3;
    spt_memory_pool *pool = spt_memory_pool_create(threads, &config, NULL);
    REQUIRE(pool != NULL);
    void *buffers[5];
    for (int i = 0; i < 5; i++) {
        wait_for_free(pool, 3);
        buffers[i] = get(pool, UPPER);
    }
    wait_for_free(pool, 3);
    CHECK_EQUAL(stats_of(pool).empty, 0);
    CHECK_EQUAL(stats_of(pool).fewest_free, 1); /* at the very first */
    for (int i = 0; i < 5; i++)
        put(pool, buffers[i], UPPER);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    CHECK_EQUAL(calls, 8);
    check_all_is_back();
}

static void test_a_thread_that_finds_no_memory_waits_for_the_next_request(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_memory_pool_config config = configured(4, 4);
    config.low_water = 4;
    fail_from(5);
    spt_memory_pool *pool = spt_memory_pool_create(threads, &config, NULL);
    REQUIRE(pool != NULL);
    void *buffer = get(pool, UPPER);
    while (count(&calls) < 5)
        sched_yield();
    spt_thread_pool_stop(threads);
    CHECK_EQUAL(count(&calls), 5); /* it has tried, and not again */
    fail_from(0);
    put(pool, buffer, UPPER);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    check_all_is_back();
}

static void test_without_its_threads_a_pool_goes_on_unfilled(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_memory_pool_config config = configured(2, 2);
    config.low_water = 1;
    spt_memory_pool *pool = spt_memory_pool_create(threads, &config, NULL);
    REQUIRE(pool != NULL);
    spt_thread_pool_stop(threads);
    void *buffers[3];
    for (int i = 0; i < 3; i++)
        buffers[i] = get(pool, UPPER);
    CHECK_EQUAL(stats_of(pool).empty, 1);
    for (int i = 0; i < 3; i++)
        put(pool, buffers[i], UPPER);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    check_all_is_back();
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void test_configurations_that_cannot_be_are_refused(void)
{
    spt_memory_pool_config good = configured(2, 1);
    spt_memory_pool_config bad[] = {good, good, good, good, good};
    const char *said[] = {"upper is 0", "lower is 2000", "low_water is 3", "thread", "get and put"};
    bad[0].lower = bad[0].upper = 0;
    bad[1].lower = 2000;
    bad[2].low_water = 3;
    bad[3].low_water = 1;
    bad[4].base.put = NULL;
    for (int i = 0; i < 5; i++) {
        spt_error err;
        CHECK(spt_memory_pool_create(NULL, &bad[i], &err) == NULL);
        CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
        CHECK(strstr(err.message, said[i]) != NULL);
    }
    check_all_is_back();
}

static void test_a_pool_that_cannot_be_filled_is_not_made(void)
{
    spt_error err;
    spt_memory_pool_config config = configured(4, 4);
    fail_from(3);
    CHECK(spt_memory_pool_create(NULL, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_MEMORY);
    CHECK(strstr(err.message, "4 buffers of 1000 bytes: there was enough for 2") != NULL);
    fail_from(0);
    check_all_is_back();
}

static void test_a_pool_is_not_made_for_threads_that_have_stopped(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_thread_pool_stop(threads);
    spt_memory_pool_config config = configured(4, 4);
    config.low_water = 1;
    spt_error err;
    CHECK(spt_memory_pool_create(threads, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_STOPPED);
    spt_thread_pool_destroy(threads);
    check_all_is_back();
}

static void test_a_request_that_finds_no_memory_changes_nothing(void)
{
    spt_memory_pool *pool = new_pool(2, 1);
    void *buffer = get(pool, UPPER);
    fail_from(1);
    CHECK(get(pool, UPPER) == NULL);
    CHECK(get(pool, 1) == NULL);
    fail_from(0);
    CHECK_EQUAL(stats_of(pool).in_use, 1);
    CHECK_EQUAL(stats_of(pool).gets, 3);
    put(pool, buffer, UPPER);
    spt_memory_pool_destroy(pool);
    check_all_is_back();
}

/* ---- Many at once ---------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 3000, HELD = 3 };

typedef struct worker {
    pthread_t thread;
    spt_memory_pool *pool;
    uint8_t number;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    uint8_t *held[HELD] = {0};
    size_t sizes[HELD] = {0};
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t at = i % HELD;
        if (held[at] != NULL) {
            CHECK(held[at][0] == w->number && held[at][sizes[at] - 1] == w->number);
            put(w->pool, held[at], sizes[at]);
        }
        sizes[at] = 1 + (i * 131) % (UPPER + 50);
        held[at] = get(w->pool, sizes[at]);
        REQUIRE(held[at] != NULL);
        memset(held[at], w->number, sizes[at]);
    }
    for (size_t at = 0; at < HELD; at++)
        put(w->pool, held[at], sizes[at]);
    return NULL;
}

static void test_many_threads_get_and_put_while_another_refills(void)
{
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(threads != NULL);
    spt_memory_pool_config config = configured(6, 2);
    config.low_water = 3;
    spt_memory_pool *pool = spt_memory_pool_create(threads, &config, NULL);
    REQUIRE(pool != NULL);
    worker workers[THREADS];
    for (uint8_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.pool = pool, .number = i};
        REQUIRE(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    spt_memory_pool_stats stats = stats_of(pool);
    CHECK_EQUAL(stats.gets, THREADS * ROUNDS);
    CHECK_EQUAL(stats.in_use, 0);
    CHECK(stats.most_in_use <= (size_t)THREADS * HELD);
    CHECK(stats.free <= config.max_free);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    check_all_is_back();
}

/* ---- Heaps ----------------------------------------------------------------------------------- */

enum { HEAPS = 50, SIZE = 900, KEPT = 3 };

static uint8_t packets[HEAPS * 2000];

/* One heap a packet, each full of its count. */
static size_t make_packets(void)
{
    static made_packet made;
    static uint8_t payload[SIZE];
    size_t n = 0;
    for (uint64_t cnt = 0; cnt < HEAPS; cnt++) {
        memset(payload, (int)cnt, SIZE);
        make_part(&made, cnt, SIZE, 0, SIZE);
        make_add(&made, false, 0x3300, 0);
        make_end(&made, payload, SIZE);
        REQUIRE(n + made.size <= sizeof(packets));
        memcpy(packets + n, made.bytes, made.size);
        n += made.size;
    }
    return n;
}

static void test_payloads_that_are_kept_stay_as_they_are_while_others_come_and_go(void)
{
    size_t n_bytes = make_packets();
    spt_thread_pool *threads = spt_thread_pool_create(1, NULL, 0, NULL);
    spt_recv_config config = spt_recv_config_default();
    size_t most = config.heaps.max_heaps + config.ring_heaps + 1 + KEPT + 1;
    spt_memory_pool *pool = new_pool(most, most);
    config.heaps.memory = spt_memory_pool_memory(pool);
    spt_recv_stream *stream = spt_recv_stream_create(threads, &config, NULL);
    REQUIRE(stream != NULL);
    REQUIRE(spt_recv_stream_add_memory(stream, packets, n_bytes, NULL) == SPT_OK);
    uint8_t *kept[HEAPS] = {0};
    for (size_t i = 0; i < HEAPS; i++) {
        spt_received_heap *heap;
        REQUIRE(spt_recv_stream_get(stream, FOR_EVER, &heap) == SPT_OK);
        kept[i] = heap->payload;
        heap->payload = NULL;
        spt_recv_stream_return(stream, heap);
        if (i >= KEPT) {
            CHECK(kept[i - KEPT][0] == i - KEPT && kept[i - KEPT][SIZE - 1] == i - KEPT);
            put(pool, kept[i - KEPT], SIZE);
        }
    }
    CHECK_EQUAL(stats_of(pool).empty, 0);
    CHECK_EQUAL(stats_of(pool).in_use, KEPT);
    CHECK_EQUAL(count(&calls), most); /* whatever came, nothing new was needed */
    spt_recv_stream_destroy(stream);
    spt_memory_pool_destroy(pool);
    spt_thread_pool_destroy(threads);
    for (size_t i = HEAPS - KEPT; i < HEAPS; i++) {
        CHECK_EQUAL(kept[i][SIZE - 1], i);
        put(pool, kept[i], SIZE);
    }
    check_all_is_back();
}

int main(void)
{
    RUN(test_sizes_from_lower_to_upper_get_buffers_of_upper_and_others_pass_by);
    RUN(test_the_buffer_that_came_last_goes_first);
    RUN(test_buffers_that_come_back_to_max_free_are_freed);
    RUN(test_a_pool_without_limits_keeps_all_that_comes_back);
    RUN(test_more_may_be_made_at_first_than_are_kept);
    RUN(test_an_empty_pool_gives_new_buffers_and_counts);
    RUN(test_the_fewest_that_were_free_are_known);
    RUN(test_buffers_that_are_made_at_first_have_their_pages);
    RUN(test_a_pool_may_have_its_buffers_from_another);
    RUN(test_buffers_may_come_back_after_the_pool_and_its_threads_have_gone);
    RUN(test_a_pool_that_runs_low_is_refilled_by_a_thread);
    RUN(test_a_thread_that_finds_no_memory_waits_for_the_next_request);
    RUN(test_without_its_threads_a_pool_goes_on_unfilled);
    RUN(test_configurations_that_cannot_be_are_refused);
    RUN(test_a_pool_that_cannot_be_filled_is_not_made);
    RUN(test_a_pool_is_not_made_for_threads_that_have_stopped);
    RUN(test_a_request_that_finds_no_memory_changes_nothing);
    RUN(test_many_threads_get_and_put_while_another_refills);
    RUN(test_payloads_that_are_kept_stay_as_they_are_while_others_come_and_go);
    return check_done();
}
