/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what the tests of several files need: what ends with its scope, heaps, sockets on loopback,
 * accounts that add up, and numbers by chance that are the same each time.
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "check.h"
#include "make_packet.h"
#include "spead_tutorial/spt_recv.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Owners ---------------------------------------------------------------------------------- */

/* OWN(spt_heap) heap = ...; is destroyed at the end of its scope, and before those above it; or
 * earlier, with END(spt_heap, heap). */
#define OWN(type) __attribute__((unused, cleanup(end_##type))) type *
#define END(type, it) end_##type(&(it))
#define OWNED(type)                                                                                \
    static inline void end_##type(type **it)                                                       \
    {                                                                                              \
        type##_destroy(*it);                                                                       \
        *it = NULL;                                                                                \
    }

OWNED(spt_heap)
OWNED(spt_stream)
OWNED(spt_thread_pool)
OWNED(spt_recv_stream)
OWNED(spt_depacketizer)
OWNED(spt_memory_pool)
OWNED(spt_chunk_ring)
OWNED(spt_inproc_queue)
OWNED(spt_item_group)

/* OWN_FD int fd = ...; is closed at the end of its scope. */
#define OWN_FD __attribute__((unused, cleanup(end_fd)))
static inline void end_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whether this machine has an address of IPv6. */
static inline bool has_ipv6(void)
{
    OWN_FD int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 it = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return fd >= 0 && bind(fd, (const struct sockaddr *)&it, sizeof(it)) == 0;
}

/* That is a long time: what is waited for comes before it has passed. */
enum { LONG_NS = 2000000000 };

/* What points to the defaults, but for what is set: STREAM_CONFIG(its.rate = 1, its.poll = true) */
#define STREAM_CONFIG(...) CONFIG(spt_stream_config, SPT_STREAM_CONFIG_DEFAULT, __VA_ARGS__)
#define UDP_CONFIG(...) CONFIG(spt_udp_config, SPT_UDP_CONFIG_DEFAULT, __VA_ARGS__)
#define RECV_CONFIG(...) CONFIG(spt_recv_config, SPT_RECV_CONFIG_DEFAULT, __VA_ARGS__)
#define RECEIVE_CONFIG(...) CONFIG(spt_receive_config, SPT_RECEIVE_CONFIG_DEFAULT, __VA_ARGS__)
#define CONFIG(type, defaults, ...)                                                                \
    ((type[]){({                                                                                   \
        type its = defaults;                                                                       \
        __VA_ARGS__;                                                                               \
        its;                                                                                       \
    })})

static inline spt_thread_pool *new_pool(size_t n_threads)
{
    return NEW(spt_thread_pool_create(n_threads, NULL, 0, NULL));
}

static inline spt_stream *new_memory_stream(spt_thread_pool *pool)
{
    return NEW(spt_stream_create_memory(pool, STREAM_CONFIG(), NULL));
}

static inline spt_recv_stream *new_receiver(spt_thread_pool *pool)
{
    return NEW(spt_recv_stream_create(pool, RECV_CONFIG(), NULL));
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* It is refused, which the error says in such words: CHECK_REFUSED(status, words, call(&err)). */
#define CHECK_REFUSED(expected, words, ...)                                                        \
    do {                                                                                           \
        spt_error err = {0};                                                                       \
        intptr_t returned_ = (intptr_t)(__VA_ARGS__); /* a status, or NULL */                      \
        CHECK_EQUAL(returned_, _Generic((__VA_ARGS__), spt_status: (expected), default: 0));       \
        CHECK_EQUAL(err.status, expected);                                                         \
        CHECK(err.message[0] != '\0');                                                             \
        CHECK_WORDS(err.message, words);                                                           \
    } while (0)

/* ---- Heaps ----------------------------------------------------------------------------------- */

static inline spt_heap *new_heap_as(uint8_t address_bits, uint8_t bug_compat)
{
    spt_flavour flavour = {address_bits, bug_compat};
    return NEW(spt_heap_create(&flavour, NULL));
}

static inline void add_item(spt_heap *heap, uint64_t id, const void *value, size_t length,
                            bool may_be_immediate)
{
    spt_item item = {id, value, length, may_be_immediate};
    REQUIRE(spt_heap_add_item(heap, &item, NULL) == SPT_OK);
}

/* Of one item, which has these bytes. */
static inline spt_heap *new_heap_of(const void *value, size_t length)
{
    spt_heap *heap = new_heap_as(40, 0);
    add_item(heap, 0x3300, value, length, false);
    return heap;
}

/* Send a heap, with a count of its own or the next one (-1), and wait until it has been. */
static inline void send_and_wait(spt_stream *stream, spt_heap *heap, int64_t cnt)
{
    spt_completion sent = {0};
    spt_heap_reference one = {heap, cnt, 0, -1};
    REQUIRE(spt_stream_send_heaps(stream, &one, 1, SPT_GROUP_SERIAL, &sent, NULL) == SPT_OK);
    REQUIRE(spt_stream_wait(stream, &sent, -1, NULL) == SPT_OK);
}

/* The packets of a heap, one after the other: their bytes. */
static inline size_t packets_of(spt_heap *heap, uint8_t *to, size_t room)
{
    OWN(spt_stream) stream = new_memory_stream(NULL);
    send_and_wait(stream, heap, 1);
    size_t size = spt_stream_memory(stream, to, room);
    REQUIRE(size <= room);
    return size;
}

static inline spt_received_heap *get_heap_of(spt_recv_stream *stream)
{
    spt_received_heap *heap;
    REQUIRE(spt_recv_stream_get(stream, LONG_NS, &heap) == SPT_OK);
    return heap;
}

/* Instead of a heap there is this. */
static inline spt_status get_none_of(spt_recv_stream *stream, int64_t timeout_ns)
{
    spt_received_heap *none;
    spt_status status = spt_recv_stream_get(stream, timeout_ns, &none);
    REQUIRE(status != SPT_OK);
    return status;
}

/* Take all heaps of a stream, each waited for so long; returns how many are whole, and what there
 * was instead of another one. */
static inline size_t take_heaps(spt_recv_stream *stream, int64_t timeout_ns, spt_status *instead)
{
    spt_received_heap *heap;
    size_t n = 0;
    while ((*instead = spt_recv_stream_get(stream, timeout_ns, &heap)) == SPT_OK) {
        n += heap->state == SPT_HEAP_COMPLETE;
        spt_recv_stream_return(stream, heap);
    }
    return n;
}

/* The same until the end of the stream. */
static inline size_t take_all_heaps(spt_recv_stream *stream)
{
    spt_status status;
    size_t n = take_heaps(stream, LONG_NS, &status);
    CHECK_EQUAL(status, SPT_DONE);
    return n;
}

static inline void *get_all_heaps(void *stream)
{
    (void)take_all_heaps(stream);
    return NULL;
}

/* What is said to have arrived of a heap are its bytes. */
static inline void check_payload(const spt_received_heap *heap)
{
    uint64_t in_ranges = 0;
    for (size_t i = 0; i < heap->n_ranges; i++)
        for (uint64_t at = heap->ranges[i].begin; at < heap->ranges[i].end; at++, in_ranges++)
            CHECK_EQUAL(heap->payload[at], byte_of(heap->cnt, at));
    CHECK_EQUAL(in_ranges, heap->received_length);
}

static inline spt_recv_stats stats_of(spt_recv_stream *stream)
{
    spt_recv_stats now;
    spt_recv_stream_stats(stream, &now);
    CHECK(account_adds_up(&now.account));
    return now;
}

static inline spt_stats stats_of_sender(spt_stream *stream)
{
    spt_stats now;
    spt_stream_stats(stream, &now);
    return now;
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static inline void put_chunk(spt_chunk_ring *ring, spt_chunk *chunk)
{
    REQUIRE(spt_chunk_ring_put(ring, chunk, 0) == SPT_OK);
}

static inline spt_chunk *get_chunk_of(spt_chunk_ring *ring)
{
    spt_chunk *chunk;
    REQUIRE(spt_chunk_ring_get(ring, LONG_NS, &chunk) == SPT_OK);
    return chunk;
}

/* There are no more chunks: the ring has been stopped. */
static inline void check_end_of(spt_chunk_ring *ring)
{
    spt_chunk *none;
    CHECK_EQUAL(spt_chunk_ring_get(ring, LONG_NS, &none), SPT_DONE);
}

static inline spt_chunk_stats chunk_stats_of(spt_recv_stream *stream)
{
    spt_chunk_stats now;
    spt_recv_stream_chunk_stats(stream, &now, NULL);
    return now;
}

/* ---- Sockets --------------------------------------------------------------------------------- */

static inline struct sockaddr_in on_loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* One of a type on loopback, at a port of the system's choice, which does not wait for ever. */
static inline int bind_to_loopback(int type, int *port)
{
    struct sockaddr_in address = on_loopback(0);
    socklen_t length = sizeof(address);
    struct timeval patience = {10, 0};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* One that receives datagrams, with so large a buffer. */
static inline int listen_on_loopback(int *port, int buffer)
{
    int fd = bind_to_loopback(SOCK_DGRAM, port);
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer)) == 0);
    return fd;
}

/* One that so many may connect to before it accepts. */
static inline int listen_for_connections(int *port, int n)
{
    int fd = bind_to_loopback(SOCK_STREAM, port);
    REQUIRE(listen(fd, n) == 0);
    return fd;
}

/* One of a type that sends to there. */
static inline int connect_as(int type, int port)
{
    struct sockaddr_in address = on_loopback(port);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static inline int connect_to_loopback(int port)
{
    return connect_as(SOCK_DGRAM, port);
}

/* One that sends to where nobody listens: the kernel refuses that, and it has an error then. */
static inline int connect_to_nobody(int *port)
{
    int other = listen_on_loopback(port, 4096), fd = connect_to_loopback(*port);
    close(other);
    return fd;
}

/* Whether a descriptor is readable before so long. */
static inline bool is_readable(int fd, int timeout_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, timeout_ms) == 1;
}

static inline pthread_t start_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}

/* A number below n, which depends on nothing but what was asked before. */
static inline uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

#endif
