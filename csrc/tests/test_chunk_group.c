/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tests of groups: chunks that several streams fill together. Of each chunk, heap i is for
 * member i.
 */
#define CHECK_AFTER finish
#define CHECK_CASES                                                                                \
    ", lossy", ", lossless", ", lossy, without a thread", ", lossless, without a thread"

#include "../src/chunk_ring.h"
#include "../src/chunk_window.h"
#include "filling.h"

enum { MEMBERS = HEAPS };

static spt_chunk_group *group;
static spt_recv_stream *members[MEMBERS];
static made_series packets[MEMBERS];

static bool lossless(void)
{
    return check_case % 2 == 1;
}

OWNED(spt_chunk_group)

static void finish(void)
{
    END(spt_chunk_group, group);
    end_filling();
    for (int i = 0; i < MEMBERS; i++)
        packets[i].n = 0;
}

static spt_recv_stream *add_member(size_t max_chunks, spt_error *err)
{
    spt_chunk_config how = chunks_by_timestamp(max_chunks);
    return spt_chunk_group_add(group, reads, RECV_CONFIG(), &how, err);
}

static void begin(int n_members, size_t n_chunks, size_t room, size_t max_chunks)
{
    finish();
    begin_filling(check_case < 2, room, n_chunks, MEMBERS);
    spt_chunk_group_config config = {max_chunks, lossless(), data_ring, free_ring};
    group = NEW(spt_chunk_group_create(&config, NULL));
    for (int i = 0; i < n_members; i++)
        members[i] = NEW(add_member(2, NULL));
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* The number of a member's heap for a chunk. */
static uint64_t of(int member, uint64_t chunk)
{
    return chunk * MEMBERS + (uint64_t)member;
}

/* A member's heaps for chunks from one up to another. */
static void append_heaps(int member, uint64_t first, uint64_t end)
{
    for (uint64_t chunk = first; chunk < end; chunk++)
        append_heap(&packets[member], of(member, chunk));
}

static void receive(int member)
{
    receive_from(members[member], &packets[member]);
}

static spt_chunk_group_stats group_stats(void)
{
    spt_chunk_group_stats now;
    spt_chunk_group_read_stats(group, &now);
    return now;
}

TEST(members_fill_the_same_chunks_which_leave_in_order)
{
    begin(MEMBERS, CHUNKS, CHUNKS, 4);
    for (int m = 0; m < MEMBERS; m++)
        append_heaps(m, 0, 4);
    for (int m = 0; m < MEMBERS; m++)
        receive(m);
    check_chunks(0, 4, "1111");
    check_end_of(data_ring);
    uint64_t handed_over = 0;
    for (int m = 0; m < MEMBERS; m++) {
        CHECK_EQUAL(stats_of(members[m]).account.heaps_complete, 4);
        handed_over += chunk_stats_of(members[m]).chunks;
    }
    CHECK_EQUAL(handed_over, 4);
}

TEST(a_member_that_lags_is_made_to_leave_or_is_named_and_waited_for)
{
    begin(2, CHUNKS, CHUNKS, 2);
    add_socket(members[0], 0, 1);
    send_half(0, of(0, 0), 0); /* and nothing more for now */
    wait_for_packets(members[0], 1);
    append_heaps(1, 0, 6);
    receive(1);
    if (!lossless()) {
        check_chunks(0, 2, "0100");
        send_half(0, of(0, 0), 1);
        send_half(0, of(0, 1), 0);
        wait_for_packets(members[0], 3);
        spt_account account = stats_of(members[0]).account;
        CHECK_EQUAL(account.heaps_evicted, 1, account.fates[SPT_LATE], 1);
        CHECK_EQUAL(chunk_stats_of(members[0]).too_old_heaps, 1, account.fates[SPT_NO_PLACE], 1);
        return;
    }
    while (!group_stats().waits)
        read_on(members[0]);
    spt_chunk_group_stats now = group_stats();
    CHECK_EQUAL(now.slow_member, 0, now.slow_chunk_id, 0, now.member_waits, 1);
    CHECK_EQUAL(spt_chunk_ring_size(data_ring), 0);
    send_half(0, of(0, 0), 1);
    for (uint64_t chunk = 1; chunk < 6; chunk++)
        send_heap(0, of(0, chunk));
    check_chunks(0, 4, "1100");
    for (int m = 0; m < 2; m++)
        wait_for_packets(members[m], 2 * 6);
    spt_chunk_group_stop(group);
    check_chunks(4, 6, "1100");
    check_end_of(data_ring);
    CHECK(group_stats().longest_member_wait_ns > 0 && !group_stats().waits);
}

TEST(a_member_that_never_receives_holds_up_only_those_who_wait_for_it)
{
    begin(2, CHUNKS, CHUNKS, 2);
    append_heaps(1, 0, 6);
    receive(1);
    if (lossless()) {
        while (!group_stats().waits)
            read_on(members[0]);
        CHECK_EQUAL(group_stats().slow_member, 0);
    } else {
        check_chunks(0, 4, "0100");
    }
    spt_chunk_group_stop(group);
    check_chunks(lossless() ? 0 : 4, lossless() ? 2 : 6, "0100");
}

/* Where it is waited for members, all comes although one is ahead by far, from the first on. */
TEST(ids_far_apart_move_the_window_as_far_as_members_let_it)
{
    enum { AHEAD = 2 };
    static const uint64_t ids[] = {7, 8, 1000000, 1000001, UINT64_C(1) << 30};
    begin(2, CHUNKS, CHUNKS, 2);
    for (int m = 0; m < 2; m++)
        for (size_t i = m == 0 ? 0 : AHEAD; i < LENGTH(ids); i++)
            append_heap(&packets[m], of(m, ids[i]));
    receive(1);
    receive(0);
    spt_chunk *chunk;
    uint64_t n[2] = {0};
    for (int64_t last = -1; spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK;) {
        CHECK(chunk->chunk_id > last);
        last = chunk->chunk_id;
        check_bytes_of(chunk);
        for (int m = 0; m < 2; m++)
            n[m] += chunk->present[m];
        put_chunk(free_ring, chunk);
    }
    for (int m = 0; m < 2; m++)
        CHECK_EQUAL(n[m] + chunk_stats_of(members[m]).too_old_heaps, packets[m].n / 2);
    CHECK(!lossless() || n[0] + n[1] == 2 * LENGTH(ids) - AHEAD);
}

enum { MANY = 100 }; /* times, of what is to come to an end */

TEST_ONCE(members_that_wait_for_the_same_one_tell_it_once_each)
{
    begin(0, CHUNKS, CHUNKS, 2);
    spti_window *window = NEW(spti_window_create(2, false, data_ring, free_ring, NULL));
    spti_member three[3] = {{.max_chunks = 2}, {.max_chunks = 2}, {.max_chunks = 2}};
    for (int m = 0; m < 3; m++)
        REQUIRE(spti_window_join(window, &three[m], NULL) == SPT_OK);
    CHECK_EQUAL(spti_window_reach(window, &three[0], 0), SPT_OK);
    int told = 0;
    for (int i = 0; i < MANY; i++) {
        spti_member *m = &three[1 + i % 2];
        CHECK_EQUAL(spti_window_reach(window, m, 5), SPT_PENDING);
        told += m->news;
        m->news = false;
    }
    CHECK_EQUAL(told, 2);
    for (int m = 0; m < 3; m++)
        spti_window_end(window, &three[m]);
    spti_window_destroy(window);
}

TEST(members_that_have_ended_wake_each_other_no_more)
{
    begin(2, CHUNKS, CHUNKS, 2);
    for (int m = 0; m < 2; m++) {
        append_heaps(m, 0, 1);
        receive(m);
    }
    check_chunk(0, "1100");
    check_end_of(data_ring);
    spt_thread_pool *runs = reads != NULL ? pool : spti_chunk_ring_pool(data_ring, NULL);
    int more = 0;
    while (more < MANY && spti_pool_help(runs, 0, false) == SPTI_HELP_MORE)
        more++;
    CHECK(more < MANY);
}

TEST(stopping_a_member_stops_all_and_both_rings)
{
    begin(3, CHUNKS, CHUNKS, 2);
    for (int m = 0; m < 2; m++) {
        add_socket(members[m], m, 1);
        send_heap(m, of(m, 0));
    }
    for (int m = 0; m < 2; m++)
        wait_for_packets(members[m], 2);
    spt_recv_stream_stop(members[1]);
    check_chunk(0, "1100");
    check_end_of(data_ring);
    CHECK_EQUAL(spt_chunk_ring_put(free_ring, &chunks[5], 0), SPT_ERR_STOPPED);
    CHECK_EQUAL(spt_recv_stream_add_memory(members[2], "", 0, NULL), SPT_ERR_STOPPED);
    spt_chunk_group_stop(group);
}

TEST(a_group_is_destroyed_while_its_members_wait)
{
    for (int which = 0; which < 3; which++) { /* for a chunk, for room, or for a member */
        begin(MEMBERS, which == 0 ? 1 : CHUNKS, which == 1 ? 1 : CHUNKS, 2);
        for (int m = which == 2; m < MEMBERS; m++) {
            append_heaps(m, 0, 20);
            receive(m);
        }
        for (int i = 0; i < 100; i++)
            read_on(members[0]);
    }
}

/* Each member's heaps, a few of them missing, a few in another order, and now and then a jump. */
static void append_by_chance(int member, uint64_t *state)
{
    uint64_t jumps = 12345;
    for (uint64_t chunk = 0, i = 0; i < 20; i++, chunk += 2) {
        uint64_t second = draw(state, 5) == 0; /* which comes first then */
        if (draw(&jumps, 8) == 0)
            chunk += 1000;
        append_heap(&packets[member], of(member, chunk + second));
        if (draw(state, 10) > 0)
            append_heap(&packets[member], of(member, chunk + !second));
    }
}

TEST(members_that_run_at_once_lose_nothing_that_is_not_counted)
{
    uint64_t state = 1;
    for (int round = 0; round < 4; round++) {
        begin(MEMBERS, CHUNKS, 2, 2 + (size_t)round % 3);
        uint64_t present = 0, complete = 0, sent = 0;
        bool stops = round % 4 == 3;
        for (int m = 0; m < MEMBERS; m++)
            append_by_chance(m, &state);
        for (int m = 0; m < MEMBERS; m++)
            receive(m);
        pthread_t consumer = start_thread(consume, &present);
        if (stops)
            spt_recv_stream_stop(members[round % MEMBERS]);
        pthread_join(consumer, NULL);
        for (int m = 0; m < MEMBERS; m++) {
            spt_account account = stats_of(members[m]).account;
            complete += account.heaps_complete;
            sent += packets[m].n - account.packets;
        }
        CHECK(stops ? present <= complete : present == complete && sent == 0);
    }
}

TEST(what_cannot_be_is_refused_in_words)
{
    begin(1, CHUNKS, CHUNKS, 2);
    for (int i = 0; i < 3; i++) {
        spt_chunk_group_config config = {i == 0 ? 0 : 2, lossless(), i == 1 ? NULL : data_ring,
                                         i == 2 ? NULL : free_ring};
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_chunk_group_create(&config, &err));
    }
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "at most the group's 2", add_member(3, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "max_chunks", add_member(0, &err));
    OWN(spt_thread_pool) small = new_pool(1);
    spt_chunk_config how = chunks_by_timestamp(1);
    members[1] = NEW(spt_chunk_group_add(group, small, RECV_CONFIG(), &how, NULL));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "1 threads for 2 streams",
                  spt_chunk_group_add(group, small, RECV_CONFIG(), &how, &err));
    add_socket(members[0], 0, 1);
    CHECK_REFUSED(SPT_ERR_BUSY, "before the first reader", add_member(1, &err));
    END(spt_chunk_group, group);

    begin(0, CHUNKS, CHUNKS, 2);
    spt_chunk_group_stop(group);
    check_end_of(data_ring);
    CHECK_REFUSED(SPT_ERR_BUSY, "stopped", add_member(1, &err));
    spt_chunk_group_destroy(NULL);
}
