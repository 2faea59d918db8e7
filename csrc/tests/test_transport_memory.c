/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport_memory.c: packets that are kept, one after the other; and of what
 * transport.c counts where no socket shows it. */
#include "../src/transport.h"

#include "check.h"

#include <errno.h>

TEST(packets_are_kept_from_where_the_batch_is_on_and_copied_as_far_as_there_is_room)
{
    char ab[] = "ab", c[] = "c", def[] = "def";
    struct iovec pieces[] = {{ab, 2}, {ab, 2}, {c, 1}, {def, 3}};
    spti_packet packets[] = {{.first_piece = 0, .n_pieces = 1, .size = 2},
                             {.first_piece = 1, .n_pieces = 2, .size = 3},
                             {.first_piece = 3, .n_pieces = 1, .size = 3}};
    spti_batch batch = {packets, pieces, .n = 3, .next = 1};
    spti_transport *t = NEW(spti_transport_memory(NULL));
    CHECK_EQUAL(t->n_substreams, 1, t->fd, -1, spti_transport_memory_copy(t, NULL, 0), 0);
    CHECK_EQUAL(t->ops->send(t, &batch), SPT_OK, batch.next, 3);
    char got[8] = "xxxxxxx";
    CHECK_EQUAL(spti_transport_memory_copy(t, got, 4), 6);
    CHECK_BYTES(got, "abcdxxx", 7);
    CHECK_EQUAL(spti_transport_memory_copy(t, got, 7), 6);
    CHECK_BYTES(got, "abcdefx", 7);
    CHECK_EQUAL(t->stats.packets, 2, t->stats.bytes, 6, t->stats.messages, 2, packets[0].error, 0);
    t->ops->destroy(t);
    CHECK_EQUAL(spti_transport_memory_copy(&(spti_transport){0}, NULL, 0), 0); /* it has none */
}

TEST(an_errno_beyond_the_table_is_counted_in_all)
{
    spti_packet packets[4] = {{.size = 1}, {.size = 1}, {.size = 1}, {.size = 1}};
    spti_batch batch = {.packets = packets, .n = 4};
    spti_transport t = {0};
    spti_transport_failed(&t, &batch, 1, 2, EMSGSIZE);
    CHECK_EQUAL(packets[0].error, 0, packets[1].error, EMSGSIZE, packets[2].error, EMSGSIZE);
    CHECK_EQUAL(packets[3].error, 0, t.stats.errors_by_errno[EMSGSIZE], 2);
    spti_transport_failed(&t, &batch, 0, 1, SPT_N_ERRNO);
    spti_transport_failed(&t, &batch, 0, 1, -1);
    CHECK_EQUAL(t.stats.errors, 4, t.stats.packets, 0);
}
