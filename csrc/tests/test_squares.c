/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of the chapters' squares.c: against one product at a time, in 64 bits. */
#include "../chapters/squares.h"
#include "check.h"

enum { BLOCK = 65536, MOST = 2 * BLOCK + 3 };

static int8_t samples[MOST];

static int64_t one_by_one(const int8_t *from, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (int64_t)from[i] * from[i];
    return sum;
}

static void check_all(const int8_t *from, size_t n)
{
    int64_t expected = one_by_one(from, n);
    CHECK_EQUAL(sum_squares_anywhere(from, n), expected);
    CHECK_EQUAL(sum_squares(from, n), expected);
}

TEST(sums_are_those_of_one_product_at_a_time_wherever_samples_begin_and_end)
{
    uint32_t random = 1;
    for (size_t i = 0; i < MOST; i++)
        samples[i] = (int8_t)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t begin = 0; begin < 40; begin++)
        for (size_t n = 0; n < 200; n++)
            check_all(samples + begin, n);
    for (size_t n = BLOCK - 2; n <= BLOCK + 2; n++)
        check_all(samples + 1, n);
    check_all(samples, MOST);
}

TEST(the_largest_squares_of_a_block_fit_into_its_sum)
{
    memset(samples, -128, sizeof(samples));
    check_all(samples, MOST);
    CHECK(mean_square_int8(samples, MOST) == 16384.0);
}
