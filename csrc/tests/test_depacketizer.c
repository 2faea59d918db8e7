/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of depacketizer.c: packets in, heaps out, and an account that adds up. */
#define CHECK_AFTER end

#include "counted.h"
#include "failing.h"

static made_packet made;
static spt_depacketizer *d; /* of the test */

static spt_account account(void)
{
    spt_account a;
    spt_depacketizer_account(d, &a);
    CHECK(account_adds_up(&a));
    return a;
}

static void end(void)
{
    if (d != NULL)
        (void)account();
    END(spt_depacketizer, d);
}

#define IN_ORDER(...) CONFIG(spt_depacketizer_config, SPT_DEPACKETIZER_CONFIG_DEFAULT, __VA_ARGS__)
#define ANY_ORDER(...) IN_ORDER(its.allow_out_of_order = true; __VA_ARGS__)

static void begin_with(const spt_depacketizer_config *config)
{
    end();
    d = NEW(spt_depacketizer_create(config, NULL));
}

static void begin(void)
{
    begin_with(IN_ORDER());
}

/* Take the packet that has been made: parsed, placed, copied. */
static spt_fate take_made(void)
{
    spt_received_packet packet;
    uint8_t *to;
    REQUIRE(spt_received_packet_parse(&packet, made.bytes, made.size) == SPT_FAULT_NONE);
    spt_fate fate = spt_depacketizer_take(d, &packet, &to);
    CHECK(fate == SPT_PLACED || to == NULL);
    if (to != NULL)
        memcpy(to, packet.payload, packet.payload_length);
    if (fate == SPT_PLACED && packet.is_stop)
        spt_depacketizer_stop(d);
    return fate;
}

/* Take a part of a heap; a length of -1 is not said. */
static spt_fate take(uint64_t cnt, int64_t length, uint64_t at, uint64_t n)
{
    make_part(&made, cnt, length, at, n);
    make_end_of(&made, cnt, at, n);
    return take_made();
}

/* The same with an item, as an immediate or an address. */
static spt_fate take_item(uint64_t cnt, int64_t length, uint64_t at, uint64_t n, bool immediate,
                          uint64_t id, uint64_t item)
{
    make_part(&made, cnt, length, at, n);
    make_add(&made, immediate, id, item);
    make_end_of(&made, cnt, at, n);
    return take_made();
}

typedef struct step {
    uint64_t cnt;
    int64_t length;
    uint64_t at, n;
    spt_fate fate;
} step;

/* TAKE({cnt, length, at, n, fate}, ...): parts are taken, and that becomes of them. */
#define TAKE(...) take_steps(__LINE__, (const step[]){__VA_ARGS__}, LENGTH(((step[]){__VA_ARGS__})))
static void take_steps(int line, const step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char name[48];
        snprintf(name, sizeof(name), "the fate of part %zu", i + 1);
        check_equal(__FILE__, line, name,
                    take(steps[i].cnt, steps[i].length, steps[i].at, steps[i].n), steps[i].fate);
    }
}

typedef struct outcome {
    uint64_t cnt;
    spt_heap_state state;
    uint64_t received;
} outcome;

/* CHECK_NEXT({cnt, state, received}, ...): the next heaps are these, they went so, and what has
 * arrived of them are their bytes. */
#define CHECK_NEXT(...)                                                                            \
    check_next(__LINE__, (const outcome[]){__VA_ARGS__}, LENGTH(((outcome[]){__VA_ARGS__})))
static void check_next(int line, const outcome *expected, size_t n)
{
    for (const outcome *e = expected; e < expected + n; e++) {
        spt_received_heap *heap = NEW(spt_depacketizer_next(d));
        check_equal(__FILE__, line, "the count", (int64_t)heap->cnt, (int64_t)e->cnt);
        check_equal(__FILE__, line, "the state", heap->state, e->state);
        check_equal(__FILE__, line, "the length", (int64_t)heap->received_length,
                    (int64_t)e->received);
        check_payload(heap);
        spt_depacketizer_recycle(d, heap);
    }
}

static void check_no_next(void)
{
    CHECK(spt_depacketizer_next(d) == NULL);
}

#define COMPLETE SPT_HEAP_COMPLETE
#define INCOMPLETE SPT_HEAP_INCOMPLETE

TEST(in_order_nothing_is_taken_after_a_loss)
{
    begin();
    TAKE({1, 100, 0, 20, SPT_PLACED}, {1, 100, 40, 20, SPT_AFTER_LOSS},
         {1, 100, 60, 20, SPT_AFTER_LOSS}, {2, 100, 20, 20, SPT_AFTER_LOSS}); /* heap 2's first */
    spt_depacketizer_flush(d);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    CHECK_EQUAL(heap->received_length, 20, heap->packets, 1, heap->packets_not_taken, 2);
    CHECK(heap->evicted);
    spt_depacketizer_recycle(d, heap);
    spt_account a = account();
    CHECK_EQUAL(a.fates[SPT_AFTER_LOSS], 3, a.heaps_flushed, 1, a.incomplete_bytes, 20);
}

TEST(in_any_order_all_that_arrives_is_taken_and_gaps_are_known)
{
    begin_with(ANY_ORDER());
    TAKE({1, 100, 60, 20, SPT_PLACED}, {1, 100, 0, 20, SPT_PLACED}, {1, 100, 20, 20, SPT_PLACED});
    spt_depacketizer_flush(d);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    CHECK_EQUAL(heap->state, INCOMPLETE, heap->received_length, 60);
    REQUIRE(heap->n_ranges == 2);
    CHECK_EQUAL(heap->ranges[0].end, 40, heap->ranges[1].begin, 60);
    spt_depacketizer_recycle(d, heap);
}

TEST(what_has_arrived_is_a_duplicate_and_what_overlaps_or_has_another_flavour_contradicts)
{
    begin_with(ANY_ORDER());
    TAKE({1, 100, 0, 40, SPT_PLACED}, {1, 100, 0, 40, SPT_DUPLICATE},
         {1, 100, 10, 10, SPT_DUPLICATE}, {1, 100, 30, 20, SPT_INCONSISTENT},
         {1, 101, 40, 20, SPT_INCONSISTENT});
    make_part_as(&made, 48, 1, 100, 40, 60);
    make_end_of(&made, 1, 40, 60);
    CHECK_EQUAL(take_made(), SPT_INCONSISTENT);
    check_no_next();
    TAKE({1, 100, 40, 60, SPT_PLACED});
    CHECK_NEXT({1, COMPLETE, 100});
    check_no_next();
    spt_account a = account();
    CHECK_EQUAL(a.fates[SPT_DUPLICATE], 2, a.fates[SPT_INCONSISTENT], 3, a.placed_bytes, 100,
                a.heaps_complete, 1, a.single_packet_heaps, 0);
}

TEST(a_late_packet_begins_no_ghost_that_would_push_out_a_living_heap_unless_packets_have_an_order)
{
    begin_with(ANY_ORDER());
    TAKE({1, 40, 0, 20, SPT_PLACED}, {1, 40, 20, 20, SPT_PLACED});
    for (uint64_t cnt = 2; cnt < 6; cnt++)
        TAKE({cnt, 40, 0, 20, SPT_PLACED});
    TAKE({1, 40, 20, 20, SPT_LATE});
    for (uint64_t cnt = 2; cnt < 6; cnt++)
        TAKE({cnt, 40, 20, 20, SPT_PLACED});
    for (uint64_t cnt = 1; cnt < 6; cnt++)
        CHECK_NEXT({cnt, COMPLETE, 40});
    CHECK_EQUAL(account().fates[SPT_LATE], 1, account().heaps_evicted, 0);
    begin(); /* in order, one that is sent twice is received twice */
    for (int i = 0; i < 2; i++)
        TAKE({1, 40, 0, 20, SPT_PLACED}, {1, 40, 20, 20, SPT_PLACED});
    CHECK_NEXT({1, COMPLETE, 40}, {1, COMPLETE, 40});
}

TEST(one_heap_too_many_pushes_out_the_one_that_was_begun_first)
{
    begin();
    for (uint64_t cnt = 10; cnt < 15; cnt++)
        TAKE({cnt, 40, 0, 30, SPT_PLACED});
    CHECK_NEXT({10, INCOMPLETE, 30});
    check_no_next();
    TAKE({10, 40, 30, 10, SPT_LATE});
    spt_depacketizer_flush(d);
    for (uint64_t cnt = 11; cnt < 15; cnt++)
        CHECK_NEXT({cnt, INCOMPLETE, 30});
    CHECK_EQUAL(account().heaps_evicted, 1, account().heaps_flushed, 4);
}

TEST(substreams_do_not_push_out_each_other_and_are_flushed_in_order)
{
    begin_with(IN_ORDER(its.substreams = 3, its.max_heaps = 1));
    TAKE({11, 40, 0, 30, SPT_PLACED}, {9, 40, 0, 30, SPT_PLACED}, {10, 40, 0, 30, SPT_PLACED});
    check_no_next();
    TAKE({12, 40, 0, 30, SPT_PLACED});
    CHECK_NEXT({9, INCOMPLETE, 30});
    spt_depacketizer_flush(d);
    CHECK_NEXT({11, INCOMPLETE, 30}, {10, INCOMPLETE, 30}, {12, INCOMPLETE, 30});
}

TEST(a_heap_without_a_length_grows_and_is_contiguous_without_a_gap)
{
    begin_with(ANY_ORDER());
    TAKE({1, -1, 4000, 4000, SPT_PLACED}, {1, -1, 0, 4000, SPT_PLACED});
    for (uint64_t at = 8000; at < 40000; at += 4000)
        TAKE({1, -1, at, 4000, SPT_PLACED});
    TAKE({2, -1, 0, 100, SPT_PLACED}, {2, -1, 200, 100, SPT_PLACED});
    spt_depacketizer_flush(d);
    CHECK_NEXT({1, SPT_HEAP_CONTIGUOUS, 40000}, {2, INCOMPLETE, 200});
    CHECK_EQUAL(account().heaps_complete, 1, account().heaps_flushed, 1);
}

TEST(in_order_a_heap_without_a_length_is_not_whole_where_more_has_come)
{
    for (int again = 0; again < 2; again++) {
        begin();
        TAKE({1, -1, 0, 10, SPT_PLACED}, {1, -1, 20, 10, SPT_AFTER_LOSS},
             {1, -1, 10, 10, SPT_PLACED});
        if (again)
            TAKE({1, -1, 20, 10, SPT_PLACED});
        spt_depacketizer_flush(d);
        CHECK_NEXT({1, again ? SPT_HEAP_CONTIGUOUS : INCOMPLETE, again ? 30 : 20});
        CHECK_EQUAL(account().heaps_flushed, !again);
    }
}

TEST(a_length_that_is_said_later_counts_and_may_not_be_too_short)
{
    begin();
    TAKE({1, -1, 0, 100, SPT_PLACED}, {1, 99, 0, 0, SPT_INCONSISTENT},
         {1, 9000, 100, 100, SPT_PLACED}, {1, -1, 200, 4000, SPT_PLACED},
         {1, -1, 8000, 2000, SPT_INCONSISTENT}, /* beyond the end */
         {1, -1, 4200, 4000, SPT_PLACED}, {1, -1, 8200, 800, SPT_PLACED});
    CHECK_NEXT({1, COMPLETE, 9000});
}

TEST(packets_without_a_length_can_be_refused)
{
    begin_with(IN_ORDER(its.allow_unsized_heaps = false));
    TAKE({1, -1, 0, 100, SPT_UNSIZED}, {1, 200, 0, 100, SPT_PLACED}, {1, -1, 100, 100, SPT_UNSIZED},
         {1, 200, 100, 100, SPT_PLACED});
    CHECK_NEXT({1, COMPLETE, 200});
}

TEST(heaps_beyond_what_is_allowed_are_refused_and_counted)
{
    begin_with(ANY_ORDER(its.max_heap_size = 1000, its.max_pointers = 2, its.max_gaps = 1));
    TAKE({1, 1001, 0, 100, SPT_TOO_LARGE}, {1, (INT64_C(1) << 40) - 1, 0, 100, SPT_TOO_LARGE},
         {1, -1, 950, 100, SPT_TOO_LARGE}, {2, -1, 900, 100, SPT_PLACED},
         {2, -1, 700, 100, SPT_PLACED},
         {2, -1, 500, 100, SPT_TOO_LARGE}); /* a third range is a second gap */
    make_part(&made, 3, 1000, 0, 8);
    make_add(&made, true, 0x1000, 0);
    make_add(&made, true, 0x1001, 0);
    make_add(&made, true, 0x1002, 0);
    make_end_of(&made, 3, 0, 8);
    CHECK_EQUAL(take_made(), SPT_TOO_LARGE); /* three pointers */
    CHECK_EQUAL(account().fates[SPT_TOO_LARGE], 5, account().heaps_begun, 1);
}

TEST(a_heap_without_payload_is_complete_with_its_packet_and_items_of_one_without_are_kept)
{
    begin();
    TAKE({2, 0, 0, 0, SPT_PLACED});
    CHECK_NEXT({2, COMPLETE, 0});
    CHECK_EQUAL(account().single_packet_heaps, 1);
    CHECK_EQUAL(take_item(1, 8, 0, 0, true, 0x1000, 77), SPT_PLACED, take_made(), SPT_DUPLICATE);
    CHECK_EQUAL(take_item(1, 8, 0, 8, false, 0x1001, 0), SPT_PLACED);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    REQUIRE(heap->n_pointers == 2);
    CHECK_EQUAL(heap->pointers[0].word, make_immediate(40, 0x1000, 77));
    CHECK_EQUAL(heap->pointers[1].word, make_address(40, 0x1001, 0));
    spt_depacketizer_recycle(d, heap);
}

TEST(pointers_that_every_packet_repeats_are_kept_once)
{
    begin();
    for (uint64_t at = 0; at < 100; at += 10) {
        make_part(&made, 1, 100, at, 10);
        make_add(&made, true, 0x1000, 1);
        make_add(&made, false, 0x1001, 0);
        make_add(&made, true, 0, 2);
        make_end_of(&made, 1, at, 10);
        CHECK_EQUAL(take_made(), SPT_PLACED);
    }
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    CHECK_EQUAL(heap->n_pointers, 3);
    spt_depacketizer_recycle(d, heap);
}

TEST(a_pointer_that_comes_again_is_where_it_was_sent_last)
{
    begin_with(ANY_ORDER());
    CHECK_EQUAL(take_item(1, 30, 10, 10, true, 0x1000, 2), SPT_PLACED);
    CHECK_EQUAL(take_item(1, 30, 0, 10, true, 0x1000, 1), SPT_PLACED);
    CHECK_EQUAL(take_item(1, 30, 20, 10, true, 0x1000, 1), SPT_PLACED);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    spt_received_item items[3];
    REQUIRE(spt_received_heap_items(heap, items) == 2);
    CHECK_EQUAL(items[0].immediate, 2, items[1].immediate, 1);
    spt_depacketizer_recycle(d, heap);
}

TEST(a_stop_ends_the_others_and_its_own_complete_heap_is_not_handed_out)
{
    for (int whole = 0; whole < 2; whole++) {
        begin();
        TAKE({1, 40, 0, 30, SPT_PLACED});
        CHECK_EQUAL(take_item(2, whole ? 8 : 9, 0, 8, true, 6, 2), SPT_PLACED);
        CHECK_NEXT({1, INCOMPLETE, 30});
        if (!whole)
            CHECK_NEXT({2, INCOMPLETE, 8});
        check_no_next();
        CHECK_EQUAL(account().heaps_dropped, whole, account().heaps_flushed, 2 - whole);
    }
}

TEST(a_stop_spares_an_earlier_heap_of_the_same_count)
{
    begin();
    TAKE({2, 40, 0, 40, SPT_PLACED}); /* complete, and nobody has got it yet */
    CHECK_EQUAL(take_item(2, 40, 0, 8, true, 6, 2), SPT_PLACED);
    CHECK_NEXT({2, COMPLETE, 40}, {2, INCOMPLETE, 8});
    CHECK_EQUAL(account().heaps_dropped, 0);
}

/* Which streams are regular is asked in tests/recv/test_sequences.py. */
TEST(counts_that_are_missing_in_a_regular_sequence_are_heaps_that_were_never_begun)
{
    begin();
    for (uint64_t i = 0; i < 40; i++)
        if (i != 20)
            TAKE({((UINT64_C(1) << 40) - 30 + 3 * i) % (UINT64_C(1) << 40), 8, 0, 8, SPT_PLACED});
    CHECK_EQUAL(account().heaps_never_begun, 1, account().counts_skipped, 0);
    for (uint64_t i = 40; i < 60; i += 2)
        TAKE({((UINT64_C(1) << 40) - 30 + 3 * i) % (UINT64_C(1) << 40), 8, 0, 8, SPT_PLACED});
    CHECK_EQUAL(account().heaps_never_begun, 0, account().counts_skipped, 10);
}

/* ---- Memory that is counted, and may be short ------------------------------------------------ */

static void begin_counted(void)
{
    begin_with(ANY_ORDER(its.memory = counted_memory));
}

TEST(memory_that_was_got_is_put_back_or_kept_by_whom_it_was_handed_to)
{
    begin_counted();
    TAKE({1, 40, 0, 40, SPT_PLACED}, {2, 40, 0, 40, SPT_PLACED}, {3, 40, 0, 40, SPT_PLACED},
         {4, -1, 0, 40, SPT_PLACED}, {4, -1, 5000, 4000, SPT_PLACED});
    CHECK_EQUAL(counted.away, 4);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    uint8_t *mine = heap->payload;
    heap->payload = NULL;
    spt_depacketizer_recycle(d, heap);
    CHECK_EQUAL(counted.away, 4);
    CHECK_NEXT({2, COMPLETE, 40});
    CHECK_EQUAL(counted.away, 3);
    end();
    CHECK_EQUAL(counted.away, 1);
    put_counted(&counted, mine, 40);
    CHECK_EQUAL(counted.bytes_away, 0);
}

TEST(a_heap_that_there_was_no_memory_for_stays_refused)
{
    begin_counted();
    counted.fails_from = 1;
    TAKE({1, 40, 0, 20, SPT_NO_MEMORY});
    counted.fails_from = 0;
    TAKE({1, 40, 20, 20, SPT_NO_MEMORY}, {2, 40, 0, 40, SPT_PLACED});
    CHECK_NEXT({2, COMPLETE, 40});
    CHECK_EQUAL(account().fates[SPT_NO_MEMORY], 2);
    end();
    CHECK_EQUAL(counted.away, 0);
}

/* Take a heap of which every second part comes first, each with items of its own. */
static void take_with_items(uint64_t cnt, int64_t length)
{
    enum { N = 40, EACH = 10 };
    for (uint64_t i = 0; i < N; i++) {
        uint64_t part = i < N / 2 ? 2 * i : 2 * i - N + 1;
        make_part(&made, cnt, length, part * EACH, EACH);
        for (uint64_t k = 0; k < 3; k++)
            make_add(&made, true, 0x3300 + part, k);
        make_end_of(&made, cnt, part * EACH, EACH);
        (void)!take_made();
    }
}

TEST(no_heap_is_whole_that_a_packet_found_no_memory_for)
{
    static const uint64_t whole[] = {0, 400, 400, 20};
    long failed, n = 0;
    do {
        begin_with(ANY_ORDER());
        fail_once(++n);
        take_with_items(1, (int64_t)whole[1]);
        take_with_items(2, -1);
        (void)!take(3, -1, 0, 10);
        (void)!take_item(3, -1, 10, 10, true, 0x3300, 1);
        failed = stop_failing();
        spt_depacketizer_flush(d);
        for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL;) {
            bool lacking = heap->received_length < whole[heap->cnt];
            CHECK(heap->packets > 0 && (heap->state == INCOMPLETE) == lacking);
            spt_depacketizer_recycle(d, heap);
        }
        spt_account a = account();
        CHECK_EQUAL(a.placed_bytes + a.fates[SPT_NO_MEMORY] * 10, 820);
        CHECK((a.fates[SPT_NO_MEMORY] > 0) == (failed > 0));
    } while (failed > 0);
    CHECK(n > 8);
}

/* ---- Somebody who has a place for heaps, or not ---------------------------------------------- */

static struct {
    spt_status answer;
    uint8_t bytes[2][200];
    const void *gives_up; /* heaps of this one, whenever asked */
    int asked;
} host;

static spt_status find_place(void *user, spt_received_heap *heap, const spt_received_packet *first)
{
    CHECK(user == &host);
    host.asked++;
    if (host.gives_up != NULL)
        spti_depacketizer_give_up(d, host.gives_up);
    heap->user = &host;
    heap->user_number = first->cnt;
    heap->payload = host.bytes[first->cnt % 2];
    return host.answer;
}

static void begin_placing(size_t max_heaps)
{
    spti_placing placing = {.user = &host, .place = find_place};
    memset(&host, 0, sizeof(host));
    end();
    d = NEW(spti_depacketizer_create(ANY_ORDER(its.max_heaps = max_heaps), &placing, NULL));
}

TEST(a_heap_goes_where_it_is_placed_and_its_place_is_not_freed)
{
    begin_placing(4);
    TAKE({7, 200, 100, 100, SPT_PLACED});
    TAKE({7, 200, 0, 100, SPT_PLACED});
    CHECK_EQUAL(host.asked, 1);
    CHECK_EQUAL(host.bytes[1][150], byte_of(7, 150));
    CHECK_NEXT({7, COMPLETE, 200});
    TAKE({8, 0, 0, 0, SPT_PLACED}); /* there is nothing to be placed */
    CHECK_EQUAL(host.asked, 1);
}

TEST(while_there_is_no_place_nothing_changes)
{
    begin_placing(1);
    TAKE({1, 200, 0, 100, SPT_PLACED});
    host.answer = SPT_PENDING;
    spt_account before = account();
    for (int i = 0; i < 3; i++)
        TAKE({2, 200, 0, 100, SPTI_NOT_YET});
    spt_account after = account();
    CHECK_BYTES(&before, &after, sizeof(before)); /* the older one has not been pushed out */
    host.answer = SPT_OK;
    TAKE({2, 200, 0, 100, SPT_PLACED});
    CHECK_NEXT({1, INCOMPLETE, 100});
}

TEST(a_heap_that_is_given_no_place_is_asked_for_once_and_pushes_out_none)
{
    begin_placing(1);
    TAKE({1, 200, 0, 100, SPT_PLACED});
    host.answer = SPT_ERR_ARGUMENT;
    TAKE({2, 200, 0, 100, SPT_NO_PLACE}, {2, 200, 100, 100, SPT_NO_PLACE});
    CHECK_EQUAL(host.asked, 2);
    TAKE({1, 200, 100, 100, SPT_PLACED});
    CHECK_NEXT({1, COMPLETE, 200});
    CHECK_EQUAL(account().heaps_begun, 1);
}

TEST(a_place_can_be_given_up_for_another_heap)
{
    begin_placing(4);
    TAKE({1, 200, 0, 100, SPT_PLACED});
    host.gives_up = &host;
    TAKE({2, 200, 0, 100, SPT_PLACED});
    CHECK_NEXT({1, INCOMPLETE, 100});
    TAKE({1, 200, 100, 100, SPT_LATE}, {2, 200, 100, 100, SPT_PLACED});
    CHECK_NEXT({2, COMPLETE, 200});
    CHECK_EQUAL(account().heaps_evicted, 1);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* That heaps are the same otherwise is asked in test_recv_expected.c. */
TEST(a_run_goes_on_where_the_packet_before_ended_up_to_the_last_of_its_heap)
{
    static made_series parts;
    begin();
    for (uint64_t at = 0; at < 500; at += 100) {
        make_part(&made, 1, 500, at, 100);
        make_end_of(&made, 1, at, 100);
        series_add(&parts, &made);
    }
    size_t size = series_size(&parts, 0);
    spti_packet_run run = {parts.bytes + size, size, size, 4, 0, false};
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
    TAKE({1, 500, 0, 100, SPT_PLACED});
    for (size_t i = 0; i < SPTI_PREFIX; i++) { /* what differs in any byte does not go on */
        parts.bytes[size + i] ^= 1;
        CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
        parts.bytes[size + i] ^= 1;
    }
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 3);
    check_no_next();
    run = (spti_packet_run){parts.bytes + 4 * size, size, size, 1, 0, false};
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
    TAKE({1, 500, 400, 100, SPT_PLACED});
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    CHECK_EQUAL(heap->state, COMPLETE, heap->packets, 5);
    check_payload(heap);
    spt_depacketizer_recycle(d, heap);
}

TEST(none_goes_on_from_a_packet_that_says_its_offset_twice)
{
    begin();
    TAKE({1, 500, 0, 100, SPT_PLACED});
    for (uint64_t at = 100; at < 300; at += 100) {
        make_begin(&made, 40);
        make_add(&made, true, 1, 1);
        make_add(&made, true, 3, 7);
        make_add(&made, true, 3, at);
        make_add(&made, true, 4, 100);
        make_end_of(&made, 1, at, 100);
        spti_packet_run run = {made.bytes, made.size, made.size, 1, 0, false};
        CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0, take_made(), SPT_PLACED);
    }
}

TEST(a_configuration_that_cannot_be_is_refused)
{
    const spt_depacketizer_config *const bad[] = {
        IN_ORDER(its.max_heaps = 0),
        IN_ORDER(its.max_heaps = SIZE_MAX / 2, its.substreams = 16),
        IN_ORDER(its.substreams = 0),
        IN_ORDER(its.memory.get = get_counted),
        IN_ORDER(its.max_pointers = 1), /* with these, none would end */
        IN_ORDER(its.max_heap_size = 0),
    };
    for (size_t i = 0; i < LENGTH(bad); i++)
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_depacketizer_create(bad[i], &err));
    spt_depacketizer_destroy(NULL);
}

TEST(every_fate_and_every_fault_has_words)
{
    for (int i = 0; i <= SPT_N_FATES; i++)
        CHECK_EQUAL(strcmp(spt_fate_text((spt_fate)i), "unknown fate") == 0, i == SPT_N_FATES);
    for (int i = -1; i <= SPT_N_FAULTS; i++) {
        bool unknown = strcmp(spt_fault_text((spt_fault)i), "unknown fault") == 0;
        CHECK_EQUAL(unknown, i < 0 || i == SPT_N_FAULTS);
    }
}
