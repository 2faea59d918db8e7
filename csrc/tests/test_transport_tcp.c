/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport_tcp.c and source_tcp.c: packets through a connection, whatever its
 * other end does. */
#define CHECK_CASES "", ", without a thread"
#define CHECK_AFTER end

#include "reader.h"
#include "support.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { SIZE = 3000000, HEAPS = 5, PAYLOAD = 1000 };

static spt_thread_pool *pool; /* or NULL: who sends and who gets does the work */
static spt_stream *sender;
static spt_recv_stream *receiver;
static spt_heap *heap;
static int other = -1; /* end of a connection, which the test has itself */
static uint8_t value[SIZE];
static made_packet packet;

static void end(void)
{
    END(spt_stream, sender);
    END(spt_recv_stream, receiver);
    END(spt_thread_pool, pool);
    END(spt_heap, heap);
    end_fd(&other);
}

static void begin(size_t n_bytes)
{
    pool = check_case == 0 ? new_pool(2) : NULL;
    for (size_t i = 0; i < n_bytes; i++)
        value[i] = byte_of(0, i);
    heap = new_heap_of(value, n_bytes);
}

static int begin_receiver(size_t max_size)
{
    spt_endpoint any = {"127.0.0.1", 0};
    spt_receive_config config = SPT_RECEIVE_TCP_CONFIG_DEFAULT;
    config.max_size = max_size;
    receiver = new_receiver(pool);
    REQUIRE(spt_recv_stream_add_tcp(receiver, &any, &config, NULL) == SPT_OK);
    return spt_recv_stream_port(receiver);
}

static void begin_sender(int port, size_t packet_size)
{
    spt_endpoint there = {"127.0.0.1", port};
    const spt_stream_config *config =
        STREAM_CONFIG(its.max_packet_size = packet_size, its.max_heaps = HEAPS);
    sender = NEW(spt_stream_create_tcp(pool, &there, config, NULL, NULL));
}

/* A sender to the test itself. */
static void begin_sender_to_test(size_t packet_size)
{
    int port, listening = listen_for_connections(&port, 1);
    begin_sender(port, packet_size);
    other = accept(listening, NULL, NULL);
    REQUIRE(other >= 0);
    close(listening);
}

static void put(const void *bytes, size_t n)
{
    REQUIRE(send(other, bytes, n, MSG_NOSIGNAL) == (ssize_t)n);
}

/* A packet that is a heap. */
static void make_one_of(uint64_t cnt, size_t n_bytes)
{
    make_part(&packet, cnt, (int64_t)n_bytes, 0, n_bytes);
    make_end_of(&packet, cnt, 0, n_bytes);
}

static void make_one(uint64_t cnt)
{
    make_one_of(cnt, PAYLOAD);
}

static void put_one(uint64_t cnt)
{
    make_one(cnt);
    put(packet.bytes, packet.size);
}

/* A receiver that has received a heap from the test. */
static void begin_receiver_from_test(void)
{
    other = connect_as(SOCK_STREAM, begin_receiver(65536));
    put_one(1);
    spt_recv_stream_return(receiver, get_heap_of(receiver));
}

TEST(heaps_larger_than_all_buffers_come_through_whole)
{
    begin(SIZE);
    begin_sender(begin_receiver(65536), 9000);
    spt_completion sent[HEAPS] = {0};
    for (int i = 0; i < HEAPS; i++)
        REQUIRE(spt_stream_send_heap(sender, heap, &sent[i], NULL) == SPT_OK);
    if (pool == NULL) { /* each of them would wait for the other */
        END(spt_stream, sender);
        CHECK_EQUAL(take_all_heaps(receiver), 0);
        return;
    }
    for (int i = 0; i < HEAPS; i++) {
        spt_received_heap *got = get_heap_of(receiver);
        CHECK_EQUAL(got->received_length, SIZE);
        CHECK_BYTES(got->payload, value, SIZE);
        spt_recv_stream_return(receiver, got);
        CHECK_EQUAL(spt_stream_wait(sender, &sent[i], LONG_NS, NULL), SPT_OK);
    }
    spt_stats stats = stats_of_sender(sender);
    spt_recv_stats received = stats_of(receiver);
    CHECK_EQUAL(received.account.packets, stats.packets, received.sockets.bytes, stats.bytes,
                received.sockets.datagrams, stats.packets);
    CHECK(stats.waits > 0 && received.sockets.buffer_size > 0);
    END(spt_stream, sender);
    CHECK_EQUAL(take_all_heaps(receiver), 0, stats_of(receiver).sys_errno, 0);
}

TEST(a_sender_is_told_where_nobody_listens)
{
    int port;
    close(listen_for_connections(&port, 1));
    spt_endpoint nobody = {"localhost", port};
    const spt_stream_config *config = STREAM_CONFIG();
    CHECK_REFUSED(SPT_ERR_SYSTEM, "is the receiver listening there?",
                  spt_stream_create_tcp(NULL, &nobody, config, NULL, &err));
    spt_tcp_config from = {0, "198.51.100.1"};
    CHECK_REFUSED(SPT_ERR_SYSTEM, "interface address '198.51.100.1'",
                  spt_stream_create_tcp(NULL, &nobody, config, &from, &err));
    OWN_FD int datagrams = listen_on_loopback(&port, 4096);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "not a TCP socket",
                  spt_stream_create_tcp_socket(NULL, datagrams, config, &err));
    OWN_FD int alone = bind_to_loopback(SOCK_STREAM, &port);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "has to be connected",
                  spt_stream_create_tcp_socket(NULL, alone, config, &err));
    receiver = new_receiver(NULL);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "call its listen() first",
                  spt_recv_stream_add_tcp_socket(receiver, alone, NULL, &err));
    spt_receive_config none = {0};
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "max_size is 0",
                  spt_recv_stream_add_tcp_socket(receiver, alone, &none, &err));
    OWN_FD int listening = listen_for_connections(&port, 1);
    spt_endpoint taken = {"127.0.0.1", port};
    CHECK_REFUSED(SPT_ERR_SYSTEM, "in use", spt_recv_stream_add_tcp(receiver, &taken, NULL, &err));
}

TEST(names_with_addresses_of_both_kinds_find_who_listens_at_one)
{
    begin(PAYLOAD);
    spt_endpoint there = {"localhost", begin_receiver(65536)};
    spt_error err = {.status = SPT_OK};
    sender = NEW(spt_stream_create_tcp(pool, &there, STREAM_CONFIG(), NULL, &err));
    CHECK_EQUAL(err.status, SPT_OK); /* nothing of the address where nobody listens */
    send_and_wait(sender, heap, 1);
    END(spt_stream, sender);
    CHECK_EQUAL(take_all_heaps(receiver), 1);
}

TEST(packets_are_found_however_they_are_cut_and_malformed_ones_and_one_cut_off_are_counted)
{
    begin(1);
    other = connect_as(SOCK_STREAM, begin_receiver(65536));
    make_one(1);
    for (size_t i = 0; i < packet.size; i++)
        put(packet.bytes + i, 1);
    make_part(&packet, 1, 10, 0, 20); /* beyond its heap, but it says how long it is */
    make_end_of(&packet, 1, 0, 20);
    put(packet.bytes, packet.size);
    put_one(2);
    make_one(3);
    put(packet.bytes, packet.size - 1);
    end_fd(&other);
    CHECK_EQUAL(take_all_heaps(receiver), 2);
    spt_recv_stats stats = stats_of(receiver);
    CHECK_EQUAL(stats.account.faults[SPT_FAULT_PAYLOAD], 1, stats.account.packets, 4,
                stats.account.faults[SPT_FAULT_BEYOND], 1, stats.sys_errno, 0);
}

TEST(a_connection_that_is_reset_ends_the_stream_with_that_error)
{
    begin(1);
    begin_receiver_from_test();
    struct linger now = {1, 0};
    REQUIRE(setsockopt(other, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) == 0);
    end_fd(&other);
    CHECK_EQUAL(take_all_heaps(receiver), 0, stats_of(receiver).sys_errno, ECONNRESET);
}

TEST(a_connection_ends_at_either_end_although_a_child_of_the_process_has_it)
{
    for (int which = 0; which < 2; which++) {
        begin(1);
        if (which == 0)
            begin_sender_to_test(9000);
        else
            begin_receiver_from_test();
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            pause();
        }
        END(spt_stream, sender);
        END(spt_recv_stream, receiver);
        CHECK(is_readable(other, 10000)); /* nothing but the end */
        kill(child, SIGKILL);
        CHECK_EQUAL(waitpid(child, NULL, 0), child);
        end();
    }
}

/* After a good packet something else comes. */
static void check_end(const void *bytes, size_t n, spt_fault fault)
{
    end();
    begin(1);
    other = connect_as(SOCK_STREAM, begin_receiver(2000));
    put_one(1);
    put(bytes, n);
    CHECK_EQUAL(take_all_heaps(receiver), 1);
    spt_recv_stats stats = stats_of(receiver);
    CHECK_EQUAL(stats.account.faults[fault], 1, stats.account.packets, 2, stats.sys_errno, EPROTO);
    /* It does not read on: the sender is told, sooner or later. */
    CHECK(is_readable(other, 10000));
}

TEST(behind_what_does_not_say_how_long_it_is_nothing_is_looked_for)
{
    check_end("not a packet", 12, SPT_FAULT_HEADER);
    check_end("S\4\0\10\0\0\0\0", 8, SPT_FAULT_FLAVOUR);
    static made_packet bad;
    make_begin(&bad, 40);
    make_add(&bad, true, 1, 1);
    make_end(&bad, value, 0);
    check_end(bad.bytes, bad.size, SPT_FAULT_MISSING);
    static uint8_t pointers[8 + 8 * 0xffff]; /* as many as there can be, none of the length */
    memcpy(pointers, "S\4\3\5\0\0\377\377", 8);
    check_end(pointers, sizeof(pointers), SPT_FAULT_MISSING);
}

/* ---- Packets that are too long --------------------------------------------------------------- */

enum { MAX_SIZE = 120, SMALL = 40 }; /* bytes of a packet, and of a small one's payload */

static made_series series;
static size_t n_good; /* of its packets, which are heaps; the others are too long */

static void add_sized(uint64_t cnt, size_t n_pointers, size_t n_bytes)
{
    make_part(&packet, cnt, (int64_t)n_bytes, 0, n_bytes);
    for (size_t i = 0; i < n_pointers; i++)
        make_add(&packet, false, 0x2000 + i, 0);
    make_end_of(&packet, cnt, 0, n_bytes);
    n_good += packet.size <= MAX_SIZE;
    series_add(&series, &packet);
}

/* All kinds of them, before, between and after others; some are all but packets inside. */
static void make_too_long(void)
{
    series.n = n_good = 0;
    add_sized(1, 0, MAX_SIZE + 1);
    add_sized(2, 0, SMALL);
    add_sized(3, 0, MAX_SIZE - 40 + 1);
    add_sized(4, 0, 3 * MAX_SIZE);
    add_sized(5, 0, MAX_SIZE - 40);
    add_sized(6, MAX_SIZE / 8, SMALL); /* of its pointers alone */
    add_sized(7, MAX_SIZE / 8, 0);
    add_sized(8, 0, SMALL);
    made_packet inside = packet;
    make_part(&packet, 9, MAX_SIZE, 0, MAX_SIZE);
    make_end(&packet, inside.bytes, MAX_SIZE);
    series_add(&series, &packet);
    add_sized(10, 0, SMALL);
}

/* Send in pieces of at most so many bytes: without a thread, each is read before the next is sent.
 * Returns how many heaps there were. */
static uint64_t put_in_pieces(const uint8_t *bytes, size_t size, uint64_t longest, uint64_t *state)
{
    uint64_t n_heaps = 0;
    for (size_t at = 0, n; at < size; at += n) {
        n = 1 + draw(state, longest);
        n = n < size - at ? n : size - at;
        put(bytes + at, n);
        spt_received_heap *got;
        for (; spt_recv_stream_get(receiver, 0, &got) == SPT_OK; n_heaps++) {
            check_payload(got);
            spt_recv_stream_return(receiver, got);
        }
    }
    return n_heaps;
}

/* Send the series, and check what becomes of it. */
static void check_series(uint64_t longest, uint64_t *state)
{
    end();
    begin(1);
    other = connect_as(SOCK_STREAM, begin_receiver(MAX_SIZE));
    size_t size = series.at[series.n];
    uint64_t n_heaps = put_in_pieces(series.bytes, size, longest, state);
    end_fd(&other);
    n_heaps += take_all_heaps(receiver);
    spt_recv_stats stats = stats_of(receiver);
    CHECK_EQUAL(n_heaps, n_good, stats.account.packets, series.n, stats.sys_errno, 0,
                stats.account.faults[SPT_FAULT_SURPLUS], series.n - n_good, stats.sockets.bytes,
                size, stats.sockets.datagrams, series.n);
}

TEST(packets_that_are_too_long_are_passed_over_however_they_are_cut)
{
    uint64_t state = 1;
    make_too_long();
    CHECK(n_good == 4 && series.n == 10);
    check_series(1, &state); /* wherever two bytes meet */
    for (uint64_t i = 0; i < 40; i++)
        check_series(1 + draw(&state, 2 * MAX_SIZE << i % 4), &state);
}

TEST(a_packet_that_is_too_long_is_counted_at_once_and_once_though_its_end_never_comes)
{
    static const uint64_t claims[] = {MAX_SIZE, UINT64_C(1) << 39, (UINT64_C(1) << 47) + 1};
    static uint8_t some[1 << 20];
    uint64_t state = 1;
    for (size_t i = 0; i < LENGTH(claims); i++) {
        end();
        begin(1);
        other = connect_as(SOCK_STREAM, begin_receiver(MAX_SIZE));
        make_part_as(&packet, 48, 1, (int64_t)claims[i], 0, claims[i]);
        make_end(&packet, value, 0);
        put(packet.bytes, packet.size);
        while (stats_of(receiver).account.packets == 0)
            CHECK_EQUAL(get_none_of(receiver, 1000000), SPT_PENDING);
        size_t n = i == 0 ? MAX_SIZE - 1 : sizeof(some);
        CHECK_EQUAL(put_in_pieces(some, n, 1 << 16, &state), 0);
        end_fd(&other);
        CHECK_EQUAL(take_all_heaps(receiver), 0);
        spt_recv_stats stats = stats_of(receiver);
        CHECK_EQUAL(stats.account.packets, 1, stats.account.faults[SPT_FAULT_SURPLUS], 1,
                    stats.sys_errno, 0, stats.sockets.bytes, packet.size + n);
    }
}

TEST(a_packet_of_more_pointers_than_max_size_has_room_for_is_passed_over)
{
    static uint8_t bytes[8 + 8 * 0xffff + SMALL];
    uint64_t state = 1;
    begin(1);
    other = connect_as(SOCK_STREAM, begin_receiver(MAX_SIZE));
    memcpy(bytes, "S\4\3\5\0\0\377\377", 8); /* padding, and as the last one the length */
    make_put(bytes + 8 * 0xffff, make_immediate(40, 4, SMALL), 8);
    uint64_t n_heaps = put_in_pieces(bytes, sizeof(bytes), 1 << 16, &state);
    make_one_of(1, SMALL);
    put(packet.bytes, packet.size);
    end_fd(&other);
    CHECK_EQUAL(n_heaps + take_all_heaps(receiver), 1);
    spt_recv_stats stats = stats_of(receiver);
    CHECK_EQUAL(stats.account.packets, 2, stats.account.faults[SPT_FAULT_SURPLUS], 1);
}

TEST(packets_behind_one_that_ends_the_stream_are_counted_though_they_are_too_long)
{
    begin(1);
    other = connect_as(SOCK_STREAM, begin_receiver(MAX_SIZE));
    series.n = n_good = 0;
    make_part(&packet, 1, 0, 0, 0);
    make_add(&packet, true, 6, 2); /* stop */
    make_end(&packet, value, 0);
    series_add(&series, &packet);
    add_sized(2, 0, 3 * MAX_SIZE);
    add_sized(3, 0, SMALL);
    add_sized(4, 0, 3 * MAX_SIZE);
    put(series.bytes, series.at[series.n] - 1);
    CHECK_EQUAL(take_all_heaps(receiver), 0);
    CHECK_EQUAL(stats_of(receiver).account.packets, 1);
    CHECK(pool != NULL || stats_of(receiver).after_end == 3);
}

TEST(a_reader_takes_one_connection_and_the_first)
{
    begin(1);
    int port, listening = listen_for_connections(&port, 1);
    receiver = new_receiver(pool);
    REQUIRE(spt_recv_stream_add_tcp_socket(receiver, listening, NULL, NULL) == SPT_OK);
    CHECK_EQUAL(spt_recv_stream_port(receiver), port);
    close(listening);
    other = connect_as(SOCK_STREAM, port);
    put_one(1);
    spt_recv_stream_return(receiver, get_heap_of(receiver));
    struct sockaddr_in address = on_loopback(port);
    OWN_FD int second = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQUAL(connect(second, (struct sockaddr *)&address, sizeof(address)), -1);
    CHECK_EQUAL(errno, ECONNREFUSED);
}

TEST(all_heaps_fail_once_the_receiver_is_gone)
{
    begin(PAYLOAD);
    begin_sender_to_test(9000);
    send_and_wait(sender, heap, -1);
    end_fd(&other); /* with what came, unread: it resets the connection */
    spt_completion sent = {0};
    spt_status status = SPT_OK;
    for (int i = 0; i < 1000 && status == SPT_OK; i++) {
        REQUIRE(spt_stream_send_heap(sender, heap, &sent, NULL) == SPT_OK);
        status = spt_stream_wait(sender, &sent, -1, NULL);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(status, SPT_ERR_SYSTEM);
        CHECK(sent.sys_errno == EPIPE || sent.sys_errno == ECONNRESET);
        REQUIRE(spt_stream_send_heap(sender, heap, &sent, NULL) == SPT_OK);
        spt_error err;
        status = spt_stream_wait(sender, &sent, -1, &err);
        CHECK_WORDS(err.message, "the receiver has closed the connection");
    }
}

/* Read what has come, or all up to the end; returns the bytes. */
static size_t read_from_sender(uint8_t *to, size_t room, int flags)
{
    size_t n = 0;
    for (ssize_t got; (got = recv(other, to + n, room - n, flags)) > 0;)
        n += (size_t)got;
    return n;
}

TEST(a_packet_that_was_cut_by_a_cancel_is_sent_to_its_end_with_the_stream_or_the_next_heap)
{
    enum { LARGE = 1000000 };
    static uint8_t bytes[2 * SIZE];
    for (int next = 0; next < 2; next++) {
        OWN(spt_heap) small = new_heap_of("small", 5);
        spt_completion sent = {0};
        begin(SIZE);
        begin_sender_to_test(LARGE);
        REQUIRE(spt_stream_send_heap(sender, heap, &sent, NULL) == SPT_OK);
        while (stats_of_sender(sender).waits == 0)
            CHECK_EQUAL(spt_stream_wait(sender, &sent, 1000000, NULL), SPT_PENDING);
        spt_stream_cancel(sender, &sent);
        CHECK_EQUAL(spt_heap_in_flight(heap), 0);
        if (next)
            REQUIRE(spt_stream_send_heap(sender, small, &sent, NULL) == SPT_OK);
        size_t n = 0, at = 0;
        reader_packet p = {0};
        do
            n += read_from_sender(bytes + n, sizeof(bytes) - n, MSG_DONTWAIT);
        while (spt_stream_wait(sender, &sent, 0, NULL) == SPT_PENDING);
        END(spt_stream, sender);
        n += read_from_sender(bytes + n, sizeof(bytes) - n, 0);
        for (; at < n && reader_read(&p, bytes + at, n - at); at += p.size)
            ;
        CHECK_EQUAL(at, n, p.cnt, 1 + next);
        if (next)
            CHECK_BYTES(p.payload, "small", 5);
        end();
    }
}
