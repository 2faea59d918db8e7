/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of stream.c: queue, completions, groups, and giving up. */
#include "spead_tutorial/spt.h"

#include "check.h"
#include "reader.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

enum { LONG = 3000, MANY = 20000 };

static uint8_t value[LONG];

static spt_heap *new_heap(size_t length)
{
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    spt_heap *heap = spt_heap_create(&flavour, NULL);
    spt_item item = {0x3300, value, length, false};
    REQUIRE(heap != NULL && spt_heap_add_item(heap, &item, NULL) == SPT_OK);
    return heap;
}

static bool without_threads; /* the second time that tests are run */

static spt_thread_pool *new_pool(size_t n_threads)
{
    if (without_threads)
        return NULL;
    spt_thread_pool *pool = spt_thread_pool_create(n_threads, NULL, 0, NULL);
    REQUIRE(pool != NULL);
    return pool;
}

static spt_stream *new_stream(spt_thread_pool *pool, spt_stream_config config)
{
    spt_stream *stream = spt_stream_create_memory(pool, &config, NULL);
    REQUIRE(stream != NULL);
    return stream;
}

static spt_stream_config with_heaps(size_t max_heaps)
{
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = max_heaps;
    return config;
}

/* After its first packet such a stream sends nothing for hours. */
static spt_stream_config slow(size_t max_heaps)
{
    spt_stream_config config = with_heaps(max_heaps);
    config.rate = 0.01;
    config.burst_size = 1;
    return config;
}

/* The heap counts of the packets that a memory stream has, in order. */
static size_t counts(spt_stream *stream, uint64_t *to, size_t room)
{
    size_t size = spt_stream_memory(stream, NULL, 0), n = 0;
    uint8_t *bytes = malloc(size + 1);
    REQUIRE(bytes != NULL && spt_stream_memory(stream, bytes, size) == size);
    for (size_t at = 0; at < size; n++) {
        reader_packet packet;
        REQUIRE(n < room && reader_read(&packet, bytes + at, size - at));
        to[n] = packet.cnt;
        at += packet.size;
    }
    free(bytes);
    return n;
}

static void check_counts(spt_stream *stream, const uint64_t *expected, size_t n)
{
    uint64_t got[64] = {0};
    CHECK_EQUAL(counts(stream, got, 64), n);
    CHECK_BYTES(got, expected, n * sizeof(*got));
}

static void send_and_wait(spt_stream *stream, spt_heap *heap)
{
    spt_completion sent = {0};
    REQUIRE(spt_stream_send_heap(stream, heap, &sent, NULL) == SPT_OK);
    CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
}

static void test_a_completion_tells_status_and_bytes(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, with_heaps(1));
    spt_heap *heap = new_heap(100);
    spt_completion sent = {0};
    CHECK(spt_completion_done(&sent)); /* never used is as good as complete */
    CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
    CHECK_EQUAL(sent.bytes, 148);
    CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_slots_are_used_again_and_again(void)
{
    for (size_t max_heaps = 1; max_heaps <= 5; max_heaps++) {
        spt_thread_pool *pool = new_pool(1);
        spt_stream *stream = new_stream(pool, with_heaps(max_heaps));
        spt_heap *heap = new_heap(1);
        spt_completion sent[5] = {0};
        for (size_t i = 0; i < MANY; i++) {
            spt_completion *c = &sent[i % max_heaps];
            CHECK_EQUAL(spt_stream_wait(stream, c, -1, NULL), SPT_OK);
            REQUIRE(spt_stream_send_heap(stream, heap, c, NULL) == SPT_OK);
        }
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        CHECK_EQUAL(spt_stream_memory(stream, NULL, 0), MANY * 49);
        spt_stats stats;
        spt_stream_stats(stream, &stats);
        CHECK_EQUAL(stats.heaps, MANY);
        spt_stream_destroy(stream);
        spt_thread_pool_destroy(pool);
        spt_heap_destroy(heap);
    }
}

static void test_counts_follow_the_sequence_and_explicit_ones_do_not_move_it(void)
{
    static const uint64_t expected[] = {1, 2, 77, 3, 100, 110};
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, with_heaps(4));
    spt_heap *heap = new_heap(8);
    send_and_wait(stream, heap);
    send_and_wait(stream, heap);
    spt_completion sent = {0};
    spt_heap_reference explicit_cnt = {heap, 77, 0, -1};
    CHECK_EQUAL(spt_stream_send_heaps(stream, &explicit_cnt, 1, SPT_GROUP_SERIAL, &sent, NULL),
                SPT_OK);
    CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
    send_and_wait(stream, heap);
    CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 100, 10, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 5, 0, NULL), SPT_ERR_ARGUMENT);
    send_and_wait(stream, heap);
    send_and_wait(stream, heap);
    check_counts(stream, expected, 6);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

/* Heaps of 3, 1 and 2 packets. */
static void send_group(spt_group_mode mode, const uint64_t *expected)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(4);
    config.max_packet_size = 1000;
    spt_stream *stream = new_stream(pool, config);
    spt_heap_reference group[3];
    static const size_t lengths[] = {2500, 500, 1500};
    for (int i = 0; i < 3; i++)
        group[i] = (spt_heap_reference){new_heap(lengths[i]), -1, 0, -1};
    for (int round = 0; round < 2; round++) {
        spt_completion sent = {0};
        CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 1, 1, NULL), SPT_OK);
        CHECK_EQUAL(spt_stream_send_heaps(stream, group, 3, mode, &sent, NULL), SPT_OK);
        CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
        CHECK_EQUAL(sent.bytes, 4500 + 6 * 40 + 3 * 8);
    }
    check_counts(stream, expected, 12);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    for (int i = 0; i < 3; i++)
        spt_heap_destroy(group[i].heap);
}

static void test_a_serial_group_goes_heap_by_heap(void)
{
    static const uint64_t expected[] = {1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3};
    send_group(SPT_GROUP_SERIAL, expected);
}

static void test_a_round_robin_group_goes_packet_by_packet(void)
{
    static const uint64_t expected[] = {1, 2, 3, 1, 3, 1, 1, 2, 3, 1, 3, 1};
    send_group(SPT_GROUP_ROUND_ROBIN, expected);
}

static void test_bad_sends_are_refused_and_use_up_nothing(void)
{
    static const uint64_t expected[] = {1};
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, with_heaps(2));
    spt_heap *heap = new_heap(8);
    const spt_heap_reference bad[] = {
        {heap, -1, 1, -1}, {heap, INT64_C(1) << 40, 0, -1}, {heap, -1, 0, NAN}};
    spt_completion sent = {0};
    spt_error err = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(spt_stream_send_heaps(stream, &bad[i], 1, SPT_GROUP_SERIAL, &sent, &err),
                    SPT_ERR_GROUP);
        CHECK_EQUAL(err.sys_errno, 0);
    }
    CHECK_EQUAL(spt_stream_send_heaps(stream, bad, 0, SPT_GROUP_SERIAL, &sent, &err),
                SPT_ERR_GROUP);
    const spt_heap_reference three[] = {{heap, -1, 0, -1}, {heap, -1, 0, -1}, {heap, -1, 0, -1}};
    CHECK_EQUAL(spt_stream_send_heaps(stream, three, 3, SPT_GROUP_SERIAL, &sent, &err),
                SPT_ERR_QUEUE_FULL);
    CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    send_and_wait(stream, heap);
    check_counts(stream, expected, 1);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_packets_larger_than_the_transport_takes_are_refused_before_any_is_sent(void)
{
    spt_endpoint nobody = {"127.0.0.1", 9};
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_stream_config config = with_heaps(2);
    spt_thread_pool *pool = new_pool(1);
    spt_heap *heap = new_heap(8);
    static const size_t sizes[] = {65507, 65508, 70000};
    for (int i = 0; i < 3; i++) {
        config.max_packet_size = sizes[i];
        spt_stream *stream = spt_stream_create_udp(pool, &nobody, 1, &config, &udp, NULL);
        REQUIRE(stream != NULL);
        spt_completion sent = {0};
        spt_error err = {0};
        spt_stats stats;
        spt_status status = spt_stream_send_heap(stream, heap, &sent, &err);
        CHECK_EQUAL(status, i == 0 ? SPT_OK : SPT_ERR_SYSTEM);
        CHECK_EQUAL(err.sys_errno, i == 0 ? 0 : EMSGSIZE);
        CHECK(i == 0 || strstr(err.message, "lower max_packet_size") != NULL);
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        spt_stream_stats(stream, &stats);
        CHECK_EQUAL(stats.packets + stats.errors, i == 0);
        spt_stream_destroy(stream);
    }
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_the_end_is_sent_after_all_else_to_every_endpoint(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, with_heaps(1));
    spt_heap *heap = new_heap(8), *end = spt_heap_create(NULL, NULL);
    spt_completion sent = {0};
    uint8_t bytes[200];
    REQUIRE(spt_heap_add_end(end, NULL) == SPT_OK);
    REQUIRE(spt_stream_send_heap(stream, heap, &sent, NULL) == SPT_OK);
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_OK); /* also with a full queue */
    size_t size = spt_stream_memory(stream, bytes, sizeof(bytes));
    send_and_wait(stream, end);
    uint8_t again[300];
    size_t end_size = spt_stream_memory(stream, again, sizeof(again)) - size;
    CHECK_EQUAL(size, 56 + end_size);
    bytes[56 + 15]++; /* but for its count */
    CHECK_BYTES(bytes + 56, again + size, end_size);
    spt_heap_destroy(end);
    spt_stream_destroy(stream);

    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_endpoint nobody[3] = {{"127.0.0.1", 9}, {"127.0.0.1", 9}, {"127.0.0.1", 9}};
    spt_stream_config config = with_heaps(1);
    spt_stats stats;
    stream = spt_stream_create_udp(pool, nobody, 3, &config, &udp, NULL);
    REQUIRE(stream != NULL);
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_OK);
    spt_stream_stats(stream, &stats);
    CHECK_EQUAL(stats.packets, 3);
    spt_stream_destroy(stream);
    spt_heap_destroy(heap);
    spt_thread_pool_destroy(pool);
}

static void test_the_end_of_a_polled_stream_is_its_owners_to_send(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(1);
    config.poll = true;
    spt_stream *stream = new_stream(pool, config);
    spt_error err = {0};
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, &err), SPT_ERR_ARGUMENT);
    CHECK(strstr(err.message, "spt_heap_add_end") != NULL);
    CHECK_EQUAL(spt_stream_memory(stream, NULL, 0), 0);
    spt_stream_stop(stream);
    config.poll = false;
    spt_stream_destroy(stream);
    stream = new_stream(pool, config);
    spt_stream_stop(stream);
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_ERR_STOPPED);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
}

static void test_configurations_that_make_no_sense_are_refused(void)
{
    spt_stream_config bad[7];
    for (int i = 0; i < 7; i++)
        bad[i] = with_heaps(4);
    bad[0].max_packet_size = 55;
    bad[1].rate = -1;
    bad[2].rate = NAN;
    bad[3].rate = INFINITY;
    bad[4].burst_rate_ratio = 0.99;
    bad[5].burst_rate_ratio = NAN;
    bad[6].max_heaps = 0;
    spt_thread_pool *pool = new_pool(1);
    for (int i = 0; i < 7; i++) {
        spt_error err = {0};
        CHECK(spt_stream_create_memory(pool, &bad[i], &err) == NULL);
        CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
    }
    spt_stream_config huge = with_heaps(SIZE_MAX / 2);
    CHECK(spt_stream_create_memory(pool, &huge, NULL) == NULL);
    spt_thread_pool_destroy(pool);
}

static void test_a_heap_may_go_at_a_rate_of_its_own(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(4);
    config.burst_size = 1;
    spt_stream *stream = new_stream(pool, config); /* without limit */
    spt_heap *heap = new_heap(8);
    spt_heap_reference slow_one = {heap, -1, 0, 0.001}, free_one = {heap, -1, 0, 0};
    spt_completion first = {0}, second = {0}, third = {0};
    CHECK_EQUAL(spt_stream_send_heaps(stream, &slow_one, 1, SPT_GROUP_SERIAL, &first, NULL),
                SPT_OK);
    CHECK_EQUAL(spt_stream_wait(stream, &first, -1, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_send_heaps(stream, &slow_one, 1, SPT_GROUP_SERIAL, &second, NULL),
                SPT_OK); /* waits for hours */
    CHECK_EQUAL(spt_stream_wait(stream, &second, 1000, NULL), SPT_PENDING);
    spt_stream_destroy(stream);
    CHECK_EQUAL(second.status, SPT_ERR_STOPPED);
    stream = new_stream(pool, slow(4)); /* limited, but not for these */
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(spt_stream_send_heaps(stream, &free_one, 1, SPT_GROUP_SERIAL, &third, NULL),
                    SPT_OK);
        CHECK_EQUAL(spt_stream_wait(stream, &third, -1, NULL), SPT_OK);
    }
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_a_full_queue_takes_all_of_a_group_or_none(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, slow(3));
    spt_heap *heap = new_heap(8);
    send_and_wait(stream, heap);
    spt_completion a = {0}, b = {0};
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &a, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &a, NULL), SPT_ERR_ARGUMENT); /* in use */
    const spt_heap_reference three[] = {{heap, -1, 0, -1}, {heap, -1, 0, -1}, {heap, -1, 0, -1}};
    CHECK_EQUAL(spt_stream_send_heaps(stream, three, 3, SPT_GROUP_SERIAL, &b, NULL),
                SPT_ERR_QUEUE_FULL);
    CHECK_EQUAL(spt_heap_in_flight(heap), 1);
    CHECK_EQUAL(spt_stream_send_heaps(stream, three, 2, SPT_GROUP_SERIAL, &b, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_wait(stream, &b, 1000, NULL), SPT_PENDING);
    CHECK_EQUAL(spt_stream_flush(stream, 1000), SPT_PENDING);
    spt_stream_destroy(stream);
    CHECK(spt_completion_done(&a) && spt_completion_done(&b));
    CHECK_EQUAL(a.status, SPT_ERR_STOPPED);
    CHECK_EQUAL(b.status, SPT_ERR_STOPPED);
    CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_a_heap_in_flight_cannot_be_changed(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, slow(3));
    spt_heap *heap = new_heap(8);
    send_and_wait(stream, heap);
    spt_completion sent = {0};
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK);
    CHECK_EQUAL(spt_heap_add_end(heap, NULL), SPT_ERR_BUSY);
    spt_stream_cancel(stream, &sent);
    CHECK_EQUAL(spt_heap_add_end(heap, NULL), SPT_OK);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_cancelling_takes_one_send_out_and_leaves_the_others(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream *stream = new_stream(pool, slow(20));
    spt_heap *heap = new_heap(LONG);
    spt_completion sent[6] = {0};
    const spt_heap_reference two[] = {{heap, -1, 0, -1}, {heap, -1, 0, -1}};
    for (int i = 0; i < 6; i++)
        REQUIRE(spt_stream_send_heaps(stream, two, 2,
                                      i % 2 ? SPT_GROUP_ROUND_ROBIN : SPT_GROUP_SERIAL, &sent[i],
                                      NULL) == SPT_OK);
    static const int order[] = {3, 0, 5, 1, 4};
    for (int i = 0; i < 5; i++) {
        spt_completion *c = &sent[order[i]];
        spt_stream_cancel(stream, c);
        spt_stream_cancel(stream, c); /* twice is as good */
        CHECK_EQUAL(c->status, SPT_ERR_CANCELLED);
    }
    CHECK(!spt_completion_done(&sent[2]));
    CHECK_EQUAL(spt_heap_in_flight(heap), 2);
    spt_stream_stop(stream);
    CHECK_EQUAL(spt_stream_wait(stream, &sent[2], -1, NULL), SPT_ERR_STOPPED);
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent[2], NULL), SPT_ERR_STOPPED);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_a_pool_that_stops_ends_what_is_queued(void)
{
    spt_thread_pool *pool = new_pool(2);
    spt_stream *streams[3];
    spt_heap *heap = new_heap(LONG);
    spt_completion sent[3] = {0};
    for (int i = 0; i < 3; i++) {
        streams[i] = new_stream(pool, slow(2));
        REQUIRE(spt_stream_send_heap(streams[i], heap, &sent[i], NULL) == SPT_OK);
    }
    spt_thread_pool_stop(pool);
    spt_error err = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(spt_stream_wait(streams[i], &sent[i], -1, &err), SPT_ERR_STOPPED);
        CHECK(strstr(err.message, "heap 1 was not sent") != NULL);
        CHECK_EQUAL(spt_stream_send_heap(streams[i], heap, &sent[i], &err), SPT_ERR_STOPPED);
        spt_stream_destroy(streams[i]);
    }
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    CHECK(spt_stream_create_memory(pool, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_STOPPED);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_polling_gives_completions_in_order_and_announces_them(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(100);
    config.poll = true;
    spt_stream *stream = new_stream(pool, config);
    spt_heap *heap = new_heap(8);
    spt_completion sent[100] = {0}, *done[7];
    size_t next = 0;
    struct pollfd readable = {.fd = spt_stream_fd(stream), .events = POLLIN};
    for (int i = 0; i < 100; i++)
        REQUIRE(spt_stream_send_heap(stream, heap, &sent[i], NULL) == SPT_OK);
    while (next < 100) {
        REQUIRE(poll(&readable, 1, 60000) == 1);
        size_t n = 7;
        while (n == 7) {
            n = spt_stream_poll(stream, done, 7);
            for (size_t i = 0; i < n; i++)
                CHECK(done[i] == &sent[next++]);
        }
    }
    CHECK_EQUAL(poll(&readable, 1, 0), 0);
    CHECK_EQUAL(spt_stream_poll(stream, done, 7), 0);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_a_completion_is_not_used_again_before_it_has_been_polled(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(4);
    config.poll = true;
    spt_stream *stream = new_stream(pool, config);
    spt_heap *heap = new_heap(8);
    spt_completion sent = {0}, *done[2];
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK);
        CHECK_EQUAL(spt_stream_wait(stream, &sent, -1, NULL), SPT_OK);
        CHECK(spt_completion_done(&sent));
        CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_ERR_ARGUMENT); /* listed */
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        CHECK_EQUAL(spt_stream_poll(stream, done, 2), 1);
        CHECK(done[0] == &sent);
    }
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK);
    spt_stream_destroy(stream);
    stream = new_stream(pool, config);
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK); /* its list is gone */
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void test_after_a_flush_everything_is_complete(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(4);
    for (int round = 0; round < 2; round++) {
        config.poll = round == 1;
        spt_stream *stream = new_stream(pool, config);
        spt_heap *heap = new_heap(8);
        spt_completion sent[4], *done[4];
        int incomplete = 0;
        for (int i = 0; i < MANY; i++) {
            memset(sent, 0, sizeof(sent));
            for (int j = 0; j < 4; j++)
                REQUIRE(spt_stream_send_heap(stream, heap, &sent[j], NULL) == SPT_OK);
            REQUIRE(spt_stream_flush(stream, -1) == SPT_OK);
            for (int j = 0; j < 4; j++)
                incomplete += !spt_completion_done(&sent[j]);
            if (config.poll)
                incomplete += 4 - (int)spt_stream_poll(stream, done, 4);
            REQUIRE(incomplete == 0); /* going on would overwrite what is in use */
        }
        spt_stream_destroy(stream);
        spt_heap_destroy(heap);
    }
    spt_thread_pool_destroy(pool);
}

/* A send, and a wait with a timeout, do a share of the work and return, however large the heap. */
static void test_a_large_heap_keeps_nobody_who_does_not_want_to_wait(void)
{
    enum { LARGE = 64 << 20 };
    uint8_t *bytes = calloc(1, LARGE);
    spt_heap *heap = spt_heap_create(NULL, NULL);
    spt_item item = {0x3300, bytes, LARGE, false};
    REQUIRE(bytes != NULL && heap != NULL && spt_heap_add_item(heap, &item, NULL) == SPT_OK);
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(1);
    config.max_packet_size = 200;
    spt_stream *stream = new_stream(pool, config);
    spt_completion sent = {0};
    CHECK_EQUAL(spt_stream_send_heap(stream, heap, &sent, NULL), SPT_OK);
    CHECK(!spt_completion_done(&sent));
    CHECK_EQUAL(spt_stream_wait(stream, &sent, 0, NULL), SPT_PENDING);
    spt_stream_cancel(stream, &sent);
    CHECK_EQUAL(sent.status, SPT_ERR_CANCELLED);
    CHECK(sent.bytes < LARGE);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
    free(bytes);
}

static void test_the_timeline_keeps_the_last_heaps_in_order(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(4);
    config.timeline = 3;
    spt_stream *stream = new_stream(pool, config);
    spt_heap *heap = new_heap(8);
    spt_times times[5];
    CHECK_EQUAL(spt_stream_timeline(stream, times, 5), 0);
    for (int i = 0; i < 5; i++)
        send_and_wait(stream, heap);
    REQUIRE(spt_stream_timeline(stream, times, 5) == 3);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQUAL(times[i].cnt, 3 + i);
        CHECK_EQUAL(times[i].bytes, 56);
        CHECK(times[i].queued_ns <= times[i].first_packet_ns);
        CHECK(times[i].first_packet_ns <= times[i].last_packet_ns);
        CHECK(times[i].last_packet_ns <= times[i].completed_ns);
        CHECK(i == 0 || times[i - 1].completed_ns <= times[i].completed_ns);
    }
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A stream with a rate looks at the clock before each burst, unless sleep ended too late. */
static void test_time_spent_looking_is_counted_where_it_is_spent(void)
{
    uint64_t begin_ns = now_ns();
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(1);
    config.rate = 1e6;
    config.burst_size = 1;
    spt_stream *stream = new_stream(pool, config);
    spt_heap *heap = new_heap(LONG);
    spt_stats stats;
    spt_stream_stats(stream, &stats);
    CHECK_EQUAL(stats.waiting_looking_ns, 0);
    while (stats.waiting_looking_ns == 0 || (pool != NULL && stats.looking_ns == 0)) {
        send_and_wait(stream, heap);
        spt_stream_stats(stream, &stats);
    }
    uint64_t elapsed_ns = now_ns() - begin_ns;
    CHECK(stats.looking_ns < elapsed_ns);
    CHECK(stats.waiting_looking_ns < elapsed_ns);
    if (pool == NULL)
        CHECK_EQUAL(stats.looking_ns, 0);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

/* ---- Many threads ---- */

typedef struct sender {
    spt_stream *stream;
    spt_heap *heap;
    int n_sent;
} sender;

static void *send_many(void *arg)
{
    sender *s = arg;
    for (int i = 0; i < MANY / 10; i++) {
        spt_completion sent = {0};
        while (spt_stream_send_heap(s->stream, s->heap, &sent, NULL) == SPT_ERR_QUEUE_FULL)
            if (spt_stream_flush(s->stream, 1000000) < 0)
                return NULL;
        if (i % 5 == 0)
            spt_stream_cancel(s->stream, &sent);
        spt_status status = spt_stream_wait(s->stream, &sent, -1, NULL);
        CHECK(status == SPT_OK || status == SPT_ERR_CANCELLED);
        s->n_sent += status == SPT_OK;
    }
    return NULL;
}

static void test_many_threads_send_and_cancel_on_streams_that_share_threads(void)
{
    spt_thread_pool *pool = new_pool(2);
    sender senders[6];
    pthread_t threads[6];
    spt_stream *streams[2] = {new_stream(pool, with_heaps(2)), new_stream(pool, with_heaps(7))};
    for (int i = 0; i < 6; i++) {
        senders[i] = (sender){streams[i % 2], new_heap(1), 0};
        REQUIRE(pthread_create(&threads[i], NULL, send_many, &senders[i]) == 0);
    }
    size_t sent[2] = {0};
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
        sent[i % 2] += (size_t)senders[i].n_sent;
        CHECK_EQUAL(spt_heap_in_flight(senders[i].heap), 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(spt_stream_memory(streams[i], NULL, 0), sent[i] * 49);
        spt_stream_destroy(streams[i]);
    }
    spt_thread_pool_destroy(pool);
    for (int i = 0; i < 6; i++)
        spt_heap_destroy(senders[i].heap);
}

/* Sends with completions that are polled for, by one thread, while others cancel and flush. */
static void *poll_and_send(void *arg)
{
    enum { N = 6 };
    sender *s = arg;
    spt_completion sent[N] = {0}, *done[N], *idle[N];
    size_t n_idle = N;
    struct pollfd readable = {.fd = spt_stream_fd(s->stream), .events = POLLIN};
    for (int i = 0; i < N; i++)
        idle[i] = &sent[i];
    for (int i = 0; i < MANY / 4 || n_idle < N;) {
        while (n_idle > 0 && i < MANY / 4) {
            spt_completion *c = idle[--n_idle];
            while (spt_stream_send_heap(s->stream, s->heap, c, NULL) == SPT_ERR_QUEUE_FULL)
                CHECK_EQUAL(spt_stream_flush(s->stream, -1), SPT_OK); /* cancelled ones take room */
            if (++i % 7 == 0)
                spt_stream_cancel(s->stream, c);
        }
        REQUIRE(poll(&readable, 1, 60000) == 1);
        for (size_t n = N; n == N;) {
            n = spt_stream_poll(s->stream, done, N);
            for (size_t j = 0; j < n; j++) {
                s->n_sent += done[j]->status == SPT_OK;
                idle[n_idle++] = done[j];
            }
            if (n_idle == N)
                break;
        }
    }
    return NULL;
}

static void *flush_often(void *arg)
{
    sender *s = arg;
    for (int i = 0; i < MANY / 20; i++)
        CHECK_EQUAL(spt_stream_flush(s->stream, -1), SPT_OK);
    return NULL;
}

static void test_no_announcement_is_lost_among_polls_cancels_and_flushes(void)
{
    spt_thread_pool *pool = new_pool(1);
    spt_stream_config config = with_heaps(8);
    config.poll = true;
    sender s = {new_stream(pool, config), new_heap(1), 0};
    pthread_t threads[2];
    REQUIRE(pthread_create(&threads[0], NULL, poll_and_send, &s) == 0);
    REQUIRE(pthread_create(&threads[1], NULL, flush_often, &s) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(spt_stream_memory(s.stream, NULL, 0), (size_t)s.n_sent * 49);
    spt_stream_destroy(s.stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(s.heap);
}

static void *send_until_stopped(void *arg)
{
    sender *s = arg;
    spt_completion sent = {0};
    for (;;) {
        spt_status status = spt_stream_send_heap(s->stream, s->heap, &sent, NULL);
        if (status == SPT_ERR_STOPPED)
            return NULL;
        CHECK(status == SPT_OK || status == SPT_ERR_QUEUE_FULL);
        status = spt_stream_wait(s->stream, &sent, -1, NULL);
        CHECK(status == SPT_OK || status == SPT_ERR_STOPPED);
    }
}

static void test_stopping_stream_and_pool_while_threads_send_hangs_nobody(void)
{
    for (int round = 0; round < 100; round++) {
        spt_thread_pool *pool = new_pool(2);
        spt_stream *stream = new_stream(pool, round % 2 ? with_heaps(3) : slow(3));
        sender s[3];
        pthread_t threads[3];
        for (int i = 0; i < 3; i++) {
            s[i] = (sender){stream, new_heap(1), 0};
            REQUIRE(pthread_create(&threads[i], NULL, send_until_stopped, &s[i]) == 0);
        }
        if (round % 3 != 1 && pool != NULL)
            spt_thread_pool_stop(pool);
        if (round % 3 != 0 || pool == NULL)
            spt_stream_stop(stream);
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
            CHECK_EQUAL(spt_heap_in_flight(s[i].heap), 0);
            spt_heap_destroy(s[i].heap);
        }
        spt_stream_destroy(stream);
        spt_thread_pool_destroy(pool);
    }
}

static void test_streams_come_and_go_with_heaps_in_flight(void)
{
    spt_thread_pool *pool = new_pool(2);
    spt_heap *heap = new_heap(LONG);
    for (int i = 0; i < 500; i++) {
        spt_stream *stream = new_stream(pool, i % 3 ? with_heaps(8) : slow(8));
        spt_completion sent[8] = {0};
        for (int j = 0; j < 8; j++)
            REQUIRE(spt_stream_send_heap(stream, heap, &sent[j], NULL) == SPT_OK);
        if (i % 2)
            spt_stream_stop(stream);
        spt_stream_destroy(stream);
        for (int j = 0; j < 8; j++)
            CHECK(spt_completion_done(&sent[j]));
        CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    }
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

static void run_for_a_kind(void)
{
    RUN(test_a_completion_tells_status_and_bytes);
    RUN(test_slots_are_used_again_and_again);
    RUN(test_counts_follow_the_sequence_and_explicit_ones_do_not_move_it);
    RUN(test_a_serial_group_goes_heap_by_heap);
    RUN(test_a_round_robin_group_goes_packet_by_packet);
    RUN(test_bad_sends_are_refused_and_use_up_nothing);
    RUN(test_packets_larger_than_the_transport_takes_are_refused_before_any_is_sent);
    RUN(test_the_end_is_sent_after_all_else_to_every_endpoint);
    RUN(test_the_end_of_a_polled_stream_is_its_owners_to_send);
    RUN(test_configurations_that_make_no_sense_are_refused);
    RUN(test_a_heap_may_go_at_a_rate_of_its_own);
    RUN(test_a_full_queue_takes_all_of_a_group_or_none);
    RUN(test_a_heap_in_flight_cannot_be_changed);
    RUN(test_cancelling_takes_one_send_out_and_leaves_the_others);
    RUN(test_polling_gives_completions_in_order_and_announces_them);
    RUN(test_a_completion_is_not_used_again_before_it_has_been_polled);
    RUN(test_after_a_flush_everything_is_complete);
    RUN(test_a_large_heap_keeps_nobody_who_does_not_want_to_wait);
    RUN(test_the_timeline_keeps_the_last_heaps_in_order);
    RUN(test_time_spent_looking_is_counted_where_it_is_spent);
    RUN(test_many_threads_send_and_cancel_on_streams_that_share_threads);
    RUN(test_no_announcement_is_lost_among_polls_cancels_and_flushes);
    RUN(test_stopping_stream_and_pool_while_threads_send_hangs_nobody);
    RUN(test_streams_come_and_go_with_heaps_in_flight);
}

int main(void)
{
    run_for_a_kind();
    RUN(test_a_pool_that_stops_ends_what_is_queued);
    without_threads = true;
    check_case = ", without a thread";
    run_for_a_kind();
    return check_done();
}
