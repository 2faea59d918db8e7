/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport_udp.c: packets over loopback, merged, refused and waited for. */
#define CHECK_AFTER end

#include "../src/transport.h"
#include "support.h"

#include <errno.h>
#include <poll.h>

enum { ROOM = 70000, MOST = 128 };

static uint8_t bytes[ROOM];
static int listening = -1, port;
static spti_transport *t; /* to there */
static spti_packet packets[MOST];

static void end(void)
{
    if (t != NULL)
        t->ops->destroy(t);
    t = NULL;
    end_fd(&listening);
}

static void begin_to(const char *host, int to, const spt_udp_config *config)
{
    spt_endpoint endpoint = {host, to};
    t = NEW(spti_transport_udp(&endpoint, 1, config, NULL));
}

static void begin_with(const spt_udp_config *config)
{
    end();
    listening = listen_on_loopback(&port, 1 << 22);
    begin_to("127.0.0.1", port, config);
}

static void begin(void)
{
    begin_with(UDP_CONFIG());
}

/* With a socket of the test's, which is closed: it has been duplicated. */
static void begin_from(int given)
{
    spt_endpoint endpoint = {"127.0.0.1", port};
    t = NEW(spti_transport_udp_socket(given, &endpoint, 1, UDP_CONFIG(), NULL));
    close(given);
}

/* Send n packets of the sizes, each of one piece, in one batch. */
static void send_sizes(const uint32_t *sizes, size_t n)
{
    struct iovec pieces[MOST];
    REQUIRE(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (struct iovec){bytes, sizes[i]};
        packets[i] = (spti_packet){.first_piece = (uint32_t)i, .n_pieces = 1, .size = sizes[i]};
    }
    spti_batch batch = {packets, pieces, .n = n};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK, batch.next, n);
}

static void expect_sizes(int fd, const uint32_t *sizes, size_t n)
{
    static uint8_t got[ROOM];
    for (size_t i = 0; i < n; i++)
        CHECK_EQUAL(recv(fd, got, sizeof(got), 0), sizes[i]);
    CHECK_EQUAL(recv(fd, got, sizeof(got), MSG_DONTWAIT), -1);
}

#define SIZES(...) (const uint32_t[]){__VA_ARGS__}, LENGTH(((uint32_t[]){__VA_ARGS__}))
#define SEND(...) send_sizes(SIZES(__VA_ARGS__))
#define EXPECT(...) expect_sizes(listening, SIZES(__VA_ARGS__))
#define SEND_AND_EXPECT(...) (SEND(__VA_ARGS__), EXPECT(__VA_ARGS__))

static void await_news(void)
{
    struct pollfd news = {.fd = t->fd};
    REQUIRE(poll(&news, 1, 10000) == 1);
    t->ops->release(t);
}

static void await_release(void)
{
    while (t->released != t->handed)
        await_news();
}

TEST(equal_packets_and_a_shorter_last_share_a_message)
{
    begin();
    SEND_AND_EXPECT(1000, 1000, 1000, 400, 400, 500); /* 500: longer than the one before */
    CHECK_EQUAL(t->stats.packets, 6, t->stats.bytes, 4300, t->stats.messages, 3);
    CHECK_EQUAL(t->stats.gso_messages, 1, t->stats.send_calls, 1);
}

TEST(small_packets_share_messages_as_many_as_the_kernel_takes)
{
    uint32_t sizes[MOST];
    for (size_t i = 0; i < MOST; i++)
        sizes[i] = 100;
    begin();
    for (int round = 0; round < 2; round++) {
        send_sizes(sizes, MOST);
        expect_sizes(listening, sizes, MOST);
    }
    CHECK(t->stats.messages == 2 || t->stats.messages == 4); /* 128, or 64 before Linux 6.9 */
    CHECK_EQUAL(t->stats.errors, 0, t->stats.send_calls, t->stats.messages == 2 ? 2 : 3);
}

TEST(without_gso_every_packet_is_a_message)
{
    begin_with(UDP_CONFIG(its.gso = false));
    SEND_AND_EXPECT(1000, 1000, 1000);
    CHECK_EQUAL(t->stats.messages, 3, t->stats.gso_messages, 0);
}

TEST(where_the_kernel_refuses_to_cut_packets_go_one_by_one)
{
    listening = listen_on_loopback(&port, 1 << 20);
    int given = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(setsockopt(given, SOL_SOCKET, SO_NO_CHECK, &(int){1}, sizeof(int)) == 0);
    begin_from(given);
    SEND_AND_EXPECT(1000, 1000, 1000, 1000);
    CHECK_EQUAL(t->stats.gso_messages, 0, t->stats.errors, 0);
    uint64_t calls = t->stats.send_calls;
    SEND(1000, 1000, 1000, 1000); /* it has learnt: no call is refused any more */
    CHECK_EQUAL(t->stats.send_calls, calls + 1);
}

TEST(the_largest_packet_goes_and_one_byte_more_fails_alone)
{
    begin();
    CHECK_EQUAL(t->max_packet_size, 65507);
    SEND(100, 65508, 65507, 100);
    EXPECT(100, 65507, 100);
    CHECK_EQUAL(packets[0].error, 0, packets[1].error, EMSGSIZE, packets[2].error, 0);
    CHECK_EQUAL(t->stats.errors, 1, t->stats.errors_by_errno[EMSGSIZE], 1);
}

TEST(no_message_holds_more_than_the_kernel_takes_whole)
{
    uint32_t sizes[64];
    for (int i = 0; i < 64; i++)
        sizes[i] = 9000;
    begin();
    send_sizes(sizes, 64);
    CHECK_EQUAL(t->stats.packets, 64, t->stats.messages, 10); /* seven of them to a message */
}

TEST(a_refused_connection_is_the_error_of_a_packet)
{
    begin_from(connect_to_nobody(&port));
    SEND(100);
    CHECK_EQUAL(packets[0].error, 0); /* the answer comes now */
    SEND(100);
    CHECK_EQUAL(packets[0].error, ECONNREFUSED, t->stats.errors_by_errno[ECONNREFUSED], 1);
}

TEST(a_sender_may_start_before_its_receiver)
{
    begin();
    end_fd(&listening);
    for (int i = 0; i < 3; i++) {
        SEND(100, 101, 102, 103);
        for (int j = 0; j < 4; j++)
            CHECK_EQUAL(packets[j].error, 0);
    }
    CHECK_EQUAL(t->stats.packets, 12, t->stats.errors, 0);
}

TEST(each_substream_has_its_endpoint)
{
    enum { N = 3 };
    int fds[N];
    spt_endpoint endpoints[N];
    for (int i = 0; i < N; i++) {
        endpoints[i].host = "127.0.0.1";
        fds[i] = listen_on_loopback(&endpoints[i].port, 1 << 20);
    }
    t = NEW(spti_transport_udp(endpoints, N, UDP_CONFIG(), NULL));
    CHECK_EQUAL(t->n_substreams, N);
    struct iovec pieces[2 * N];
    for (uint32_t i = 0; i < 2 * N; i++) { /* 0 0 1 1 2 2: of one size, but no run of four */
        uint32_t size = i < 4 ? 100 : 300;
        pieces[i] = (struct iovec){bytes, size};
        packets[i] = (spti_packet){i, .n_pieces = 1, .size = size, .substream = i / 2};
    }
    spti_batch batch = {packets, pieces, .n = 2 * N};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK, t->stats.messages, N);
    for (int i = 0; i < N; i++) {
        expect_sizes(fds[i], SIZES(i < 2 ? 100 : 300, i < 2 ? 100 : 300));
        close(fds[i]);
    }
}

TEST(packets_over_ipv6_may_be_longer)
{
    if (!has_ipv6()) {
        SKIP("no IPv6");
        return;
    }
    begin_to("::1", 9, UDP_CONFIG());
    SEND(1000, 1000, 65527);
    CHECK_EQUAL(t->max_packet_size, 65527, t->stats.errors, 0, t->stats.gso_messages, 1);
}

TEST(where_none_may_send_to_each_packet_fails)
{
    begin_to("127.255.255.255", 9, UDP_CONFIG());
    SEND(100, 100, 50);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(packets[i].error, EACCES);
    CHECK_EQUAL(t->stats.errors_by_errno[EACCES], 3, t->stats.packets, 0);
}

TEST(bad_endpoints_ttls_and_interfaces_are_refused_with_a_reason)
{
    static const spt_endpoint one = {"127.0.0.1", 8888}, many = {"239.255.88.88", 8888};
    const struct {
        spt_endpoint endpoints[2];
        size_t n;
        const char *words;
        int ttl;
        const char *interface;
    } cases[] = {
        {{one}, 0, "at least one endpoint", -1, NULL},
        {{{"127.0.0.1", 0}}, 1, "1 to 65535", -1, NULL},
        {{{"127.0.0.1", 65536}}, 1, "1 to 65535", -1, NULL},
        {{one, {"::1", 1}}, 2, "one address family", -1, NULL},
        {{one}, 1, "multicast", 1, NULL},
        {{many}, 1, "0 to 255", 256, NULL},
        {{many}, 1, "not an IPv4 address", 1, "nonsense"},
        {{{NULL, 8888}}, 1, "has no host", -1, NULL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const spt_udp_config *config =
            UDP_CONFIG(its.ttl = cases[i].ttl, its.interface_address = cases[i].interface);
        CHECK_REFUSED(SPT_ERR_ARGUMENT, cases[i].words,
                      spti_transport_udp(cases[i].endpoints, cases[i].n, config, &err));
    }
    begin_to(many.host, many.port, UDP_CONFIG(its.ttl = 2, its.interface_address = "127.0.0.1"));
    int ttl = 0;
    socklen_t length = sizeof(ttl);
    CHECK_EQUAL(getsockopt(t->fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, &length), 0, ttl, 2);
    for (int edge = 1; edge <= 65535; edge += 65534) {
        end();
        begin_to("127.0.0.1", edge, UDP_CONFIG());
    }
}

TEST(a_socket_of_the_callers_is_one_of_udp_and_open_and_not_for_sending_without_copies)
{
    spt_endpoint to = {"127.0.0.1", 8888};
    const spt_udp_config *config = UDP_CONFIG(), *without = UDP_CONFIG(its.zero_copy = true);
    OWN_FD int datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    OWN_FD int bytes_only = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "zero_copy",
                  spti_transport_udp_socket(datagrams, &to, 1, without, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "UDP",
                  spti_transport_udp_socket(bytes_only, &to, 1, config, &err));
    CHECK_REFUSED(SPT_ERR_SYSTEM, "Bad file descriptor",
                  spti_transport_udp_socket(1 << 20, &to, 1, config, &err));
    /* It is not replaced by a new one. */
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "closed", spti_transport_udp_socket(-1, &to, 1, config, &err));
}

/* ---- Without copying: loopback copies, and says so at once ----------------------------------- */

TEST(what_is_not_copied_is_held_until_the_kernel_says_so)
{
    begin_with(UDP_CONFIG(its.zero_copy = true));
    SEND_AND_EXPECT(9000, 9000, 9000, 9000, 9000, 9000, 5000);
    CHECK_EQUAL(t->stats.messages, 2); /* of 17 pages at most */
    CHECK_EQUAL(t->stats.zero_copy_messages, 2, t->stats.errors, 0);
    for (size_t i = 0; i < 7; i++)
        CHECK(spti_transport_holds(t, &packets[i]));
    await_release();
    for (size_t i = 0; i < 7; i++)
        CHECK(!spti_transport_holds(t, &packets[i]));
    CHECK_EQUAL(t->stats.zero_copy_copied, 2);
}

TEST(a_message_that_is_refused_late_has_a_number_of_its_own)
{
    begin_with(UDP_CONFIG(its.zero_copy = true));
    /* Without checksums the kernel does not cut messages, and says so when it has numbered them. */
    REQUIRE(setsockopt(t->fd, SOL_SOCKET, SO_NO_CHECK, &(int){1}, sizeof(int)) == 0);
    SEND_AND_EXPECT(20000, 20000, 20000);
    CHECK_EQUAL(t->stats.zero_copy_messages, 3, packets[0].message, 1, packets[2].message, 3);
    await_release();
    CHECK_EQUAL(t->handed, 4);
}

TEST(what_a_socket_held_is_free_when_that_has_been_closed)
{
    begin_with(UDP_CONFIG(its.zero_copy = true));
    SEND(20000);
    close(t->fd);
    t->ops->release(t);
    CHECK(!spti_transport_holds(t, &packets[0]));
    SEND(20000);
    CHECK_EQUAL(packets[0].error, EBADF);
    t->fd = -1;
}

TEST(what_was_given_up_on_does_not_release_a_later_message)
{
    enum { AROUND = 4096 }; /* numbers until a place is used again */
    begin_with(UDP_CONFIG(its.zero_copy = true));
    t->released = UINT32_MAX; /* one is out, of which there will be no news */
    SEND(20000);
    await_news();
    CHECK(spti_transport_holds(t, &packets[0]));
    t->released = t->handed = AROUND;
    SEND(20000);
    CHECK_EQUAL(packets[0].message, AROUND);
    t->ops->release(t);
    CHECK(spti_transport_holds(t, &packets[0]));
}

TEST(that_nobody_listens_is_not_taken_for_news)
{
    begin_with(UDP_CONFIG(its.zero_copy = true));
    end_fd(&listening);
    t->handed++; /* one is out */
    REQUIRE(send(t->fd, "x", 1, 0) == 1);
    await_news();
    CHECK_EQUAL(poll(&(struct pollfd){.fd = t->fd}, 1, 0), 0);
}

TEST(small_messages_and_packets_of_too_many_pieces_are_copied)
{
    enum { PIECES = 40, EACH = 1500 };
    struct iovec pieces[PIECES];
    begin_with(UDP_CONFIG(its.zero_copy = true));
    SEND_AND_EXPECT(9000, 1000, 2000);
    CHECK_EQUAL(t->stats.zero_copy_messages, 0);
    CHECK(!spti_transport_holds(t, &packets[0]));
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (struct iovec){bytes + i * EACH, EACH};
    packets[0] = (spti_packet){.n_pieces = PIECES, .size = PIECES * EACH};
    spti_batch batch = {packets, pieces, .n = 1};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    EXPECT(PIECES * EACH);
    CHECK_EQUAL(t->stats.errors, 0, t->stats.zero_copy_messages, 0);
}

TEST(what_is_copied_all_the_same_is_copied_at_once)
{
    begin_with(UDP_CONFIG(its.zero_copy = true));
    for (int i = 0; i < 100; i++) {
        SEND_AND_EXPECT(20000);
        await_release();
    }
    CHECK_EQUAL(t->stats.messages, 100);
    CHECK_EQUAL(t->stats.zero_copy_messages, 64, t->stats.zero_copy_copied, 64);
}
