/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of transport.c: what all transports count. */
#include "../src/transport.h"

#include "check.h"

#include <errno.h>

TEST(packets_that_were_taken_are_counted_with_their_bytes)
{
    spti_packet packets[] = {{.size = 100}, {.size = 20}, {.size = 3}};
    spti_batch batch = {.packets = packets, .n = 3};
    spti_transport t = {0};
    spti_transport_taken(&t, &batch, 1, 2);
    CHECK_EQUAL(t.stats.packets, 2, t.stats.bytes, 23, t.stats.messages, 1);
    CHECK_EQUAL(t.stats.gso_messages, 1);
    spti_transport_taken(&t, &batch, 0, 1);
    CHECK_EQUAL(t.stats.packets, 3, t.stats.bytes, 123, t.stats.messages, 2);
    CHECK_EQUAL(t.stats.gso_messages, 1, t.stats.errors, 0);
}

TEST(packets_that_failed_are_marked_and_counted_by_errno)
{
    spti_packet packets[4] = {{.size = 1}, {.size = 1}, {.size = 1}, {.size = 1}};
    spti_batch batch = {.packets = packets, .n = 4};
    spti_transport t = {0};
    spti_transport_failed(&t, &batch, 1, 2, EMSGSIZE);
    CHECK_EQUAL(packets[0].error, 0, packets[1].error, EMSGSIZE, packets[2].error, EMSGSIZE);
    CHECK_EQUAL(packets[3].error, 0, t.stats.errors, 2, t.stats.errors_by_errno[EMSGSIZE], 2);
    CHECK_EQUAL(t.stats.packets, 0);
}

TEST(an_errno_beyond_the_table_is_counted_in_all)
{
    spti_packet packets[1] = {{.size = 1}};
    spti_batch batch = {.packets = packets, .n = 1};
    spti_transport t = {0};
    spti_transport_failed(&t, &batch, 0, 1, SPT_N_ERRNO);
    spti_transport_failed(&t, &batch, 0, 1, -1);
    CHECK_EQUAL(t.stats.errors, 2);
}
