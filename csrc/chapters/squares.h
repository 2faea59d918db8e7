/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of squares of samples, as the chapters' programs that receive need them: see chapter 7. */
#ifndef SQUARES_H
#define SQUARES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The sum, by what all processors of this kind can do, or by what the one that runs it can. */
int64_t sum_squares_anywhere(const int8_t *samples, size_t n);
int64_t sum_squares(const int8_t *samples, size_t n);

/* The mean of n squares, of which there is one at least. */
double mean_square_int8(const int8_t *samples, size_t n);

#ifdef __cplusplus
}
#endif

#endif
