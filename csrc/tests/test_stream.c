/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of the stream: queue, completions, groups, and giving up. */
#include "../src/clock.h"
#include "reader.h"
#include "sending.h"

#include <errno.h>
#include <math.h>

enum { LONG = 3000, MANY = 20000 };

#define WITH_HEAPS(n) STREAM_CONFIG(its.max_heaps = (n))
#define POLLED(n) STREAM_CONFIG(its.max_heaps = (n), its.poll = true)
/* After its first packet such a stream sends nothing for hours. */
#define SLOW(n) STREAM_CONFIG(its.max_heaps = (n), its.rate = 0.01, its.burst_size = 1)

static void begin_stream(const spt_stream_config *config)
{
    END(spt_stream, stream);
    stream = NEW(spt_stream_create_memory(pool, config, NULL));
}

static void begin(const spt_stream_config *config, size_t length)
{
    begin_sending(1, length);
    begin_stream(config);
}

/* The heap counts of the packets that the stream has, in order. */
static uint64_t cnt[64];

static size_t counts(void)
{
    size_t size = spt_stream_memory(stream, NULL, 0), n = 0;
    uint8_t *bytes = NEW(malloc(size + 1));
    REQUIRE(spt_stream_memory(stream, bytes, size) == size);
    for (size_t at = 0; at < size; n++) {
        reader_packet packet;
        REQUIRE(n < LENGTH(cnt) && reader_read(&packet, bytes + at, size - at));
        cnt[n] = packet.cnt;
        at += packet.size;
    }
    free(bytes);
    return n;
}

#define END_OF_COUNTS (UINT64_C(1) << 40)

/* Send the heap with a count, to a substream, at a rate. */
static spt_status send_as(int i, int64_t as, size_t substream, double rate)
{
    const spt_heap_reference one = {heap, as, substream, rate};
    return spt_stream_send_heaps(stream, &one, 1, SPT_GROUP_SERIAL, &sent[i], NULL);
}

TEST(counts_follow_the_sequence_and_explicit_ones_do_not_move_it)
{
    begin(WITH_HEAPS(4), 8);
    send_and_wait(stream, heap, -1);
    send_and_wait(stream, heap, -1);
    send_and_wait(stream, heap, 77);
    send_and_wait(stream, heap, -1);
    CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 100, 10, NULL), SPT_OK);
    CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 5, 0, NULL), SPT_ERR_ARGUMENT);
    send_and_wait(stream, heap, -1);
    send_and_wait(stream, heap, -1);
    CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, END_OF_COUNTS - 2, 3, NULL), SPT_OK);
    send_and_wait(stream, heap, -1);
    send_and_wait(stream, heap, -1);
    CHECK_COUNTS(cnt, counts(), 1, 2, 77, 3, 100, 110, END_OF_COUNTS - 2, 1);
}

TEST(a_serial_group_goes_heap_by_heap_and_a_round_robin_one_packet_by_packet)
{
    for (int serial = 0; serial < 2; serial++) {
        spt_group_mode mode = serial ? SPT_GROUP_SERIAL : SPT_GROUP_ROUND_ROBIN;
        OWN(spt_heap) one = new_heap_of(value, 500); /* packet; the others have 3 and 2 */
        OWN(spt_heap) two = new_heap_of(value, 1500);
        begin(STREAM_CONFIG(its.max_packet_size = 1000), 2500);
        const spt_heap_reference group[] = {{heap, -1, 0, -1}, {one, -1, 0, -1}, {two, -1, 0, -1}};
        for (int round = 0; round < 2; round++) {
            CHECK_EQUAL(spt_stream_set_cnt_sequence(stream, 1, 1, NULL), SPT_OK);
            CHECK_EQUAL(spt_stream_send_heaps(stream, group, 3, mode, &sent[0], NULL), SPT_OK);
            CHECK_EQUAL(wait_for(0, -1), SPT_OK, sent[0].bytes, 4500 + 6 * 40 + 3 * 8);
        }
        if (serial)
            CHECK_COUNTS(cnt, counts(), 1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3);
        else
            CHECK_COUNTS(cnt, counts(), 1, 2, 3, 1, 3, 1, 1, 2, 3, 1, 3, 1);
        end_sending();
    }
}

TEST(bad_sends_are_refused_and_use_up_nothing)
{
    begin(WITH_HEAPS(2), 8);
    const spt_heap_reference bad[] = {
        {heap, -1, 1, -1}, {heap, INT64_C(1) << 40, 0, -1}, {heap, -1, 0, NAN}};
    spt_error err = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(spt_stream_send_heaps(stream, &bad[i], 1, SPT_GROUP_SERIAL, &sent[0], &err),
                    SPT_ERR_GROUP);
        CHECK_EQUAL(err.sys_errno, 0);
    }
    CHECK_EQUAL(send_group(0, 0, SPT_GROUP_SERIAL), SPT_ERR_GROUP);
    CHECK_EQUAL(send_group(0, 3, SPT_GROUP_SERIAL), SPT_ERR_QUEUE_FULL);
    CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    send_and_wait(stream, heap, -1);
    CHECK_COUNTS(cnt, counts(), 1);
}

TEST(packets_larger_than_the_transport_takes_are_refused_before_any_is_sent)
{
    static const size_t sizes[] = {65507, 65508, 70000}, lengths[] = {80000, 65457, 65456, 8};
    spt_endpoint nobody = {"127.0.0.1", 9};
    for (int i = 0; i < 6; i++) { /* at the end some that fit, whatever is asked for */
        size_t length = i < 3 ? lengths[0] : lengths[i - 2];
        bool fits = i == 0 || i > 3;
        begin_sending(1, length);
        const spt_stream_config *config = STREAM_CONFIG(its.max_packet_size = sizes[i < 3 ? i : 2]);
        stream = NEW(spt_stream_create_udp(pool, &nobody, 1, config, NULL, NULL));
        spt_error err = {0};
        spt_status status = spt_stream_send_heap(stream, heap, &sent[0], &err);
        CHECK_EQUAL(status, fits ? SPT_OK : SPT_ERR_SYSTEM);
        CHECK_EQUAL(err.sys_errno, fits ? 0 : EMSGSIZE);
        CHECK(fits || strstr(err.message, "lower max_packet_size") != NULL);
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        CHECK_EQUAL(stats().packets + stats().errors, i == 0 ? 2 : fits);
    }
}

TEST(the_end_is_sent_after_all_else_to_every_endpoint)
{
    OWN(spt_heap) end = NEW(spt_heap_create(NULL, NULL));
    uint8_t bytes[200], again[300];
    begin(WITH_HEAPS(1), 8);
    REQUIRE(spt_heap_add_end(end, NULL) == SPT_OK && send_heap(0) == SPT_OK);
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_OK); /* also with a full queue */
    size_t size = spt_stream_memory(stream, bytes, sizeof(bytes));
    send_and_wait(stream, end, -1);
    size_t end_size = spt_stream_memory(stream, again, sizeof(again)) - size;
    CHECK_EQUAL(size, 56 + end_size);
    bytes[56 + 15]++; /* but for its count */
    CHECK_BYTES(bytes + 56, again + size, end_size);

    spt_endpoint nobody[3] = {{"127.0.0.1", 9}, {"127.0.0.1", 9}, {"127.0.0.1", 9}};
    END(spt_stream, stream);
    stream = NEW(spt_stream_create_udp(pool, nobody, 3, WITH_HEAPS(1), NULL, NULL));
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_OK, stats().packets, 3);
}

TEST(the_end_of_a_polled_stream_is_its_owners_to_send)
{
    begin(POLLED(1), 8);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "spt_heap_add_end", spt_stream_send_end(stream, NULL, &err));
    CHECK_EQUAL(spt_stream_memory(stream, NULL, 0), 0);
    spt_stream_stop(stream);
    begin_stream(WITH_HEAPS(1));
    spt_stream_stop(stream);
    CHECK_EQUAL(spt_stream_send_end(stream, NULL, NULL), SPT_ERR_STOPPED);
}

TEST(configurations_that_make_no_sense_are_refused)
{
    const spt_stream_config *const bad[] = {
        STREAM_CONFIG(its.max_packet_size = 55),
        STREAM_CONFIG(its.rate = -1),
        STREAM_CONFIG(its.rate = NAN),
        STREAM_CONFIG(its.rate = INFINITY),
        STREAM_CONFIG(its.burst_rate_ratio = 0.99),
        STREAM_CONFIG(its.burst_rate_ratio = NAN),
        WITH_HEAPS(0),
        WITH_HEAPS(SIZE_MAX / 2),
    };
    begin_sending(1, 8);
    for (int i = 0; i < 8; i++) {
        spt_error err = {0};
        CHECK(spt_stream_create_memory(pool, bad[i], &err) == NULL);
        CHECK(err.status == SPT_ERR_ARGUMENT || i == 7);
    }
}

TEST(a_heap_may_go_at_a_rate_of_its_own)
{
    begin(STREAM_CONFIG(its.burst_size = 1), 8); /* without limit */
    CHECK_EQUAL(send_as(0, -1, 0, 0.001), SPT_OK, wait_for(0, -1), SPT_OK);
    CHECK_EQUAL(send_as(1, -1, 0, 0.001), SPT_OK); /* waits for hours */
    CHECK_EQUAL(wait_for(1, 1000), SPT_PENDING);
    END(spt_stream, stream);
    CHECK_EQUAL(sent[1].status, SPT_ERR_STOPPED);
    begin_stream(SLOW(4)); /* limited, but not for these */
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(send_as(2, -1, 0, 0), SPT_OK, wait_for(2, -1), SPT_OK);
}

TEST(a_full_queue_takes_all_of_a_group_or_none)
{
    begin(SLOW(3), 8);
    send_and_wait(stream, heap, -1);
    CHECK_EQUAL(send_heap(0), SPT_OK, send_heap(0), SPT_ERR_ARGUMENT); /* in use */
    CHECK_EQUAL(send_group(1, 3, SPT_GROUP_SERIAL), SPT_ERR_QUEUE_FULL);
    CHECK_EQUAL(spt_heap_in_flight(heap), 1, send_group(1, 2, SPT_GROUP_SERIAL), SPT_OK);
    CHECK_EQUAL(wait_for(1, 1000), SPT_PENDING, spt_stream_flush(stream, 1000), SPT_PENDING);
    END(spt_stream, stream);
    CHECK_EQUAL(sent[0].status, SPT_ERR_STOPPED, sent[1].status, SPT_ERR_STOPPED);
}

TEST_ONCE(a_pool_that_stops_ends_what_is_queued)
{
    spt_stream *streams[3];
    const spt_stream_config *config = SLOW(2);
    begin_sending(2, LONG);
    for (int i = 0; i < 3; i++) {
        streams[i] = NEW(spt_stream_create_memory(pool, config, NULL));
        REQUIRE(spt_stream_send_heap(streams[i], heap, &sent[i], NULL) == SPT_OK);
    }
    spt_thread_pool_stop(pool);
    for (int i = 0; i < 3; i++) {
        CHECK_REFUSED(SPT_ERR_STOPPED, "heap 1 was not sent",
                      spt_stream_wait(streams[i], &sent[i], -1, &err));
        CHECK_REFUSED(SPT_ERR_STOPPED, "", spt_stream_send_heap(streams[i], heap, &sent[i], &err));
        spt_stream_destroy(streams[i]);
    }
    CHECK_REFUSED(SPT_ERR_STOPPED, "", spt_stream_create_memory(pool, config, &err));
}

TEST(what_succeeds_says_nothing_of_a_queue_that_was_full)
{
    begin(WITH_HEAPS(1), 8);
    for (int i = 0; i < 2; i++) { /* without a thread, the second makes room for itself */
        spt_error err = {.status = SPT_OK};
        if (spt_stream_send_heap(stream, heap, &sent[i], &err) == SPT_OK)
            CHECK_EQUAL(err.status, SPT_OK);
    }
}

TEST(polling_gives_completions_in_order_and_announces_them)
{
    spt_completion many[100] = {0}, *done[7];
    size_t next = 0;
    begin(POLLED(100), 8);
    for (int i = 0; i < 100; i++)
        REQUIRE(spt_stream_send_heap(stream, heap, &many[i], NULL) == SPT_OK);
    while (next < 100) {
        REQUIRE(is_readable(spt_stream_fd(stream), 60000));
        size_t n = spt_stream_poll(stream, done, 7); /* there may be more */
        for (size_t i = 0; i < n; i++)
            CHECK(done[i] == &many[next++]);
    }
    CHECK_EQUAL(is_readable(spt_stream_fd(stream), 0), false, spt_stream_poll(stream, done, 7), 0);
    END(spt_stream, stream);
}

TEST(a_completion_is_not_used_again_before_it_has_been_polled)
{
    spt_completion *done[2];
    begin(POLLED(4), 8);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(send_heap(0), SPT_OK, wait_for(0, -1), SPT_OK);
        CHECK(spt_completion_done(&sent[0]));
        CHECK_EQUAL(send_heap(0), SPT_ERR_ARGUMENT); /* listed */
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK, spt_stream_poll(stream, done, 2), 1);
        CHECK(done[0] == &sent[0]);
    }
    CHECK_EQUAL(send_heap(0), SPT_OK);
    begin_stream(POLLED(4));
    CHECK_EQUAL(send_heap(0), SPT_OK); /* its list is gone */
}

TEST(after_a_flush_everything_is_complete)
{
    spt_completion *done[4];
    for (int round = 0; round < 2; round++) {
        begin(round == 0 ? WITH_HEAPS(4) : POLLED(4), 8);
        for (int i = 0; i < MANY; i++) {
            int incomplete = 0;
            memset(sent, 0, sizeof(sent));
            for (int j = 0; j < 4; j++)
                REQUIRE(send_heap(j) == SPT_OK);
            REQUIRE(spt_stream_flush(stream, -1) == SPT_OK);
            for (int j = 0; j < 4; j++)
                incomplete += !spt_completion_done(&sent[j]);
            if (round == 1)
                incomplete += 4 - (int)spt_stream_poll(stream, done, 4);
            REQUIRE(incomplete == 0); /* going on would overwrite what is in use */
        }
    }
}

/* A send, and a wait with a timeout, do a share of the work and return, however large the heap. */
TEST(a_large_heap_keeps_nobody_who_does_not_want_to_wait)
{
    enum { LARGE = 64 << 20 };
    uint8_t *bytes = NEW(calloc(1, LARGE));
    OWN(spt_heap) large = new_heap_of(bytes, LARGE);
    begin(STREAM_CONFIG(its.max_heaps = 1, its.max_packet_size = 200), 8);
    CHECK_EQUAL(spt_stream_send_heap(stream, large, &sent[0], NULL), SPT_OK);
    CHECK(!spt_completion_done(&sent[0]));
    CHECK_EQUAL(wait_for(0, 0), SPT_PENDING);
    spt_stream_cancel(stream, &sent[0]);
    CHECK_EQUAL(sent[0].status, SPT_ERR_CANCELLED);
    CHECK(sent[0].bytes < LARGE);
    END(spt_stream, stream);
    free(bytes);
}

TEST(the_timeline_keeps_the_last_heaps_in_order)
{
    spt_times times[5];
    begin(STREAM_CONFIG(its.timeline = 3), 8);
    CHECK_EQUAL(spt_stream_timeline(stream, times, 5), 0);
    for (int i = 0; i < 5; i++)
        send_and_wait(stream, heap, -1);
    REQUIRE(spt_stream_timeline(stream, times, 5) == 3);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_EQUAL(times[i].cnt, 3 + i, times[i].bytes, 56);
        CHECK(times[i].queued_ns <= times[i].first_packet_ns);
        CHECK(times[i].first_packet_ns <= times[i].last_packet_ns);
        CHECK(times[i].last_packet_ns <= times[i].completed_ns);
        CHECK(i == 0 || times[i - 1].completed_ns <= times[i].completed_ns);
    }
}

/* A stream with a rate looks at the clock before each burst, unless sleep ended too late. */
TEST(time_spent_looking_is_counted_where_it_is_spent)
{
    uint64_t begin_ns = spti_now_ns();
    begin(STREAM_CONFIG(its.max_heaps = 1, its.rate = 1e6, its.burst_size = 1), LONG);
    spt_stats now = stats();
    CHECK_EQUAL(now.waiting_looking_ns, 0);
    while (now.waiting_looking_ns == 0 || (pool != NULL && now.looking_ns == 0)) {
        send_and_wait(stream, heap, -1);
        now = stats();
    }
    uint64_t elapsed_ns = spti_now_ns() - begin_ns;
    CHECK(now.looking_ns < elapsed_ns && now.waiting_looking_ns < elapsed_ns);
    CHECK(pool != NULL || now.looking_ns == 0);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

typedef struct sender {
    pthread_t thread;
    spt_stream *stream;
    spt_heap *heap;
    int n_sent;
} sender;

static void start(sender *s, spt_stream *on, void *(*run)(void *))
{
    *s = (sender){.stream = on, .heap = new_heap_of(value, 1)};
    s->thread = start_thread(run, s);
}

static void end(sender *s)
{
    pthread_join(s->thread, NULL);
    CHECK_EQUAL(spt_heap_in_flight(s->heap), 0);
    spt_heap_destroy(s->heap);
}

/* Sends with completions that are polled for, by one thread, while others cancel and flush. */
static void *poll_and_send(void *arg)
{
    enum { N = 6 };
    sender *s = arg;
    spt_completion all[N] = {0}, *done[N], *idle[N];
    size_t n_idle = N;
    for (int i = 0; i < N; i++)
        idle[i] = &all[i];
    for (int i = 0; i < MANY / 4 || n_idle < N;) {
        while (n_idle > 0 && i < MANY / 4) {
            spt_completion *c = idle[--n_idle];
            while (spt_stream_send_heap(s->stream, s->heap, c, NULL) == SPT_ERR_QUEUE_FULL)
                CHECK_EQUAL(spt_stream_flush(s->stream, -1), SPT_OK); /* cancelled ones take room */
            if (++i % 7 == 0)
                spt_stream_cancel(s->stream, c);
        }
        REQUIRE(is_readable(spt_stream_fd(s->stream), 60000));
        for (size_t n = N; n == N && n_idle < N;) {
            n = spt_stream_poll(s->stream, done, N);
            for (size_t j = 0; j < n; j++) {
                s->n_sent += done[j]->status == SPT_OK;
                idle[n_idle++] = done[j];
            }
        }
    }
    return NULL;
}

static void *flush_often(void *arg)
{
    for (int i = 0; i < MANY / 20; i++)
        CHECK_EQUAL(spt_stream_flush(((sender *)arg)->stream, -1), SPT_OK);
    return NULL;
}

TEST(no_announcement_is_lost_among_polls_cancels_and_flushes)
{
    sender polls, flushes;
    begin(POLLED(8), 1);
    start(&polls, stream, poll_and_send);
    start(&flushes, stream, flush_often);
    end(&polls);
    end(&flushes);
    CHECK_EQUAL(spt_stream_memory(stream, NULL, 0), (size_t)polls.n_sent * 49);
}

static void *send_until_stopped(void *arg)
{
    sender *s = arg;
    spt_completion one = {0};
    for (;;) {
        spt_status status = spt_stream_send_heap(s->stream, s->heap, &one, NULL);
        if (status == SPT_ERR_STOPPED)
            return NULL;
        CHECK(status == SPT_OK || status == SPT_ERR_QUEUE_FULL);
        status = spt_stream_wait(s->stream, &one, -1, NULL);
        CHECK(status == SPT_OK || status == SPT_ERR_STOPPED);
    }
}

TEST(stopping_stream_and_pool_while_threads_send_hangs_nobody)
{
    for (int round = 0; round < 100; round++) {
        sender s[3];
        begin_sending(2, 1);
        begin_stream(round % 2 ? WITH_HEAPS(3) : SLOW(3));
        for (int i = 0; i < 3; i++)
            start(&s[i], stream, send_until_stopped);
        if (round % 3 != 1 && pool != NULL)
            spt_thread_pool_stop(pool);
        if (round % 3 != 0 || pool == NULL)
            spt_stream_stop(stream);
        for (int i = 0; i < 3; i++)
            end(&s[i]);
    }
}
