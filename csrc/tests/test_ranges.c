/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of ranges.c: by hand, and against a byte for each place. */
#include "../src/ranges.h"
#include "support.h"

enum { ANY = 1000, PLACES = 64 };

static void check_ranges(const spti_ranges *r, size_t n, const spt_range *expected)
{
    CHECK_EQUAL(r->n, n);
    for (size_t i = 0; i < n && i < r->n; i++) {
        CHECK_EQUAL(r->at[i].begin, expected[i].begin, r->at[i].end, expected[i].end);
    }
}

TEST(parts_in_order_are_one_range)
{
    spti_ranges r = {0};
    for (uint64_t i = 0; i < 1000; i++)
        CHECK_EQUAL(spti_ranges_add(&r, 10 * i, 10 * i + 10, 0), SPTI_NEW);
    check_ranges(&r, 1, &(spt_range){0, 10000});
    spti_ranges_fini(&r);
}

TEST(a_part_between_two_others_joins_them)
{
    spti_ranges r = {0};
    CHECK_EQUAL(spti_ranges_add(&r, 20, 30, ANY), SPTI_NEW);
    CHECK_EQUAL(spti_ranges_add(&r, 0, 10, ANY), SPTI_NEW);
    check_ranges(&r, 2, (spt_range[]){{0, 10}, {20, 30}});
    CHECK_EQUAL(spti_ranges_add(&r, 10, 20, ANY), SPTI_NEW);
    check_ranges(&r, 1, &(spt_range){0, 30});
    spti_ranges_fini(&r);
}

TEST(a_part_that_is_there_is_known_and_one_that_is_partly_there_overlaps)
{
    spti_ranges r = {0};
    CHECK_EQUAL(spti_ranges_add(&r, 10, 20, ANY), SPTI_NEW);
    CHECK_EQUAL(spti_ranges_add(&r, 30, 40, ANY), SPTI_NEW);
    const spt_range known[] = {{10, 20}, {10, 11}, {19, 20}, {12, 18}, {30, 40}};
    for (size_t i = 0; i < LENGTH(known); i++)
        CHECK_EQUAL(spti_ranges_add(&r, known[i].begin, known[i].end, ANY), SPTI_KNOWN);
    const spt_range overlaps[] = {{9, 11}, {0, 50}, {19, 21}, {20, 31}, {15, 35}, {39, 41}};
    for (size_t i = 0; i < LENGTH(overlaps); i++)
        CHECK_EQUAL(spti_ranges_add(&r, overlaps[i].begin, overlaps[i].end, ANY), SPTI_OVERLAPS);
    check_ranges(&r, 2, (spt_range[]){{10, 20}, {30, 40}});
    spti_ranges_fini(&r);
}

TEST(more_gaps_than_allowed_are_refused_and_closing_one_is_not)
{
    spti_ranges r = {0};
    CHECK_EQUAL(spti_ranges_add(&r, 0, 1, 1), SPTI_NEW);
    CHECK_EQUAL(spti_ranges_add(&r, 2, 3, 1), SPTI_NEW);
    CHECK_EQUAL(spti_ranges_add(&r, 4, 5, 1), SPTI_NO_ROOM);
    CHECK_EQUAL(spti_ranges_add(&r, 1, 2, 1), SPTI_NEW);
    CHECK_EQUAL(spti_ranges_add(&r, 4, 5, 1), SPTI_NEW);
    check_ranges(&r, 2, (spt_range[]){{0, 3}, {4, 5}});
    spti_ranges_fini(&r);
}

TEST(ranges_are_what_a_byte_for_each_place_says)
{
    srand(15);
    for (int run = 0; run < 2000; run++) {
        spti_ranges r = {0};
        bool there[PLACES] = {false};
        for (int i = 0; i < 40; i++) {
            size_t begin = (size_t)rand() % PLACES;
            size_t end = begin + 1 + (size_t)rand() % (PLACES - begin);
            if (end > begin + 6)
                end = begin + 6;
            size_t n = 0;
            for (size_t place = begin; place < end; place++)
                n += there[place];
            spti_part expected = n == 0 ? SPTI_NEW : n == end - begin ? SPTI_KNOWN : SPTI_OVERLAPS;
            CHECK_EQUAL(spti_ranges_add(&r, begin, end, ANY), expected);
            for (size_t place = begin; expected == SPTI_NEW && place < end; place++)
                there[place] = true;
        }
        bool in_ranges[PLACES] = {false};
        for (size_t i = 0; i < r.n; i++) {
            CHECK(r.at[i].begin < r.at[i].end && (i == 0 || r.at[i - 1].end < r.at[i].begin));
            for (uint64_t place = r.at[i].begin; place < r.at[i].end; place++)
                in_ranges[place] = true;
        }
        CHECK_BYTES(in_ranges, there, sizeof(there));
        spti_ranges_fini(&r);
    }
}
