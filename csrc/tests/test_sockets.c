/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns one promise: whatever sockets and threads are refused, and whichever system call fails,
 * there is one clear error or none, and nothing is leaked, waited for in vain or missing from the
 * accounts. It is linked so that it stands for system calls (see csrc/tests/meson.build).
 */
#include "support.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- Calls that fail ------------------------------------------------------------------------- */

enum { SHORT = 0 }; /* for an errno: of several messages only the first is taken */

static int failing_errno;         /* set while no other thread calls */
static _Atomic long failing_left; /* calls until the one that fails */

static void fail_call(long n, int error)
{
    failing_errno = error;
    failing_left = n;
}

static bool fails(void)
{
    return --failing_left == 0;
}

#define FAILING(...) FAILING_IF(true, __VA_ARGS__)
#define FAILING_IF(can, name, parameters, arguments, failed)                                       \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        bool now = (can) && fails();                                                               \
        errno = now ? failing_errno : errno;                                                       \
        return now && failing_errno != SHORT ? (failed) : __real_##name arguments;                 \
    }
FAILING(socket, (int family, int type, int protocol), (family, type, protocol), -1)
FAILING(bind, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), -1)
FAILING(connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), -1)
FAILING(setsockopt, (int fd, int level, int option, const void *value, socklen_t n),
        (fd, level, option, value, n), -1)
FAILING(getsockopt, (int fd, int level, int option, void *value, socklen_t *n),
        (fd, level, option, value, n), -1)
/* What is watched can always be let go: else events would name tasks that are freed. */
FAILING_IF(how != EPOLL_CTL_DEL, epoll_ctl, (int fd, int how, int of, struct epoll_event *event),
           (fd, how, of, event), -1)
FAILING(epoll_wait, (int fd, struct epoll_event *events, int n, int ms), (fd, events, n, ms), -1)
FAILING(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *left, const sigset_t *mask),
        (fds, n, left, mask), -1)
FAILING(sendmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags),
        (fd, messages, now ? 1 : n, flags), -1)
FAILING(recvmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *t),
        (fd, messages, now ? 1 : n, flags, t), -1)
FAILING(pthread_create, (pthread_t * to, const pthread_attr_t *how, void *(*run)(void *), void *of),
        (to, how, run, of), failing_errno)

/* ---- A sender and a receiver ----------------------------------------------------------------- */

enum { HEAPS = 20, SIZE = 30000, PACKET = 1400, PACKETS = (SIZE + PACKET - 1) / (PACKET - 48) };

static const char *host, *interface;
static unsigned interface_index;
static bool threads, zero_copy, forks; /* threads: the sender has those of a pool, too */
static spt_thread_pool *pool;
static spt_recv_stream *receiver;
static spt_stream *sender;
static spt_error err;

static void begin(void)
{
    fail_call(0, 0);
    host = "127.0.0.1";
    interface = NULL;
    interface_index = 0;
    threads = zero_copy = forks = false;
}

/* What could not be made says why. */
static bool made(bool it)
{
    if (!it) {
        CHECK_EQUAL(err.status, SPT_ERR_SYSTEM, err.sys_errno, failing_errno);
        CHECK_WORDS(err.message, strerror(failing_errno));
    }
    return it;
}

static bool make_receiver(void)
{
    spt_endpoint any = {host, 0};
    const spt_recv_config *config = RECV_CONFIG(its.ring_heaps = HEAPS);
    const spt_receive_config *how =
        RECEIVE_CONFIG(its.interface_address = interface, its.interface_index = interface_index);
    return made((pool = spt_thread_pool_create(1, NULL, 0, &err)) != NULL) &&
           made((receiver = spt_recv_stream_create(pool, config, &err)) != NULL) &&
           made(spt_recv_stream_add_udp(receiver, &any, how, &err) == SPT_OK);
}

static bool make_sender(void)
{
    spt_endpoint there = {host, spt_recv_stream_port(receiver)};
    const spt_stream_config *config =
        STREAM_CONFIG(its.max_packet_size = PACKET, its.max_heaps = HEAPS);
    const spt_udp_config *udp =
        UDP_CONFIG(its.zero_copy = zero_copy, its.interface_address = interface,
                   its.interface_index = interface_index);
    sender = spt_stream_create_udp(threads ? pool : NULL, &there, 1, config, udp, &err);
    return made(sender != NULL);
}

/* Send some heaps. Returns the packets that went. */
static uint64_t send_all(spt_heap *heap)
{
    spt_completion sent[HEAPS] = {0};
    uint64_t bytes = 0;
    bool good = true;
    for (int i = 0; i < HEAPS; i++)
        REQUIRE(spt_stream_send_heap(sender, heap, &sent[i], NULL) == SPT_OK);
    pid_t child = forks ? fork() : -1;
    while (child == 0)
        pause();
    for (int i = 0; i < HEAPS; i++) {
        good = made(spt_stream_wait(sender, &sent[i], -1, &err) == SPT_OK) && good;
        bytes += sent[i].bytes;
    }
    if (child > 0)
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    spt_stats stats = stats_of_sender(sender);
    CHECK_EQUAL(stats.heaps, HEAPS, stats.bytes, bytes, stats.errors > 0, !good);
    CHECK_EQUAL(stats.errors, good ? 0 : stats.errors_by_errno[failing_errno]);
    CHECK_EQUAL(stats.packets + stats.errors, HEAPS * PACKETS);
    return stats.packets;
}

/* Receive so many packets, or until the socket fails. */
static void receive_all(uint64_t packets)
{
    spt_recv_stats stats;
    spt_received_heap *heap;
    uint64_t n = 0;
    while ((stats = stats_of(receiver)).account.packets < packets && stats.sys_errno == 0)
        sched_yield();
    spt_recv_stream_stop(receiver);
    for (; spt_recv_stream_get(receiver, -1, &heap) == SPT_OK; n++)
        spt_recv_stream_return(receiver, heap);
    stats = stats_of(receiver);
    CHECK(stats.sys_errno == 0 || stats.sys_errno == failing_errno);
    CHECK_EQUAL(n, stats.account.heaps_begun, stats.account.packets + stats.after_end,
                stats.sockets.datagrams);
}

static void end(void)
{
    END(spt_stream, sender);
    END(spt_recv_stream, receiver);
    END(spt_thread_pool, pool);
}

static int free_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Make streams, send and receive, and unmake them, as far as that goes: whether to the end. */
static bool run(void)
{
    static uint8_t value[SIZE];
    int before = free_fd();
    OWN(spt_heap) heap = new_heap_of(value, SIZE);
    bool both = make_receiver() && make_sender();
    if (both)
        receive_all(send_all(heap));
    end();
    CHECK_EQUAL(free_fd(), before);
    return both;
}

static bool run_both(void)
{
    threads = !threads;
    bool one = run();
    threads = !threads;
    return run() && one;
}

TEST(heaps_go_to_addresses_and_groups)
{
    begin();
    CHECK(run_both());
    host = "::1";
    CHECK(!has_ipv6() || run_both());
    host = "239.255.88.88";
    interface = "127.0.0.1";
    CHECK(run_both());
}

/* Have a port alone listened at, where a call fails, and send a heap to it. */
static void reach(const char *to, bool tcp, long n, int error)
{
    static const uint8_t value[SIZE];
    OWN(spt_heap) heap = new_heap_of(value, SIZE);
    static const spt_endpoint alone = {"", 0};
    receiver = new_receiver(NULL);
    fail_call(n, error);
    CHECK_EQUAL(tcp ? spt_recv_stream_add_tcp(receiver, &alone, NULL, &err)
                    : spt_recv_stream_add_udp(receiver, &alone, NULL, &err),
                SPT_OK);
    CHECK(failing_left <= 0); /* it has been called */
    spt_endpoint there = {to, spt_recv_stream_port(receiver)};
    sender = NEW(tcp ? spt_stream_create_tcp(NULL, &there, STREAM_CONFIG(), NULL, NULL)
                     : spt_stream_create_udp(NULL, &there, 1, STREAM_CONFIG(), NULL, NULL));
    send_and_wait(sender, heap, -1);
    spt_recv_stream_return(receiver, get_heap_of(receiver));
    end();
}

TEST(a_port_alone_is_reached_by_addresses_of_both_families)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost", "::1"};
    begin();
    for (int i = 0; i < 2 + has_ipv6(); i++) {
        reach(hosts[i], false, 0, 0);
        reach(hosts[i], true, 0, 0);
    }
}

TEST(where_there_is_no_ipv6_or_not_all_of_it_a_port_alone_is_one_of_ipv4)
{
    static const struct {
        long n; /* of the calls: a socket, an option of it, to bind it */
        int error;
    } refused[] = {{1, EAFNOSUPPORT}, {1, EPERM}, {2, ENOPROTOOPT}, {3, EADDRNOTAVAIL}};
    begin();
    for (size_t i = 0; i < LENGTH(refused); i++) {
        reach("127.0.0.1", false, refused[i].n, refused[i].error);
        reach("127.0.0.1", true, refused[i].n, refused[i].error);
    }
}

TEST(a_port_alone_is_in_use_where_a_socket_of_either_family_has_it)
{
    static const char *const hosts[] = {"127.0.0.1", "0.0.0.0", "::1"};
    begin();
    for (int i = 0; i < 2 + has_ipv6(); i++) {
        OWN(spt_recv_stream) one = new_receiver(NULL);
        OWN(spt_recv_stream) other = new_receiver(NULL);
        spt_endpoint taken = {hosts[i], 0};
        REQUIRE(spt_recv_stream_add_udp(one, &taken, NULL, NULL) == SPT_OK);
        taken = (spt_endpoint){"", spt_recv_stream_port(one)};
        char words[32];
        snprintf(words, sizeof(words), "port %d is in use", taken.port);
        CHECK_REFUSED(SPT_ERR_SYSTEM, words, spt_recv_stream_add_udp(other, &taken, NULL, &err));
    }
}

TEST(groups_of_ipv6_that_each_link_has_are_joined_on_the_one_that_is_asked_for)
{
    begin();
    host = "ff12::8888";
    interface_index = if_nametoindex("lo");
    CHECK(make_receiver());
    end();
    host = "ff12::8888%lo";
    interface_index = 0;
    CHECK(make_receiver());
    end();
}

TEST(an_interface_by_which_no_packet_would_go_is_refused_at_both_ends)
{
    const struct {
        const char *host, *interface;
        unsigned index;
        const char *words;
        bool sends; /* a sender to one address leaves from that of an interface */
    } cases[] = {
        {"239.255.88.88", NULL, 1, "interface index 1 goes with IPv6", false},
        {"ff12::8888", "127.0.0.1", 0, "interface address '127.0.0.1' goes with IPv4", false},
        {"ff12::8888%lo", NULL, 99, "interface index 99 is not that of the address's", false},
        {"127.0.0.1", "127.0.0.2", 0, "'127.0.0.1' is neither a multicast group nor", true},
    };
    spt_receive_config how = SPT_RECEIVE_CONFIG_DEFAULT;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    receiver = new_receiver(NULL);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        spt_endpoint place = {cases[i].host, 8888};
        how.interface_address = udp.interface_address = cases[i].interface;
        how.interface_index = udp.interface_index = cases[i].index;
        CHECK_EQUAL(spt_recv_stream_add_udp(receiver, &place, &how, &err), SPT_ERR_ARGUMENT);
        CHECK_WORDS(err.message, cases[i].words);
        err = (spt_error){0};
        sender = spt_stream_create_udp(NULL, &place, 1, &config, &udp, &err);
        CHECK_EQUAL(sender != NULL, cases[i].sends);
        CHECK(cases[i].sends || strstr(err.message, cases[i].words) != NULL);
        spt_stream_destroy(sender);
        sender = NULL;
    }
    spt_endpoint any = {"", 0};
    const char *words = "an interface goes with a multicast group or an address";
    how = (spt_receive_config)SPT_RECEIVE_CONFIG_DEFAULT;
    how.interface_index = if_nametoindex("lo");
    CHECK_REFUSED(SPT_ERR_ARGUMENT, words, spt_recv_stream_add_udp(receiver, &any, &how, &err));
    how.interface_index = 0;
    how.interface_address = "127.0.0.1";
    CHECK_REFUSED(SPT_ERR_ARGUMENT, words, spt_recv_stream_add_udp(receiver, &any, &how, &err));
    end();
}

TEST(a_fork_in_the_middle_changes_nothing)
{
    begin();
    forks = true;
    CHECK(run_both());
}

TEST(a_receiver_whose_socket_is_shut_down_ends_and_says_so)
{
    begin();
    OWN_FD int given = listen_on_loopback(&(int){0}, 4096);
    pool = new_pool(1);
    receiver = new_receiver(pool);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, given, NULL, NULL) == SPT_OK);
    (void)shutdown(given, SHUT_RD); /* says that it is not connected, and does it */
    CHECK_EQUAL(get_none_of(receiver, -1), SPT_DONE);
    CHECK_EQUAL(stats_of(receiver).sys_errno, ESHUTDOWN);
    end();
}

TEST(a_sender_whose_socket_is_closed_says_so_of_each_heap)
{
    static const uint8_t value[SIZE];
    OWN(spt_heap) heap = new_heap_of(value, SIZE);
    begin();
    fail_call(0, EBADF);
    for (int how = 0; how < 3; how++) {
        threads = how > 0, zero_copy = how > 1;
        REQUIRE(make_receiver());
        int fd = free_fd(); /* which it gets */
        REQUIRE(make_sender());
        close(fd);
        CHECK_EQUAL(send_all(heap), 0);
        end();
    }
}

TEST(any_call_may_fail)
{
    static const int errors[] = {SHORT,    EINTR, EAGAIN, ENOBUFS,    ENOMEM,      EMFILE,
                                 EMSGSIZE, EIO,   EBADF,  EADDRINUSE, ECONNREFUSED};
    begin();
    for (size_t i = 0; i < LENGTH(errors); i++)
        for (long n = 1; n == 1 || failing_left <= 0; n++) {
            threads = n % 3 > 0, zero_copy = n % 3 > 1;
            fail_call(n, errors[i]);
            run();
        }
}

/* Make both ends of a connection, and of a queue of the process, as far as that goes. */
static void connect_both(void)
{
    int before = free_fd();
    spt_endpoint there = {"127.0.0.1", 0};
    OWN(spt_inproc_queue) queue = NEW(spt_inproc_queue_create(0, 0, NULL));
    OWN(spt_stream) in_process = NULL;
    if (made((pool = spt_thread_pool_create(1, NULL, 0, &err)) != NULL) &&
        made((receiver = spt_recv_stream_create(pool, RECV_CONFIG(), &err)) != NULL) &&
        made(spt_recv_stream_add_inproc(receiver, queue, &err) == SPT_OK) &&
        made(spt_recv_stream_add_tcp(receiver, &there, NULL, &err) == SPT_OK)) {
        there.port = spt_recv_stream_port(receiver);
        sender = spt_stream_create_tcp(pool, &there, STREAM_CONFIG(), NULL, &err);
        made(sender != NULL);
        in_process = spt_stream_create_inproc(pool, &queue, 1, STREAM_CONFIG(), &err);
        made(in_process != NULL);
    }
    END(spt_stream, in_process);
    end();
    CHECK_EQUAL(free_fd(), before);
}

TEST(any_call_that_makes_a_connection_may_fail)
{
    static const int errors[] = {ENOMEM, EMFILE, EACCES};
    begin();
    for (size_t i = 0; i < LENGTH(errors); i++)
        for (long n = 1; n == 1 || failing_left <= 0; n++) {
            fail_call(n, errors[i]);
            connect_both();
        }
}

TEST(descriptors_may_run_out)
{
    struct rlimit before, now;
    begin();
    fail_call(0, EMFILE);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    for (int how = 0; how < 2; how++) {
        threads = how > 0;
        int failed = 0;
        do {
            now = (struct rlimit){(rlim_t)(3 + failed), before.rlim_max};
            REQUIRE(setrlimit(RLIMIT_NOFILE, &now) == 0);
        } while (!run() && ++failed < 100);
        CHECK(failed >= 5 && failed < 100); /* as many as streams have, and the program */
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}
