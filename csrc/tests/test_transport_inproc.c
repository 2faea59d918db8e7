/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of inproc_queue.c, transport_inproc.c and source_inproc.c: packets that stay in
 * the process. */
#define CHECK_CASES "", ", without a thread"
#define CHECK_AFTER end

#include "support.h"

#include <errno.h>

enum { SIZE = 20000, HEAPS = 50, SENDERS = 3, PACKET = 1472 };

static spt_thread_pool *pool;       /* or NULL: who sends and who gets does the work */
static spt_inproc_queue *queues[2]; /* mostly the first is used */
static spt_stream *sender;
static spt_recv_stream *receiver;
static spt_heap *heap;
static uint8_t value[SIZE];

static void end(void)
{
    END(spt_stream, sender);
    END(spt_recv_stream, receiver);
    END(spt_inproc_queue, queues[0]);
    END(spt_inproc_queue, queues[1]);
    END(spt_thread_pool, pool);
    END(spt_heap, heap);
}

/* To so many of both queues. */
static spt_stream *new_sender(size_t n_queues, size_t max_heaps)
{
    const spt_stream_config *config = STREAM_CONFIG(its.max_heaps = max_heaps);
    return NEW(spt_stream_create_inproc(pool, queues, n_queues, config, NULL));
}

static spt_recv_stream *new_reader(void)
{
    const spt_recv_config *config = RECV_CONFIG(its.heaps.max_heaps = 2 * SENDERS);
    spt_recv_stream *made = NEW(spt_recv_stream_create(pool, config, NULL));
    REQUIRE(spt_recv_stream_add_inproc(made, queues[0], NULL) == SPT_OK);
    return made;
}

static void begin(size_t max_packets, size_t max_bytes)
{
    for (size_t i = 0; i < SIZE; i++)
        value[i] = byte_of(0, i);
    pool = check_case == 0 ? new_pool(2) : NULL;
    queues[0] = NEW(spt_inproc_queue_create(max_packets, max_bytes, NULL));
    queues[1] = NEW(spt_inproc_queue_create(0, 0, NULL));
    heap = new_heap_of(value, SIZE);
    sender = new_sender(1, 4);
}

/* Get all heaps, up to so many, each of which is whole; returns how many. */
static size_t get_heaps(spt_recv_stream *stream, size_t most)
{
    spt_received_heap *got;
    size_t n = 0;
    for (; n < most && spt_recv_stream_get(stream, LONG_NS, &got) == SPT_OK; n++) {
        CHECK_EQUAL(got->received_length, SIZE);
        CHECK_BYTES(got->payload, value, SIZE);
        spt_recv_stream_return(stream, got);
    }
    return n;
}

TEST(what_was_sent_first_is_there_for_a_receiver_that_comes_later)
{
    begin(0, 0);
    for (int i = 0; i < HEAPS; i++)
        send_and_wait(sender, heap, -1);
    spt_inproc_queue_stop(queues[0]);
    receiver = new_reader();
    CHECK_EQUAL(get_heaps(receiver, SIZE), HEAPS);
    CHECK_EQUAL(get_none_of(receiver, LONG_NS), SPT_DONE);
    CHECK_EQUAL(stats_of(receiver).account.packets, stats_of_sender(sender).packets);
}

static void *send_many(void *stream)
{
    for (int i = 0; i < HEAPS; i++)
        send_and_wait(stream, heap, -1);
    return NULL;
}

TEST(several_senders_wait_while_a_queue_is_full_and_lose_nothing)
{
    begin(3, 3 * PACKET);
    receiver = new_reader();
    spt_stream *more[SENDERS - 1] = {new_sender(1, 1), new_sender(1, 1)};
    pthread_t threads[SENDERS];
    for (size_t i = 0; i < SENDERS; i++) {
        spt_stream *stream = i == 0 ? sender : more[i - 1];
        REQUIRE(spt_stream_set_cnt_sequence(stream, i, SENDERS, NULL) == SPT_OK);
        threads[i] = start_thread(send_many, stream);
    }
    CHECK_EQUAL(get_heaps(receiver, SENDERS * HEAPS), SENDERS * HEAPS);
    for (size_t i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    END(spt_stream, more[0]);
    END(spt_stream, more[1]);
}

TEST(a_packet_of_more_bytes_than_there_are_is_refused)
{
    begin(0, 0);
    CHECK_EQUAL(spt_inproc_queue_add_packet(queues[0], value, SIZE_MAX, NULL), SPT_ERR_MEMORY);
    CHECK_EQUAL(spt_inproc_queue_add_packet(queues[0], value, SIZE, NULL), SPT_OK);
}

TEST(several_receivers_get_some_packets_each)
{
    begin(10, 0);
    receiver = new_reader();
    OWN(spt_recv_stream) other = new_reader();
    pthread_t threads[] = {start_thread(get_all_heaps, receiver),
                           start_thread(get_all_heaps, other)};
    send_many(sender);
    spt_inproc_queue_stop(queues[0]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CHECK_EQUAL(stats_of(receiver).account.packets + stats_of(other).account.packets,
                stats_of_sender(sender).packets);
}

/* Until the stream waits for room. */
static void await_full(spt_stream *stream, spt_completion *sent)
{
    while (stats_of_sender(stream).waits == 0)
        CHECK_EQUAL(spt_stream_wait(stream, sent, 1000000, NULL), SPT_PENDING);
}

TEST(a_sender_that_waits_for_room_is_told_that_the_queue_has_been_stopped)
{
    begin(1, 0);
    spt_completion sent = {0};
    REQUIRE(spt_stream_send_heap(sender, heap, &sent, NULL) == SPT_OK);
    await_full(sender, &sent);
    spt_inproc_queue_stop(queues[0]);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "the queue has been stopped",
                  spt_stream_wait(sender, &sent, -1, &err));
    CHECK_EQUAL(sent.sys_errno, ECANCELED, sent.bytes, PACKET);
    receiver = new_reader(); /* what had got in is there */
    spt_received_heap *got = get_heap_of(receiver);
    CHECK_EQUAL(got->packets, 1, got->received_length, PACKET - 48);
    spt_recv_stream_return(receiver, got);
}

TEST(a_sender_that_waits_at_one_queue_may_go_on_at_another)
{
    begin(1, 0);
    OWN(spt_stream) stream = new_sender(2, 4);
    spt_completion sent[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        spt_heap_reference one = {heap, -1, i, -1};
        REQUIRE(spt_stream_send_heaps(stream, &one, 1, SPT_GROUP_SERIAL, &sent[i], NULL) == SPT_OK);
    }
    await_full(stream, &sent[0]);
    spt_stream_cancel(stream, &sent[0]);
    CHECK_EQUAL(spt_stream_wait(stream, &sent[1], -1, NULL), SPT_OK);
}

TEST(the_end_goes_to_the_other_queues_where_one_has_been_stopped)
{
    begin(1, 0);
    OWN(spt_stream) stream = new_sender(2, 4);
    spt_inproc_queue_stop(queues[0]);
    CHECK_REFUSED(SPT_ERR_SYSTEM, "stopped", spt_stream_send_end(stream, NULL, &err));
    CHECK_EQUAL(stats_of_sender(stream).packets, 1);
}

TEST_ONCE(a_queue_refuses_what_does_not_fit_and_says_why)
{
    begin(2, 100);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "max_bytes is 100",
                  spt_inproc_queue_add_packet(queues[0], value, 101, &err));
    CHECK_EQUAL(spt_inproc_queue_add_packet(queues[0], value, 60, NULL), SPT_OK);
    CHECK_REFUSED(SPT_ERR_QUEUE_FULL, "41 bytes",
                  spt_inproc_queue_add_packet(queues[0], value, 41, &err));
    CHECK_EQUAL(spt_inproc_queue_add_packet(queues[0], NULL, 0, NULL), SPT_OK);
    CHECK_REFUSED(SPT_ERR_QUEUE_FULL, "max_packets", /* of which there are two */
                  spt_inproc_queue_add_packet(queues[0], value, 1, &err));
    spt_completion sent = {0};
    CHECK_REFUSED(SPT_ERR_SYSTEM, "max_bytes of a queue is less",
                  spt_stream_send_heap(sender, heap, &sent, &err));
    spt_inproc_queue_stop(queues[0]);
    CHECK_REFUSED(SPT_ERR_STOPPED, "stopped",
                  spt_inproc_queue_add_packet(queues[0], value, 1, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "at least one queue",
                  spt_stream_create_inproc(NULL, NULL, 0, STREAM_CONFIG(), &err));
    receiver = new_reader(); /* nothing in it is a packet */
    CHECK_EQUAL(get_heaps(receiver, 1), 0);
    CHECK_EQUAL(stats_of(receiver).account.fates[SPT_MALFORMED], 2);
}
