/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport_udp.c: packets over loopback, merged, refused and waited for. */
#include "../src/transport.h"

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 70000 };

static uint8_t bytes[ROOM];

/* A socket that receives on loopback, with a small or a large buffer. */
static int listen_on_loopback(int *port, int buffer)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    struct timeval patience = {10, 0};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(fd >= 0);
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) == 0);
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
    REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static spti_transport *to_port(int port, spt_udp_config config)
{
    spt_endpoint endpoint = {"127.0.0.1", port};
    spt_error err = {0};
    spti_transport *t = spti_transport_udp(&endpoint, 1, &config, &err);
    if (t == NULL)
        printf("# %s\n", err.message);
    REQUIRE(t != NULL);
    return t;
}

static spti_transport *to_port_from(int given, int port)
{
    spt_endpoint endpoint = {"127.0.0.1", port};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    spti_transport *t = spti_transport_udp_socket(given, &endpoint, 1, &config, NULL);
    REQUIRE(t != NULL);
    return t;
}

/* Send n packets of the sizes, each of one piece, in one batch. */
static void send_sizes(spti_transport *t, const uint32_t *sizes, size_t n, spti_packet *packets)
{
    struct iovec pieces[128];
    REQUIRE(n <= 128);
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (struct iovec){bytes, sizes[i]};
        packets[i] = (spti_packet){.first_piece = (uint32_t)i, .n_pieces = 1, .size = sizes[i]};
    }
    spti_batch batch = {packets, pieces, .n = n};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    CHECK_EQUAL(batch.next, n);
}

static void expect_sizes(int fd, const uint32_t *sizes, size_t n)
{
    static uint8_t got[ROOM];
    for (size_t i = 0; i < n; i++)
        CHECK_EQUAL(recv(fd, got, sizeof(got), 0), sizes[i]);
    CHECK_EQUAL(recv(fd, got, sizeof(got), MSG_DONTWAIT), -1);
}

/* Take the news, until nothing is held. */
static void await_release(spti_transport *t)
{
    while (t->released != t->handed) {
        struct pollfd news = {.fd = t->fd};
        REQUIRE(poll(&news, 1, 10000) == 1);
        t->ops->release(t);
    }
}

static void test_equal_packets_and_a_shorter_last_share_a_message(void)
{
    static const uint32_t sizes[] = {1000, 1000, 1000, 400, 400, 500};
    spti_packet packets[6];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = to_port(port, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    send_sizes(t, sizes, 6, packets);
    expect_sizes(fd, sizes, 6);
    CHECK_EQUAL(t->stats.packets, 6);
    CHECK_EQUAL(t->stats.bytes, 4300);
    CHECK_EQUAL(t->stats.messages,
                3); /* 1000 1000 1000 400; 400; 500: longer than the one before */
    CHECK_EQUAL(t->stats.gso_messages, 1);
    CHECK_EQUAL(t->stats.send_calls, 1);
    t->ops->destroy(t);
    close(fd);
}

static void test_small_packets_share_messages_as_many_as_the_kernel_takes(void)
{
    enum { N = 128 };
    uint32_t sizes[N];
    spti_packet packets[N];
    for (size_t i = 0; i < N; i++)
        sizes[i] = 100;
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = to_port(port, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    for (int round = 0; round < 2; round++) {
        send_sizes(t, sizes, N, packets);
        expect_sizes(fd, sizes, N);
    }
    CHECK_EQUAL(t->stats.errors, 0);
    CHECK(t->stats.messages == 2 || t->stats.messages == 4); /* 128, or 64 before Linux 6.9 */
    CHECK_EQUAL(t->stats.send_calls, t->stats.messages == 2 ? 2 : 3);
    t->ops->destroy(t);
    close(fd);
}

static void test_without_gso_every_packet_is_a_message(void)
{
    static const uint32_t sizes[] = {1000, 1000, 1000};
    spti_packet packets[3];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    config.gso = false;
    spti_transport *t = to_port(port, config);
    send_sizes(t, sizes, 3, packets);
    expect_sizes(fd, sizes, 3);
    CHECK_EQUAL(t->stats.messages, 3);
    CHECK_EQUAL(t->stats.gso_messages, 0);
    t->ops->destroy(t);
    close(fd);
}

static void test_where_the_kernel_refuses_to_cut_packets_go_one_by_one(void)
{
    static const uint32_t sizes[] = {1000, 1000, 1000, 1000};
    spti_packet packets[4];
    int port, fd = listen_on_loopback(&port, 1 << 20), on = 1;
    int given = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(setsockopt(given, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)) == 0);
    spti_transport *t = to_port_from(given, port);
    close(given);
    send_sizes(t, sizes, 4, packets);
    expect_sizes(fd, sizes, 4);
    CHECK_EQUAL(t->stats.gso_messages, 0);
    CHECK_EQUAL(t->stats.errors, 0);
    uint64_t calls = t->stats.send_calls;
    send_sizes(t, sizes, 4, packets); /* it has learnt: no call is refused any more */
    CHECK_EQUAL(t->stats.send_calls, calls + 1);
    t->ops->destroy(t);
    close(fd);
}

static void test_the_largest_packet_goes_and_one_byte_more_fails_alone(void)
{
    static const uint32_t sizes[] = {100, 65508, 65507, 100};
    static const uint32_t expected[] = {100, 65507, 100};
    spti_packet packets[4];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = to_port(port, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    CHECK_EQUAL(t->max_packet_size, 65507);
    send_sizes(t, sizes, 4, packets);
    expect_sizes(fd, expected, 3);
    CHECK_EQUAL(packets[0].error, 0);
    CHECK_EQUAL(packets[1].error, EMSGSIZE);
    CHECK_EQUAL(packets[2].error, 0);
    CHECK_EQUAL(t->stats.errors, 1);
    CHECK_EQUAL(t->stats.errors_by_errno[EMSGSIZE], 1);
    t->ops->destroy(t);
    close(fd);
}

static void test_no_message_holds_more_than_the_kernel_takes_whole(void)
{
    uint32_t sizes[64];
    spti_packet packets[64];
    for (int i = 0; i < 64; i++)
        sizes[i] = 9000;
    int port, fd = listen_on_loopback(&port, 1 << 22);
    spti_transport *t = to_port(port, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    send_sizes(t, sizes, 64, packets);
    CHECK_EQUAL(t->stats.packets, 64);
    CHECK_EQUAL(t->stats.messages, 10); /* seven packets of 9000 bytes to a message */
    t->ops->destroy(t);
    close(fd);
}

static void test_a_refused_connection_is_the_error_of_a_packet(void)
{
    static const uint32_t sizes[] = {100};
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    spti_packet packet;
    int port, fd = listen_on_loopback(&port, 1 << 20);
    close(fd);
    address.sin_port = htons((uint16_t)port);
    int given = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(connect(given, (struct sockaddr *)&address, sizeof(address)) == 0);
    spti_transport *t = to_port_from(given, port);
    close(given);
    send_sizes(t, sizes, 1, &packet);
    CHECK_EQUAL(packet.error, 0); /* the answer comes now */
    send_sizes(t, sizes, 1, &packet);
    CHECK_EQUAL(packet.error, ECONNREFUSED);
    CHECK_EQUAL(t->stats.errors_by_errno[ECONNREFUSED], 1);
    t->ops->destroy(t);
}

static void test_a_sender_may_start_before_its_receiver(void)
{
    static const uint32_t sizes[] = {100, 101, 102, 103};
    spti_packet packets[4];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    close(fd);
    spti_transport *t = to_port(port, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    for (int i = 0; i < 3; i++) {
        send_sizes(t, sizes, 4, packets);
        for (int j = 0; j < 4; j++)
            CHECK_EQUAL(packets[j].error, 0);
    }
    CHECK_EQUAL(t->stats.packets, 12);
    CHECK_EQUAL(t->stats.errors, 0);
    t->ops->destroy(t);
}

static void test_each_substream_has_its_endpoint(void)
{
    enum { N = 3 };
    int fds[N];
    spt_endpoint endpoints[N];
    for (int i = 0; i < N; i++) {
        endpoints[i].host = "127.0.0.1";
        fds[i] = listen_on_loopback(&endpoints[i].port, 1 << 20);
    }
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    spti_transport *t = spti_transport_udp(endpoints, N, &config, NULL);
    REQUIRE(t != NULL);
    CHECK_EQUAL(t->n_substreams, N);
    struct iovec pieces[2 * N];
    spti_packet packets[2 * N];
    for (uint32_t i = 0; i < 2 * N; i++) { /* 0 0 1 1 2 2: of one size, but no run of four */
        pieces[i] = (struct iovec){bytes, 100 + 100 * (i / 2)};
        packets[i] = (spti_packet){.first_piece = i, .n_pieces = 1, .substream = i / 2};
        packets[i].size = (uint32_t)pieces[i].iov_len;
    }
    packets[2].size = packets[3].size = 100;
    pieces[2].iov_len = pieces[3].iov_len = 100;
    spti_batch batch = {packets, pieces, .n = 2 * N};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    CHECK_EQUAL(t->stats.messages, N);
    expect_sizes(fds[0], (const uint32_t[]){100, 100}, 2);
    expect_sizes(fds[1], (const uint32_t[]){100, 100}, 2);
    expect_sizes(fds[2], (const uint32_t[]){300, 300}, 2);
    t->ops->destroy(t);
    for (int i = 0; i < N; i++)
        close(fds[i]);
}

static void test_packets_go_over_ipv6_too(void)
{
    static const uint32_t sizes[] = {1000, 1000, 65527};
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t length = sizeof(address);
    int room = 1 << 20, fd = socket(AF_INET6, SOCK_DGRAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        SKIP("there is no IPv6 loopback");
        return;
    }
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    spt_endpoint endpoint = {"::1", ntohs(address.sin6_port)};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    spti_transport *t = spti_transport_udp(&endpoint, 1, &config, NULL);
    REQUIRE(t != NULL);
    CHECK_EQUAL(t->max_packet_size, 65527);
    spti_packet packets[3];
    send_sizes(t, sizes, 3, packets);
    expect_sizes(fd, sizes, 3);
    CHECK_EQUAL(t->stats.errors, 0);
    CHECK_EQUAL(t->stats.gso_messages, 1);
    t->ops->destroy(t);
    close(fd);
}

/* In a process of its own, which enters a network where there is nothing; its exit status. */
static int send_into_nothing(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return 77;
    spti_transport *t = to_port(9, (spt_udp_config)SPT_UDP_CONFIG_DEFAULT);
    struct iovec pieces[] = {{bytes, 100}, {bytes, 100}, {bytes, 50}};
    spti_packet packets[3];
    for (uint32_t i = 0; i < 3; i++)
        packets[i] =
            (spti_packet){.first_piece = i, .n_pieces = 1, .size = (uint32_t)pieces[i].iov_len};
    spti_batch batch = {packets, pieces, .n = 3};
    bool right = t->ops->send(t, &batch) == SPT_OK && batch.next == 3;
    for (int i = 0; i < 3; i++)
        right = right && packets[i].error == ENETUNREACH;
    right = right && t->stats.errors_by_errno[ENETUNREACH] == 3 && t->stats.packets == 0;
    t->ops->destroy(t);
    return right ? 0 : 1;
}

static void test_where_there_is_no_route_each_packet_fails(void)
{
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
        _exit(send_into_nothing());
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        SKIP("this system does not allow namespaces");
    else
        CHECK_EQUAL(WEXITSTATUS(status), 0);
}

static void test_bad_endpoints_are_refused_with_a_reason(void)
{
    static const struct {
        spt_endpoint endpoints[2];
        size_t n;
        const char *words;
    } cases[] = {
        {{{"127.0.0.1", 1}}, 0, "at least one endpoint"},
        {{{"127.0.0.1", 0}}, 1, "1 to 65535"},
        {{{"127.0.0.1", 65536}}, 1, "1 to 65535"},
        {{{"127.0.0.1", 1}, {"::1", 1}}, 2, "one address family"},
    };
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        spt_error err = {0};
        CHECK(spti_transport_udp(cases[i].endpoints, cases[i].n, &config, &err) == NULL);
        CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
        CHECK(strstr(err.message, cases[i].words) != NULL);
    }
}

static void test_ttl_and_interface_are_checked(void)
{
    spt_endpoint unicast = {"127.0.0.1", 8888}, multicast = {"239.255.88.88", 8888};
    spt_error err = {0};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    config.ttl = 1;
    CHECK(spti_transport_udp(&unicast, 1, &config, &err) == NULL);
    CHECK(strstr(err.message, "multicast") != NULL);
    config.ttl = 256;
    CHECK(spti_transport_udp(&multicast, 1, &config, &err) == NULL);
    CHECK(strstr(err.message, "0 to 255") != NULL);
    config.ttl = 1;
    config.interface_address = "nonsense";
    CHECK(spti_transport_udp(&multicast, 1, &config, &err) == NULL);
    CHECK(strstr(err.message, "not an IPv4 address") != NULL);
    config.interface_address = "127.0.0.1";
    spti_transport *t = spti_transport_udp(&multicast, 1, &config, &err);
    REQUIRE(t != NULL);
    int ttl = 0;
    socklen_t length = sizeof(ttl);
    CHECK_EQUAL(getsockopt(t->fd, IPPROTO_IP, IP_MULTICAST_TTL, &ttl, &length), 0);
    CHECK_EQUAL(ttl, 1);
    t->ops->destroy(t);
}

static void test_a_socket_that_is_not_udp_is_refused(void)
{
    spt_endpoint endpoint = {"127.0.0.1", 8888};
    spt_error err = {0};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    int given = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(spti_transport_udp_socket(given, &endpoint, 1, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
    close(given);
    CHECK(spti_transport_udp_socket(given, &endpoint, 1, &config, &err) == NULL);
    CHECK_EQUAL(err.sys_errno, EBADF);
}

static void test_a_socket_that_is_none_is_not_replaced_by_a_new_one(void)
{
    spt_endpoint endpoint = {"127.0.0.1", 8888};
    spt_error err = {0};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    CHECK(spti_transport_udp_socket(-1, &endpoint, 1, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
    CHECK(strstr(err.message, "closed") != NULL);
}

/* ---- Without copying: loopback copies, and says so at once ---- */

static spti_transport *without_copying(int port)
{
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    config.zero_copy = true;
    return to_port(port, config);
}

static void test_what_is_not_copied_is_held_until_the_kernel_says_so(void)
{
    static const uint32_t sizes[] = {9000, 9000, 9000, 9000, 9000, 9000, 5000};
    spti_packet packets[7];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    send_sizes(t, sizes, 7, packets);
    expect_sizes(fd, sizes, 7);
    CHECK_EQUAL(t->stats.messages, 2); /* of 17 pages at most */
    CHECK_EQUAL(t->stats.zero_copy_messages, 2);
    CHECK_EQUAL(t->stats.errors, 0);
    for (size_t i = 0; i < 7; i++)
        CHECK(spti_transport_holds(t, &packets[i]));
    await_release(t);
    for (size_t i = 0; i < 7; i++)
        CHECK(!spti_transport_holds(t, &packets[i]));
    CHECK_EQUAL(t->stats.zero_copy_copied, 2);
    t->ops->destroy(t);
    close(fd);
}

static void test_a_message_that_is_refused_late_has_a_number_of_its_own(void)
{
    static const uint32_t sizes[] = {20000, 20000, 20000};
    spti_packet packets[3];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    /* Without checksums the kernel does not cut messages, and says so when it has numbered them. */
    REQUIRE(setsockopt(t->fd, SOL_SOCKET, SO_NO_CHECK, &(int){1}, sizeof(int)) == 0);
    send_sizes(t, sizes, 3, packets);
    expect_sizes(fd, sizes, 3);
    CHECK_EQUAL(t->stats.zero_copy_messages, 3);
    CHECK_EQUAL(packets[0].message, 1);
    CHECK_EQUAL(packets[2].message, 3);
    await_release(t);
    CHECK_EQUAL(t->handed, 4);
    t->ops->destroy(t);
    close(fd);
}

static void test_what_was_given_up_on_does_not_release_a_later_message(void)
{
    static const uint32_t sizes[] = {20000};
    enum { AROUND = 4096 }; /* numbers until a place is used again */
    spti_packet packet;
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    t->released = UINT32_MAX; /* one is out, of which there will be no news */
    send_sizes(t, sizes, 1, &packet);
    struct pollfd news = {.fd = t->fd};
    REQUIRE(poll(&news, 1, 10000) == 1);
    t->ops->release(t);
    CHECK(spti_transport_holds(t, &packet));
    t->released = t->handed = AROUND;
    send_sizes(t, sizes, 1, &packet);
    CHECK_EQUAL(packet.message, AROUND);
    t->ops->release(t);
    CHECK(spti_transport_holds(t, &packet));
    t->ops->destroy(t);
    close(fd);
}

static void test_that_nobody_listens_is_not_taken_for_news(void)
{
    int port, fd = listen_on_loopback(&port, 1 << 20);
    close(fd);
    spti_transport *t = without_copying(port);
    t->handed++; /* one is out */
    REQUIRE(send(t->fd, "x", 1, 0) == 1);
    struct pollfd news = {.fd = t->fd};
    REQUIRE(poll(&news, 1, 10000) == 1);
    t->ops->release(t);
    CHECK_EQUAL(poll(&news, 1, 0), 0);
    t->ops->destroy(t);
}

static void test_small_messages_are_copied(void)
{
    static const uint32_t sizes[] = {9000, 1000, 2000};
    spti_packet packets[3];
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    send_sizes(t, sizes, 3, packets);
    expect_sizes(fd, sizes, 3);
    CHECK_EQUAL(t->stats.zero_copy_messages, 0);
    CHECK(!spti_transport_holds(t, &packets[0]));
    t->ops->destroy(t);
    close(fd);
}

static void test_what_is_copied_all_the_same_is_copied_at_once(void)
{
    static const uint32_t size = 20000;
    enum { TIMES = 100 };
    spti_packet packet;
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    for (int i = 0; i < TIMES; i++) {
        send_sizes(t, &size, 1, &packet);
        expect_sizes(fd, &size, 1);
        await_release(t);
    }
    CHECK_EQUAL(t->stats.messages, TIMES);
    CHECK_EQUAL(t->stats.zero_copy_messages, 64);
    CHECK_EQUAL(t->stats.zero_copy_copied, 64);
    t->ops->destroy(t);
    close(fd);
}

static void test_a_packet_of_too_many_pieces_is_copied(void)
{
    enum { PIECES = 40, LENGTH = 1500 };
    struct iovec pieces[PIECES];
    spti_packet packet = {.n_pieces = PIECES, .size = PIECES * LENGTH};
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (struct iovec){bytes + i * LENGTH, LENGTH};
    int port, fd = listen_on_loopback(&port, 1 << 20);
    spti_transport *t = without_copying(port);
    spti_batch batch = {&packet, pieces, .n = 1};
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    expect_sizes(fd, &packet.size, 1);
    CHECK_EQUAL(t->stats.errors, 0);
    CHECK_EQUAL(t->stats.zero_copy_messages, 0);
    t->ops->destroy(t);
    close(fd);
}

static void test_the_callers_socket_is_not_for_sending_without_copies(void)
{
    spt_endpoint endpoint = {"127.0.0.1", 8888};
    spt_udp_config config = SPT_UDP_CONFIG_DEFAULT;
    config.zero_copy = true;
    spt_error err = {0};
    int given = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(spti_transport_udp_socket(given, &endpoint, 1, &config, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
    close(given);
}

int main(void)
{
    RUN(test_equal_packets_and_a_shorter_last_share_a_message);
    RUN(test_small_packets_share_messages_as_many_as_the_kernel_takes);
    RUN(test_without_gso_every_packet_is_a_message);
    RUN(test_where_the_kernel_refuses_to_cut_packets_go_one_by_one);
    RUN(test_the_largest_packet_goes_and_one_byte_more_fails_alone);
    RUN(test_no_message_holds_more_than_the_kernel_takes_whole);
    RUN(test_a_refused_connection_is_the_error_of_a_packet);
    RUN(test_a_sender_may_start_before_its_receiver);
    RUN(test_each_substream_has_its_endpoint);
    RUN(test_packets_go_over_ipv6_too);
    RUN(test_where_there_is_no_route_each_packet_fails);
    RUN(test_bad_endpoints_are_refused_with_a_reason);
    RUN(test_ttl_and_interface_are_checked);
    RUN(test_a_socket_that_is_not_udp_is_refused);
    RUN(test_a_socket_that_is_none_is_not_replaced_by_a_new_one);
    RUN(test_what_is_not_copied_is_held_until_the_kernel_says_so);
    RUN(test_a_message_that_is_refused_late_has_a_number_of_its_own);
    RUN(test_what_was_given_up_on_does_not_release_a_later_message);
    RUN(test_that_nobody_listens_is_not_taken_for_news);
    RUN(test_small_messages_are_copied);
    RUN(test_what_is_copied_all_the_same_is_copied_at_once);
    RUN(test_a_packet_of_too_many_pieces_is_copied);
    RUN(test_the_callers_socket_is_not_for_sending_without_copies);
    return check_done();
}
