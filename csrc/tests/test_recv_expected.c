/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of packets that are read to where they are expected to belong: whatever comes
 * instead, heaps and account are those of the same packets one after the other.
 */
#include "support.h"

#include <netinet/udp.h>
#include <sched.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { RUNS = 60, MESSAGE = 65507 };

static uint64_t state = 15;
static uint64_t any(uint64_t n)
{
    return draw(&state, n);
}

/* ---- Packets --------------------------------------------------------------------------------- */

static made_series all;

/* What all heaps have, and the payload of their packets. */
static uint64_t length, each;

static void make(uint64_t cnt, uint64_t begin, uint64_t n, bool has_item)
{
    static made_packet made;
    make_part(&made, cnt, (int64_t)length, begin, n);
    if (has_item)
        make_add(&made, true, 0x2000, begin);
    make_end_of(&made, cnt, begin, n);
    series_add(&all, &made);
}

/* Heaps of a size, in packets of a size: some of these are lost, or come again, or elsewhere. */
static void make_all(void)
{
    each = 4096 + any(5000);
    length = each * (20 + any(50)) + any(each);
    all.n = 0;
    for (uint64_t cnt = 1; cnt <= 6; cnt++)
        for (uint64_t at = 0; at < length; at += each) {
            uint64_t what = any(60), n = length - at < each ? length - at : each;
            if (what == 0)
                continue; /* lost */
            make(what == 1 ? cnt + 1 : cnt, at, n, any(100) == 0);
            if (what == 2)
                make(cnt, at, n, false); /* twice */
            else if (what == 3 && at >= 2 * each)
                at -= 2 * each; /* again */
            else if (what == 4)
                make(cnt, any(length / each) * each, each, false); /* elsewhere */
        }
}

/* ---- Sockets --------------------------------------------------------------------------------- */

/* A socket that is received from, in runs where they are sent as such, and one that sends to it. */
static int new_sockets(int *to)
{
    int port;
    *to = listen_on_loopback(&port, 212992);
    REQUIRE(setsockopt(*to, IPPROTO_UDP, UDP_GRO, &(int){1}, sizeof(int)) == 0);
    return connect_to_loopback(port);
}

static int connect_to(spt_recv_stream *receiver)
{
    int to, from = new_sockets(&to);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, to, NULL, NULL) == SPT_OK);
    close(to);
    return from;
}

/* Send packets, from one on, as one message. */
static void send_run(int from, size_t first, size_t n)
{
    size_t size = n * series_size(&all, first);
    int segment = (int)series_size(&all, first);
    REQUIRE(setsockopt(from, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0);
    REQUIRE(send(from, all.bytes + all.at[first], size, 0) == (ssize_t)size);
}

static spt_recv_stats wait_for(spt_recv_stream *receiver, uint64_t packets)
{
    while (stats_of(receiver).account.packets < packets)
        sched_yield();
    return stats_of(receiver);
}

/* Send all, a message after the other has been received: none is lost. Some messages are short.
 * Returns how many packets were read to their places. */
static uint64_t send_all(spt_recv_stream *receiver)
{
    int fd = connect_to(receiver);
    spt_recv_stats stats = {0};
    for (size_t first = 0, n; first < all.n; first += n) {
        size_t most = MESSAGE / series_size(&all, first);
        n = series_run(&all, first, any(8) == 0 ? 1 + any(most) : most);
        send_run(fd, first, n);
        stats = wait_for(receiver, first + n);
    }
    CHECK_EQUAL(stats.sockets.datagrams, all.n, stats.sockets.bytes, all.at[all.n]);
    CHECK_EQUAL(stats.sockets.dropped, 0);
    close(fd);
    spt_recv_stream_stop(receiver);
    return stats.sockets.in_place;
}

static void check_same_account(spt_recv_stream *sent, spt_recv_stream *apart)
{
    spt_account a = stats_of(sent).account, b = stats_of(apart).account;
    a.searches = b.searches = 0;
    CHECK_BYTES(&a, &b, sizeof(a));
}

/* Both hand out the same heaps, which went the same way, with the same bytes where some have
 * arrived. */
static void check_same_heaps(spt_recv_stream *sent, spt_recv_stream *apart)
{
    spt_received_heap *one, *other;
    while (spt_recv_stream_get(sent, LONG_NS, &one) == SPT_OK) {
        other = get_heap_of(apart);
        REQUIRE(one->cnt == other->cnt && one->n_ranges == other->n_ranges);
        CHECK_EQUAL(one->state, other->state, one->packets, other->packets);
        CHECK_EQUAL(one->received_length, other->received_length);
        for (size_t i = 0; i < one->n_ranges; i++) {
            uint64_t begin = one->ranges[i].begin, end = one->ranges[i].end;
            CHECK(begin == other->ranges[i].begin && end == other->ranges[i].end);
            CHECK(memcmp(one->payload + begin, other->payload + begin, end - begin) == 0);
        }
        spt_recv_stream_return(sent, one);
        spt_recv_stream_return(apart, other);
    }
    CHECK_EQUAL(get_none_of(apart, LONG_NS), SPT_DONE);
}

TEST(heaps_are_those_of_the_same_packets_one_after_the_other)
{
    OWN(spt_thread_pool) pool = new_pool(1);
    uint64_t in_place = 0;
    for (int run = 0; run < RUNS; run++) {
        const spt_recv_config *config =
            RECV_CONFIG(its.heaps.allow_out_of_order = any(2), its.ring_heaps = 100);
        OWN(spt_recv_stream) sent = NEW(spt_recv_stream_create(pool, config, NULL));
        OWN(spt_recv_stream) apart = NEW(spt_recv_stream_create(pool, config, NULL));
        make_all();
        in_place += send_all(sent);
        REQUIRE(spt_recv_stream_add_memory(apart, all.bytes, all.at[all.n], NULL) == SPT_OK);
        check_same_heaps(sent, apart);
        check_same_account(sent, apart);
    }
    CHECK(in_place > 1000);
}

/* Send a part of a heap, from one packet up to another, as one message, and have it received. */
static void send_part(int from, spt_recv_stream *receiver, uint64_t cnt, uint64_t at, uint64_t end)
{
    uint64_t before = stats_of(receiver).account.packets;
    all.n = 0;
    for (; at < end; at++)
        make(cnt, at * each, each, false);
    send_run(from, 0, all.n);
    wait_for(receiver, before + all.n);
}

enum { IN_HEAP = 20 }; /* packets; in the only chunk there is one of odd count, and of even one */

static void place(spt_place_data *data, size_t size, void *user)
{
    (void)size, (void)user;
    data->chunk_id = 0;
    data->heap_index = (uint64_t)data->items[0] % 2 * IN_HEAP;
    data->heap_offset = (uint64_t)data->items[0] % 2 * length;
}

TEST(what_is_marked_is_not_written_over_by_what_was_not_expected)
{
    OWN(spt_thread_pool) pool = new_pool(1);
    each = 5000;
    length = IN_HEAP * each;
    for (size_t marked = 0; marked <= 2; marked++) { /* packets that a mark is of; 0: a heap's */
        OWN(spt_chunk_ring) full = NEW(spt_chunk_ring_create(1, NULL));
        OWN(spt_chunk_ring) empty = NEW(spt_chunk_ring_create(1, NULL));
        spt_chunk chunk = make_chunk(2 * length, 2 * IN_HEAP, 1);
        put_chunk(empty, &chunk);
        const spt_recv_config *config = RECV_CONFIG(its.heaps.allow_out_of_order = true);
        spt_chunk_config how = {
            .place = place,
            .items = &(uint64_t){SPT_ID_HEAP_CNT},
            .n_items = 1,
            .max_chunks = 1,
            .packet_payload_size = marked * each,
            .data_ring = full,
            .free_ring = empty,
        };
        OWN(spt_recv_stream) stream = NEW(spt_recv_stream_create_chunks(pool, config, &how, NULL));
        OWN_FD int from = connect_to(stream);
        send_part(from, stream, 1, 0, 10);
        send_part(from, stream, 1, 10, 20);
        send_part(from, stream, 3, 0, 10); /* belongs where heap 1 is */
        send_part(from, stream, 2, 0, 10); /* and not what follows */
        spt_recv_stream_stop(stream);
        REQUIRE(get_chunk_of(full) == &chunk);
        const uint8_t *data = (uint8_t *)chunk.data + length;
        for (uint64_t i = 0; i < length; i++)
            REQUIRE(data[i] == byte_of(i < length / 2 ? 3 : 1, i));
        for (size_t i = 0; i < IN_HEAP; i++)
            CHECK_EQUAL(chunk.present[IN_HEAP + i], i < (marked == 0 ? 1 : IN_HEAP / marked));
        END(spt_recv_stream, stream);
        free_chunk(&chunk);
    }
}

TEST(of_senders_that_take_turns_several_messages_are_read_at_a_time)
{
    enum { MESSAGES = 16, PACKETS = 4 };
    OWN(spt_thread_pool) pool = new_pool(1);
    OWN_FD int to = -1;
    OWN_FD int from = new_sockets(&to);
    each = 4100;
    length = MESSAGES * PACKETS * each;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        all.n = 0;
        for (uint64_t k = 0; k < PACKETS; k++)
            make(1 + i % 2, (i / 2 * PACKETS + k) * each, each, false);
        send_run(from, 0, PACKETS);
    }
    OWN(spt_recv_stream) receiver = new_receiver(pool);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, to, NULL, NULL) == SPT_OK);
    spt_receive_stats sockets = wait_for(receiver, MESSAGES * PACKETS).sockets;
    CHECK_EQUAL(sockets.messages, MESSAGES);
    CHECK(sockets.calls <= MESSAGES / 2);
}

TEST(an_empty_datagram_in_place_of_an_expected_packet_is_counted)
{
    enum { ROUNDS = 20, PACKETS = 8 };
    OWN(spt_thread_pool) pool = new_pool(1);
    OWN(spt_recv_stream) receiver = new_receiver(pool);
    OWN_FD int from = connect_to(receiver);
    each = 5000;
    length = (ROUNDS * PACKETS + 1) * each;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        send_part(from, receiver, 1, i * PACKETS, i * PACKETS + PACKETS / 2);
        send_part(from, receiver, 1, i * PACKETS + PACKETS / 2, (i + 1) * PACKETS);
        REQUIRE(send(from, NULL, 0, 0) == 0);
        while (stats_of(receiver).sockets.messages < 3 * (i + 1))
            sched_yield();
    }
    spt_recv_stream_stop(receiver);
    spt_recv_stats stats = stats_of(receiver);
    CHECK(stats.sockets.in_place > 0);
    CHECK_EQUAL(stats.sockets.datagrams, ROUNDS * (PACKETS + 1));
    CHECK_EQUAL(stats.account.packets + stats.after_end, ROUNDS * (PACKETS + 1));
    CHECK_EQUAL(stats.account.fates[SPT_PLACED], ROUNDS * PACKETS);
}
