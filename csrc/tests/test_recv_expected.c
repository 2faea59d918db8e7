/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the test of packets that are read to where they are expected to belong: whatever comes
 * instead, heaps and account are those of the same packets one after the other.
 */
#include "check.h"
#include "make_packet.h"

#include "spead_tutorial/spt_recv.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { RUNS = 60, MOST_BYTES = 1 << 22, MESSAGE = 65507, PREFIX = 40, SECOND = 1000000000 };

static spt_thread_pool *pool;
static uint64_t state = 15;
static uint64_t wrong; /* payloads that were written to a place, and did not belong there */
static uint64_t in_place;

/* A number below n, which depends on nothing but what was asked before. */
static uint64_t draw(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

/* ---- Packets ---- */

/* All of a run, one after the other, and how many bytes each has. */
static uint8_t *all;
static size_t n_all, sizes[MOST_BYTES / PREFIX], n_packets;

static void make(uint64_t cnt, uint64_t length, uint64_t begin, uint64_t n)
{
    static made_packet made;
    static uint8_t payload[1 << 16];
    for (size_t i = 0; i < n; i++)
        payload[i] = (uint8_t)(1 + (cnt * 131 + (begin + i) * 7 + (begin + i) / 256) % 255);
    make_part(&made, cnt, (int64_t)length, begin, n);
    if (draw(100) == 0)
        make_add(&made, true, 0x2000, begin); /* an item of its own */
    make_end(&made, payload, n);
    if (n_all + made.size > MOST_BYTES)
        return;
    memcpy(all + n_all, made.bytes, made.size);
    n_all += made.size;
    sizes[n_packets++] = made.size;
}

/* Heaps of a size, in packets of a size: some of these are lost, or come again, or elsewhere. */
static void make_all(void)
{
    uint64_t each = 4096 + draw(5000), length = each * (20 + draw(50)) + draw(each);
    n_all = n_packets = 0;
    for (uint64_t cnt = 1; cnt <= 6; cnt++)
        for (uint64_t at = 0; at < length; at += each) {
            uint64_t what = draw(60), n = length - at < each ? length - at : each;
            if (what == 0)
                continue; /* lost */
            make(what == 1 ? cnt + 1 : cnt, length, at, n);
            if (what == 2)
                make(cnt, length, at, n); /* twice */
            else if (what == 3 && at >= 2 * each)
                at -= 2 * each; /* again */
            else if (what == 4)
                make(cnt, length, draw(length / each) * each, each); /* elsewhere */
        }
}

/* ---- Two ways ---- */

/* Memory of zeros, so that one sees what was written to it. */
static void *get_zeros(void *user, size_t size, const spt_received_packet *packet)
{
    (void)user, (void)packet;
    return calloc(1, size);
}

static void put_zeros(void *user, void *payload, size_t size)
{
    (void)user, (void)size;
    free(payload);
}

static spt_recv_stream *new_receiver(bool any_order)
{
    spt_recv_config config = spt_recv_config_default();
    config.heaps.memory = (spt_heap_memory){NULL, get_zeros, put_zeros};
    config.heaps.allow_out_of_order = any_order;
    config.ring_heaps = 1000;
    spt_recv_stream *stream = spt_recv_stream_create(pool, &config, NULL);
    REQUIRE(stream != NULL);
    return stream;
}

/* A socket that sends to a receiver. */
static int connect_to(spt_recv_stream *receiver)
{
    int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    REQUIRE(from >= 0 && to >= 0);
    REQUIRE(bind(to, (struct sockaddr *)&address, sizeof(address)) == 0);
    REQUIRE(getsockname(to, (struct sockaddr *)&address, &length) == 0);
    REQUIRE(connect(from, (struct sockaddr *)&address, sizeof(address)) == 0);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, to, NULL, NULL) == SPT_OK);
    close(to);
    return from;
}

/* How many packets, from one of them on, have its size, and fit a message; some messages are short.
 */
static size_t length_of_run(size_t first)
{
    size_t n = 1, most = MESSAGE / sizes[first];
    most = draw(8) == 0 ? 1 + draw(most) : most;
    while (n < most && first + n < n_packets && sizes[first + n] == sizes[first])
        n++;
    return n;
}

/* Send all, a message after the other has been received: none is lost. */
static void send_all(spt_recv_stream *receiver)
{
    int fd = connect_to(receiver);
    const uint8_t *at = all;
    spt_recv_stats stats;
    for (size_t first = 0, n; first < n_packets; first += n) {
        n = length_of_run(first);
        int segment = (int)sizes[first];
        REQUIRE(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0);
        REQUIRE(send(fd, at, n * sizes[first], 0) == (ssize_t)(n * sizes[first]));
        at += n * sizes[first];
        do {
            sched_yield();
            spt_recv_stream_stats(receiver, &stats);
        } while (stats.account.packets < first + n);
    }
    in_place += stats.sockets.in_place;
    CHECK_EQUAL(stats.sockets.datagrams, n_packets);
    CHECK_EQUAL(stats.sockets.bytes, n_all);
    CHECK_EQUAL(stats.sockets.dropped, 0);
    close(fd);
    spt_recv_stream_stop(receiver);
}

static void count_wrong(const spt_received_heap *heap)
{
    uint64_t begin = 0;
    for (size_t i = 0; i <= heap->n_ranges; i++) {
        uint64_t end = i < heap->n_ranges ? heap->ranges[i].begin : heap->length;
        while (begin < end && heap->payload[begin] == 0)
            begin++;
        wrong += begin < end;
        begin = i < heap->n_ranges ? heap->ranges[i].end : end;
    }
}

static void check_same(spt_recv_stream *a, spt_recv_stream *b)
{
    spt_received_heap *one, *other;
    while (spt_recv_stream_get(a, 0, &one) == SPT_OK) {
        REQUIRE(spt_recv_stream_get(b, SECOND, &other) == SPT_OK);
        REQUIRE(one->cnt == other->cnt && one->n_ranges == other->n_ranges);
        CHECK(one->state == other->state && one->packets == other->packets);
        CHECK_EQUAL(one->received_length, other->received_length);
        for (size_t i = 0; i < one->n_ranges; i++) {
            spt_range range = one->ranges[i];
            CHECK(memcmp(&range, &other->ranges[i], sizeof(range)) == 0);
            CHECK(memcmp(one->payload + range.begin, other->payload + range.begin,
                         (size_t)(range.end - range.begin)) == 0);
        }
        count_wrong(one);
        spt_recv_stream_return(a, one);
        spt_recv_stream_return(b, other);
    }
    CHECK_EQUAL(spt_recv_stream_get(b, SECOND, &other), SPT_DONE);
}

static void test_what_comes_instead_of_what_was_expected_becomes_what_it_does_otherwise(void)
{
    pool = spt_thread_pool_create(1, NULL, 0, NULL);
    all = malloc(MOST_BYTES);
    REQUIRE(pool != NULL && all != NULL);
    for (int run = 0; run < RUNS; run++) {
        bool any_order = draw(2);
        spt_recv_stream *sent = new_receiver(any_order), *apart = new_receiver(any_order);
        make_all();
        send_all(sent);
        REQUIRE(spt_recv_stream_add_memory(apart, all, n_all, NULL) == SPT_OK);
        check_same(sent, apart);
        spt_recv_stats a, b;
        spt_recv_stream_stats(sent, &a);
        spt_recv_stream_stats(apart, &b);
        a.account.searches = b.account.searches = 0;
        CHECK(memcmp(&a.account, &b.account, sizeof(a.account)) == 0);
        spt_recv_stream_destroy(sent);
        spt_recv_stream_destroy(apart);
    }
    CHECK(in_place > 1000);
    CHECK(wrong > 20);
    free(all);
    spt_thread_pool_destroy(pool);
}

int main(void)
{
    RUN(test_what_comes_instead_of_what_was_expected_becomes_what_it_does_otherwise);
    return check_done();
}
