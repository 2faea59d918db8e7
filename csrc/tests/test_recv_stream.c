/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of recv_stream.c and datagrams.c: heaps that the sender sends, received. */
#define CHECK_CASES "", ", without a thread"
#define CHECK_AFTER end

#include "counted.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

enum { SIZE = 20000, HEAPS = 200, ROOM = 1 << 20, READERS = 16, ROUNDS = 50 };

/* ---- What tests have ------------------------------------------------------------------------- */

static spt_thread_pool *pool;
static spt_recv_stream *receiver;
static int listening = -1, port;
static spt_stream *sender; /* to there */
static spt_heap *heap;     /* that is sent, with the value of its count */
static uint8_t value[SIZE];
static uint8_t bytes[ROOM]; /* packets */
static size_t n_bytes;

static void end(void)
{
    END(spt_recv_stream, receiver);
    END(spt_heap, heap);
    END(spt_stream, sender);
    END(spt_thread_pool, pool);
    end_fd(&listening);
}

static void begin_receiver(const spt_recv_config *config)
{
    END(spt_recv_stream, receiver);
    receiver = NEW(spt_recv_stream_create(check_case == 0 ? pool : NULL, config, NULL));
}

static void begin(size_t n_threads)
{
    end();
    pool = new_pool(n_threads);
    heap = new_heap_of(value, SIZE);
    begin_receiver(RECV_CONFIG());
}

/* A receiver that listens, in so many readers, and a sender to it. */
static void begin_udp(size_t n_threads, const spt_recv_config *how, size_t packet_size, int readers)
{
    begin(n_threads);
    begin_receiver(how);
    listening = listen_on_loopback(&port, 1 << 22);
    for (int i = 0; i < readers; i++)
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, listening, NULL, NULL) == SPT_OK);
    spt_endpoint endpoint = {"127.0.0.1", port};
    const spt_stream_config *config = STREAM_CONFIG(its.max_packet_size = packet_size);
    sender = NEW(spt_stream_create_udp(pool, &endpoint, 1, config, NULL, NULL));
}

static void send_heaps(uint64_t first, uint64_t last)
{
    for (uint64_t cnt = first; cnt <= last; cnt++) {
        for (size_t i = 0; i < SIZE; i++)
            value[i] = byte_of(cnt, i);
        send_and_wait(sender, heap, (int64_t)cnt);
    }
}

/* Packets of so many heaps in memory, and of the end. */
static void begin_memory(uint64_t n)
{
    begin(1);
    sender = new_memory_stream(pool);
    send_heaps(1, n);
    REQUIRE(spt_stream_send_end(sender, NULL, NULL) == SPT_OK);
    n_bytes = spt_stream_memory(sender, bytes, ROOM);
    REQUIRE(n_bytes <= ROOM);
}

static void add_memory(size_t n)
{
    REQUIRE(spt_recv_stream_add_memory(receiver, bytes, n, NULL) == SPT_OK);
}

static void check_heap(const spt_received_heap *got, uint64_t cnt)
{
    CHECK_EQUAL(got->cnt, cnt, got->state, SPT_HEAP_COMPLETE, got->length, SIZE,
                got->received_length, SIZE);
    check_payload(got);
}

/* The next heaps are these. */
static void check_heaps(uint64_t first, uint64_t last)
{
    for (uint64_t cnt = first; cnt <= last; cnt++) {
        spt_received_heap *got = get_heap_of(receiver);
        check_heap(got, cnt);
        spt_recv_stream_return(receiver, got);
    }
}

/* Without a thread who asks for a heap has others read, too. Returns how many this has got. */
static uint64_t begin_reading(void)
{
    if (check_case == 1)
        check_heaps(1, 1);
    return check_case == 1;
}

static spt_status get_none(int64_t timeout_ns)
{
    return get_none_of(receiver, timeout_ns);
}

static spt_recv_stats stats(void)
{
    return stats_of(receiver);
}

/* ---- One after the other --------------------------------------------------------------------- */

TEST(what_is_sent_is_received_with_and_without_offload)
{
    for (int gro = 0; gro < 2; gro++) {
        begin_udp(1, RECV_CONFIG(), 1472, 0);
        const spt_receive_config *how = RECEIVE_CONFIG(its.gro = gro);
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, listening, how, NULL) == SPT_OK);
        end_fd(&listening); /* it has been duplicated */
        for (uint64_t cnt = 1; cnt <= HEAPS; cnt++) {
            send_heaps(cnt, cnt);
            check_heaps(cnt, cnt);
        }
        REQUIRE(spt_stream_send_end(sender, NULL, NULL) == SPT_OK);
        CHECK_EQUAL(get_none(LONG_NS), SPT_DONE);
        spt_recv_stats now = stats();
        CHECK_EQUAL(now.account.heaps_complete, HEAPS, now.account.heaps_never_begun, 0);
        CHECK_EQUAL(now.account.heaps_dropped, 1); /* that of the end */
        CHECK_EQUAL(now.sockets.dropped, 0, now.sockets.datagrams, now.account.packets);
        CHECK(gro || now.sockets.messages == now.sockets.datagrams);
        CHECK(now.sockets.messages <= now.sockets.datagrams);
    }
}

TEST(a_full_ring_is_waited_for_and_what_was_read_is_received_or_counted)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        begin_udp(1, RECV_CONFIG(), 9000, 0);
        send_heaps(1, 20); /* before anybody reads: many come with a call, and the ring has 4 */
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, listening, NULL, NULL) == SPT_OK);
        uint64_t n = begin_reading();
        while (n == 0 && stats().ring_waits == 0)
            continue;
        if (stopped)
            spt_recv_stream_stop(receiver);
        else
            check_heaps(n + 1, 20);
        CHECK_EQUAL(stats().ring_dropped, 0);
        CHECK(n > 0 || (stats().longest_ring_wait_ns > 0 && (stats().after_end > 0) == stopped));
        CHECK(!stopped || stats().account.packets + stats().after_end == stats().sockets.datagrams);
    }
}

/* Without a thread nothing is read while the ring is full. */
TEST_ONCE(a_full_ring_can_drop_and_says_how_many)
{
    begin_udp(1, RECV_CONFIG(its.drop_when_full = true), 9000, 1);
    send_heaps(1, 20);
    while (stats().account.heaps_complete < 20)
        continue;
    CHECK_EQUAL(stats().ring_dropped, 16, stats().ring_waits, 0);
    spt_recv_stream_stop(receiver);
    check_heaps(1, 4);
    CHECK_EQUAL(get_none(-1), SPT_DONE);
}

TEST(a_heap_that_is_cut_off_is_incomplete_or_dropped_and_counted)
{
    begin_memory(30); /* of which four fit into the ring */
    for (int dropped = 0; dropped < 2; dropped++) {
        begin_receiver(RECV_CONFIG(its.contiguous_only = dropped));
        add_memory(n_bytes - 49 - 8 - 1472);
        check_heaps(1, 29);
        if (!dropped) {
            spt_received_heap *got = get_heap_of(receiver);
            CHECK_EQUAL(got->state, SPT_HEAP_INCOMPLETE);
            spt_recv_stream_return(receiver, got);
        }
        CHECK_EQUAL(get_none(LONG_NS), SPT_DONE);
    }
    spt_recv_stats now = stats();
    CHECK_EQUAL(now.incomplete_dropped, 1, now.incomplete_cnt, 30, now.incomplete_length, SIZE);
    CHECK(now.incomplete_received > 0 && now.incomplete_received < SIZE);
    CHECK(now.batches > 0 && now.max_batch > 0);
    CHECK(now.max_batch * now.batches >= now.account.packets);
}

TEST(a_stream_that_is_to_be_started_reads_nothing_before_and_ends_with_its_packets)
{
    const spt_recv_config *to_be_started = RECV_CONFIG(its.explicit_start = true);
    spt_error err = {0};
    begin_memory(3);
    begin_receiver(to_be_started);
    add_memory(n_bytes);
    CHECK_EQUAL(get_none(10000000), SPT_PENDING);
    CHECK_EQUAL(spt_recv_stream_start(receiver, NULL), SPT_OK);
    check_heaps(1, 3);
    CHECK_EQUAL(get_none(LONG_NS), SPT_DONE, spt_recv_stream_port(receiver), 0);
    CHECK_EQUAL(spt_recv_stream_start(receiver, &err), SPT_ERR_STOPPED);
    CHECK_REFUSED(SPT_ERR_STOPPED, "", spt_recv_stream_add_memory(receiver, bytes, 1, &err));

    begin_receiver(to_be_started); /* one that is never started, and one too late */
    REQUIRE(spt_recv_stream_start(receiver, NULL) == SPT_OK);
    CHECK_EQUAL(spt_recv_stream_add_memory(receiver, bytes, n_bytes, &err), SPT_ERR_BUSY);
    begin_receiver(to_be_started);
    add_memory(n_bytes);
}

TEST(the_descriptor_is_readable_while_there_is_something_to_get)
{
    begin_udp(1, RECV_CONFIG(), 9000, 1);
    int fd = spt_recv_stream_fd(receiver);
    CHECK_EQUAL(get_none(0), SPT_PENDING, is_readable(fd, 0), false);
    CHECK_EQUAL(spt_recv_stream_fd(receiver), fd, is_readable(fd, 0), false); /* asked again */
    for (uint64_t cnt = 1; cnt <= 6; cnt += 2) {
        send_heaps(cnt, cnt + 1);
        for (uint64_t i = 0; i < 2; i++) {
            REQUIRE(is_readable(fd, 2000));
            check_heaps(cnt + i, cnt + i);
        }
        CHECK_EQUAL(get_none(0), SPT_PENDING, is_readable(fd, 0), false);
    }
    spt_recv_stream_stop(receiver);
    CHECK_EQUAL(is_readable(fd, 2000), true, get_none(0), SPT_DONE, is_readable(fd, 0), true);
}

TEST(how_long_nobody_read_is_counted_but_for_when_an_event_loop_would)
{
    begin_udp(1, RECV_CONFIG(), 9000, 1);
    CHECK_EQUAL(stats().longest_unread_ns, 0);
    send_heaps(1, 1);
    check_heaps(1, 1);
    uint64_t before = stats().longest_unread_ns; /* since there is a reader */
    CHECK_EQUAL(before > 0, check_case == 1);
    usleep((useconds_t)(before / 1000) + 2000);
    spt_recv_stream_stop(receiver);
    CHECK_EQUAL(stats().longest_unread_ns > before, check_case == 1);

    begin_udp(1, RECV_CONFIG(), 9000, 1);
    int fd = spt_recv_stream_fd(receiver);
    CHECK_EQUAL(get_none(0), SPT_PENDING);
    before = stats().longest_unread_ns;
    CHECK_EQUAL(is_readable(fd, (int)(before / 1000000) + 2), false, get_none(0), SPT_PENDING);
    CHECK_EQUAL(stats().longest_unread_ns, before);
}

TEST(a_datagram_that_is_too_long_or_no_packet_is_counted)
{
    static const uint8_t datagram[3000] = {0x53, 4};
    static const size_t sizes[] = {0, 1, 100, 101, 3000};
    for (int gro = 0; gro < 2; gro++) {
        begin_udp(1, RECV_CONFIG(), 9000, 0);
        const spt_receive_config *how = RECEIVE_CONFIG(its.max_size = 100, its.gro = gro);
        REQUIRE(spt_recv_stream_add_udp_socket(receiver, listening, how, NULL) == SPT_OK);
        OWN_FD int out = connect_to_loopback(port);
        for (int i = 0; i < 5; i++)
            REQUIRE(send(out, datagram, sizes[i], 0) >= 0);
        while (stats().account.packets < 5)
            CHECK_EQUAL(get_none(0), SPT_PENDING);
        spt_account a = stats().account;
        CHECK_EQUAL(a.faults[SPT_FAULT_HEADER], 2, a.faults[SPT_FAULT_FLAVOUR], 1);
        CHECK_EQUAL(a.faults[SPT_FAULT_SURPLUS], 2, stats().sockets.datagrams, a.packets);
    }
}

TEST(a_port_is_free_once_the_stream_is_stopped_and_until_then_an_error_says_so)
{
    begin(1);
    close(listen_on_loopback(&port, 4096));
    spt_endpoint endpoint = {"127.0.0.1", port};
    OWN(spt_recv_stream) other = new_receiver(pool);
    spt_error err = {0};
    REQUIRE(spt_recv_stream_add_udp(receiver, &endpoint, NULL, NULL) == SPT_OK);
    CHECK_EQUAL(spt_recv_stream_add_udp(other, &endpoint, NULL, &err), SPT_ERR_SYSTEM);
    CHECK_EQUAL(err.sys_errno, EADDRINUSE);
    CHECK_WORDS(err.message, "is in use");
    spt_recv_stream_stop(receiver);
    spt_recv_stream_stop(receiver);
    CHECK_EQUAL(spt_recv_stream_port(receiver), 0);
    CHECK_EQUAL(spt_recv_stream_add_udp(other, &endpoint, NULL, &err), SPT_OK);
    CHECK_EQUAL(spt_recv_stream_port(other), port);
    const char *any[] = {"127.0.0.1", "::1"};
    for (int i = 0; i < 1 + has_ipv6(); i++) { /* the system chooses another one each time */
        endpoint = (spt_endpoint){any[i], 0};
        REQUIRE(spt_recv_stream_add_udp(other, &endpoint, NULL, &err) == SPT_OK);
        CHECK(spt_recv_stream_port(other) > 0 && spt_recv_stream_port(other) != port);
        port = spt_recv_stream_port(other);
    }
    spt_recv_stream_destroy(NULL);
}

TEST(what_cannot_be_is_refused_in_words)
{
    static const spt_endpoint nowhere[] = {{"no such host", 8888}, {"", 70000}, {"", -1}};
    static const spt_endpoint any = {"", 0};
    begin(1);
    for (int i = 0; i < 3; i++)
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "",
                      spt_recv_stream_add_udp(receiver, &nowhere[i], NULL, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "",
                  spt_recv_stream_add_udp(receiver, &any, RECEIVE_CONFIG(its.max_size = 0), &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_recv_stream_add_udp_socket(receiver, -1, NULL, &err));
    OWN_FD int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "", spt_recv_stream_add_udp_socket(receiver, file, NULL, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "",
                  spt_recv_stream_create(pool, RECV_CONFIG(its.ring_heaps = 0), &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "",
                  spt_recv_stream_create(pool, RECV_CONFIG(its.heaps.max_heaps = 0), &err));
}

TEST_ONCE(a_stream_ends_with_its_pool_and_says_so_to_who_waits)
{
    begin_udp(1, RECV_CONFIG(), 9000, 1);
    spt_thread_pool_stop(pool);
    CHECK_EQUAL(get_none(-1), SPT_DONE);
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

TEST(waiting_ends_with_a_signal_and_with_its_time)
{
    begin(1);
    CHECK_EQUAL(get_none(1000000), SPT_PENDING);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = nothing}, NULL);
    pthread_t self = pthread_self(), other = start_thread(interrupt, &self);
    CHECK_EQUAL(get_none(-1), SPT_PENDING);
    pthread_join(other, NULL);
}

/* ---- All at once, for the sanitizers to watch ------------------------------------------------ */

enum { MANY = 10000, GETTERS = 4 };

/* Heaps of a byte: the ring is full, and empty, all the time. */
static void add_many(void)
{
    OWN(spt_heap) small = new_heap_of(value, 1);
    sender = new_memory_stream(pool);
    for (int i = 0; i < MANY; i++)
        send_and_wait(sender, small, -1);
    REQUIRE(spt_stream_send_end(sender, NULL, NULL) == SPT_OK);
    n_bytes = spt_stream_memory(sender, bytes, ROOM);
    add_memory(n_bytes);
}

static void *get_a_share(void *none)
{
    for (int i = 0; i < MANY / GETTERS; i++) {
        spt_received_heap *got;
        REQUIRE(spt_recv_stream_get(receiver, -1, &got) == SPT_OK);
        spt_recv_stream_return(receiver, got);
    }
    return none;
}

TEST(who_waits_gets_what_others_leave)
{
    for (int round = 0; round < 5; round++) {
        begin(1);
        pthread_t threads[GETTERS];
        for (int i = 0; i < GETTERS; i++)
            threads[i] = start_thread(get_a_share, NULL);
        add_many();
        for (int i = 0; i < GETTERS; i++)
            pthread_join(threads[i], NULL);
        CHECK_EQUAL(get_none(-1), SPT_DONE, stats().account.heaps_complete, MANY);
    }
}

/* Those who stop a stream, all at once; whoever is through finds its readers gone. */
static pthread_barrier_t at_once;

static void *stop_at_once(void *none)
{
    pthread_barrier_wait(&at_once);
    spt_recv_stream_stop(receiver);
    CHECK_EQUAL(spt_recv_stream_port(receiver), 0);
    return none;
}

static void *stop_only(void *stream)
{
    spt_recv_stream_stop(stream);
    return NULL;
}

static void *add_until_stopped(void *none)
{
    spt_endpoint any = {"127.0.0.1", 0};
    pthread_barrier_wait(&at_once);
    while (spt_recv_stream_add_udp(receiver, &any, NULL, NULL) == SPT_OK)
        continue;
    return none;
}

/* Looks at the counts of sockets until somebody says that it is enough. */
static _Atomic bool enough, looked;

static void *look_at_counts(void *none)
{
    uint64_t before = 0, falls = 0;
    while (!enough) {
        uint64_t now = stats().sockets.datagrams;
        falls += now < before;
        before = now;
        looked = now > 0;
    }
    CHECK_EQUAL(falls, 0);
    return none;
}

TEST(threads_that_stop_a_stream_at_any_moment_all_wait_until_it_is_and_no_count_falls)
{
    for (int round = 0; round < ROUNDS; round++) {
        begin_udp(2, RECV_CONFIG(its.drop_when_full = round % 2), 1472, 8);
        pthread_barrier_init(&at_once, NULL, 5);
        void *(*const run[])(void *) = {get_all_heaps, get_all_heaps, add_until_stopped,
                                        stop_at_once,  stop_at_once,  stop_at_once};
        pthread_t threads[LENGTH(run)];
        for (size_t i = 0; i < LENGTH(run); i++)
            threads[i] = start_thread(run[i], receiver);
        enough = looked = false;
        pthread_t looks = start_thread(look_at_counts, NULL);
        for (int i = 0; i <= round % 10; i++)
            send_and_wait(sender, heap, -1);
        while (!looked)
            sched_yield();
        pthread_barrier_wait(&at_once);
        if (round % 4 < 2)
            spt_thread_pool_stop(pool);
        for (size_t i = 0; i < LENGTH(run); i++)
            pthread_join(threads[i], NULL);
        enough = true;
        pthread_join(looks, NULL);
        pthread_barrier_destroy(&at_once);
    }
}

TEST(who_destroys_a_stream_waits_for_who_stops_it)
{
    const spt_endpoint any = {"127.0.0.1", 0};
    for (int round = 0; round < ROUNDS; round++) {
        begin(1);
        for (int i = 0; i < READERS; i++)
            REQUIRE(spt_recv_stream_add_udp(receiver, &any, NULL, NULL) == SPT_OK);
        pthread_t stopper = start_thread(stop_only, receiver);
        CHECK_EQUAL(get_none(-1), SPT_DONE); /* until it has begun to stop */
        END(spt_recv_stream, receiver);
        pthread_join(stopper, NULL);
    }
}

/* ---- Memory that is counted, and that the worker may have to wait for ------------------------ */

static bool in_turn; /* each is given when the one before has been `returned` */
static _Atomic size_t returned;

static void *get_in_turn(void *user, size_t size, const spt_received_packet *first)
{
    void *memory = get_counted(user, size, first);
    while (in_turn && returned + 1 < counted.calls)
        sched_yield();
    return memory;
}

/* Receive four heaps, through a ring with so much room. */
static void begin_counted(size_t ring_heaps, bool each_in_turn)
{
    memset(&counted, 0, sizeof(counted));
    in_turn = each_in_turn;
    returned = 0;
    spt_heap_memory memory = {&counted, get_in_turn, put_counted};
    begin_memory(4);
    begin_receiver(RECV_CONFIG(its.heaps.memory = memory, its.ring_heaps = ring_heaps));
    add_memory(n_bytes);
}

TEST_ONCE(heaps_are_got_and_used_again_while_a_worker_is_in_the_middle_of_the_next)
{
    for (size_t room = 1; room <= 4; room += 3) {
        begin_counted(room, true);
        for (int i = 1; i <= 4; i++) {
            while (i < 4 && counted.calls <= (size_t)i)
                sched_yield();
            spt_received_heap *got = NULL;
            while (spt_recv_stream_get(receiver, 0, &got) == SPT_PENDING)
                sched_yield();
            check_heap(NEW(got), (uint64_t)i);
            spt_recv_stream_return(receiver, got);
            returned++;
        }
        CHECK_EQUAL(get_none(LONG_NS), SPT_DONE);
        END(spt_recv_stream, receiver);
        CHECK_EQUAL(counted.most_away, 2); /* one is put back when the next is finished */
    }
}

TEST(the_memory_of_heaps_goes_back_with_them_after_the_end_too)
{
    begin_counted(4, false);
    spt_received_heap *got[4];
    for (int i = 0; i < 4; i++)
        got[i] = get_heap_of(receiver);
    spt_recv_stream_return(receiver, got[0]); /* perhaps before the end, */
    CHECK_EQUAL(get_none(LONG_NS), SPT_DONE);
    for (int i = 1; i < 4; i++) /* and after it */
        spt_recv_stream_return(receiver, got[i]);
    CHECK_EQUAL(counted.away, 0);
}
