/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns sums of squares, by the best instructions that a processor has for them. Knows no heaps. */
#include "squares.h"

enum { BLOCK = 65536 }; /* the sum of so many squares of int8_t fits in 32 bits */

/* Sums of 32 bits let the compiler add many samples at a time: how many depends on the instructions
 * of the function that this one is inlined into. There are two, as each addition to a sum waits for
 * the one before. */
static inline __attribute__((always_inline)) int64_t sum_blocks(const int8_t *samples, size_t n)
{
    int64_t sum = n % 2 ? samples[n - 1] * samples[n - 1] : 0;
    size_t half = n / 2;
    const int8_t *others = samples + half;
    for (size_t begin = 0; begin < half; begin += BLOCK) {
        size_t end = half - begin < BLOCK ? half : begin + BLOCK;
        int32_t part = 0, other = 0;
        for (size_t i = begin; i < end; i++) {
            part += samples[i] * samples[i];
            other += others[i] * others[i];
        }
        sum += (int64_t)part + other;
    }
    return sum;
}

int64_t sum_squares_anywhere(const int8_t *samples, size_t n)
{
    return sum_blocks(samples, n);
}

#ifdef __x86_64__
/* The same with AVX2, which takes twice as many samples at a time, and with AVX-512, which takes
 * four times as many. Not all processors have them, and a program that was built with them
 * throughout would end on the others. */
__attribute__((target("avx2"))) static int64_t sum_squares_avx2(const int8_t *samples, size_t n)
{
    return sum_blocks(samples, n);
}

__attribute__((target("avx512bw"))) static int64_t sum_squares_avx512(const int8_t *samples,
                                                                      size_t n)
{
    return sum_blocks(samples, n);
}

int64_t sum_squares(const int8_t *samples, size_t n)
{
    if (__builtin_cpu_supports("avx512bw"))
        return sum_squares_avx512(samples, n);
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
