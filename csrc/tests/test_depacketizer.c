/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of depacketizer.c: packets in, heaps out, and an account that adds up. */
#include "check.h"
#include "failing.h"
#include "make_packet.h"

#include "spead_tutorial/spt_recv.h"

static made_packet made;

/* What the payload of a heap is at a place: every heap has its own bytes. */
static uint8_t byte_of(uint64_t cnt, uint64_t place)
{
    return (uint8_t)(cnt * 131 + place * 7 + place / 256);
}

/* Take the packet that has been made: parsed, placed, copied. */
static spt_fate take_made(spt_depacketizer *d)
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

static void end_part(uint64_t cnt, uint64_t begin, uint64_t n)
{
    uint8_t payload[4096];
    REQUIRE(n <= sizeof(payload));
    for (uint64_t i = 0; i < n; i++)
        payload[i] = byte_of(cnt, begin + i);
    make_end(&made, payload, n);
}

/* Take a part of a heap; a length of -1 is not said. */
static spt_fate take(spt_depacketizer *d, uint64_t cnt, int64_t length, uint64_t begin, uint64_t n)
{
    make_part(&made, cnt, length, begin, n);
    end_part(cnt, begin, n);
    return take_made(d);
}

static spt_depacketizer *new_depacketizer(void (*change)(spt_depacketizer_config *))
{
    spt_depacketizer_config config = spt_depacketizer_config_default();
    if (change != NULL)
        change(&config);
    spt_depacketizer *d = spt_depacketizer_create(&config, NULL);
    REQUIRE(d != NULL);
    return d;
}

static void any_order(spt_depacketizer_config *config)
{
    config->allow_out_of_order = true;
}

/* Every packet and every heap is in the account once. */
static spt_account add_up(spt_depacketizer *d)
{
    spt_account a;
    spt_depacketizer_account(d, &a);
    uint64_t fates = 0, faults = 0;
    for (int i = 0; i < SPT_N_FATES; i++)
        fates += a.fates[i];
    for (int i = 0; i < SPT_N_FAULTS; i++)
        faults += a.faults[i];
    CHECK_EQUAL(fates, a.packets);
    CHECK_EQUAL(faults, a.fates[SPT_MALFORMED]);
    CHECK_EQUAL(a.heaps_complete + a.heaps_evicted + a.heaps_flushed + a.heaps_dropped +
                    a.heaps_live,
                a.heaps_begun);
    return a;
}

/* The next heap is this one, it went so, and what has arrived of it are its bytes. */
static void check_next(spt_depacketizer *d, uint64_t cnt, spt_heap_state state, uint64_t received)
{
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    CHECK_EQUAL(heap->cnt, cnt);
    CHECK_EQUAL(heap->state, state);
    CHECK_EQUAL(heap->received_length, received);
    uint64_t in_ranges = 0;
    for (size_t i = 0; i < heap->n_ranges; i++)
        for (uint64_t place = heap->ranges[i].begin; place < heap->ranges[i].end; place++) {
            in_ranges++;
            CHECK_EQUAL(heap->payload[place], byte_of(cnt, place));
        }
    CHECK_EQUAL(in_ranges, received);
    spt_depacketizer_recycle(d, heap);
}

static void test_parts_in_order_make_a_heap(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    for (uint64_t begin = 0; begin < 1000; begin += 100) {
        CHECK(spt_depacketizer_next(d) == NULL);
        CHECK_EQUAL(take(d, 5, 1000, begin, 100), SPT_PLACED);
    }
    check_next(d, 5, SPT_HEAP_COMPLETE, 1000);
    CHECK(spt_depacketizer_next(d) == NULL);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.placed_bytes, 1000);
    CHECK_EQUAL(a.heaps_complete, 1);
    CHECK_EQUAL(a.single_packet_heaps, 0);
    spt_depacketizer_destroy(d);
}

static void test_in_order_nothing_is_taken_after_a_loss(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    CHECK_EQUAL(take(d, 1, 100, 0, 20), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 100, 40, 20), SPT_AFTER_LOSS);
    CHECK_EQUAL(take(d, 1, 100, 60, 20), SPT_AFTER_LOSS);
    CHECK_EQUAL(take(d, 2, 100, 20, 20), SPT_AFTER_LOSS); /* its first one is lost: it is unknown */
    spt_depacketizer_flush(d);
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    CHECK_EQUAL(heap->received_length, 20);
    CHECK_EQUAL(heap->packets, 1);
    CHECK_EQUAL(heap->packets_not_taken, 2);
    CHECK(heap->evicted);
    spt_depacketizer_recycle(d, heap);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.fates[SPT_AFTER_LOSS], 3);
    CHECK_EQUAL(a.heaps_flushed, 1);
    CHECK_EQUAL(a.incomplete_bytes, 20);
    spt_depacketizer_destroy(d);
}

static void test_in_any_order_all_that_arrives_is_taken_and_gaps_are_known(void)
{
    spt_depacketizer *d = new_depacketizer(any_order);
    CHECK_EQUAL(take(d, 1, 100, 60, 20), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 100, 0, 20), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 100, 20, 20), SPT_PLACED);
    spt_depacketizer_flush(d);
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    CHECK_EQUAL(heap->state, SPT_HEAP_INCOMPLETE);
    CHECK_EQUAL(heap->received_length, 60);
    REQUIRE(heap->n_ranges == 2);
    CHECK_EQUAL(heap->ranges[0].end, 40);
    CHECK_EQUAL(heap->ranges[1].begin, 60);
    spt_depacketizer_recycle(d, heap);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void test_what_has_arrived_is_a_duplicate_and_what_overlaps_contradicts(void)
{
    spt_depacketizer *d = new_depacketizer(any_order);
    CHECK_EQUAL(take(d, 1, 100, 0, 40), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 100, 0, 40), SPT_DUPLICATE);
    CHECK_EQUAL(take(d, 1, 100, 10, 10), SPT_DUPLICATE);
    CHECK_EQUAL(take(d, 1, 100, 30, 20), SPT_INCONSISTENT);
    CHECK_EQUAL(take(d, 1, 101, 40, 20), SPT_INCONSISTENT);
    CHECK_EQUAL(take(d, 1, 100, 40, 60), SPT_PLACED);
    check_next(d, 1, SPT_HEAP_COMPLETE, 100);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.fates[SPT_DUPLICATE], 2);
    CHECK_EQUAL(a.fates[SPT_INCONSISTENT], 2);
    spt_depacketizer_destroy(d);
}

static void test_a_packet_of_another_flavour_contradicts(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    CHECK_EQUAL(take(d, 1, 100, 0, 40), SPT_PLACED);
    make_begin(&made, 48);
    make_add(&made, true, 1, 1);
    make_add(&made, true, 2, 100);
    make_add(&made, true, 3, 40);
    make_add(&made, true, 4, 60);
    end_part(1, 40, 60);
    CHECK_EQUAL(take_made(d), SPT_INCONSISTENT);
    CHECK_EQUAL(take(d, 1, 100, 40, 60), SPT_PLACED);
    check_next(d, 1, SPT_HEAP_COMPLETE, 100);
    spt_depacketizer_destroy(d);
}

static void test_a_late_packet_begins_no_ghost_that_would_push_out_a_living_heap(void)
{
    spt_depacketizer *d = new_depacketizer(any_order);
    CHECK_EQUAL(take(d, 1, 40, 0, 20), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 40, 20, 20), SPT_PLACED);
    for (uint64_t cnt = 2; cnt < 6; cnt++)
        CHECK_EQUAL(take(d, cnt, 40, 0, 20), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 40, 20, 20), SPT_LATE);
    for (uint64_t cnt = 2; cnt < 6; cnt++)
        CHECK_EQUAL(take(d, cnt, 40, 20, 20), SPT_PLACED);
    for (uint64_t cnt = 1; cnt < 6; cnt++)
        check_next(d, cnt, SPT_HEAP_COMPLETE, 40);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.fates[SPT_LATE], 1);
    CHECK_EQUAL(a.heaps_evicted, 0);
    spt_depacketizer_destroy(d);
}

static void test_in_order_a_heap_that_is_sent_twice_is_received_twice(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(take(d, 1, 40, 0, 20), SPT_PLACED);
        CHECK_EQUAL(take(d, 1, 40, 20, 20), SPT_PLACED);
    }
    check_next(d, 1, SPT_HEAP_COMPLETE, 40);
    check_next(d, 1, SPT_HEAP_COMPLETE, 40);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void test_one_heap_too_many_pushes_out_the_one_that_was_begun_first(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    for (uint64_t cnt = 10; cnt < 15; cnt++)
        CHECK_EQUAL(take(d, cnt, 40, 0, 30), SPT_PLACED);
    check_next(d, 10, SPT_HEAP_INCOMPLETE, 30);
    CHECK(spt_depacketizer_next(d) == NULL);
    CHECK_EQUAL(take(d, 10, 40, 30, 10), SPT_LATE);
    spt_depacketizer_flush(d);
    for (uint64_t cnt = 11; cnt < 15; cnt++)
        check_next(d, cnt, SPT_HEAP_INCOMPLETE, 30);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.heaps_evicted, 1);
    CHECK_EQUAL(a.heaps_flushed, 4);
    spt_depacketizer_destroy(d);
}

static void three_substreams(spt_depacketizer_config *config)
{
    config->substreams = 3;
    config->max_heaps = 1;
}

static void test_substreams_do_not_push_out_each_other_and_are_flushed_in_order(void)
{
    spt_depacketizer *d = new_depacketizer(three_substreams);
    const uint64_t counts[] = {11, 9, 10};
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(take(d, counts[i], 40, 0, 30), SPT_PLACED);
    CHECK(spt_depacketizer_next(d) == NULL);
    CHECK_EQUAL(take(d, 12, 40, 0, 30), SPT_PLACED);
    check_next(d, 9, SPT_HEAP_INCOMPLETE, 30);
    spt_depacketizer_flush(d);
    check_next(d, 11, SPT_HEAP_INCOMPLETE, 30);
    check_next(d, 10, SPT_HEAP_INCOMPLETE, 30);
    check_next(d, 12, SPT_HEAP_INCOMPLETE, 30);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void test_a_heap_without_a_length_grows_and_is_contiguous_without_a_gap(void)
{
    spt_depacketizer *d = new_depacketizer(any_order);
    const uint64_t size = 40000;
    CHECK_EQUAL(take(d, 1, -1, 4000, 4000), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, -1, 0, 4000), SPT_PLACED);
    for (uint64_t begin = 8000; begin < size; begin += 4000)
        CHECK_EQUAL(take(d, 1, -1, begin, 4000), SPT_PLACED);
    CHECK_EQUAL(take(d, 2, -1, 0, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 2, -1, 200, 100), SPT_PLACED);
    spt_depacketizer_flush(d);
    check_next(d, 1, SPT_HEAP_CONTIGUOUS, size);
    check_next(d, 2, SPT_HEAP_INCOMPLETE, 200);
    spt_account a = add_up(d);
    CHECK_EQUAL(a.heaps_complete, 1);
    CHECK_EQUAL(a.heaps_flushed, 1);
    spt_depacketizer_destroy(d);
}

static void test_in_order_a_heap_without_a_length_is_not_whole_where_more_has_come(void)
{
    for (int again = 0; again < 2; again++) {
        spt_depacketizer *d = new_depacketizer(NULL);
        CHECK_EQUAL(take(d, 1, -1, 0, 10), SPT_PLACED);
        CHECK_EQUAL(take(d, 1, -1, 20, 10), SPT_AFTER_LOSS);
        CHECK_EQUAL(take(d, 1, -1, 10, 10), SPT_PLACED);
        if (again)
            CHECK_EQUAL(take(d, 1, -1, 20, 10), SPT_PLACED);
        spt_depacketizer_flush(d);
        check_next(d, 1, again ? SPT_HEAP_CONTIGUOUS : SPT_HEAP_INCOMPLETE, again ? 30 : 20);
        CHECK_EQUAL(add_up(d).heaps_flushed, !again);
        spt_depacketizer_destroy(d);
    }
}

static void test_a_length_that_is_said_later_counts_and_may_not_be_too_short(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    CHECK_EQUAL(take(d, 1, -1, 0, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, 99, 0, 0), SPT_INCONSISTENT);
    CHECK_EQUAL(take(d, 1, 9000, 100, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, -1, 200, 4000), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, -1, 8000, 2000), SPT_INCONSISTENT); /* beyond the end */
    CHECK_EQUAL(take(d, 1, -1, 4200, 4000), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, -1, 8200, 800), SPT_PLACED);
    check_next(d, 1, SPT_HEAP_COMPLETE, 9000);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void no_unsized(spt_depacketizer_config *config)
{
    config->allow_unsized_heaps = false;
}

static void test_packets_without_a_length_can_be_refused(void)
{
    spt_depacketizer *d = new_depacketizer(no_unsized);
    CHECK_EQUAL(take(d, 1, -1, 0, 100), SPT_UNSIZED);
    CHECK_EQUAL(take(d, 1, 200, 0, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 1, -1, 100, 100), SPT_UNSIZED);
    CHECK_EQUAL(take(d, 1, 200, 100, 100), SPT_PLACED);
    check_next(d, 1, SPT_HEAP_COMPLETE, 200);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void small(spt_depacketizer_config *config)
{
    config->max_heap_size = 1000;
    config->max_pointers = 1;
    config->max_gaps = 1;
    config->allow_out_of_order = true;
}

static void test_heaps_beyond_what_is_allowed_are_refused_and_counted(void)
{
    spt_depacketizer *d = new_depacketizer(small);
    CHECK_EQUAL(take(d, 1, 1001, 0, 100), SPT_TOO_LARGE);
    CHECK_EQUAL(take(d, 1, ((int64_t)1 << 40) - 1, 0, 100), SPT_TOO_LARGE);
    CHECK_EQUAL(take(d, 1, -1, 950, 100), SPT_TOO_LARGE);
    CHECK_EQUAL(take(d, 2, -1, 900, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 2, -1, 700, 100), SPT_PLACED);
    CHECK_EQUAL(take(d, 2, -1, 500, 100), SPT_TOO_LARGE); /* a third range is a second gap */
    make_part(&made, 3, 1000, 0, 8);
    make_add(&made, true, 0x1000, 0);
    make_add(&made, true, 0x1001, 0);
    end_part(3, 0, 8);
    CHECK_EQUAL(take_made(d), SPT_TOO_LARGE); /* two pointers */
    spt_account a = add_up(d);
    CHECK_EQUAL(a.fates[SPT_TOO_LARGE], 5);
    CHECK_EQUAL(a.heaps_begun, 1);
    spt_depacketizer_destroy(d);
}

static void test_items_of_a_packet_without_payload_are_kept(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    make_part(&made, 1, 8, 0, 0);
    make_add(&made, true, 0x1000, 77);
    end_part(1, 0, 0);
    CHECK_EQUAL(take_made(d), SPT_PLACED);
    CHECK_EQUAL(take_made(d), SPT_DUPLICATE);
    make_part(&made, 1, 8, 0, 8);
    make_add(&made, false, 0x1001, 0);
    end_part(1, 0, 8);
    CHECK_EQUAL(take_made(d), SPT_PLACED);
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL && heap->n_pointers == 2);
    CHECK(heap->pointers[0].word == make_immediate(40, 0x1000, 77));
    CHECK(heap->pointers[1].word == make_address(40, 0x1001, 0));
    spt_depacketizer_recycle(d, heap);
    add_up(d);
    spt_depacketizer_destroy(d);
}

static void test_a_heap_without_payload_is_complete_with_its_packet(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    CHECK_EQUAL(take(d, 1, 0, 0, 0), SPT_PLACED);
    check_next(d, 1, SPT_HEAP_COMPLETE, 0);
    CHECK_EQUAL(add_up(d).single_packet_heaps, 1);
    spt_depacketizer_destroy(d);
}

static void test_pointers_that_every_packet_repeats_are_kept_once(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    for (uint64_t begin = 0; begin < 100; begin += 10) {
        make_part(&made, 1, 100, begin, 10);
        make_add(&made, true, 0x1000, 1);
        make_add(&made, false, 0x1001, 0);
        end_part(1, begin, 10);
        CHECK_EQUAL(take_made(d), SPT_PLACED);
    }
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    CHECK_EQUAL(heap->n_pointers, 2);
    spt_depacketizer_recycle(d, heap);
    spt_depacketizer_destroy(d);
}

static void test_a_pointer_that_comes_again_is_where_it_was_sent_last(void)
{
    const struct {
        uint64_t value, begin;
    } parts[] = {{2, 10}, {1, 0}, {1, 20}};
    spt_depacketizer *d = new_depacketizer(any_order);
    for (size_t i = 0; i < 3; i++) {
        make_part(&made, 1, 30, parts[i].begin, 10);
        make_add(&made, true, 0x1000, parts[i].value);
        end_part(1, parts[i].begin, 10);
        CHECK_EQUAL(take_made(d), SPT_PLACED);
    }
    spt_received_heap *heap = spt_depacketizer_next(d);
    spt_received_item items[3];
    REQUIRE(heap != NULL && spt_received_heap_items(heap, items) == 2);
    CHECK_EQUAL(items[0].immediate, 2);
    CHECK_EQUAL(items[1].immediate, 1);
    spt_depacketizer_recycle(d, heap);
    spt_depacketizer_destroy(d);
}

static void test_a_stop_ends_the_others_and_its_own_complete_heap_is_not_handed_out(void)
{
    for (int whole = 0; whole < 2; whole++) {
        spt_depacketizer *d = new_depacketizer(NULL);
        CHECK_EQUAL(take(d, 1, 40, 0, 30), SPT_PLACED);
        make_part(&made, 2, whole ? 8 : 9, 0, 8);
        make_add(&made, true, 6, 2);
        end_part(2, 0, 8);
        CHECK_EQUAL(take_made(d), SPT_PLACED);
        check_next(d, 1, SPT_HEAP_INCOMPLETE, 30);
        if (!whole)
            check_next(d, 2, SPT_HEAP_INCOMPLETE, 8);
        CHECK(spt_depacketizer_next(d) == NULL);
        spt_account a = add_up(d);
        CHECK_EQUAL(a.heaps_dropped, whole);
        CHECK_EQUAL(a.heaps_flushed, 2 - whole);
        spt_depacketizer_destroy(d);
    }
}

static void test_a_stop_spares_an_earlier_heap_of_the_same_count(void)
{
    spt_depacketizer *d = new_depacketizer(NULL);
    CHECK_EQUAL(take(d, 2, 40, 0, 40), SPT_PLACED); /* complete, and nobody has got it yet */
    make_part(&made, 2, 40, 0, 8);
    make_add(&made, true, 6, 2);
    end_part(2, 0, 8);
    CHECK_EQUAL(take_made(d), SPT_PLACED);
    check_next(d, 2, SPT_HEAP_COMPLETE, 40);
    check_next(d, 2, SPT_HEAP_INCOMPLETE, 8);
    CHECK_EQUAL(add_up(d).heaps_dropped, 0);
    spt_depacketizer_destroy(d);
}

static void test_heaps_that_were_never_begun_are_gaps_in_the_counts_by_their_step(void)
{
    const struct {
        uint64_t counts[6], missing;
    } cases[] = {
        {{1, 2, 3, 4, 5, 6}, 0},
        {{1, 2, 3, 7, 8, 9}, 3},
        {{5, 8, 11, 14, 17, 20}, 0}, /* one sender of three */
        {{5, 8, 14, 17, 23, 26}, 2}, /* and what of it is lost */
        {{6, 5, 4, 3, 2, 1}, 0},     /* in whatever order */
        {{((uint64_t)1 << 40) - 2, ((uint64_t)1 << 40) - 1, 0, 1, 3, 4}, 1}, /* begun again */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        spt_depacketizer *d = new_depacketizer(NULL);
        for (int j = 0; j < 6; j++)
            CHECK_EQUAL(take(d, cases[i].counts[j], 8, 0, 8), SPT_PLACED);
        CHECK_EQUAL(add_up(d).heaps_never_begun, cases[i].missing);
        spt_depacketizer_destroy(d);
    }
}

/* Memory that is counted, and may be short. */
static size_t given, given_bytes, most_bytes;
static bool none_left;

static void *get(void *user, size_t size, const spt_received_packet *first)
{
    CHECK(user == &given && (first == NULL || first->cnt > 0));
    if (none_left)
        return NULL;
    given++;
    given_bytes += size;
    most_bytes = given_bytes > most_bytes ? given_bytes : most_bytes;
    return malloc(size);
}

static void put(void *user, void *memory, size_t size)
{
    CHECK(user == &given && memory != NULL);
    given--;
    given_bytes -= size;
    free(memory);
}

static void counted_memory(spt_depacketizer_config *config)
{
    config->memory = (spt_heap_memory){&given, get, put};
    config->allow_out_of_order = true;
    none_left = false;
}

static void test_memory_that_was_got_is_put_back_or_kept_by_whom_it_was_handed_to(void)
{
    spt_depacketizer *d = new_depacketizer(counted_memory);
    CHECK_EQUAL(take(d, 1, 40, 0, 40), SPT_PLACED);
    CHECK_EQUAL(take(d, 2, 40, 0, 40), SPT_PLACED);
    CHECK_EQUAL(take(d, 3, 40, 0, 40), SPT_PLACED);
    CHECK_EQUAL(take(d, 4, -1, 0, 40), SPT_PLACED);
    CHECK_EQUAL(take(d, 4, -1, 5000, 4000), SPT_PLACED);
    CHECK_EQUAL(given, 4);
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    uint8_t *mine = heap->payload;
    heap->payload = NULL;
    spt_depacketizer_recycle(d, heap);
    CHECK_EQUAL(given, 4);
    check_next(d, 2, SPT_HEAP_COMPLETE, 40);
    CHECK_EQUAL(given, 3);
    spt_depacketizer_destroy(d);
    CHECK_EQUAL(given, 1);
    put(&given, mine, 40);
    CHECK_EQUAL(given_bytes, 0);
}

static void test_a_heap_that_there_was_no_memory_for_stays_refused(void)
{
    spt_depacketizer *d = new_depacketizer(counted_memory);
    none_left = true;
    CHECK_EQUAL(take(d, 1, 40, 0, 20), SPT_NO_MEMORY);
    none_left = false;
    CHECK_EQUAL(take(d, 1, 40, 20, 20), SPT_NO_MEMORY);
    CHECK_EQUAL(take(d, 2, 40, 0, 40), SPT_PLACED);
    check_next(d, 2, SPT_HEAP_COMPLETE, 40);
    CHECK_EQUAL(add_up(d).fates[SPT_NO_MEMORY], 2);
    spt_depacketizer_destroy(d);
    CHECK_EQUAL(given, 0);
}

/* Take a heap of which every second part comes first, each with items of its own. */
static void take_with_items(spt_depacketizer *d, uint64_t cnt, int64_t length)
{
    enum { N = 40, EACH = 10 };
    for (uint64_t i = 0; i < N; i++) {
        uint64_t part = i < N / 2 ? 2 * i : 2 * i - N + 1;
        make_part(&made, cnt, length, part * EACH, EACH);
        for (uint64_t k = 0; k < 3; k++)
            make_add(&made, true, 0x3300 + part, k);
        end_part(cnt, part * EACH, EACH);
        (void)!take_made(d);
    }
}

static void test_no_heap_is_whole_that_a_packet_found_no_memory_for(void)
{
    static const uint64_t whole[] = {0, 400, 400, 20};
    long failed, n = 0;
    do {
        spt_depacketizer *d = new_depacketizer(any_order);
        fail_once(++n);
        take_with_items(d, 1, (int64_t)whole[1]);
        take_with_items(d, 2, -1);
        (void)!take(d, 3, -1, 0, 10);
        make_part(&made, 3, -1, 10, 10);
        make_add(&made, true, 0x3300, 1);
        end_part(3, 10, 10);
        (void)!take_made(d);
        failed = stop_failing();
        spt_depacketizer_flush(d);
        for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL;) {
            CHECK(heap->packets > 0);
            bool lacking = heap->received_length < whole[heap->cnt];
            CHECK((heap->state == SPT_HEAP_INCOMPLETE) == lacking);
            spt_depacketizer_recycle(d, heap);
        }
        spt_account a = add_up(d);
        CHECK_EQUAL(a.placed_bytes + a.fates[SPT_NO_MEMORY] * 10, (uint64_t)820);
        CHECK((a.fates[SPT_NO_MEMORY] > 0) == (failed > 0));
        spt_depacketizer_destroy(d);
    } while (failed > 0);
    CHECK(n > 8);
}

enum { HEAPS = 300, PARTS = 12, PART = 40, IN_FLIGHT = 4 };

/* Heaps in flight together, each part lost, repeated or out of its order now and then. */
/* Somebody who has a place for heaps, or not. */
typedef struct host {
    spt_depacketizer *d;
    spt_status answer;
    uint8_t bytes[2][200];
    const void *gives_up; /* heaps of this one, whenever asked */
    int asked;
} host;

static spt_status find_place(void *user, spt_received_heap *heap, const spt_received_packet *first)
{
    host *h = user;
    h->asked++;
    if (h->gives_up != NULL)
        spt_depacketizer_give_up(h->d, h->gives_up);
    heap->user = h;
    heap->user_number = first->cnt;
    heap->payload = h->bytes[first->cnt % 2];
    return h->answer;
}

static void place_with(host *h, size_t max_heaps)
{
    spt_depacketizer_config config = spt_depacketizer_config_default();
    config.max_heaps = max_heaps;
    config.allow_out_of_order = true;
    config.allow_unsized_heaps = false;
    config.placing = (spt_heap_placing){h, find_place};
    h->d = spt_depacketizer_create(&config, NULL);
    REQUIRE(h->d != NULL);
}

static void test_a_heap_goes_where_it_is_placed_and_its_place_is_not_freed(void)
{
    host h = {0};
    place_with(&h, 4);
    CHECK_EQUAL(take(h.d, 7, 200, 100, 100), SPT_PLACED);
    CHECK_EQUAL(spt_depacketizer_last(h.d)->user_number, 7);
    CHECK_EQUAL(take(h.d, 7, 200, 0, 100), SPT_PLACED);
    CHECK_EQUAL(spt_depacketizer_last(h.d)->state, SPT_HEAP_COMPLETE);
    CHECK_EQUAL(h.asked, 1);
    CHECK_EQUAL(h.bytes[1][150], byte_of(7, 150));
    check_next(h.d, 7, SPT_HEAP_COMPLETE, 200);
    CHECK_EQUAL(take(h.d, 8, 0, 0, 0), SPT_PLACED); /* there is nothing to be placed */
    CHECK_EQUAL(h.asked, 1);
    add_up(h.d);
    spt_depacketizer_destroy(h.d);
}

static void test_while_there_is_no_place_nothing_changes(void)
{
    host h = {0};
    place_with(&h, 1);
    CHECK_EQUAL(take(h.d, 1, 200, 0, 100), SPT_PLACED);
    h.answer = SPT_PENDING;
    spt_account before = add_up(h.d);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(take(h.d, 2, 200, 0, 100), SPT_NOT_YET);
    spt_account after = add_up(h.d);
    CHECK_BYTES(&before, &after, sizeof(before)); /* the older one has not been pushed out */
    h.answer = SPT_OK;
    CHECK_EQUAL(take(h.d, 2, 200, 0, 100), SPT_PLACED);
    check_next(h.d, 1, SPT_HEAP_INCOMPLETE, 100);
    add_up(h.d);
    spt_depacketizer_destroy(h.d);
}

static void test_a_heap_that_is_given_no_place_is_asked_for_once_and_pushes_out_none(void)
{
    host h = {0};
    place_with(&h, 1);
    CHECK_EQUAL(take(h.d, 1, 200, 0, 100), SPT_PLACED);
    h.answer = SPT_ERR_ARGUMENT;
    CHECK_EQUAL(take(h.d, 2, 200, 0, 100), SPT_NO_PLACE);
    CHECK_EQUAL(take(h.d, 2, 200, 100, 100), SPT_NO_PLACE);
    CHECK_EQUAL(h.asked, 2);
    CHECK_EQUAL(take(h.d, 1, 200, 100, 100), SPT_PLACED);
    check_next(h.d, 1, SPT_HEAP_COMPLETE, 200);
    CHECK_EQUAL(add_up(h.d).heaps_begun, 1);
    spt_depacketizer_destroy(h.d);
}

static void test_a_place_can_be_given_up_for_another_heap(void)
{
    host h = {0};
    place_with(&h, 4);
    CHECK_EQUAL(take(h.d, 1, 200, 0, 100), SPT_PLACED);
    h.gives_up = &h;
    CHECK_EQUAL(take(h.d, 2, 200, 0, 100), SPT_PLACED);
    check_next(h.d, 1, SPT_HEAP_INCOMPLETE, 100);
    CHECK_EQUAL(take(h.d, 1, 200, 100, 100), SPT_LATE);
    CHECK_EQUAL(take(h.d, 2, 200, 100, 100), SPT_PLACED);
    check_next(h.d, 2, SPT_HEAP_COMPLETE, 200);
    CHECK_EQUAL(add_up(h.d).heaps_evicted, 1);
    spt_depacketizer_destroy(h.d);
}

static void test_shuffled_repeated_and_lost_parts_all_end_in_the_account(void)
{
    srand(15);
    spt_depacketizer *d = new_depacketizer(counted_memory);
    uint64_t lost_parts = 0, sent = 0, incomplete = 0;
    for (uint64_t group = 0; group < HEAPS / IN_FLIGHT; group++) {
        unsigned order[2 * IN_FLIGHT * PARTS];
        size_t n = 0;
        bool lacking[IN_FLIGHT] = {false};
        for (unsigned i = 0; i < IN_FLIGHT * PARTS; i++) {
            bool lost = rand() % 50 == 0;
            lost_parts += lost;
            lacking[i / PARTS] = lacking[i / PARTS] || lost;
            for (int copies = lost ? 0 : 1 + (rand() % 20 == 0); copies > 0; copies--)
                order[n++] = i;
        }
        for (int i = 0; i < IN_FLIGHT; i++)
            incomplete += lacking[i];
        for (size_t i = n; i-- > 1;) {
            size_t j = (size_t)rand() % (i + 1);
            unsigned other = order[i];
            order[i] = order[j];
            order[j] = other;
        }
        sent += n;
        for (size_t i = 0; i < n; i++) {
            uint64_t cnt = 1 + group * IN_FLIGHT + order[i] / PARTS;
            spt_fate fate = take(d, cnt, PARTS * PART, order[i] % PARTS * PART, PART);
            CHECK(fate == SPT_PLACED || fate == SPT_DUPLICATE || fate == SPT_LATE);
        }
    }
    spt_depacketizer_flush(d);
    uint64_t heaps = 0, bytes = 0;
    for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL; heaps++) {
        bytes += heap->received_length;
        for (size_t i = 0; i < heap->n_ranges; i++)
            for (uint64_t at = heap->ranges[i].begin; at < heap->ranges[i].end; at++)
                CHECK_EQUAL(heap->payload[at], byte_of(heap->cnt, at));
        spt_depacketizer_recycle(d, heap);
    }
    spt_account a = add_up(d);
    CHECK_EQUAL(heaps, HEAPS);
    CHECK_EQUAL(a.packets, sent);
    CHECK_EQUAL(a.fates[SPT_PLACED], HEAPS * PARTS - lost_parts);
    CHECK_EQUAL(bytes, a.placed_bytes);
    CHECK_EQUAL(a.heaps_evicted + a.heaps_flushed, incomplete);
    CHECK(incomplete > 10);
    CHECK(a.fates[SPT_DUPLICATE] > 0 && a.fates[SPT_LATE] > 0);
    spt_depacketizer_destroy(d);
    CHECK_EQUAL(given, 0);
}

static void test_memory_is_flat_over_heaps_that_lose_their_packets(void)
{
    spt_depacketizer *d = new_depacketizer(counted_memory);
    most_bytes = 0;
    for (uint64_t cnt = 1; cnt < 20000; cnt++) {
        CHECK_EQUAL(take(d, cnt, 1000, 500, 100), SPT_PLACED);
        spt_received_heap *heap = spt_depacketizer_next(d);
        if (heap != NULL)
            spt_depacketizer_recycle(d, heap);
    }
    CHECK(most_bytes <= 5 * 1000);
    spt_depacketizer_destroy(d);
}

static void test_a_configuration_that_cannot_be_is_refused(void)
{
    for (int i = 0; i < 5; i++) {
        spt_depacketizer_config config = spt_depacketizer_config_default();
        config.placing.place = i == 4 ? find_place : NULL;
        config.max_heaps = i == 0 ? 0 : i == 1 ? SIZE_MAX / 2 : config.max_heaps;
        config.substreams = i == 2 ? 0 : i == 1 ? 16 : config.substreams;
        config.memory.get = i == 3 ? get : NULL;
        spt_error err = {0};
        CHECK(spt_depacketizer_create(&config, &err) == NULL);
        CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
        CHECK(err.message[0] != '\0');
    }
    spt_depacketizer_destroy(NULL);
}

static void test_every_fate_has_words(void)
{
    for (int fate = 0; fate < SPT_N_FATES; fate++)
        CHECK(strcmp(spt_fate_text((spt_fate)fate), "unknown fate") != 0);
    CHECK(strcmp(spt_fate_text(SPT_N_FATES), "unknown fate") == 0);
}

/* A number below n, which depends on nothing but what was asked before. */
static uint64_t draw(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

enum { MANY = 400, LONGEST = 200 };

/* Packets one after the other, as they came. */
static struct {
    uint8_t bytes[MANY * LONGEST];
    size_t at[MANY + 1], n;
} many;

static size_t size_of(size_t i)
{
    return many.at[i + 1] - many.at[i];
}

static void add_made(void)
{
    REQUIRE(many.n < MANY && made.size <= LONGEST);
    memcpy(many.bytes + many.at[many.n], made.bytes, made.size);
    many.at[many.n + 1] = many.at[many.n] + made.size;
    many.n++;
}

/* A part of a heap, which may have an item of its own, or say something else, or nothing. */
static void add_part(uint64_t *state, uint64_t cnt, uint64_t length, uint64_t begin)
{
    uint64_t n = length - begin < 100 ? length - begin : 100;
    make_part(&made, cnt, (int64_t)length, begin, n);
    if (draw(state, 30) == 0)
        make_add(&made, true, 0x2000, begin);
    end_part(cnt, begin, n);
    if (draw(state, 50) == 0)
        made.bytes[8 + draw(state, 32)] ^= 1;
    add_made();
}

/* Heaps of a size, of whose packets some are lost, or come again, or elsewhere. */
static void make_many(uint64_t *state)
{
    uint64_t length = 100 * (1 + draw(state, 20)) + draw(state, 2) * 40;
    many.n = 0;
    for (uint64_t at = 0, cnt = 0; cnt < 6 && many.n < MANY; at += 100) {
        if (at >= length || draw(state, 40) == 0) { /* the next one, in time or not */
            cnt++;
            at = 0;
        }
        if (draw(state, 30) == 0)
            continue; /* lost */
        if (draw(state, 30) == 0 && at >= 200)
            at -= 200; /* again */
        add_part(state, cnt, length, draw(state, 30) ? at : 100 * draw(state, length / 100));
    }
}

static void take_apart(spt_depacketizer *d, size_t i)
{
    spt_received_packet packet;
    uint8_t *to;
    spt_fault fault = spt_received_packet_parse(&packet, many.bytes + many.at[i], size_of(i));
    if (fault != SPT_FAULT_NONE) {
        spt_depacketizer_malformed(d, fault);
        return;
    }
    (void)!spt_depacketizer_take(d, &packet, &to);
    if (to != NULL)
        memcpy(to, packet.payload, packet.payload_length);
}

/* Up to so many packets from one on, as far as they are equally long. */
static spt_packet_run run_from(size_t first, size_t most)
{
    spt_packet_run run = {many.bytes + many.at[first], size_of(first), size_of(first), 1, false};
    while (run.n < most && first + run.n < many.n && size_of(first + run.n) == run.n_bytes)
        run.n++;
    return run;
}

/* Write payloads to where they belong if these packets are the ones that are expected. */
static void write_in_place(const spt_depacketizer *d, spt_packet_run *run)
{
    uint8_t *to;
    size_t n_bytes, n = spt_depacketizer_expected(d, &n_bytes, &to);
    if (n == 0 || n_bytes != run->n_bytes)
        return;
    run->n = run->n < n ? run->n : n;
    run->in_place = true;
    for (size_t i = 0, payload = n_bytes - SPT_PREFIX_SIZE; i < run->n; i++)
        memcpy(to + i * payload, (const uint8_t *)run->bytes + i * run->step + SPT_PREFIX_SIZE,
               payload);
}

/* Both hand out the same heaps, with the same bytes where some have arrived. */
static void check_same_heaps(spt_depacketizer *a, spt_depacketizer *b)
{
    spt_received_heap *one, *other;
    while ((one = spt_depacketizer_next(a)) != NULL) {
        other = spt_depacketizer_next(b);
        REQUIRE(other != NULL && one->cnt == other->cnt && one->n_ranges == other->n_ranges);
        CHECK(one->state == other->state && one->packets == other->packets);
        CHECK_EQUAL(one->received_length, other->received_length);
        for (size_t i = 0; i < one->n_ranges; i++) {
            spt_range range = one->ranges[i];
            size_t n = (size_t)(range.end - range.begin);
            CHECK(memcmp(&range, &other->ranges[i], sizeof(range)) == 0);
            CHECK(memcmp(one->payload + range.begin, other->payload + range.begin, n) == 0);
        }
        spt_depacketizer_recycle(a, one);
        spt_depacketizer_recycle(b, other);
    }
    CHECK(spt_depacketizer_next(b) == NULL);
}

/* Take some packets from one on, as a run as far as they are one. Returns how many. */
static size_t take_some(spt_depacketizer *d, uint64_t *state, size_t first)
{
    spt_packet_run run = run_from(first, 1 + draw(state, 12));
    uint64_t offset;
    if (draw(state, 2))
        write_in_place(d, &run);
    size_t n = spt_depacketizer_take_run(d, &run, &offset);
    if (n == 0) {
        take_apart(d, first);
        return 1;
    }
    spt_received_packet packet;
    REQUIRE(spt_received_packet_parse(&packet, run.bytes, run.n_bytes) == SPT_FAULT_NONE);
    CHECK_EQUAL(packet.payload_offset, offset);
    return n;
}

static void test_runs_of_packets_become_what_they_do_when_each_is_taken_apart(void)
{
    uint64_t state = 15, ran = 0, all = 0;
    for (int round = 0; round < 400; round++) {
        void (*order)(spt_depacketizer_config *) = draw(&state, 2) ? any_order : NULL;
        spt_depacketizer *d = new_depacketizer(order), *apart = new_depacketizer(order);
        make_many(&state);
        for (size_t i = 0, n; i < many.n; i += n) {
            n = take_some(d, &state, i);
            ran += n > 1 ? n : 0;
            for (size_t k = 0; k < n; k++)
                take_apart(apart, i + k);
            check_same_heaps(d, apart);
        }
        all += many.n;
        spt_depacketizer_flush(d);
        spt_depacketizer_flush(apart);
        check_same_heaps(d, apart);
        spt_account a = add_up(d), b = add_up(apart);
        CHECK(memcmp(&a, &b, sizeof(a)) == 0);
        spt_depacketizer_destroy(d);
        spt_depacketizer_destroy(apart);
    }
    CHECK(ran > all / 4);
}

static void test_the_last_packet_of_a_heap_is_not_part_of_a_run(void)
{
    uint64_t offset;
    spt_depacketizer *d = new_depacketizer(NULL);
    many.n = 0;
    for (uint64_t at = 0; at < 500; at += 100) {
        make_part(&made, 1, 500, at, 100);
        end_part(1, at, 100);
        add_made();
    }
    take_apart(d, 0);
    spt_packet_run run = run_from(1, MANY);
    CHECK_EQUAL(run.n, 4);
    CHECK_EQUAL(spt_depacketizer_take_run(d, &run, &offset), 3);
    CHECK_EQUAL(offset, 100);
    CHECK(spt_depacketizer_next(d) == NULL);
    run = run_from(4, MANY);
    CHECK_EQUAL(spt_depacketizer_take_run(d, &run, &offset), 0);
    take_apart(d, 4);
    CHECK_EQUAL(spt_depacketizer_take_run(d, &run, &offset), 0);
    spt_received_heap *heap = spt_depacketizer_next(d);
    REQUIRE(heap != NULL);
    CHECK_EQUAL(heap->state, SPT_HEAP_COMPLETE);
    CHECK_EQUAL(heap->packets, 5);
    spt_depacketizer_recycle(d, heap);
    spt_depacketizer_destroy(d);
}

int main(void)
{
    RUN(test_parts_in_order_make_a_heap);
    RUN(test_in_order_nothing_is_taken_after_a_loss);
    RUN(test_in_any_order_all_that_arrives_is_taken_and_gaps_are_known);
    RUN(test_what_has_arrived_is_a_duplicate_and_what_overlaps_contradicts);
    RUN(test_a_packet_of_another_flavour_contradicts);
    RUN(test_a_late_packet_begins_no_ghost_that_would_push_out_a_living_heap);
    RUN(test_in_order_a_heap_that_is_sent_twice_is_received_twice);
    RUN(test_one_heap_too_many_pushes_out_the_one_that_was_begun_first);
    RUN(test_substreams_do_not_push_out_each_other_and_are_flushed_in_order);
    RUN(test_a_heap_without_a_length_grows_and_is_contiguous_without_a_gap);
    RUN(test_in_order_a_heap_without_a_length_is_not_whole_where_more_has_come);
    RUN(test_a_length_that_is_said_later_counts_and_may_not_be_too_short);
    RUN(test_packets_without_a_length_can_be_refused);
    RUN(test_heaps_beyond_what_is_allowed_are_refused_and_counted);
    RUN(test_items_of_a_packet_without_payload_are_kept);
    RUN(test_a_heap_without_payload_is_complete_with_its_packet);
    RUN(test_pointers_that_every_packet_repeats_are_kept_once);
    RUN(test_a_pointer_that_comes_again_is_where_it_was_sent_last);
    RUN(test_a_stop_ends_the_others_and_its_own_complete_heap_is_not_handed_out);
    RUN(test_a_stop_spares_an_earlier_heap_of_the_same_count);
    RUN(test_heaps_that_were_never_begun_are_gaps_in_the_counts_by_their_step);
    RUN(test_memory_that_was_got_is_put_back_or_kept_by_whom_it_was_handed_to);
    RUN(test_a_heap_that_there_was_no_memory_for_stays_refused);
    RUN(test_no_heap_is_whole_that_a_packet_found_no_memory_for);
    RUN(test_a_heap_goes_where_it_is_placed_and_its_place_is_not_freed);
    RUN(test_while_there_is_no_place_nothing_changes);
    RUN(test_a_heap_that_is_given_no_place_is_asked_for_once_and_pushes_out_none);
    RUN(test_a_place_can_be_given_up_for_another_heap);
    RUN(test_shuffled_repeated_and_lost_parts_all_end_in_the_account);
    RUN(test_memory_is_flat_over_heaps_that_lose_their_packets);
    RUN(test_a_configuration_that_cannot_be_is_refused);
    RUN(test_every_fate_has_words);
    RUN(test_runs_of_packets_become_what_they_do_when_each_is_taken_apart);
    RUN(test_the_last_packet_of_a_heap_is_not_part_of_a_run);
    return check_done();
}
