/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport_memory.c: packets that are kept, one after the other. */
#include "../src/transport.h"

#include "check.h"

static spti_transport *new_transport(void)
{
    spti_transport *t = NEW(spti_transport_memory(NULL));
    return t;
}

TEST(it_starts_empty_with_one_substream_and_nothing_to_wait_for)
{
    spti_transport *t = new_transport();
    CHECK_EQUAL(t->n_substreams, 1, t->fd, -1);
    CHECK_EQUAL(spti_transport_memory_copy(t, NULL, 0), 0);
    t->ops->destroy(t);
}

TEST(the_pieces_of_packets_are_joined)
{
    char ab[] = "ab", c[] = "c", def[] = "def";
    struct iovec pieces[] = {{ab, 2}, {c, 1}, {def, 3}};
    spti_packet packets[] = {{.first_piece = 0, .n_pieces = 2, .size = 3},
                             {.first_piece = 2, .n_pieces = 1, .size = 3}};
    spti_batch batch = {packets, pieces, .n = 2};
    spti_transport *t = new_transport();
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    CHECK_EQUAL(batch.next, 2);
    char got[8] = "xxxxxxx";
    CHECK_EQUAL(spti_transport_memory_copy(t, got, 4), 6);
    CHECK_BYTES(got, "abcdxxx", 7); /* no more than there is room for */
    CHECK_EQUAL(spti_transport_memory_copy(t, got, 7), 6);
    CHECK_BYTES(got, "abcdefx", 7);
    CHECK_EQUAL(t->stats.packets, 2, t->stats.bytes, 6, t->stats.messages, 2, packets[0].error, 0);
    t->ops->destroy(t);
}

TEST(it_starts_where_the_batch_is_and_grows)
{
    enum { N = 200, SIZE = 1000 };
    static char value[SIZE];
    struct iovec pieces[N];
    spti_packet packets[N];
    for (uint32_t i = 0; i < N; i++) {
        pieces[i] = (struct iovec){value, SIZE};
        packets[i] = (spti_packet){.first_piece = i, .n_pieces = 1, .size = SIZE};
    }
    spti_batch batch = {packets, pieces, .n = N, .next = 1};
    spti_transport *t = new_transport();
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK);
    CHECK_EQUAL(spti_transport_memory_copy(t, NULL, 0), (N - 1) * SIZE);
    t->ops->destroy(t);
}

TEST(other_transports_have_no_memory)
{
    spti_transport t = {0};
    CHECK_EQUAL(spti_transport_memory_copy(&t, NULL, 0), 0);
}
