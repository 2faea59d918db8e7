/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns one promise: whichever allocation fails, the call that needs it says so, has changed
 * nothing, and can be repeated; and nothing is lost or leaked. A stream that sends allocates
 * nothing.
 */
#include "failing.h"
#include "support.h"

#include <sys/mman.h>

enum { VALUES = 40, SIZE = 3000, HEAPS = 3, ROOM = 1 << 20, TRIES = 3 };

/* Do it until there is memory for it, which is before long; each time that there is not is said. */
#define MADE(it, call)                                                                             \
    for (int tries_ = 0; ((it) = (call)) == NULL; tries_++)                                        \
    there_was_none(err.status, tries_)
#define DONE(call)                                                                                 \
    for (int tries_ = 0; (call) != SPT_OK; tries_++)                                               \
    there_was_none(err.status, tries_)

static spt_error err;

static void there_was_none(spt_status status, int tries)
{
    CHECK_EQUAL(status, SPT_ERR_MEMORY);
    REQUIRE(has_failed() && tries < TRIES);
    if (tries == TRIES - 1)
        stop_failing();
    err = (spt_error){0};
}

/* TEST_SHORT(what_is_done) { ... } is done with each of its allocations failing, one at a time;
 * then with every n-th. */
#define TEST_SHORT(name)                                                                           \
    static void do_##name(void);                                                                   \
    TEST(name)                                                                                     \
    {                                                                                              \
        run_short(do_##name);                                                                      \
    }                                                                                              \
    static void do_##name(void)

static void run_short(void (*something)(void))
{
    long n = 0;
    do {
        fail_once(++n);
        something();
    } while (stop_failing() > 0);
    CHECK(n > 3);
    while (--n > 1) {
        fail_every(n);
        something();
        stop_failing();
    }
}

static uint8_t value[SIZE];
static uint8_t wanted[ROOM], sent[ROOM]; /* packets: of the first time, and of this one */
static size_t n_wanted;

static spt_heap *make_heap(void)
{
    static const int16_t samples[50];
    const spt_variable variables[] = {
        {0x1000, "a", "", SPT_INT16, samples, 1, {50}},
        {0x1001, "b", "", SPT_INT16, samples, 0, {0}},
    };
    spt_heap *heap;
    MADE(heap, spt_heap_create(NULL, &err));
    for (uint64_t i = 0; i < VALUES; i++) {
        spt_item item = {0x2000 + i, value + i, SIZE / VALUES, false};
        DONE(spt_heap_add_item(heap, &item, &err));
        if (i % 8 == 0) /* both of them, or none */
            DONE(spt_heap_add(heap, variables, 2, SPT_DESCRIPTORS | SPT_VALUES, &err));
    }
    return heap;
}

/* Send some heaps; true if all of them could be. */
static bool send_heaps(spt_stream *stream, spt_heap *heap)
{
    spt_completion done[HEAPS] = {0};
    bool good = true;
    for (int i = 0; i < HEAPS; i++)
        REQUIRE(spt_stream_send_heap(stream, heap, &done[i], NULL) == SPT_OK);
    for (int i = 0; i < HEAPS; i++)
        good = spt_stream_wait(stream, &done[i], -1, NULL) == SPT_OK && good;
    return good;
}

static void send_into_memory(void)
{
    spt_thread_pool *pool;
    spt_stream *stream;
    OWN(spt_heap) heap = make_heap();
    MADE(pool, spt_thread_pool_create(2, NULL, 0, &err));
    MADE(stream, spt_stream_create_memory(pool, STREAM_CONFIG(its.timeline = 10), &err));
    bool good = send_heaps(stream, heap);
    if (!good) /* there was no memory to collect a packet in */
        CHECK(has_failed());
    size_t n = spt_stream_memory(stream, sent, ROOM);
    REQUIRE(n <= ROOM);
    if (n_wanted == 0) {
        memcpy(wanted, sent, n);
        n_wanted = n;
    }
    if (good)
        CHECK(n == n_wanted && memcmp(sent, wanted, n) == 0);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
}

TEST(what_is_sent_is_the_same_whichever_allocation_fails)
{
    for (size_t i = 0; i < SIZE; i++)
        value[i] = (uint8_t)(i * 7 + i / 256);
    send_into_memory();
    REQUIRE(n_wanted > 0);
    run_short(send_into_memory);
}

TEST_SHORT(what_is_sent_in_the_process_is_counted_whichever_allocation_fails)
{
    spt_inproc_queue *queue;
    spt_stream *stream;
    spt_recv_stream *receiver;
    OWN(spt_heap) heap = make_heap();
    MADE(queue, spt_inproc_queue_create(0, 0, &err));
    DONE(spt_inproc_queue_add_packet(queue, "no packet", 9, &err));
    MADE(stream, spt_stream_create_inproc(NULL, &queue, 1, STREAM_CONFIG(), &err));
    if (!send_heaps(stream, heap)) /* there was no memory for a packet, which is not there */
        CHECK(has_failed());
    spt_stats stats = stats_of_sender(stream);
    spt_stream_destroy(stream);
    spt_inproc_queue_stop(queue);
    MADE(receiver, spt_recv_stream_create(NULL, RECV_CONFIG(), &err));
    DONE(spt_recv_stream_add_inproc(receiver, queue, &err));
    spt_inproc_queue_destroy(queue);
    (void)take_all_heaps(receiver);
    CHECK_EQUAL(stats_of(receiver).account.packets, stats.packets + 1);
    spt_recv_stream_destroy(receiver);
}

TEST_SHORT(streams_to_sockets_are_made_whichever_allocation_fails)
{
    spt_endpoint to[] = {{"127.0.0.1", 9}, {"127.0.0.1", 10}};
    OWN(spt_heap) heap = make_heap();
    spt_stream *stream; /* which has no thread */
    for (int zero_copy = 0; zero_copy < 2; zero_copy++) {
        const spt_udp_config *udp = UDP_CONFIG(its.zero_copy = zero_copy);
        const spt_stream_config *polled = STREAM_CONFIG(its.poll = true);
        MADE(stream, spt_stream_create_udp(NULL, to, LENGTH(to), polled, udp, &err));
        spt_completion done = {0};
        REQUIRE(spt_stream_send_heap(stream, heap, &done, NULL) == SPT_OK);
        CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
        spt_stream_destroy(stream);
    }
    OWN_FD int listening = listen_for_connections(&to[0].port, 2 * TRIES);
    MADE(stream, spt_stream_create_tcp(NULL, to, STREAM_CONFIG(), NULL, &err));
    CHECK(send_heaps(stream, heap));
    spt_stream_destroy(stream);
}

TEST(a_stream_that_runs_allocates_nothing_per_heap_or_packet)
{
    enum { STATES = 16, ROUNDS = 20000 };
    const spt_stream_config *config = STREAM_CONFIG(its.max_heaps = STATES, its.timeline = 10);
    spt_endpoint nobody = {"127.0.0.1", 9};
    OWN(spt_heap) heap = new_heap_of(value, SIZE);
    OWN(spt_thread_pool) pool = new_pool(1);
    OWN(spt_stream) stream = NEW(spt_stream_create_udp(pool, &nobody, 1, config, NULL, NULL));
    spt_completion done[STATES] = {0};
    long before = allocations;
    CHECK(before > 0); /* the count works */
    for (int i = 0; i < ROUNDS; i++) {
        spt_completion *c = &done[i % STATES];
        CHECK_EQUAL(spt_stream_wait(stream, c, -1, NULL), SPT_OK);
        REQUIRE(spt_stream_send_heap(stream, heap, c, NULL) == SPT_OK);
    }
    CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
    CHECK_EQUAL(allocations, before);
}

/* Get all heaps that are not refused for want of memory. Each is whole. */
static void get_all(spt_recv_stream *stream)
{
    spt_received_heap *heap;
    uint64_t n = 0;
    for (; spt_recv_stream_get(stream, -1, &heap) == SPT_OK; n++) {
        CHECK(heap->state == SPT_HEAP_INCOMPLETE || heap->received_length == heap->length);
        CHECK(heap->packets > 0);
        spt_recv_stream_return(stream, heap);
    }
    spt_account account = stats_of(stream).account;
    CHECK_EQUAL(n, account.heaps_begun);
    CHECK(account.heaps_complete == HEAPS || has_failed());
}

TEST_SHORT(what_is_received_is_whole_whichever_allocation_fails)
{
    OWN(spt_thread_pool) threads = NULL;
    OWN(spt_memory_pool) pool = NULL;
    OWN(spt_recv_stream) stream = NULL;
    MADE(threads, spt_thread_pool_create(1, NULL, 0, &err));
    spt_memory_pool_config buffers = {
        .lower = 1, .upper = 2 * SIZE, .max_free = 20, .initial = 2, .low_water = 2};
    MADE(pool, spt_memory_pool_create(threads, &buffers, &err));
    const spt_recv_config *config = RECV_CONFIG(its.heaps.memory = spt_memory_pool_memory(pool),
                                                its.heaps.allow_out_of_order = true);
    MADE(stream, spt_recv_stream_create(threads, config, &err));
    DONE(spt_recv_stream_add_memory(stream, wanted, n_wanted, &err));
    get_all(stream);
    END(spt_recv_stream, stream);
    spt_memory_pool_stats stats;
    spt_memory_pool_read_stats(pool, &stats);
    CHECK_EQUAL(stats.in_use, 0);
}

TEST_SHORT(what_comes_through_a_connection_is_whole_whichever_allocation_fails)
{
    const spt_recv_config *config = RECV_CONFIG(its.heaps.allow_out_of_order = true);
    OWN(spt_recv_stream) stream = NULL;
    int port;
    OWN_FD int listening = listen_for_connections(&port, 1);
    MADE(stream, spt_recv_stream_create(NULL, config, &err));
    DONE(spt_recv_stream_add_tcp_socket(stream, listening, NULL, &err));
    int fd = connect_as(SOCK_STREAM, port);
    REQUIRE(send(fd, wanted, n_wanted, 0) == (ssize_t)n_wanted);
    close(fd);
    get_all(stream);
}

TEST_SHORT(what_is_in_a_capture_of_many_interfaces_is_whole_whichever_allocation_fails)
{
    enum { MANY = 1000 };
    static const uint32_t section[] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX, 28};
    static const uint32_t interface[] = {1, 20, 1, 0, 20};
    OWN(spt_recv_stream) stream = NULL;
    OWN_FD int fd = memfd_create("capture", MFD_CLOEXEC);
    char path[40];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    REQUIRE(write(fd, section, sizeof(section)) == sizeof(section));
    for (int i = 0; i < MANY; i++)
        REQUIRE(write(fd, interface, sizeof(interface)) == sizeof(interface));
    MADE(stream, spt_recv_stream_create(NULL, RECV_CONFIG(), &err));
    DONE(spt_recv_stream_add_udp_pcap(stream, path, "", &err));
    CHECK_EQUAL(take_all_heaps(stream), 0);
    spt_recv_stats stats = stats_of(stream);
    CHECK(stats.sys_errno == 0 || (has_failed() && stats.sys_errno == ENOMEM));
    CHECK((stats.sys_errno != 0) == (strstr(stats.failure, "no memory") != NULL));
}

static void refuse(spt_place_data *data, size_t size, void *user)
{
    (void)data, (void)size, (void)user;
}

TEST_SHORT(receivers_of_chunks_are_made_whichever_allocation_fails)
{
    OWN(spt_thread_pool) pool = NULL;
    OWN(spt_chunk_ring) data_ring = NULL;
    OWN(spt_chunk_ring) free_ring = NULL;
    OWN(spt_recv_stream) stream = NULL;
    spt_chunk_config how = {.place = refuse, .max_chunks = 2, .max_heap_extra = 8, .n_stats = 1};
    spt_endpoint any = {"127.0.0.1", 0};
    MADE(pool, spt_thread_pool_create(1, NULL, 0, &err));
    MADE(data_ring, spt_chunk_ring_create(2, &err));
    MADE(free_ring, spt_chunk_ring_create(2, &err));
    how.data_ring = data_ring;
    how.free_ring = free_ring;
    MADE(stream, spt_recv_stream_create_chunks(pool, RECV_CONFIG(), &how, &err));
    DONE(spt_recv_stream_add_udp(stream, &any, NULL, &err));
    CHECK(spt_recv_stream_port(stream) > 0);
}
