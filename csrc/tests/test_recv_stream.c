/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of recv_stream.c and datagrams.c: heaps that the sender sends, received. */
#include "check.h"

#include "spead_tutorial/spt_recv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 20000, HEAPS = 200, LONG_NS = 2000000000 };

static spt_thread_pool *pool;

static void start_pool(void)
{
    pool = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(pool != NULL);
}

static void end_pool(void)
{
    spt_thread_pool_destroy(pool);
}

/* A socket that listens on loopback, on a port of the system's choice. */
static int listen_somewhere(int *port)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    socklen_t length = sizeof(address);
    REQUIRE(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    int size = 1 << 22;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    *port = ntohs(address.sin_port);
    return fd;
}

/* What the value of a heap is: each has its own. */
static uint8_t value[SIZE];

static void fill(uint64_t cnt)
{
    for (size_t i = 0; i < SIZE; i++)
        value[i] = (uint8_t)(cnt * 131 + i * 7 + i / 256);
}

static spt_stream *new_sender(int port, size_t packet_size)
{
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_packet_size = packet_size;
    spt_endpoint endpoint = {"127.0.0.1", port};
    spt_stream *stream = spt_stream_create_udp(pool, &endpoint, 1, &config, NULL, NULL);
    REQUIRE(stream != NULL);
    return stream;
}

static spt_heap *new_heap(void)
{
    spt_heap *heap = spt_heap_create(NULL, NULL);
    spt_item item = {0x3300, value, SIZE, false};
    REQUIRE(heap != NULL && spt_heap_add_item(heap, &item, NULL) == SPT_OK);
    return heap;
}

static void send_one(spt_stream *sender, spt_heap *heap, uint64_t cnt)
{
    fill(cnt);
    spt_completion sent = {0};
    spt_heap_reference reference = {heap, (int64_t)cnt, 0, -1};
    REQUIRE(spt_stream_send_heaps(sender, &reference, 1, SPT_GROUP_SERIAL, &sent, NULL) == SPT_OK);
    REQUIRE(spt_stream_wait(sender, &sent, -1, NULL) == SPT_OK);
}

static void check_heap(const spt_received_heap *heap, uint64_t cnt)
{
    CHECK_EQUAL(heap->cnt, cnt);
    CHECK_EQUAL(heap->state, SPT_HEAP_COMPLETE);
    REQUIRE(heap->length == SIZE);
    fill(cnt);
    CHECK_BYTES(heap->payload, value, SIZE);
}

static spt_recv_stream *new_receiver(void (*change)(spt_recv_config *))
{
    spt_recv_config config = spt_recv_config_default();
    if (change != NULL)
        change(&config);
    spt_recv_stream *stream = spt_recv_stream_create(pool, &config, NULL);
    REQUIRE(stream != NULL);
    return stream;
}

static void check_account(const spt_recv_stats *stats)
{
    uint64_t fates = 0;
    for (int i = 0; i < SPT_N_FATES; i++)
        fates += stats->account.fates[i];
    CHECK_EQUAL(fates, stats->account.packets);
    CHECK_EQUAL(stats->sockets.datagrams, stats->account.packets);
}

static void test_what_is_sent_is_received_with_and_without_offload(void)
{
    for (int gro = 0; gro < 2; gro++) {
        start_pool();
        int port, fd = listen_somewhere(&port);
        spt_recv_stream *receiver = new_receiver(NULL);
        spt_receive_config config = SPT_RECEIVE_CONFIG_DEFAULT;
        config.gro = gro;
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, &config, NULL) == SPT_OK);
        close(fd); /* it has been duplicated */
        spt_stream *sender = new_sender(port, 1472);
        spt_heap *heap = new_heap();
        for (uint64_t cnt = 1; cnt <= HEAPS; cnt++) {
            send_one(sender, heap, cnt);
            spt_received_heap *received;
            REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
            check_heap(received, cnt);
            spt_recv_stream_return(receiver, received);
        }
        REQUIRE(spt_stream_send_end(sender, NULL, NULL) == SPT_OK);
        spt_received_heap *none;
        CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &none), SPT_DONE);
        spt_recv_stats stats;
        spt_recv_stream_stats(receiver, &stats);
        check_account(&stats);
        CHECK_EQUAL(stats.account.heaps_complete, HEAPS);
        CHECK_EQUAL(stats.account.heaps_dropped, 1); /* that of the end */
        CHECK_EQUAL(stats.account.heaps_never_begun, 0);
        CHECK(gro || stats.sockets.messages == stats.sockets.datagrams);
        CHECK(stats.sockets.messages <= stats.sockets.datagrams);
        CHECK_EQUAL(stats.sockets.dropped, 0);
        spt_recv_stream_destroy(receiver);
        spt_heap_destroy(heap);
        spt_stream_destroy(sender);
        end_pool();
    }
}

static void test_a_full_ring_is_waited_for_and_nothing_is_lost(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    spt_recv_stream *receiver = new_receiver(NULL);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
    spt_stream *sender = new_sender(port, 9000);
    spt_heap *heap = new_heap();
    for (uint64_t cnt = 1; cnt <= 20; cnt++) /* the ring has 4; others wait in the socket */
        send_one(sender, heap, cnt);
    spt_recv_stats stats;
    do
        spt_recv_stream_stats(receiver, &stats);
    while (stats.ring_waits == 0);
    for (uint64_t cnt = 1; cnt <= 20; cnt++) {
        spt_received_heap *received;
        REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
        check_heap(received, cnt);
        spt_recv_stream_return(receiver, received);
    }
    spt_recv_stream_stats(receiver, &stats);
    CHECK(stats.longest_ring_wait_ns > 0);
    CHECK_EQUAL(stats.ring_dropped, 0);
    spt_recv_stream_destroy(receiver);
    spt_heap_destroy(heap);
    spt_stream_destroy(sender);
    close(fd);
    end_pool();
}

static void test_packets_that_were_read_and_not_looked_at_are_counted_when_a_stream_ends(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    spt_stream *sender = new_sender(port, 9000);
    spt_heap *heap = new_heap();
    for (uint64_t cnt = 1; cnt <= 20; cnt++) /* before anybody reads: many come with a call */
        send_one(sender, heap, cnt);
    spt_recv_stream *receiver = new_receiver(NULL);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
    spt_recv_stats stats;
    do
        spt_recv_stream_stats(receiver, &stats);
    while (stats.ring_waits == 0);
    spt_recv_stream_stop(receiver);
    spt_recv_stream_stats(receiver, &stats);
    CHECK(stats.after_end > 0);
    CHECK_EQUAL(stats.account.packets + stats.after_end, stats.sockets.datagrams);
    spt_recv_stream_destroy(receiver);
    spt_heap_destroy(heap);
    spt_stream_destroy(sender);
    close(fd);
    end_pool();
}

static void drop(spt_recv_config *config)
{
    config->drop_when_full = true;
}

static void test_a_full_ring_can_drop_and_says_how_many(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    spt_recv_stream *receiver = new_receiver(drop);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
    spt_stream *sender = new_sender(port, 9000);
    spt_heap *heap = new_heap();
    for (uint64_t cnt = 1; cnt <= 20; cnt++)
        send_one(sender, heap, cnt);
    spt_recv_stats stats;
    do
        spt_recv_stream_stats(receiver, &stats);
    while (stats.account.heaps_complete < 20);
    CHECK_EQUAL(stats.ring_dropped, 16);
    CHECK_EQUAL(stats.ring_waits, 0);
    spt_recv_stream_stop(receiver);
    spt_received_heap *received;
    for (uint64_t cnt = 1; cnt <= 4; cnt++) {
        REQUIRE(spt_recv_stream_get(receiver, -1, &received) == SPT_OK);
        check_heap(received, cnt);
        spt_recv_stream_return(receiver, received);
    }
    CHECK_EQUAL(spt_recv_stream_get(receiver, -1, &received), SPT_DONE);
    spt_recv_stream_destroy(receiver);
    spt_heap_destroy(heap);
    spt_stream_destroy(sender);
    close(fd);
    end_pool();
}

/* Packets of so many heaps, and of the end, one after the other. */
static uint8_t *in_memory(uint64_t n, size_t *size)
{
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    spt_stream *sender = spt_stream_create_memory(pool, &config, NULL);
    REQUIRE(sender != NULL);
    spt_heap *heap = new_heap();
    for (uint64_t cnt = 1; cnt <= n; cnt++)
        send_one(sender, heap, cnt);
    REQUIRE(spt_stream_send_end(sender, NULL, NULL) == SPT_OK);
    *size = spt_stream_memory(sender, NULL, 0);
    uint8_t *bytes = malloc(*size);
    REQUIRE(bytes != NULL);
    spt_stream_memory(sender, bytes, *size);
    spt_stream_destroy(sender);
    spt_heap_destroy(heap);
    return bytes;
}

static void test_packets_in_memory_are_received_and_their_end_is_that_of_the_stream(void)
{
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(30, &size);
    for (int cut = 0; cut < 2; cut++) { /* as it is, and without the last bytes of the last heap */
        spt_recv_stream *receiver = new_receiver(NULL);
        size_t n = cut ? size - 49 - 8 - 1472 : size;
        REQUIRE(spt_recv_stream_add_memory(receiver, bytes, n, NULL) == SPT_OK);
        spt_received_heap *received;
        for (uint64_t cnt = 1; cnt <= 30; cnt++) {
            REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
            if (cut && cnt == 30)
                CHECK_EQUAL(received->state, SPT_HEAP_INCOMPLETE);
            else
                check_heap(received, cnt);
            spt_recv_stream_return(receiver, received);
        }
        CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &received), SPT_DONE);
        spt_error err = {0};
        CHECK_EQUAL(spt_recv_stream_add_memory(receiver, bytes, n, &err), SPT_ERR_STOPPED);
        CHECK(err.message[0] != '\0');
        spt_recv_stream_destroy(receiver);
    }
    free(bytes);
    end_pool();
}

static void only_contiguous(spt_recv_config *config)
{
    config->contiguous_only = true;
}

/* Memory for heaps that begin one after the other, each when the one before has been returned. */
static struct {
    int given, in_use, most; /* of the reader's thread alone */
    int returned;            /* atomic */
} turns;

static void *get_in_turn(void *user, size_t size, const spt_received_packet *first)
{
    (void)user, (void)first;
    while (__atomic_load_n(&turns.returned, __ATOMIC_SEQ_CST) < turns.given)
        sched_yield();
    turns.given++;
    turns.most = ++turns.in_use > turns.most ? turns.in_use : turns.most;
    return malloc(size);
}

static void put_back(void *user, void *memory, size_t size)
{
    (void)user, (void)size;
    turns.in_use--;
    free(memory);
}

static void in_turn(spt_recv_config *config)
{
    config->heaps.memory = (spt_heap_memory){NULL, get_in_turn, put_back};
}

static void test_what_is_returned_can_be_used_again_while_a_reader_still_runs(void)
{
    enum { N = 4 };
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(N, &size);
    memset(&turns, 0, sizeof(turns));
    spt_recv_stream *receiver = new_receiver(in_turn);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size, NULL) == SPT_OK);
    for (int i = 0; i < N; i++) {
        spt_received_heap *heap;
        spt_status status;
        while ((status = spt_recv_stream_get(receiver, 0, &heap)) == SPT_PENDING)
            sched_yield();
        REQUIRE(status == SPT_OK);
        spt_recv_stream_return(receiver, heap);
        __atomic_add_fetch(&turns.returned, 1, __ATOMIC_SEQ_CST);
    }
    spt_received_heap *none;
    CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &none), SPT_DONE);
    spt_recv_stream_destroy(receiver);
    CHECK_EQUAL(turns.most, 2); /* the one before is put back when the next one is finished */
    free(bytes);
    end_pool();
}

static void test_incomplete_heaps_can_be_dropped_and_are_counted_then(void)
{
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(30, &size);
    spt_recv_stream *receiver = new_receiver(only_contiguous);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size - 49 - 8 - 1472, NULL) == SPT_OK);
    spt_received_heap *received;
    for (uint64_t cnt = 1; cnt < 30; cnt++) {
        REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
        check_heap(received, cnt);
        spt_recv_stream_return(receiver, received);
    }
    CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &received), SPT_DONE);
    spt_recv_stats stats;
    spt_recv_stream_stats(receiver, &stats);
    CHECK_EQUAL(stats.incomplete_dropped, 1);
    CHECK_EQUAL(stats.incomplete_cnt, 30);
    CHECK_EQUAL(stats.incomplete_length, SIZE);
    CHECK(stats.incomplete_received > 0 && stats.incomplete_received < SIZE);
    CHECK(stats.batches > 0 && stats.max_batch > 0);
    CHECK(stats.max_batch * stats.batches >= stats.account.packets);
    spt_recv_stream_destroy(receiver);
    free(bytes);
    end_pool();
}

static void explicitly(spt_recv_config *config)
{
    config->explicit_start = true;
}

static void test_a_stream_that_is_to_be_started_reads_nothing_before(void)
{
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(3, &size);
    spt_recv_stream *receiver = new_receiver(explicitly);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size, NULL) == SPT_OK);
    spt_received_heap *received;
    CHECK_EQUAL(spt_recv_stream_get(receiver, 10000000, &received), SPT_PENDING);
    CHECK_EQUAL(spt_recv_stream_start(receiver, NULL), SPT_OK);
    for (uint64_t cnt = 1; cnt <= 3; cnt++) {
        REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
        check_heap(received, cnt);
        spt_recv_stream_return(receiver, received);
    }
    CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &received), SPT_DONE);
    spt_error err = {0};
    CHECK_EQUAL(spt_recv_stream_start(receiver, &err), SPT_ERR_STOPPED);
    spt_recv_stream_destroy(receiver);

    receiver = new_receiver(explicitly); /* one that is never started, and one too late */
    REQUIRE(spt_recv_stream_start(receiver, NULL) == SPT_OK);
    CHECK_EQUAL(spt_recv_stream_add_memory(receiver, bytes, size, &err), SPT_ERR_BUSY);
    spt_recv_stream_destroy(receiver);
    receiver = new_receiver(explicitly);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size, NULL) == SPT_OK);
    spt_recv_stream_destroy(receiver);
    free(bytes);
    end_pool();
}

static void test_the_descriptor_is_readable_while_there_is_something_to_get(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    spt_recv_stream *receiver = new_receiver(NULL);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
    struct pollfd event = {.fd = spt_recv_stream_fd(receiver), .events = POLLIN};
    CHECK_EQUAL(poll(&event, 1, 0), 0);
    spt_stream *sender = new_sender(port, 9000);
    spt_heap *heap = new_heap();
    spt_received_heap *received;
    for (uint64_t cnt = 1; cnt <= 6; cnt += 2) {
        send_one(sender, heap, cnt);
        send_one(sender, heap, cnt + 1);
        for (uint64_t i = 0; i < 2; i++) {
            REQUIRE(poll(&event, 1, 2000) == 1);
            REQUIRE(spt_recv_stream_get(receiver, 0, &received) == SPT_OK);
            check_heap(received, cnt + i);
            spt_recv_stream_return(receiver, received);
        }
        CHECK_EQUAL(poll(&event, 1, 0), 0);
        CHECK_EQUAL(spt_recv_stream_get(receiver, 0, &received), SPT_PENDING);
    }
    spt_recv_stream_stop(receiver);
    CHECK_EQUAL(poll(&event, 1, 2000), 1);
    CHECK_EQUAL(spt_recv_stream_get(receiver, 0, &received), SPT_DONE);
    CHECK_EQUAL(poll(&event, 1, 0), 1);
    spt_recv_stream_destroy(receiver);
    spt_heap_destroy(heap);
    spt_stream_destroy(sender);
    close(fd);
    end_pool();
}

static void test_a_datagram_that_is_too_long_or_no_packet_is_counted(void)
{
    for (int gro = 0; gro < 2; gro++) {
        start_pool();
        int port, fd = listen_somewhere(&port);
        spt_receive_config config = SPT_RECEIVE_CONFIG_DEFAULT;
        config.max_size = 100;
        config.gro = gro;
        spt_recv_stream *receiver = new_receiver(NULL);
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, &config, NULL) == SPT_OK);
        int out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        static const uint8_t bytes[3000] = {0x53, 4};
        const size_t sizes[] = {0, 1, 100, 101, 3000};
        for (int i = 0; i < 5; i++)
            REQUIRE(sendto(out, bytes, sizes[i], 0, (struct sockaddr *)&to, sizeof(to)) >= 0);
        spt_recv_stats stats;
        do
            spt_recv_stream_stats(receiver, &stats);
        while (stats.account.packets < 5);
        check_account(&stats);
        CHECK_EQUAL(stats.account.faults[SPT_FAULT_HEADER], 2);
        CHECK_EQUAL(stats.account.faults[SPT_FAULT_FLAVOUR], 1);
        CHECK_EQUAL(stats.account.faults[SPT_FAULT_SURPLUS], 2);
        close(out);
        spt_recv_stream_destroy(receiver);
        close(fd);
        end_pool();
    }
}

static void test_a_port_is_free_once_the_stream_is_stopped_and_until_then_an_error_says_so(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    close(fd);
    spt_endpoint endpoint = {"127.0.0.1", port};
    spt_recv_stream *one = new_receiver(NULL), *other = new_receiver(NULL);
    REQUIRE(spt_recv_stream_add_udp(one, &endpoint, NULL, NULL) == SPT_OK);
    spt_error err = {0};
    CHECK_EQUAL(spt_recv_stream_add_udp(other, &endpoint, NULL, &err), SPT_ERR_SYSTEM);
    CHECK_EQUAL(err.sys_errno, EADDRINUSE);
    CHECK(strstr(err.message, "is in use") != NULL);
    spt_recv_stream_stop(one);
    spt_recv_stream_stop(one);
    CHECK_EQUAL(spt_recv_stream_port(one), 0);
    CHECK_EQUAL(spt_recv_stream_add_udp(other, &endpoint, NULL, &err), SPT_OK);
    CHECK_EQUAL(spt_recv_stream_port(other), port);
    const char *any[] = {"127.0.0.1", "::1"};
    for (int i = 0; i < 2; i++) { /* the system chooses another one each time */
        endpoint = (spt_endpoint){any[i], 0};
        REQUIRE(spt_recv_stream_add_udp(other, &endpoint, NULL, &err) == SPT_OK);
        CHECK(spt_recv_stream_port(other) > 0 && spt_recv_stream_port(other) != port);
        port = spt_recv_stream_port(other);
    }
    spt_recv_stream_destroy(one);
    spt_recv_stream_destroy(other);
    spt_recv_stream_destroy(NULL);
    end_pool();
}

static void test_what_cannot_be_is_refused_in_words(void)
{
    start_pool();
    spt_recv_stream *receiver = new_receiver(NULL);
    spt_receive_config too_large = SPT_RECEIVE_CONFIG_DEFAULT;
    too_large.max_size = 70000;
    const spt_endpoint nowhere[] = {{"no.such.host.invalid", 8888}, {"", 70000}, {"", -1}};
    spt_error err;
    for (int i = 0; i < 3; i++) {
        err = (spt_error){0};
        CHECK_EQUAL(spt_recv_stream_add_udp(receiver, &nowhere[i], NULL, &err), SPT_ERR_ARGUMENT);
        CHECK(err.message[0] != '\0');
    }
    CHECK_EQUAL(spt_recv_stream_add_udp(receiver, &(spt_endpoint){"", 0}, &too_large, NULL),
                SPT_ERR_ARGUMENT);
    CHECK_EQUAL(spt_recv_stream_add_udp_socket(receiver, -1, NULL, &err), SPT_ERR_ARGUMENT);
    int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQUAL(spt_recv_stream_add_udp_socket(receiver, file, NULL, &err), SPT_ERR_SYSTEM);
    close(file);
    spt_recv_stream_destroy(receiver);
    spt_recv_config none = spt_recv_config_default();
    none.ring_heaps = 0;
    CHECK(spt_recv_stream_create(pool, &none, &err) == NULL);
    none = spt_recv_config_default();
    none.heaps.max_heaps = 0;
    CHECK(spt_recv_stream_create(pool, &none, &err) == NULL);
    end_pool();
}

static void test_a_stream_ends_with_its_pool_and_says_so_to_who_waits(void)
{
    start_pool();
    int port, fd = listen_somewhere(&port);
    spt_recv_stream *receiver = new_receiver(NULL);
    REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
    spt_thread_pool_stop(pool);
    spt_received_heap *received;
    CHECK_EQUAL(spt_recv_stream_get(receiver, -1, &received), SPT_DONE);
    spt_recv_stream_destroy(receiver);
    close(fd);
    end_pool();
}

static void nothing(int signal)
{
    (void)signal;
}

static void *interrupt(void *thread)
{
    usleep(50000);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void test_waiting_ends_with_a_signal_and_with_its_time(void)
{
    start_pool();
    spt_recv_stream *receiver = new_receiver(NULL);
    spt_received_heap *received;
    CHECK_EQUAL(spt_recv_stream_get(receiver, 1000000, &received), SPT_PENDING);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = nothing}, NULL);
    pthread_t self = pthread_self(), other;
    REQUIRE(pthread_create(&other, NULL, interrupt, &self) == 0);
    CHECK_EQUAL(spt_recv_stream_get(receiver, -1, &received), SPT_PENDING);
    pthread_join(other, NULL);
    spt_recv_stream_destroy(receiver);
    end_pool();
}

/* Readers, a consumer, and who stops them, all at once: for the sanitizers to watch. */
static void *get_all(void *stream)
{
    spt_received_heap *received;
    spt_status status;
    while ((status = spt_recv_stream_get(stream, LONG_NS, &received)) == SPT_OK)
        spt_recv_stream_return(stream, received);
    CHECK_EQUAL(status, SPT_DONE);
    return NULL;
}

static void test_streams_are_stopped_at_any_moment(void)
{
    for (int round = 0; round < 30; round++) {
        pool = spt_thread_pool_create(2, NULL, 0, NULL);
        REQUIRE(pool != NULL);
        int port, fd = listen_somewhere(&port);
        spt_recv_stream *receiver = new_receiver(round % 2 ? drop : NULL);
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
        REQUIRE(spt_recv_stream_add_udp(receiver, &(spt_endpoint){"127.0.0.1", 0}, NULL, NULL) ==
                SPT_OK);
        pthread_t consumers[2];
        for (int i = 0; i < 2; i++)
            REQUIRE(pthread_create(&consumers[i], NULL, get_all, receiver) == 0);
        spt_stream *sender = new_sender(port, 1472);
        spt_heap *heap = new_heap();
        for (uint64_t cnt = 1; cnt <= 10 + (uint64_t)round; cnt++) {
            spt_completion sent = {0};
            REQUIRE(spt_stream_send_heap(sender, heap, &sent, NULL) == SPT_OK);
            REQUIRE(spt_stream_wait(sender, &sent, -1, NULL) == SPT_OK);
            spt_recv_stats stats;
            spt_recv_stream_stats(receiver, &stats);
        }
        spt_recv_stream_stop(receiver);
        for (int i = 0; i < 2; i++)
            pthread_join(consumers[i], NULL);
        spt_recv_stream_destroy(receiver);
        spt_heap_destroy(heap);
        spt_stream_destroy(sender);
        close(fd);
        end_pool();
    }
}

/* Those who stop a stream, all at once; whoever is through finds its readers gone. */
static pthread_barrier_t at_once;

static void *stop_at_once(void *stream)
{
    pthread_barrier_wait(&at_once);
    spt_recv_stream_stop(stream);
    CHECK_EQUAL(spt_recv_stream_port(stream), 0);
    return NULL;
}

static void *stop_only(void *stream)
{
    spt_recv_stream_stop(stream);
    return NULL;
}

static void *add_until_stopped(void *stream)
{
    spt_endpoint any = {"127.0.0.1", 0};
    pthread_barrier_wait(&at_once);
    while (spt_recv_stream_add_udp(stream, &any, NULL, NULL) == SPT_OK)
        continue;
    return NULL;
}

static void test_threads_that_stop_a_stream_at_once_all_wait_until_it_is(void)
{
    enum { READERS = 8, STOPPERS = 3, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        pool = spt_thread_pool_create(2, NULL, 0, NULL);
        REQUIRE(pool != NULL);
        int port, fd = listen_somewhere(&port);
        spt_recv_stream *receiver = new_receiver(drop);
        spt_stream *sender = new_sender(port, 1472);
        spt_heap *heap = new_heap();
        send_one(sender, heap, 1); /* so that readers have something to do */
        for (int i = 0; i < READERS; i++)
            REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
        pthread_t adder, stoppers[STOPPERS];
        pthread_barrier_init(&at_once, NULL, STOPPERS + 2);
        REQUIRE(pthread_create(&adder, NULL, add_until_stopped, receiver) == 0);
        for (int i = 0; i < STOPPERS; i++)
            REQUIRE(pthread_create(&stoppers[i], NULL, stop_at_once, receiver) == 0);
        pthread_barrier_wait(&at_once);
        if (round % 2)
            spt_thread_pool_stop(pool);
        pthread_join(adder, NULL);
        for (int i = 0; i < STOPPERS; i++)
            pthread_join(stoppers[i], NULL);
        pthread_barrier_destroy(&at_once);
        spt_recv_stream_destroy(receiver);
        spt_heap_destroy(heap);
        spt_stream_destroy(sender);
        close(fd);
        end_pool();
    }
}

static void test_who_destroys_a_stream_waits_for_who_stops_it(void)
{
    enum { READERS = 16, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        start_pool();
        spt_recv_stream *receiver = new_receiver(NULL);
        spt_endpoint any = {"127.0.0.1", 0};
        for (int i = 0; i < READERS; i++)
            REQUIRE(spt_recv_stream_add_udp(receiver, &any, NULL, NULL) == SPT_OK);
        pthread_t stopper;
        REQUIRE(pthread_create(&stopper, NULL, stop_only, receiver) == 0);
        spt_received_heap *none; /* until it has begun to stop */
        CHECK_EQUAL(spt_recv_stream_get(receiver, -1, &none), SPT_DONE);
        spt_recv_stream_destroy(receiver);
        pthread_join(stopper, NULL);
        end_pool();
    }
}

/* Memory that is counted, and that the worker may have to wait for. */
static struct {
    int away;       /* atomic */
    int asked_for;  /* atomic */
    int slow_from;  /* the how-manieth is not given before `go_on` */
    bool timed_out; /* nobody let it */
    sem_t go_on;
} counted;

static void *count_get(void *user, size_t size, const spt_received_packet *first)
{
    (void)user, (void)first;
    int asked_for = __atomic_add_fetch(&counted.asked_for, 1, __ATOMIC_SEQ_CST);
    if (asked_for == counted.slow_from) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2;
        counted.timed_out = counted.timed_out || sem_timedwait(&counted.go_on, &until) != 0;
    }
    __atomic_add_fetch(&counted.away, 1, __ATOMIC_SEQ_CST);
    return malloc(size);
}

static void count_put(void *user, void *memory, size_t size)
{
    (void)user, (void)size;
    __atomic_sub_fetch(&counted.away, 1, __ATOMIC_SEQ_CST);
    free(memory);
}

static void counting(spt_recv_config *config)
{
    config->heaps.memory = (spt_heap_memory){&counted, count_get, count_put};
}

static void only_one(spt_recv_config *config)
{
    counting(config);
    config->ring_heaps = 1;
}

static void test_the_memory_of_heaps_goes_back_with_them_after_the_end_too(void)
{
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(4, &size);
    counted.away = counted.asked_for = counted.slow_from = 0;
    spt_recv_stream *receiver = new_receiver(counting);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size, NULL) == SPT_OK);
    spt_received_heap *received[4], *none;
    for (int i = 0; i < 4; i++)
        REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received[i]) == SPT_OK);
    spt_recv_stream_return(receiver, received[0]); /* perhaps before the end, */
    CHECK_EQUAL(spt_recv_stream_get(receiver, LONG_NS, &none), SPT_DONE);
    for (int i = 1; i < 4; i++) /* and after it */
        spt_recv_stream_return(receiver, received[i]);
    CHECK_EQUAL(__atomic_load_n(&counted.away, __ATOMIC_SEQ_CST), 0);
    spt_recv_stream_destroy(receiver);
    free(bytes);
    end_pool();
}

static void test_a_heap_is_got_from_a_full_ring_without_waiting_for_a_worker_that_is_busy(void)
{
    start_pool();
    size_t size;
    uint8_t *bytes = in_memory(2, &size);
    counted.away = counted.asked_for = 0;
    counted.slow_from = 2;
    counted.timed_out = false;
    REQUIRE(sem_init(&counted.go_on, 0, 0) == 0);
    spt_recv_stream *receiver = new_receiver(only_one);
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, size, NULL) == SPT_OK);
    while (__atomic_load_n(&counted.asked_for, __ATOMIC_SEQ_CST) < 2)
        continue; /* until the ring is full, and the worker is in the middle of the next heap */
    spt_received_heap *received;
    REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
    sem_post(&counted.go_on);
    check_heap(received, 1);
    spt_recv_stream_return(receiver, received);
    REQUIRE(spt_recv_stream_get(receiver, LONG_NS, &received) == SPT_OK);
    check_heap(received, 2);
    spt_recv_stream_return(receiver, received);
    spt_recv_stream_destroy(receiver);
    CHECK(!counted.timed_out);
    sem_destroy(&counted.go_on);
    free(bytes);
    end_pool();
}

/* Looks at the counts of a socket until somebody says that it is enough: they never fall. */
static struct {
    spt_recv_stream *stream;
    int n, enough; /* atomic */
} looks;

static void *look_at_counts(void *none)
{
    spt_recv_stats stats;
    uint64_t before = 0, falls = 0;
    while (!__atomic_load_n(&looks.enough, __ATOMIC_SEQ_CST)) {
        spt_recv_stream_stats(looks.stream, &stats);
        falls += stats.sockets.datagrams < before;
        before = stats.sockets.datagrams;
        __atomic_add_fetch(&looks.n, 1, __ATOMIC_SEQ_CST);
    }
    CHECK_EQUAL(falls, 0);
    return none;
}

static void test_the_counts_of_sockets_do_not_fall_while_a_stream_is_stopped(void)
{
    enum { READERS = 16, ROUNDS = 50 };
    for (int round = 0; round < ROUNDS; round++) {
        start_pool();
        int port, fd = listen_somewhere(&port);
        spt_recv_stream *receiver = new_receiver(drop);
        for (int i = 0; i < READERS; i++)
            REQUIRE(spt_recv_stream_add_udp_socket(receiver, fd, NULL, NULL) == SPT_OK);
        spt_stream *sender = new_sender(port, 9000);
        spt_heap *heap = new_heap();
        send_one(sender, heap, 1);
        spt_recv_stats stats;
        do
            spt_recv_stream_stats(receiver, &stats);
        while (stats.account.heaps_complete == 0);
        looks.stream = receiver;
        looks.n = looks.enough = 0;
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, look_at_counts, NULL) == 0);
        while (__atomic_load_n(&looks.n, __ATOMIC_SEQ_CST) == 0)
            continue;
        spt_recv_stream_stop(receiver);
        __atomic_store_n(&looks.enough, 1, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
        spt_recv_stream_destroy(receiver);
        spt_heap_destroy(heap);
        spt_stream_destroy(sender);
        close(fd);
        end_pool();
    }
}

int main(void)
{
    RUN(test_what_is_sent_is_received_with_and_without_offload);
    RUN(test_a_full_ring_is_waited_for_and_nothing_is_lost);
    RUN(test_packets_that_were_read_and_not_looked_at_are_counted_when_a_stream_ends);
    RUN(test_a_full_ring_can_drop_and_says_how_many);
    RUN(test_packets_in_memory_are_received_and_their_end_is_that_of_the_stream);
    RUN(test_what_is_returned_can_be_used_again_while_a_reader_still_runs);
    RUN(test_incomplete_heaps_can_be_dropped_and_are_counted_then);
    RUN(test_a_stream_that_is_to_be_started_reads_nothing_before);
    RUN(test_the_descriptor_is_readable_while_there_is_something_to_get);
    RUN(test_a_datagram_that_is_too_long_or_no_packet_is_counted);
    RUN(test_a_port_is_free_once_the_stream_is_stopped_and_until_then_an_error_says_so);
    RUN(test_what_cannot_be_is_refused_in_words);
    RUN(test_a_stream_ends_with_its_pool_and_says_so_to_who_waits);
    RUN(test_waiting_ends_with_a_signal_and_with_its_time);
    RUN(test_streams_are_stopped_at_any_moment);
    RUN(test_threads_that_stop_a_stream_at_once_all_wait_until_it_is);
    RUN(test_who_destroys_a_stream_waits_for_who_stops_it);
    RUN(test_the_memory_of_heaps_goes_back_with_them_after_the_end_too);
    RUN(test_a_heap_is_got_from_a_full_ring_without_waiting_for_a_worker_that_is_busy);
    RUN(test_the_counts_of_sockets_do_not_fall_while_a_stream_is_stopped);
    return check_done();
}
