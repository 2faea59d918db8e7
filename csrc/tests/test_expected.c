/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of expected.c: packets that go on become what they do when each is taken apart. */
#include "make_packet.h"
#include "support.h"

static made_packet made;
static made_series many;

/* A part of a heap, which may have an item of its own, or say something else, or nothing. */
static void add_part(uint64_t *state, uint64_t cnt, uint64_t length, uint64_t begin)
{
    uint64_t n = length - begin < 100 ? length - begin : 100;
    make_part(&made, cnt, (int64_t)length, begin, n);
    if (draw(state, 30) == 0)
        make_add(&made, true, 0x2000, begin);
    make_end_of(&made, cnt, begin, n);
    if (draw(state, 50) == 0)
        made.bytes[8 + draw(state, 32)] ^= 1;
    series_add(&many, &made);
}

/* Heaps of a size, of whose packets some are lost, or come again, or elsewhere. */
static void make_many(uint64_t *state)
{
    uint64_t length = 100 * (1 + draw(state, 20)) + draw(state, 2) * 40;
    many.n = 0;
    for (uint64_t at = 0, cnt = 0; cnt < 6 && many.n < 400; at += 100) {
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

static void take_apart(spt_depacketizer *by, size_t i)
{
    spt_received_packet packet;
    uint8_t *to;
    spt_fault fault =
        spt_received_packet_parse(&packet, many.bytes + many.at[i], series_size(&many, i));
    if (fault != SPT_FAULT_NONE) {
        spt_depacketizer_malformed(by, fault);
        return;
    }
    (void)!spt_depacketizer_take(by, &packet, &to);
    if (to != NULL)
        memcpy(to, packet.payload, packet.payload_length);
}

/* Up to so many packets from one on, as far as they are equally long. */
static spti_packet_run run_from(size_t first, size_t most)
{
    size_t size = series_size(&many, first);
    return (spti_packet_run){many.bytes + many.at[first], size, size,
                             series_run(&many, first, most), false};
}

/* Both hand out the same heaps, which went the same way, with the same bytes where some have
 * arrived. */
static void check_same_heaps(spt_depacketizer *a, spt_depacketizer *b)
{
    spt_received_heap *one, *other;
    while ((one = spt_depacketizer_next(a)) != NULL) {
        other = spt_depacketizer_next(b);
        REQUIRE(other != NULL && one->cnt == other->cnt && one->n_ranges == other->n_ranges);
        CHECK_EQUAL(one->state, other->state, one->packets, other->packets);
        CHECK_EQUAL(one->received_length, other->received_length);
        for (size_t i = 0; i < one->n_ranges; i++) {
            uint64_t begin = one->ranges[i].begin, end = one->ranges[i].end;
            CHECK(begin == other->ranges[i].begin && end == other->ranges[i].end);
            CHECK_BYTES(one->payload + begin, other->payload + begin, end - begin);
        }
        spt_depacketizer_recycle(a, one);
        spt_depacketizer_recycle(b, other);
    }
    CHECK(spt_depacketizer_next(b) == NULL);
}

/* Take some packets from one on, as a run as far as they are one. Returns how many. */
static size_t take_some(spt_depacketizer *d, uint64_t *state, size_t first)
{
    spti_packet_run run = run_from(first, 1 + draw(state, 12));
    if (draw(state, 2))
        write_in_place(d, &run);
    size_t n = spti_depacketizer_take_run(d, &run);
    if (n > 0)
        return n;
    take_apart(d, first);
    return 1;
}

TEST(runs_of_packets_become_what_they_do_when_each_is_taken_apart)
{
    uint64_t state = 15, ran = 0, all = 0;
    for (int round = 0; round < 400; round++) {
        spt_depacketizer_config config = SPT_DEPACKETIZER_CONFIG_DEFAULT;
        config.allow_out_of_order = draw(&state, 2);
        OWN(spt_depacketizer) d = NEW(spt_depacketizer_create(&config, NULL));
        OWN(spt_depacketizer) apart = NEW(spt_depacketizer_create(&config, NULL));
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
        spt_account a = account_of(d), b = account_of(apart);
        CHECK_BYTES(&a, &b, sizeof(a));
    }
    CHECK(ran > all / 4);
}

TEST(the_last_packet_of_a_heap_is_not_part_of_a_run)
{
    spt_depacketizer_config config = SPT_DEPACKETIZER_CONFIG_DEFAULT;
    OWN(spt_depacketizer) d = NEW(spt_depacketizer_create(&config, NULL));
    many.n = 0;
    for (uint64_t at = 0; at < 500; at += 100) {
        make_part(&made, 1, 500, at, 100);
        make_end_of(&made, 1, at, 100);
        series_add(&many, &made);
    }
    take_apart(d, 0);
    spti_packet_run run = run_from(1, SIZE_MAX);
    CHECK_EQUAL(run.n, 4, spti_depacketizer_take_run(d, &run), 3);
    CHECK(spt_depacketizer_next(d) == NULL);
    run = run_from(4, SIZE_MAX);
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
    take_apart(d, 4);
    CHECK_EQUAL(spti_depacketizer_take_run(d, &run), 0);
    spt_received_heap *heap = NEW(spt_depacketizer_next(d));
    CHECK_EQUAL(heap->state, SPT_HEAP_COMPLETE, heap->packets, 5);
    spt_depacketizer_recycle(d, heap);
}
