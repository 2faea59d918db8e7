/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of packets that are read to where they are expected to belong: whatever comes
 * instead, chunks and account are those of the same packets one after the other.
 */
#define CHECK_AFTER end

#include "make_packet.h"
#include "support.h"

#include <netinet/udp.h>
#include <sched.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
    RUNS = 60,
    MESSAGE = 65507,
    CHUNKS = 4,
    LONGEST = 640 << 10, /* heap; there are two in a chunk, */
    MARKS = 150,         /* of so many packets each */
};

static spt_thread_pool *pool;
static uint64_t state = 15;
static uint64_t wrong; /* payloads that were written to a place, and did not belong there */
static uint64_t in_place;

static void end(void)
{
    END(spt_thread_pool, pool);
}

static void begin(void)
{
    pool = new_pool(1);
    in_place = wrong = 0;
}

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

/* Send all, a message after the other has been received: none is lost. Some messages are short. */
static void send_all(spt_recv_stream *receiver)
{
    int fd = connect_to(receiver);
    spt_recv_stats stats = {0};
    for (size_t first = 0, n; first < all.n; first += n) {
        size_t most = MESSAGE / series_size(&all, first);
        n = series_run(&all, first, any(8) == 0 ? 1 + any(most) : most);
        send_run(fd, first, n);
        stats = wait_for(receiver, first + n);
    }
    in_place += stats.sockets.in_place;
    CHECK_EQUAL(stats.sockets.datagrams, all.n, stats.sockets.bytes, all.at[all.n]);
    CHECK_EQUAL(stats.sockets.dropped, 0);
    close(fd);
    spt_recv_stream_stop(receiver);
}

static void check_same_account(spt_recv_stream *sent, spt_recv_stream *apart)
{
    spt_account a = stats_of(sent).account, b = stats_of(apart).account;
    a.searches = b.searches = 0;
    CHECK_BYTES(&a, &b, sizeof(a));
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

/* A stream that fills chunks of two heaps each. */
typedef struct filler {
    spt_recv_stream *stream;
    spt_chunk_ring *full, *empty;
    spt_chunk chunks[CHUNKS];
    bool shared; /* all chunks are one, and every second heap has the same place in it */
} filler;

#define FILLER __attribute__((cleanup(end_filling))) filler

static void place(spt_place_data *data, size_t size, void *user)
{
    const filler *f = user;
    uint64_t n = (uint64_t)data->items[0] - 1;
    (void)size;
    data->chunk_id = f->shared ? 0 : (int64_t)(n / 2);
    data->heap_index = n % 2 * MARKS;
    data->heap_offset = n % 2 * LONGEST;
}

static void end_filling(filler *f)
{
    spt_recv_stream_destroy(f->stream);
    spt_chunk_ring_destroy(f->full);
    spt_chunk_ring_destroy(f->empty);
    for (int i = 0; i < CHUNKS; i++)
        free_chunk(&f->chunks[i]);
}

static void begin_filling(filler *f, size_t packet, bool shared, bool any_order)
{
    *f = (filler){.shared = shared};
    f->full = NEW(spt_chunk_ring_create(CHUNKS, NULL));
    f->empty = NEW(spt_chunk_ring_create(CHUNKS, NULL));
    for (int i = 0; i < CHUNKS; i++) {
        f->chunks[i] = make_chunk(2 * LONGEST, 2 * MARKS, 1);
        put_chunk(f->empty, &f->chunks[i]);
    }
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.allow_out_of_order = any_order;
    spt_chunk_config how = {
        .place = place,
        .place_user = f,
        .items = &(uint64_t){SPT_ID_HEAP_CNT},
        .n_items = 1,
        .max_chunks = 1 + any(2),
        .packet_payload_size = packet,
        .data_ring = f->full,
        .free_ring = f->empty,
    };
    f->stream = NEW(spt_recv_stream_create_chunks(pool, &config, &how, NULL));
}

/* Whether bytes of a heap are said to be there: all that a mark stands for. */
static bool is_present(const uint8_t *marks, size_t packet, uint64_t begin)
{
    return marks[packet == 0 ? 0 : begin / packet];
}

/* Where marks say of a heap that it is there, it is the same; elsewhere anything may be. */
static void check_same_in_chunk(const spt_chunk *one, const spt_chunk *other, int which,
                                size_t packet)
{
    const uint8_t *a = (uint8_t *)one->data + which * LONGEST;
    const uint8_t *b = (uint8_t *)other->data + which * LONGEST;
    for (uint64_t begin = 0; begin < length; begin += each) {
        uint64_t n = length - begin < each ? length - begin : each;
        if (is_present(one->present + which * MARKS, packet, begin))
            CHECK(memcmp(a + begin, b + begin, n) == 0);
        else
            wrong += a[begin] != 0 && a[begin] != b[begin];
    }
}

static void check_same_chunks(filler *sent, filler *apart, size_t packet)
{
    spt_chunk *one, *other;
    while (spt_chunk_ring_get(sent->full, 0, &one) == SPT_OK) {
        REQUIRE(spt_chunk_ring_get(apart->full, -1, &other) == SPT_OK);
        CHECK_EQUAL(one->chunk_id, other->chunk_id);
        CHECK(memcmp(one->present, other->present, one->present_size) == 0);
        for (int which = 0; which < 2 && packet <= each; which++)
            check_same_in_chunk(one, other, which, packet);
    }
    CHECK(spt_chunk_ring_get(apart->full, -1, &other) != SPT_OK);
}

TEST(chunks_are_filled_as_with_the_same_packets_one_after_the_other)
{
    begin();
    for (int run = 0; run < RUNS; run++) {
        FILLER sent, apart;
        bool any_order = any(2);
        make_all();
        size_t packet = (size_t[]){0, each, each, each / 2 + 1, 2 * each}[any(5)];
        uint64_t before = state;
        begin_filling(&sent, packet, false, any_order);
        state = before; /* so that both have as many chunks at a time */
        begin_filling(&apart, packet, false, any_order);
        send_all(sent.stream);
        REQUIRE(spt_recv_stream_add_memory(apart.stream, all.bytes, all.at[all.n], NULL) == SPT_OK);
        check_same_chunks(&sent, &apart, packet);
        check_same_account(sent.stream, apart.stream);
    }
    CHECK(in_place > 1000 && wrong > 20);
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

TEST(what_is_marked_is_not_written_over_by_what_was_not_expected)
{
    begin();
    each = 5000;
    length = 20 * each;
    for (int marked_by_packet = 0; marked_by_packet < 2; marked_by_packet++) {
        FILLER f;
        begin_filling(&f, marked_by_packet ? each : 0, true, true);
        OWN_FD int from = connect_to(f.stream);
        send_part(from, f.stream, 1, 0, 10);
        send_part(from, f.stream, 1, 10, 20);
        send_part(from, f.stream, 3, 0, 10); /* belongs where heap 1 is */
        send_part(from, f.stream, 2, 0, 10); /* and not what follows */
        spt_recv_stream_stop(f.stream);
        spt_chunk *chunk;
        REQUIRE(spt_chunk_ring_get(f.full, 0, &chunk) == SPT_OK);
        const uint8_t *data = chunk->data;
        for (uint64_t i = 0; i < length; i++)
            REQUIRE(data[i] == byte_of(i < length / 2 ? 3 : 1, i));
    }
}

/* ---- Heaps ----------------------------------------------------------------------------------- */

TEST(of_senders_that_take_turns_several_messages_are_read_at_a_time)
{
    enum { MESSAGES = 16, PACKETS = 4 };
    begin();
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
    begin();
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
