/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that measure receivers share of their command lines. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define MOST ((size_t)1 << 40)

/* End the program, as it was asked for wrongly. */
_Noreturn void usage_error(const char *usage, const char *what);

/* Read an option's value: a whole number in some range, or one above 0 such as 1.5e9. */
size_t number(const char *usage, const char *option, const char *text, size_t least, size_t most);
double real(const char *usage, const char *option, const char *text);

#endif
