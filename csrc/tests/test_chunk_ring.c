/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of chunk_ring.c: chunks go in and out in order, and who waits is told. */
#include "../src/chunk_ring.h"
#include "support.h"

enum { MANY = 20000 };

static spt_chunk_ring *new_ring(size_t capacity)
{
    return NEW(spt_chunk_ring_create(capacity, NULL));
}

TEST(chunks_come_out_in_the_order_in_which_they_went_in)
{
    OWN(spt_chunk_ring) ring = new_ring(3);
    spt_chunk chunks[4] = {0}, *got;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_chunk_ring_create(0, &err));
    CHECK_EQUAL(spt_chunk_ring_capacity(ring), 3);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            put_chunk(ring, &chunks[i]);
        CHECK_EQUAL(spt_chunk_ring_size(ring), 3);
        CHECK_EQUAL(spt_chunk_ring_put(ring, &chunks[3], 0), SPT_PENDING);
        CHECK_EQUAL(spt_chunk_ring_put(ring, &chunks[3], 1000000), SPT_PENDING);
        for (int i = 0; i < 3; i++)
            CHECK(get_chunk_of(ring) == &chunks[i]);
        CHECK_EQUAL(spt_chunk_ring_get(ring, 0, &got), SPT_PENDING);
        CHECK_EQUAL(spt_chunk_ring_get(ring, 1000000, &got), SPT_PENDING);
    }
}

TEST(of_free_chunks_that_comes_out_first_which_went_in_last)
{
    OWN(spt_chunk_ring) ring = new_ring(3);
    spt_chunk chunks[3] = {0};
    put_chunk(ring, &chunks[0]);
    spti_chunk_ring_newest_first(ring);
    put_chunk(ring, &chunks[1]);
    CHECK(get_chunk_of(ring) == &chunks[1]);
    put_chunk(ring, &chunks[2]);
    CHECK(get_chunk_of(ring) == &chunks[2]);
    CHECK(get_chunk_of(ring) == &chunks[0]);
    for (int i = 0; i < 3; i++) /* it has been empty */
        put_chunk(ring, &chunks[i]);
    for (int i = 3; i-- > 0;)
        CHECK(get_chunk_of(ring) == &chunks[i]);
}

TEST(a_ring_that_is_stopped_gives_what_is_in_it_and_takes_no_more)
{
    OWN(spt_chunk_ring) ring = new_ring(2);
    spt_chunk chunk = {0}, more = {0}, *got;
    put_chunk(ring, &chunk);
    spt_chunk_ring_stop(ring);
    CHECK_EQUAL(spt_chunk_ring_put(ring, &more, -1), SPT_ERR_STOPPED);
    CHECK(get_chunk_of(ring) == &chunk);
    CHECK_EQUAL(spt_chunk_ring_get(ring, -1, &got), SPT_DONE);
    spti_chunk_ring_put_last(ring, &more); /* what somebody had left */
    CHECK(get_chunk_of(ring) == &more);
    spt_chunk_ring_destroy(NULL);
}

TEST(a_ring_stops_with_the_last_of_its_producers)
{
    OWN(spt_chunk_ring) ring = new_ring(1);
    spt_chunk *got;
    spt_chunk_ring_add_producer(ring);
    spt_chunk_ring_add_producer(ring);
    CHECK(!spt_chunk_ring_remove_producer(ring));
    CHECK_EQUAL(spt_chunk_ring_get(ring, 0, &got), SPT_PENDING);
    CHECK(spt_chunk_ring_remove_producer(ring));
    CHECK_EQUAL(spt_chunk_ring_get(ring, 0, &got), SPT_DONE);
    CHECK(!spt_chunk_ring_remove_producer(ring));
}

TEST(descriptors_are_readable_while_there_are_chunks_or_there_is_room)
{
    OWN(spt_chunk_ring) ring = new_ring(1);
    spt_chunk chunk = {0};
    int data = spt_chunk_ring_data_fd(ring), space = spt_chunk_ring_space_fd(ring);
    for (int round = 0; round < 2; round++) {
        CHECK(!is_readable(data, 0) && is_readable(space, 0));
        put_chunk(ring, &chunk);
        CHECK(is_readable(data, 0) && !is_readable(space, 0));
        get_chunk_of(ring);
    }
    spt_chunk_ring_stop(ring);
    CHECK(is_readable(data, 0) && is_readable(space, 0));
}

static void count(void *user)
{
    ++*(int *)user;
}

TEST(who_watches_is_told_once_there_is_what_was_not_there)
{
    OWN(spt_chunk_ring) ring = new_ring(1);
    spt_chunk chunk = {0}, more = {0}, *got;
    int calls = 0;
    spti_chunk_watch watch = {.tell = count, .user = &calls};
    spti_chunk_ring_watch(ring, &watch);
    put_chunk(ring, &chunk);
    CHECK_EQUAL(calls, 0); /* nobody had wanted it */
    CHECK_EQUAL(spti_chunk_ring_try_put(ring, &more), SPT_PENDING);
    get_chunk_of(ring);
    CHECK_EQUAL(calls, 1);
    CHECK_EQUAL(spti_chunk_ring_try_get(ring, &got), SPT_PENDING);
    put_chunk(ring, &chunk);
    CHECK_EQUAL(calls, 2);
    CHECK_EQUAL(spti_chunk_ring_try_put(ring, &more), SPT_PENDING);
    spt_chunk_ring_stop(ring);
    CHECK_EQUAL(calls, 3);
    spti_chunk_ring_unwatch(ring, &watch);
    spti_chunk_ring_unwatch(ring, &watch);
}

static void *pass_on(void *rings)
{
    spt_chunk_ring **pair = rings;
    spt_chunk *chunk;
    spt_status status;
    while ((status = spt_chunk_ring_get(pair[0], -1, &chunk)) == SPT_OK)
        REQUIRE(spt_chunk_ring_put(pair[1], chunk, -1) == SPT_OK);
    CHECK_EQUAL(status, SPT_DONE);
    spt_chunk_ring_remove_producer(pair[1]);
    return NULL;
}

TEST(chunks_go_round_between_threads_and_none_is_lost)
{
    spt_chunk chunks[3] = {0}, *got;
    spt_chunk_ring *pair[2] = {new_ring(1), new_ring(2)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        spt_chunk_ring_add_producer(pair[1]);
        REQUIRE(pthread_create(&threads[i], NULL, pass_on, pair) == 0);
    }
    for (int i = 0; i < 3; i++)
        REQUIRE(spt_chunk_ring_put(pair[0], &chunks[i], -1) == SPT_OK);
    for (int i = 0; i < MANY; i++) {
        got = get_chunk_of(pair[1]);
        got->chunk_id++;
        REQUIRE(spt_chunk_ring_put(pair[0], got, -1) == SPT_OK);
    }
    spt_chunk_ring_stop(pair[0]);
    int left = 0;
    while (spt_chunk_ring_get(pair[1], LONG_NS, &got) == SPT_OK)
        left++;
    CHECK_EQUAL(left, 3, chunks[0].chunk_id + chunks[1].chunk_id + chunks[2].chunk_id, MANY);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        spt_chunk_ring_destroy(pair[i]);
    }
}
