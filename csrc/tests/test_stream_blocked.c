/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of stream.c with packets under way: behind a gate, a transport that takes as many
 * packets as the test lets through. Includes stream.c, since only it can be given such a transport.
 */
#include "../src/stream.c"

#include "check.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { ROOM = 4096, PACKET = 1000, FULL = 1000 - 40 };

static uint8_t value[10 * PACKET];
static bool without_threads; /* the second time that tests are run */

/* ---- The gate ---- */

typedef struct gate {
    spti_transport base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t open;        /* packets that may still pass */
    size_t refusals;    /* how often one had to wait */
    bool closed;        /* the fd is not writable */
    spt_stream *helped; /* without a thread: who waits for the gate does the work */
    int fail_with;      /* packets fail with this errno, if it is not 0 */
    bool holding;       /* packets are read after they have passed, until they are let go */
    uint32_t let_go;    /* how many have been */
    size_t n;           /* packets that have passed or failed, */
    uint64_t cnt[ROOM];
    size_t bytes[ROOM];
} gate;

static spt_status gate_send(spti_transport *t, spti_batch *batch)
{
    gate *g = (gate *)t;
    spt_status status = SPT_OK;
    pthread_mutex_lock(&g->lock);
    for (; batch->next < batch->n; batch->next++) {
        const spti_packet *packet = &batch->packets[batch->next];
        if (g->open == 0) {
            uint64_t full = UINT64_MAX - 1; /* an eventfd that cannot be written to */
            if (!g->closed)
                REQUIRE(write(t->fd, &full, sizeof(full)) == sizeof(full));
            g->closed = true;
            g->refusals++;
            status = SPT_PENDING;
            break;
        }
        g->open--;
        if (g->fail_with != 0)
            spti_transport_failed(t, batch, batch->next, 1, g->fail_with);
        else
            spti_transport_taken(t, batch, batch->next, 1);
        batch->packets[batch->next].held = g->holding;
        batch->packets[batch->next].message = t->handed++;
        if (g->n < ROOM) {
            g->cnt[g->n] = ((const slot *)packet->sender)->packetizer.cnt;
            g->bytes[g->n] = packet->size;
        }
        g->n++;
    }
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return status;
}

static void gate_destroy(spti_transport *t)
{
    close(t->fd); /* the rest is the test's */
}

static const spti_transport_ops gate_ops = {gate_send, NULL, gate_destroy};

/* The error of a socket is its news here. */
static void gate_release(spti_transport *t)
{
    gate *g = (gate *)t;
    pthread_mutex_lock(&g->lock);
    int error;
    socklen_t length = sizeof(error);
    REQUIRE(getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    if ((int32_t)(g->let_go - t->released) > 0)
        t->released = g->let_go;
    pthread_mutex_unlock(&g->lock);
}

static const spti_transport_ops holding_ops = {gate_send, gate_release, gate_destroy};

/* A socket that has an error whenever something has been sent through it. */
static int refused_socket(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    socklen_t length = sizeof(to);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int other = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(bind(other, (struct sockaddr *)&to, sizeof(to)) == 0);
    REQUIRE(getsockname(other, (struct sockaddr *)&to, &length) == 0);
    REQUIRE(connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    close(other);
    return fd;
}

static void let_go(gate *g, uint32_t n)
{
    pthread_mutex_lock(&g->lock);
    g->let_go += n;
    while (send(g->base.fd, value, 1, 0) < 0) /* refused: the news before, which nobody has read */
        REQUIRE(errno == ECONNREFUSED);
    pthread_mutex_unlock(&g->lock);
}

static void let_through(gate *g, size_t n)
{
    pthread_mutex_lock(&g->lock);
    g->open += n;
    uint64_t full;
    if (g->closed)
        REQUIRE(read(g->base.fd, &full, sizeof(full)) == sizeof(full));
    g->closed = false;
    pthread_mutex_unlock(&g->lock);
}

static void fail_with(gate *g, int error)
{
    pthread_mutex_lock(&g->lock);
    g->fail_with = error;
    pthread_mutex_unlock(&g->lock);
}

/* Wait until n packets are through, and the next stands at the gate. */
static void await_blocked(gate *g, size_t n)
{
    pthread_mutex_lock(&g->lock);
    while (g->n < n || !g->closed) {
        if (g->helped == NULL) {
            pthread_cond_wait(&g->changed, &g->lock);
        } else {
            pthread_mutex_unlock(&g->lock);
            (void)!spt_stream_flush(g->helped, 1000000);
            pthread_mutex_lock(&g->lock);
        }
    }
    CHECK_EQUAL(g->n, n);
    pthread_mutex_unlock(&g->lock);
}

/* The same, with the gate open. */
static void await_passed(gate *g, size_t n)
{
    pthread_mutex_lock(&g->lock);
    while (g->n < n) {
        if (g->helped == NULL) {
            pthread_cond_wait(&g->changed, &g->lock);
        } else {
            pthread_mutex_unlock(&g->lock);
            (void)!spt_stream_flush(g->helped, 1000000);
            pthread_mutex_lock(&g->lock);
        }
    }
    CHECK_EQUAL(g->n, n);
    pthread_mutex_unlock(&g->lock);
}

static void check_passed(const gate *g, const uint64_t *expected, size_t n)
{
    CHECK_EQUAL(g->n, n);
    for (size_t i = 0; i < n && i < g->n; i++)
        CHECK_EQUAL(g->cnt[i], expected[i]);
}

/* ---- What each test has ---- */

typedef struct scene {
    gate g;
    spt_thread_pool *pool;
    spt_stream *stream;
    spt_heap *heap; /* of three packets */
    spt_completion sent[8];
} scene;

static void begin_at(scene *s, const spti_transport_ops *ops, size_t max_heaps, size_t n_threads)
{
    *s = (scene){.g.base = {.ops = ops, .n_substreams = 1, .max_packet_size = PACKET}};
    pthread_mutex_init(&s->g.lock, NULL);
    pthread_cond_init(&s->g.changed, NULL);
    s->g.holding = ops == &holding_ops;
    s->g.open = s->g.holding ? ROOM : 0;
    s->g.base.fd = s->g.holding ? refused_socket() : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    REQUIRE(s->g.base.fd >= 0);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_packet_size = PACKET;
    config.max_heaps = max_heaps;
    config.timeline = 8;
    if (!without_threads) {
        s->pool = spt_thread_pool_create(n_threads, NULL, 0, NULL);
        REQUIRE(s->pool != NULL);
    }
    s->stream = create(s->pool, &s->g.base, &config, NULL);
    s->g.helped = without_threads ? s->stream : NULL;
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    spt_item item = {0x3300, value, 3 * FULL - 8, false};
    s->heap = spt_heap_create(&flavour, NULL);
    REQUIRE(s->stream != NULL && s->heap != NULL);
    REQUIRE(spt_heap_add_item(s->heap, &item, NULL) == SPT_OK);
}

static void begin(scene *s, size_t max_heaps, size_t n_threads)
{
    begin_at(s, &gate_ops, max_heaps, n_threads);
}

static void begin_holding(scene *s)
{
    begin_at(s, &holding_ops, 16, 1);
}

static void end(scene *s)
{
    CHECK_EQUAL(spt_heap_in_flight(s->heap), 0);
    for (int i = 0; i < 8; i++)
        CHECK(spt_completion_done(&s->sent[i]));
    spt_stream_destroy(s->stream);
    spt_thread_pool_destroy(s->pool);
    spt_heap_destroy(s->heap);
}

static void send_heap(scene *s, int i)
{
    REQUIRE(spt_stream_send_heap(s->stream, s->heap, &s->sent[i], NULL) == SPT_OK);
}

static void send_group(scene *s, int i, size_t n, spt_group_mode mode)
{
    const spt_heap_reference r = {s->heap, -1, 0, -1};
    const spt_heap_reference group[] = {r, r, r, r};
    REQUIRE(spt_stream_send_heaps(s->stream, group, n, mode, &s->sent[i], NULL) == SPT_OK);
}

static spt_status wait_for(scene *s, int i)
{
    return spt_stream_wait(s->stream, &s->sent[i], -1, NULL);
}

/* ---- Tests ---- */

static void test_packets_wait_until_they_are_let_through(void)
{
    static const uint64_t expected[] = {1, 1, 1, 2, 2, 2};
    scene s;
    begin(&s, 4, 1);
    send_heap(&s, 0);
    send_heap(&s, 1);
    for (size_t i = 0; i < 6; i++) {
        await_blocked(&s.g, i);
        if (i >= 3)
            CHECK_EQUAL(wait_for(&s, 0), SPT_OK);
        else
            CHECK(!spt_completion_done(&s.sent[0]));
        CHECK(!spt_completion_done(&s.sent[1]));
        let_through(&s.g, 1);
    }
    CHECK_EQUAL(wait_for(&s, 1), SPT_OK);
    CHECK_EQUAL(s.sent[0].bytes, 3 * FULL - 8 + 3 * 40 + 8);
    check_passed(&s.g, expected, 6);
    end(&s);
}

static void test_a_cancelled_heap_stops_where_it_is_and_the_next_goes_on(void)
{
    static const uint64_t expected[] = {1, 2, 2, 2, 3, 3, 3};
    scene s;
    begin(&s, 4, 1);
    let_through(&s.g, 1);
    send_heap(&s, 0);
    send_heap(&s, 1);
    await_blocked(&s.g, 1);
    spt_stream_cancel(s.stream, &s.sent[0]);
    CHECK(spt_completion_done(&s.sent[0]));
    CHECK_EQUAL(s.sent[0].status, SPT_ERR_CANCELLED);
    CHECK_EQUAL(s.sent[0].bytes, PACKET);
    CHECK_EQUAL(s.sent[0].failed_cnt, 1);
    CHECK_EQUAL(spt_heap_in_flight(s.heap), 1);
    send_heap(&s, 0); /* it can be used again */
    let_through(&s.g, 100);
    CHECK_EQUAL(wait_for(&s, 1), SPT_OK);
    CHECK_EQUAL(wait_for(&s, 0), SPT_OK);
    check_passed(&s.g, expected, 7);
    end(&s);
}

static void test_a_cancelled_heap_is_given_back_before_those_ahead_of_it(void)
{
    static const uint64_t expected[] = {1, 1, 1, 3, 3, 3};
    scene s;
    begin(&s, 4, 1);
    for (int i = 0; i < 3; i++)
        send_heap(&s, i);
    await_blocked(&s.g, 0);
    spt_stream_cancel(s.stream, &s.sent[1]);
    CHECK(spt_completion_done(&s.sent[1]));
    CHECK(!spt_completion_done(&s.sent[0]));
    CHECK_EQUAL(spt_heap_in_flight(s.heap), 2);
    memset(&s.sent[1], 0xee, sizeof(s.sent[1])); /* its memory is nobody's any more */
    let_through(&s.g, 100);
    CHECK_EQUAL(wait_for(&s, 2), SPT_OK);
    CHECK_EQUAL(spt_stream_flush(s.stream, -1), SPT_OK);
    CHECK_EQUAL(s.sent[1].status, (int)0xeeeeeeee);
    memset(&s.sent[1], 0, sizeof(s.sent[1]));
    check_passed(&s.g, expected, 6);
    end(&s);
}

static void test_a_round_robin_group_is_cancelled_as_a_whole(void)
{
    /* heaps 2 3 4 take turns after 1; five of their packets are through, four are not */
    static const uint64_t expected[] = {1, 1, 1, 2, 3, 4, 2, 3, 5, 6, 5, 6, 5, 6};
    scene s;
    begin(&s, 8, 1);
    let_through(&s.g, 8);
    send_heap(&s, 0);
    send_group(&s, 1, 3, SPT_GROUP_ROUND_ROBIN);
    send_group(&s, 2, 2, SPT_GROUP_ROUND_ROBIN);
    await_blocked(&s.g, 8);
    CHECK_EQUAL(wait_for(&s, 0), SPT_OK);
    spt_stream_cancel(s.stream, &s.sent[1]);
    CHECK_EQUAL(s.sent[1].status, SPT_ERR_CANCELLED);
    CHECK_EQUAL(s.sent[1].bytes, 5 * PACKET);
    CHECK_EQUAL(spt_heap_in_flight(s.heap), 2);
    let_through(&s.g, 100);
    CHECK_EQUAL(wait_for(&s, 2), SPT_OK);
    check_passed(&s.g, expected, 14);
    end(&s);
}

static void test_a_serial_group_is_cancelled_with_heaps_of_it_already_sent(void)
{
    static const uint64_t expected[] = {1, 1, 1, 2, 4, 4, 4};
    scene s;
    begin(&s, 4, 1);
    let_through(&s.g, 4);
    send_group(&s, 0, 3, SPT_GROUP_SERIAL);
    send_heap(&s, 1);
    await_blocked(&s.g, 4);
    CHECK(!spt_completion_done(&s.sent[0]));
    spt_stream_cancel(s.stream, &s.sent[0]);
    CHECK_EQUAL(s.sent[0].status, SPT_ERR_CANCELLED);
    CHECK_EQUAL(s.sent[0].bytes, 4 * PACKET);
    CHECK_EQUAL(s.sent[0].failed_cnt, 2); /* where it first went wrong */
    let_through(&s.g, 100);
    CHECK_EQUAL(wait_for(&s, 1), SPT_OK);
    check_passed(&s.g, expected, 7);
    end(&s);
}

static void test_cancelling_in_any_order_leaves_the_queue_in_order(void)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++) {
        scene s;
        begin(&s, 8, 1);
        let_through(&s.g, 1);
        for (int i = 0; i < 3; i++)
            send_group(&s, i, 2, i == 1 ? SPT_GROUP_SERIAL : SPT_GROUP_ROUND_ROBIN);
        await_blocked(&s.g, 1);
        for (int i = 0; i < 3; i++) {
            spt_stream_cancel(s.stream, &s.sent[orders[o][i]]);
            CHECK_EQUAL(s.sent[orders[o][i]].status, SPT_ERR_CANCELLED);
        }
        CHECK_EQUAL(spt_stream_flush(s.stream, -1), SPT_OK); /* nothing is left */
        for (int i = 0; i < 8; i++)                          /* and all room is free again */
            send_heap(&s, i);
        let_through(&s.g, 100);
        for (int i = 0; i < 8; i++)
            CHECK_EQUAL(wait_for(&s, i), SPT_OK);
        CHECK_EQUAL(s.g.n, 1 + 8 * 3);
        end(&s);
    }
}

static void test_stopping_gives_back_what_stands_at_the_gate(void)
{
    scene s;
    begin(&s, 8, 1);
    let_through(&s.g, 4);
    send_heap(&s, 0);
    send_group(&s, 1, 3, SPT_GROUP_ROUND_ROBIN);
    send_heap(&s, 2);
    await_blocked(&s.g, 4);
    spt_stream_stop(s.stream);
    CHECK_EQUAL(wait_for(&s, 0), SPT_OK);
    CHECK_EQUAL(wait_for(&s, 1), SPT_ERR_STOPPED);
    CHECK_EQUAL(wait_for(&s, 2), SPT_ERR_STOPPED);
    CHECK_EQUAL(s.sent[1].bytes, PACKET);
    CHECK_EQUAL(s.sent[2].bytes, 0);
    spt_stream_stop(s.stream);
    end(&s);
    CHECK_EQUAL(s.g.n, 4);
}

static void test_a_pool_stops_with_packets_at_the_gate(void)
{
    scene s;
    begin(&s, 8, 2);
    let_through(&s.g, 1);
    send_heap(&s, 0);
    await_blocked(&s.g, 1);
    spt_thread_pool_stop(s.pool);
    CHECK_EQUAL(wait_for(&s, 0), SPT_ERR_STOPPED);
    let_through(&s.g, 100);
    end(&s);
    CHECK_EQUAL(s.g.n, 1);
}

static void test_heaps_that_were_given_up_are_in_the_timeline_too(void)
{
    scene s;
    begin(&s, 8, 1);
    let_through(&s.g, 4);
    for (int i = 0; i < 4; i++)
        send_heap(&s, i);
    await_blocked(&s.g, 4);
    spt_stream_cancel(s.stream, &s.sent[2]);
    spt_stream_stop(s.stream);
    static const uint64_t cnt[] = {1, 3, 2, 4}, packets[] = {3, 0, 1, 0};
    spt_times times[8];
    REQUIRE(spt_stream_timeline(s.stream, times, 8) == 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(times[i].cnt, cnt[i]);
        CHECK_EQUAL((times[i].bytes + 999) / PACKET, packets[i]);
        CHECK_EQUAL(times[i].first_packet_ns == 0, packets[i] == 0);
        CHECK(times[i].queued_ns > 0);
        CHECK(times[i].completed_ns >= times[i].queued_ns);
    }
    spt_stats stats;
    spt_stream_stats(s.stream, &stats);
    CHECK_EQUAL(stats.heaps, 4);
    end(&s);
}

static void test_a_packet_that_fails_does_not_stop_its_heap(void)
{
    scene s;
    spt_error err = {0};
    spt_stats stats;
    begin(&s, 8, 1);
    send_group(&s, 0, 2, SPT_GROUP_SERIAL);
    await_blocked(&s.g, 0);
    let_through(&s.g, 1);
    await_blocked(&s.g, 1);
    fail_with(&s.g, ENOBUFS);
    let_through(&s.g, 1);
    await_blocked(&s.g, 2);
    fail_with(&s.g, EPERM);
    let_through(&s.g, 1);
    await_blocked(&s.g, 3);
    fail_with(&s.g, 0);
    let_through(&s.g, 100);
    CHECK_EQUAL(spt_stream_wait(s.stream, &s.sent[0], -1, &err), SPT_ERR_SYSTEM);
    CHECK_EQUAL(err.sys_errno, ENOBUFS); /* the first error, of all the group */
    CHECK(strstr(err.message, "heap 1: a packet of 1000 bytes") != NULL);
    CHECK(strstr(err.message, "send at a lower rate") != NULL);
    CHECK_EQUAL(s.sent[0].bytes, 4 * PACKET); /* the second heap has been sent all the same */
    spt_stream_stats(s.stream, &stats);
    CHECK_EQUAL(stats.errors, 2);
    CHECK_EQUAL(stats.errors_by_errno[ENOBUFS], 1);
    CHECK_EQUAL(stats.errors_by_errno[EPERM], 1);
    CHECK_EQUAL(stats.packets, 4);
    CHECK_EQUAL(spt_stream_send_heap(s.stream, s.heap, &s.sent[0], NULL), SPT_OK);
    CHECK_EQUAL(wait_for(&s, 0), SPT_OK); /* the error is not left over */
    end(&s);
}

static void test_every_packet_is_accounted_for_whatever_is_cancelled_when(void)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        unsigned state = seed;
#define RANDOM(n) ((state = state * 1103515245U + 12345U) >> 16) % (n)
        scene s;
        begin(&s, 1 + RANDOM(8), 1 + seed % 2);
        uint64_t passed = 0;
        for (int step = 0; step < 120; step++) {
            int i = (int)(RANDOM(8));
            spt_group_mode mode = RANDOM(2) ? SPT_GROUP_SERIAL : SPT_GROUP_ROUND_ROBIN;
            spt_completion *c = &s.sent[i];
            const spt_heap_reference r = {s.heap, -1, 0, -1};
            const spt_heap_reference group[] = {r, r, r, r};
            switch (RANDOM(4)) {
            case 0:
            case 1:
                if (!spt_completion_done(c))
                    break;
                passed += c->bytes;
                c->bytes = 0;
                (void)!spt_stream_send_heaps(s.stream, group, 1 + RANDOM(4), mode, c, NULL);
                break;
            case 2:
                spt_stream_cancel(s.stream, c);
                CHECK(spt_completion_done(c));
                break;
            case 3:
                let_through(&s.g, RANDOM(9));
                break;
            }
        }
        if (seed % 3 == 0)
            spt_stream_stop(s.stream);
        let_through(&s.g, ROOM);
        CHECK_EQUAL(spt_stream_flush(s.stream, -1), SPT_OK);
        uint64_t through = 0;
        REQUIRE(s.g.n <= ROOM);
        for (size_t j = 0; j < s.g.n; j++)
            through += s.g.bytes[j];
        for (int i = 0; i < 8; i++) {
            CHECK(spt_completion_done(&s.sent[i]));
            passed += s.sent[i].bytes;
        }
        CHECK_EQUAL(passed, through);
        end(&s);
    }
}

/* ---- Packets that are read after they have been handed over ---- */

static void test_a_heap_is_complete_once_nobody_reads_its_packets(void)
{
    scene s;
    begin_holding(&s);
    send_heap(&s, 0);
    await_passed(&s.g, 3);
    CHECK_EQUAL(spt_stream_wait(s.stream, &s.sent[0], 1000000, NULL), SPT_PENDING);
    let_go(&s.g, 2);
    CHECK_EQUAL(spt_stream_wait(s.stream, &s.sent[0], 1000000, NULL), SPT_PENDING);
    CHECK_EQUAL(spt_heap_in_flight(s.heap), 1);
    let_go(&s.g, 1);
    CHECK_EQUAL(wait_for(&s, 0), SPT_OK);
    CHECK_EQUAL(s.sent[0].bytes, 3 * FULL - 8 + 3 * 40 + 8);
    spt_times times = {0};
    CHECK_EQUAL(spt_stream_timeline(s.stream, &times, 1), 1);
    CHECK(times.last_packet_ns < times.completed_ns && times.bytes == s.sent[0].bytes);
    end(&s);
}

static void test_heaps_go_on_while_those_before_are_read(void)
{
    static const uint64_t expected[] = {1, 1, 1, 2, 2, 2, 3, 3, 3};
    scene s;
    begin_holding(&s);
    for (int i = 0; i < 3; i++) {
        send_heap(&s, i);
        await_passed(&s.g, 3 * (size_t)i + 3);
    }
    let_go(&s.g, 8);
    CHECK_EQUAL(wait_for(&s, 1), SPT_OK);
    CHECK(spt_completion_done(&s.sent[0]) && !spt_completion_done(&s.sent[2]));
    let_go(&s.g, 1);
    CHECK_EQUAL(wait_for(&s, 2), SPT_OK);
    check_passed(&s.g, expected, 9);
    end(&s);
}

static void test_with_too_many_batches_held_the_next_waits_for_one(void)
{
    scene s;
    spt_completion sent[HELD_BATCHES + 2] = {0};
    begin_holding(&s);
    for (size_t i = 0; i < HELD_BATCHES; i++) {
        REQUIRE(spt_stream_send_heap(s.stream, s.heap, &sent[i], NULL) == SPT_OK);
        await_passed(&s.g, 3 * i + 3);
    }
    for (size_t i = HELD_BATCHES; i < HELD_BATCHES + 2; i++)
        REQUIRE(spt_stream_send_heap(s.stream, s.heap, &sent[i], NULL) == SPT_OK);
    CHECK_EQUAL(spt_stream_flush(s.stream, 1000000), SPT_PENDING);
    CHECK_EQUAL(s.g.n, 3 * HELD_BATCHES);
    let_go(&s.g, 3);
    await_passed(&s.g, 3 * HELD_BATCHES + 6);
    let_go(&s.g, 3 * HELD_BATCHES + 3);
    CHECK_EQUAL(spt_stream_flush(s.stream, -1), SPT_OK);
    end(&s);
}

static void *let_go_later(void *arg)
{
    usleep(20000);
    let_go(arg, 3);
    return NULL;
}

static void test_a_heap_that_is_cancelled_is_given_back_once_nobody_reads_it(void)
{
    scene s;
    pthread_t other;
    begin_holding(&s);
    send_heap(&s, 0);
    await_passed(&s.g, 3);
    REQUIRE(pthread_create(&other, NULL, let_go_later, &s.g) == 0);
    spt_stream_cancel(s.stream, &s.sent[0]);
    CHECK_EQUAL(s.g.base.released, 3);
    CHECK_EQUAL(s.sent[0].status, SPT_OK); /* all of it had gone */
    CHECK_EQUAL(spt_heap_in_flight(s.heap), 0);
    pthread_join(other, NULL);
    send_heap(&s, 1);
    await_passed(&s.g, 6);
    let_go(&s.g, 3);
    CHECK_EQUAL(wait_for(&s, 1), SPT_OK);
    end(&s);
}

static void test_what_is_never_let_go_is_not_waited_for_for_ever(void)
{
    scene s;
    begin_holding(&s);
    send_heap(&s, 0);
    await_passed(&s.g, 3);
    spt_stream_stop(s.stream);
    CHECK(spt_completion_done(&s.sent[0]));
    end(&s);
}

static void run_for_a_kind(void)
{
    RUN(test_packets_wait_until_they_are_let_through);
    RUN(test_a_cancelled_heap_stops_where_it_is_and_the_next_goes_on);
    RUN(test_a_cancelled_heap_is_given_back_before_those_ahead_of_it);
    RUN(test_a_round_robin_group_is_cancelled_as_a_whole);
    RUN(test_a_serial_group_is_cancelled_with_heaps_of_it_already_sent);
    RUN(test_cancelling_in_any_order_leaves_the_queue_in_order);
    RUN(test_stopping_gives_back_what_stands_at_the_gate);
    RUN(test_heaps_that_were_given_up_are_in_the_timeline_too);
    RUN(test_a_packet_that_fails_does_not_stop_its_heap);
    RUN(test_every_packet_is_accounted_for_whatever_is_cancelled_when);
    RUN(test_a_heap_is_complete_once_nobody_reads_its_packets);
    RUN(test_heaps_go_on_while_those_before_are_read);
    RUN(test_with_too_many_batches_held_the_next_waits_for_one);
    RUN(test_a_heap_that_is_cancelled_is_given_back_once_nobody_reads_it);
    RUN(test_what_is_never_let_go_is_not_waited_for_for_ever);
}

int main(void)
{
    run_for_a_kind();
    RUN(test_a_pool_stops_with_packets_at_the_gate);
    without_threads = true;
    check_case = ", without a thread";
    run_for_a_kind();
    return check_done();
}
