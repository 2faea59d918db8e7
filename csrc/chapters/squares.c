/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns sums of squares, by the best instructions that a processor has for them. Knows no heaps. */
#include "squares.h"

enum { BLOCK = 65536 }; /* the sum of so many squares of int8_t fits in 32 bits */

/* A sum of 32 bits lets the compiler add many samples at a time: how many depends on the
 * instructions of the function that this one is inlined into. */
static inline __attribute__((always_inline)) int64_t sum_blocks(const int8_t *samples, size_t n)
{
    int64_t sum = 0;
    for (size_t begin = 0; begin < n; begin += BLOCK) {
        size_t end = n - begin < BLOCK ? n : begin + BLOCK;
        int32_t part = 0;
        for (size_t i = begin; i < end; i++)
            part += samples[i] * samples[i];
        sum += part;
    }
    return sum;
}

int64_t sum_squares_anywhere(const int8_t *samples, size_t n)
{
    return sum_blocks(samples, n);
}

#ifdef __x86_64__
/* The same with AVX2, which takes twice as many samples at a time. Not all processors have it, and
 * a program that was built with it throughout would end on the others. */
__attribute__((target("avx2"))) static int64_t sum_squares_avx2(const int8_t *samples, size_t n)
{
    return sum_blocks(samples, n);
}

int64_t sum_squares(const int8_t *samples, size_t n)
{
    return __builtin_cpu_supports("avx2") ? sum_squares_avx2(samples, n)
                                          : sum_squares_anywhere(samples, n);
}
#else
int64_t sum_squares(const int8_t *samples, size_t n)
{
    return sum_squares_anywhere(samples, n);
}
#endif

double mean_square_int8(const int8_t *samples, size_t n)
{
    return (double)sum_squares(samples, n) / (double)n;
}
