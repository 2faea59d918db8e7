/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of ranges.c: against a byte for each place. */
#include "../src/ranges.h"
#include "support.h"

enum { ANY = 1000, PLACES = 64 };

TEST(more_gaps_than_allowed_are_refused_and_closing_one_is_not)
{
    static const struct {
        uint64_t begin, end;
        size_t max_gaps;
        spti_part expected;
    } parts[] = {
        {0, 1, 0, SPTI_NEW}, {1, 2, 0, SPTI_NEW},     {3, 4, 0, SPTI_NO_ROOM},
        {3, 4, 1, SPTI_NEW}, {5, 6, 1, SPTI_NO_ROOM}, {2, 3, 1, SPTI_NEW},
        {5, 6, 1, SPTI_NEW}, {0, 4, 0, SPTI_KNOWN},
    };
    spti_ranges r = {0};
    for (size_t i = 0; i < LENGTH(parts); i++)
        CHECK_EQUAL(spti_ranges_add(&r, parts[i].begin, parts[i].end, parts[i].max_gaps),
                    parts[i].expected);
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
