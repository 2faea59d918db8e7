/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of sockets that share a port: each flow goes to one of them, whole, and what
 * happens at one socket concerns no other.
 */
#define CHECK_AFTER end

#include "support.h"

enum { SOCKETS = 2, FLOWS = 32, SIZE = 5000, SMALL = 4096 };

static spt_recv_stream *receivers[SOCKETS];
static spt_stream *senders[FLOWS];
static spt_heap *heap;
static uint8_t value[SIZE];
static spt_endpoint shared;

static void end(void)
{
    for (int i = 0; i < FLOWS; i++)
        END(spt_stream, senders[i]);
    for (int i = 0; i < SOCKETS; i++)
        END(spt_recv_stream, receivers[i]);
    END(spt_heap, heap);
}

static spt_status listen_at(spt_recv_stream *receiver, const char *host, bool reuse_port,
                            size_t buffer_size, spt_error *err)
{
    shared.host = host;
    return spt_recv_stream_add_udp(
        receiver, &shared,
        RECEIVE_CONFIG(its.reuse_port = reuse_port, its.buffer_size = buffer_size), err);
}

/* Receivers without a thread: what comes to a socket stays there until the test looks. The last one
 * may have a small buffer. */
static void begin(size_t last_buffer)
{
    end();
    heap = new_heap_of(value, SIZE);
    shared.port = 0;
    for (int i = 0; i < SOCKETS; i++) {
        size_t buffer = i == SOCKETS - 1 ? last_buffer : 0;
        receivers[i] = new_receiver(NULL);
        REQUIRE(listen_at(receivers[i], "", true, buffer, NULL) == SPT_OK);
        shared.port = spt_recv_stream_port(receivers[i]);
    }
    for (uint64_t i = 0; i < FLOWS; i++) {
        shared.host = i % 2 > 0 && has_ipv6() ? "::1" : "127.0.0.1";
        senders[i] = NEW(spt_stream_create_udp(NULL, &shared, 1, STREAM_CONFIG(), NULL, NULL));
        REQUIRE(spt_stream_set_cnt_sequence(senders[i], i, FLOWS, NULL) == SPT_OK);
    }
}

/* Take all heaps that are at a socket; returns how many are whole. */
static uint64_t take(spt_recv_stream *receiver)
{
    spt_status status;
    return take_heaps(receiver, 0, &status);
}

/* To which receiver a flow goes. */
static int whose(spt_stream *sender)
{
    send_and_wait(sender, heap, -1);
    int is = -1;
    for (int i = 0; i < SOCKETS; i++)
        if (take(receivers[i]) == 1) {
            CHECK_EQUAL(is, -1); /* and to no other */
            is = i;
        }
    REQUIRE(is >= 0);
    return is;
}

/* A flow that goes to a receiver: of so many flows one does. */
static spt_stream *flow_to(int receiver)
{
    for (int i = 0; i < FLOWS; i++)
        if (whose(senders[i]) == receiver)
            return senders[i];
    REQUIRE(false);
    return NULL;
}

TEST(the_heaps_of_a_flow_go_to_one_socket_and_the_others_may_stay_empty)
{
    begin(0);
    for (int i = 0; i < SOCKETS; i++) {
        spt_stream *flow = flow_to(i);
        uint64_t before = stats_of(receivers[!i]).sockets.datagrams;
        for (int cnt = 1; cnt <= 10; cnt++)
            CHECK_EQUAL(whose(flow), i);
        CHECK_EQUAL(stats_of(receivers[!i]).sockets.datagrams, before);
    }
}

TEST(a_socket_that_is_not_read_drops_and_the_others_do_not)
{
    begin(SMALL);
    spt_stream *slow = flow_to(SOCKETS - 1), *fast = flow_to(0);
    uint64_t before = stats_of(receivers[0]).account.heaps_complete;
    for (int i = 0; i < 20; i++) {
        send_and_wait(slow, heap, -1);
        send_and_wait(fast, heap, -1);
        take(receivers[0]);
    }
    CHECK_EQUAL(stats_of(receivers[0]).account.heaps_complete, before + 20);
    CHECK_EQUAL(stats_of(receivers[0]).sockets.dropped, 0);
    CHECK(stats_of(receivers[SOCKETS - 1]).sockets.dropped > 0);
}

TEST(a_stream_that_has_ended_by_itself_keeps_its_flows)
{
    begin(0);
    spt_stream *flow = flow_to(0);
    uint64_t before = stats_of(receivers[1]).sockets.datagrams;
    REQUIRE(spt_stream_send_end(flow, NULL, NULL) == SPT_OK);
    CHECK_EQUAL(get_none_of(receivers[0], -1), SPT_DONE);
    send_and_wait(flow, heap, -1); /* nobody reads it, */
    CHECK_EQUAL(take(receivers[1]), 0, stats_of(receivers[1]).sockets.datagrams, before);
    spt_recv_stream_stop(receivers[0]);
    CHECK_EQUAL(whose(flow), 1); /* until its socket is closed */
}

TEST(a_port_is_shared_by_those_that_say_so_alone)
{
    begin(0);
    OWN(spt_recv_stream) another = new_receiver(NULL);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "is in use", listen_at(another, "127.0.0.1", false, 0, &err));
    if (geteuid() == 0 && seteuid(1) == 0) {
        CHECK_REFUSED(SPT_ERR_SYSTEM, "another user",
                      listen_at(another, "127.0.0.1", true, 0, &err));
        REQUIRE(seteuid(0) == 0);
    }
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "multicast", listen_at(another, "239.1.2.3", true, 0, &err));
    CHECK(listen_at(another, "127.0.0.1", true, 0, NULL) == SPT_OK);
    shared.port = 0;
    REQUIRE(listen_at(another, "127.0.0.1", false, 0, NULL) == SPT_OK);
    shared.port = spt_recv_stream_port(another);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "does not share it",
                  listen_at(receivers[0], "127.0.0.1", true, 0, &err));
}
