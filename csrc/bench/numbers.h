/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that measure receivers share of their command lines. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST ((size_t)1 << 40)

/* What blast and those that it sends to are both told. */
struct common {
    size_t warm_up, heap_size, packet_size;
    int socket; /* that was given, or -1: then there are a host and a port */
    bool json;
};

/* clang-format off */
#define COMMON_DEFAULTS {.heap_size = 1024 * 1024, .packet_size = 9000, .socket = -1}
#define COMMON_LETTERS "w:H:p:h"
#define COMMON_OPTIONS                                                                               \
    {"json", no_argument, NULL, 'j'},                                                              \
    {"socket", required_argument, NULL, 'S'},                                                      \
    {"help", no_argument, NULL, 'h'}
#define COMMON_HELP                                                                                  \
    "  -w HEAPS        heaps before the others, to warm up: they do not count (0)\n"               \
    "  -H BYTES        bytes of samples in a heap (1048576)\n"                                     \
    "  -p BYTES        bytes in a packet at most, UDP and IP not counted (9000)\n"
/* clang-format on */

/* Read an option that getopt_long() has found, with optarg; false where it is none of these, or
 * asks for help. */
bool tell(struct common *common, const char *usage, int option);

/* End the program, unless there are a host and a port, or a socket instead. */
void check_place(const struct common *common, const char *usage, int n_words);

/* End the program, as it was asked for wrongly. */
_Noreturn void usage_error(const char *usage, const char *what);

/* Read an option's value: a whole number in some range, or one above 0 such as 1.5e9. */
size_t number(const char *usage, const char *option, const char *text, size_t least, size_t most);
double real(const char *usage, const char *option, const char *text);

#endif
