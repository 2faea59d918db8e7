/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of the stream with packets under way: behind a gate, a transport that takes as
 * many packets as the test lets through.
 */
#include "../src/stream.h"

#include "sending.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>

enum { ROOM = 4096, PACKET = 1000, FULL = 1000 - 40 };

/* ---- The gate ---- */

static struct {
    spti_transport base;
    pthread_mutex_t lock;
    size_t open;         /* packets that may still pass */
    _Atomic bool closed; /* the fd is not writable */
    int fail_with;       /* packets fail with this errno, if it is not 0 */
    bool holding;        /* packets are read after they have passed, until they are let go */
    uint32_t let_go;     /* how many have been */
    _Atomic size_t n;    /* packets that have passed or failed, */
    uint64_t cnt[ROOM];
    size_t bytes[ROOM];
    uint64_t batches[16]; /* packets of each */
    size_t n_batches;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER};

static spt_status gate_send(spti_transport *t, spti_batch *batch)
{
    spt_status status = SPT_OK;
    pthread_mutex_lock(&gate.lock);
    if (batch->next == 0 && gate.n_batches < LENGTH(gate.batches)) /* or at a closed gate again */
        gate.batches[gate.n_batches++] = batch->n;
    for (; batch->next < batch->n; batch->next++) {
        spti_packet *packet = &batch->packets[batch->next];
        if (gate.open == 0) {
            uint64_t full = UINT64_MAX - 1; /* an eventfd that cannot be written to */
            if (!gate.closed)
                REQUIRE(write(t->fd, &full, sizeof(full)) == sizeof(full));
            gate.closed = true;
            status = SPT_PENDING;
            break;
        }
        gate.open--;
        if (gate.fail_with != 0)
            spti_transport_failed(t, batch, batch->next, 1, gate.fail_with);
        else
            spti_transport_taken(t, batch, batch->next, 1);
        packet->held = gate.holding;
        packet->message = t->handed++;
        if (gate.n < ROOM) {
            gate.cnt[gate.n] = ((const spti_slot *)packet->sender)->packetizer.cnt;
            gate.bytes[gate.n] = packet->size;
        }
        gate.n++;
    }
    pthread_mutex_unlock(&gate.lock);
    return status;
}

/* The error of a socket is its news here. */
static void gate_release(spti_transport *t)
{
    pthread_mutex_lock(&gate.lock);
    int error;
    socklen_t length = sizeof(error);
    REQUIRE(getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0);
    if ((int32_t)(gate.let_go - t->released) > 0)
        t->released = gate.let_go;
    pthread_mutex_unlock(&gate.lock);
}

static void gate_destroy(spti_transport *t)
{
    close(t->fd);
}

static const spti_transport_ops gate_ops = {gate_send, NULL, gate_destroy, NULL};
static const spti_transport_ops holding_ops = {gate_send, gate_release, gate_destroy, NULL};

static void let_go(uint32_t n)
{
    pthread_mutex_lock(&gate.lock);
    gate.let_go += n;
    while (send(gate.base.fd, value, 1, 0) < 0) /* the news before, which nobody has read */
        REQUIRE(errno == ECONNREFUSED);
    pthread_mutex_unlock(&gate.lock);
}

/* Let so many more packets through, which fail if there is an error. */
static void let_fail(size_t n, int error)
{
    pthread_mutex_lock(&gate.lock);
    gate.open += n;
    gate.fail_with = error;
    uint64_t full;
    if (gate.closed)
        REQUIRE(read(gate.base.fd, &full, sizeof(full)) == sizeof(full));
    gate.closed = false;
    pthread_mutex_unlock(&gate.lock);
}

static void let_through(size_t n)
{
    let_fail(n, 0);
}

/* Wait until n packets are through and, unless the gate is open, the next one stands there. */
static void await(size_t n)
{
    while (gate.n < n || (!gate.holding && !gate.closed)) {
        if (pool == NULL) /* who waits does the work */
            (void)!spt_stream_flush(stream, 1000000);
        else
            sched_yield();
    }
    CHECK_EQUAL(gate.n, n);
}

#define CHECK_PASSED(...) CHECK_COUNTS(gate.cnt, gate.n, __VA_ARGS__)

/* ---- What each test has: a heap of three packets ---- */

static void begin_at(const spti_transport_ops *ops, size_t max_heaps, size_t n_threads)
{
    int nowhere;
    begin_sending(n_threads, 3 * FULL - 8);
    all_done = true;
    gate.base = (spti_transport){.ops = ops, .n_substreams = 1, .max_packet_size = PACKET};
    gate.holding = ops == &holding_ops;
    gate.open = gate.holding ? ROOM : 0;
    gate.closed = false;
    gate.fail_with = 0;
    gate.let_go = 0;
    gate.n = gate.n_batches = 0;
    gate.base.fd = gate.holding ? connect_to_nobody(&nowhere) : eventfd(0, EFD_NONBLOCK);
    const spt_stream_config *config =
        STREAM_CONFIG(its.max_packet_size = PACKET, its.max_heaps = max_heaps, its.timeline = 8);
    stream = NEW(spti_stream_create(pool, &gate.base, config, NULL));
}

/* The gate lets so many packets through. */
static void begin(size_t max_heaps, size_t open)
{
    begin_at(&gate_ops, max_heaps, 1);
    let_through(open);
}

static void begin_holding(void)
{
    begin_at(&holding_ops, 16, 1);
}

/* Send the heap with each of some completions. */
static void send_heaps(int first, int n)
{
    for (int i = first; i < first + n; i++)
        REQUIRE(send_heap(i) == SPT_OK);
}

/* Send a group of two or three, whose heaps take turns. */
static void send_turns(int i, size_t n)
{
    REQUIRE(send_group(i, n, SPT_GROUP_ROUND_ROBIN) == SPT_OK);
}

/* A send is given back at once when it is cancelled, with what had passed of it. */
static void check_cancel(int i, uint64_t packets)
{
    spt_stream_cancel(stream, &sent[i]);
    spt_stream_cancel(stream, &sent[i]); /* twice is as good */
    CHECK(spt_completion_done(&sent[i]));
    CHECK_EQUAL(sent[i].status, SPT_ERR_CANCELLED, sent[i].bytes, packets * PACKET);
}

TEST(packets_wait_until_they_are_let_through)
{
    begin(4, 0);
    send_heaps(0, 2);
    for (size_t i = 0; i < 6; i++) {
        await(i);
        if (i >= 3)
            CHECK_EQUAL(wait_for(0, -1), SPT_OK);
        else
            CHECK(!spt_completion_done(&sent[0]));
        CHECK(!spt_completion_done(&sent[1]));
        let_through(1);
    }
    CHECK_EQUAL(wait_for(1, -1), SPT_OK, sent[0].bytes, 3 * FULL - 8 + 3 * 40 + 8);
    CHECK_PASSED(1, 1, 1, 2, 2, 2);
}

/* Its owner fills the next heap while others are sent, and not only when they have been. */
TEST(a_batch_ends_with_what_an_earlier_one_began_and_holds_many_that_are_whole)
{
    enum { HEAPS = 100 };
    spt_heap_reference group[HEAPS];
    begin(2 * HEAPS + 4, 1);
    for (int i = 0; i < HEAPS; i++)
        group[i] = (spt_heap_reference){heap, -1, 0, -1};
    for (int i = 0; i < 2; i++)
        REQUIRE(spt_stream_send_heaps(stream, group, HEAPS, SPT_GROUP_SERIAL, &sent[i], NULL) ==
                SPT_OK);
    send_heaps(2, 4);
    await(1);
    let_through(ROOM);
    CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
    CHECK_COUNTS(gate.batches, gate.n_batches, 252, 48, 252, 48, 12);
}

TEST(a_cancelled_heap_stops_where_it_is_and_the_next_goes_on)
{
    begin(4, 1);
    send_heaps(0, 2);
    await(1);
    check_cancel(0, 1);
    CHECK_EQUAL(sent[0].failed_cnt, 1, spt_heap_in_flight(heap), 1);
    send_heaps(0, 1); /* it can be used again */
    let_through(100);
    CHECK_EQUAL(wait_for(1, -1), SPT_OK, wait_for(0, -1), SPT_OK);
    CHECK_PASSED(1, 2, 2, 2, 3, 3, 3);
}

TEST(a_cancelled_heap_is_given_back_before_those_ahead_of_it)
{
    begin(4, 0);
    send_heaps(0, 3);
    await(0);
    check_cancel(1, 0);
    CHECK(!spt_completion_done(&sent[0]));
    CHECK_EQUAL(spt_heap_in_flight(heap), 2);
    memset(&sent[1], 0xee, sizeof(sent[1])); /* its memory is nobody's any more */
    let_through(100);
    CHECK_EQUAL(wait_for(2, -1), SPT_OK, spt_stream_flush(stream, -1), SPT_OK);
    CHECK_EQUAL(sent[1].status, (int)0xeeeeeeee);
    memset(&sent[1], 0, sizeof(sent[1]));
    CHECK_PASSED(1, 1, 1, 3, 3, 3);
}

TEST(a_cancelled_heap_is_not_looked_at_when_those_ahead_of_it_are_sent)
{
    enum { FIRST = 84 + 4 }; /* as many as a batch has room for, and up to the other heap */
    spt_heap_reference group[FIRST];
    begin(128, 0);
    for (int i = 0; i < FIRST; i++)
        group[i] = (spt_heap_reference){heap, -1, 0, -1};
    REQUIRE(spt_stream_send_heaps(stream, group, FIRST, SPT_GROUP_SERIAL, &sent[0], NULL) ==
            SPT_OK);
    spt_heap *other = new_heap_of(value, 8);
    REQUIRE(spt_stream_send_heap(stream, other, &sent[1], NULL) == SPT_OK);
    send_heaps(2, 1);
    await(0);
    check_cancel(1, 0);
    spt_heap_destroy(other);
    let_through(ROOM);
    CHECK_EQUAL(wait_for(2, -1), SPT_OK, spt_stream_flush(stream, -1), SPT_OK);
    CHECK_EQUAL(sent[0].bytes, FIRST * (3 * FULL - 8 + 3 * 40 + 8));
}

TEST(a_round_robin_group_is_cancelled_as_a_whole)
{
    /* heaps 2 3 4 take turns after 1; five of their packets are through, four are not */
    begin(8, 8);
    send_heaps(0, 1);
    send_turns(1, 3);
    send_turns(2, 2);
    await(8);
    CHECK_EQUAL(wait_for(0, -1), SPT_OK);
    check_cancel(1, 5);
    CHECK_EQUAL(spt_heap_in_flight(heap), 2);
    let_through(100);
    CHECK_EQUAL(wait_for(2, -1), SPT_OK);
    CHECK_PASSED(1, 1, 1, 2, 3, 4, 2, 3, 5, 6, 5, 6, 5, 6);
}

TEST(a_serial_group_is_cancelled_with_heaps_of_it_already_sent)
{
    begin(4, 4);
    REQUIRE(send_group(0, 3, SPT_GROUP_SERIAL) == SPT_OK);
    send_heaps(1, 1);
    await(4);
    CHECK(!spt_completion_done(&sent[0]));
    check_cancel(0, 4);
    CHECK_EQUAL(sent[0].failed_cnt, 2); /* where it first went wrong */
    let_through(100);
    CHECK_EQUAL(wait_for(1, -1), SPT_OK);
    CHECK_PASSED(1, 1, 1, 2, 4, 4, 4);
}

TEST(what_stands_at_the_gate_is_given_back_by_a_stop_and_is_in_the_timeline_too)
{
    static const uint64_t cnt[] = {1, 5, 2, 3, 4, 6}, packets[] = {3, 0, 1, 0, 0, 0};
    spt_times times[8];
    begin(8, 4);
    send_heaps(0, 1);
    send_turns(1, 3);
    send_heaps(2, 2);
    await(4);
    spt_stream_cancel(stream, &sent[2]);
    spt_stream_stop(stream);
    CHECK_EQUAL(wait_for(0, -1), SPT_OK, wait_for(1, -1), SPT_ERR_STOPPED);
    CHECK_EQUAL(wait_for(3, -1), SPT_ERR_STOPPED, sent[1].bytes, PACKET, sent[3].bytes, 0);
    REQUIRE(spt_stream_timeline(stream, times, 8) == 6);
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(times[i].cnt, cnt[i], (times[i].bytes + 999) / PACKET, packets[i]);
        CHECK_EQUAL(times[i].first_packet_ns == 0, packets[i] == 0);
        CHECK(times[i].queued_ns > 0 && times[i].completed_ns >= times[i].queued_ns);
    }
    CHECK_EQUAL(stats().heaps, 6);
    spt_stream_stop(stream);
    END(spt_stream, stream);
    CHECK_EQUAL(gate.n, 4);
}

TEST(a_packet_that_fails_does_not_stop_its_heap)
{
    static const int errors[] = {0, ENOBUFS, EPERM};
    spt_error err = {0};
    begin(8, 0);
    REQUIRE(send_group(0, 2, SPT_GROUP_SERIAL) == SPT_OK);
    for (size_t i = 0; i < 3; i++) {
        await(i);
        let_fail(1, errors[i]);
    }
    await(3);
    let_through(100);
    CHECK_EQUAL(spt_stream_wait(stream, &sent[0], -1, &err), SPT_ERR_SYSTEM);
    CHECK_EQUAL(err.sys_errno, ENOBUFS); /* the first error, of all the group */
    CHECK_WORDS(err.message, "heap 1: a packet of 1000 bytes");
    CHECK_WORDS(err.message, "send at a lower rate");
    CHECK_EQUAL(sent[0].bytes, 4 * PACKET); /* the second heap has been sent all the same */
    CHECK_EQUAL(stats().errors, 2, stats().errors_by_errno[ENOBUFS], 1);
    CHECK_EQUAL(stats().errors_by_errno[EPERM], 1, stats().packets, 4);
    send_heaps(0, 1);
    CHECK_EQUAL(wait_for(0, -1), SPT_OK); /* the error is not left over */
}

TEST(every_packet_is_accounted_for_whatever_is_cancelled_when)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t state = seed, passed = 0, through = 0;
        begin_at(&gate_ops, 1 + draw(&state, 8), 1 + seed % 2);
        for (int step = 0; step < 120; step++) {
            int i = (int)draw(&state, SENT);
            spt_group_mode mode = draw(&state, 2) ? SPT_GROUP_SERIAL : SPT_GROUP_ROUND_ROBIN;
            uint64_t what = draw(&state, 4);
            if (what == 0) {
                let_through(draw(&state, 9));
            } else if (what == 1) {
                spt_stream_cancel(stream, &sent[i]);
                CHECK(spt_completion_done(&sent[i]));
            } else if (spt_completion_done(&sent[i])) {
                passed += sent[i].bytes;
                sent[i].bytes = 0;
                (void)!send_group(i, 1 + draw(&state, 4), mode);
            }
        }
        if (seed % 3 == 0)
            spt_stream_stop(stream);
        let_through(ROOM);
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        REQUIRE(gate.n <= ROOM);
        for (size_t j = 0; j < gate.n; j++)
            through += gate.bytes[j];
        for (int i = 0; i < SENT; i++)
            passed += sent[i].bytes;
        CHECK_EQUAL(passed, through);
    }
}

/* ---- Packets that are read after they have been handed over ---- */

TEST(a_heap_is_complete_once_nobody_reads_its_packets)
{
    spt_times times = {0};
    begin_holding();
    send_heaps(0, 1);
    await(3);
    CHECK_EQUAL(wait_for(0, 1000000), SPT_PENDING);
    let_go(2);
    CHECK_EQUAL(wait_for(0, 1000000), SPT_PENDING, spt_heap_in_flight(heap), 1);
    let_go(1);
    CHECK_EQUAL(wait_for(0, -1), SPT_OK, sent[0].bytes, 3 * FULL - 8 + 3 * 40 + 8);
    CHECK_EQUAL(spt_stream_timeline(stream, &times, 1), 1, times.bytes, sent[0].bytes);
    CHECK(times.last_packet_ns < times.completed_ns);
}

TEST(heaps_go_on_while_those_before_are_read)
{
    begin_holding();
    for (int i = 0; i < 3; i++) {
        send_heaps(i, 1);
        await(3 * (size_t)i + 3);
    }
    let_go(8);
    CHECK_EQUAL(wait_for(1, -1), SPT_OK);
    CHECK(spt_completion_done(&sent[0]) && !spt_completion_done(&sent[2]));
    let_go(1);
    CHECK_EQUAL(wait_for(2, -1), SPT_OK);
    CHECK_PASSED(1, 1, 1, 2, 2, 2, 3, 3, 3);
}

TEST(with_too_many_batches_held_the_next_waits_for_one)
{
    spt_completion many[SPTI_HELD_BATCHES + 2] = {0};
    begin_holding();
    for (size_t i = 0; i < SPTI_HELD_BATCHES + 2; i++) {
        REQUIRE(spt_stream_send_heap(stream, heap, &many[i], NULL) == SPT_OK);
        if (i < SPTI_HELD_BATCHES)
            await(3 * i + 3);
    }
    CHECK_EQUAL(spt_stream_flush(stream, 1000000), SPT_PENDING, gate.n, 3 * SPTI_HELD_BATCHES);
    let_go(3);
    await(3 * SPTI_HELD_BATCHES + 6);
    let_go(3 * SPTI_HELD_BATCHES + 3);
    CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
    END(spt_stream, stream);
}

static void *let_go_later(void *none)
{
    usleep(20000);
    let_go(3);
    return none;
}

TEST(a_heap_that_is_cancelled_is_given_back_once_nobody_reads_it)
{
    begin_holding();
    send_heaps(0, 1);
    await(3);
    pthread_t other = start_thread(let_go_later, NULL);
    spt_stream_cancel(stream, &sent[0]);
    CHECK_EQUAL(gate.base.released, 3, spt_heap_in_flight(heap), 0);
    CHECK_EQUAL(sent[0].status, SPT_OK); /* all of it had gone */
    pthread_join(other, NULL);
    send_heaps(1, 1);
    await(6);
    let_go(3);
    CHECK_EQUAL(wait_for(1, -1), SPT_OK);
}

TEST(what_is_never_let_go_is_not_waited_for_for_ever)
{
    begin_holding();
    send_heaps(0, 1);
    await(3);
    spt_stream_stop(stream);
    CHECK(spt_completion_done(&sent[0]));
}
