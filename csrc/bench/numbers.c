/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the reading of numbers that are typed, and of options that all have. */
#include "numbers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void usage_error(const char *usage, const char *what)
{
    fprintf(stderr, "%s%s: error: %s\n", usage, program_invocation_short_name, what);
    exit(2);
}

bool tell(struct common *common, const char *usage, int option)
{
    if (option == 'w')
        common->warm_up = number(usage, "-w", optarg, 0, MOST);
    else if (option == 'H')
        common->heap_size = number(usage, "-H", optarg, 1, MOST);
    else if (option == 'p')
        common->packet_size = number(usage, "-p", optarg, 128, 65507);
    else if (option == 'S')
        common->socket = (int)number(usage, "--socket", optarg, 0, 65535);
    else if (option == 'j')
        common->json = true;
    else
        return false;
    return true;
}

void check_place(const struct common *common, const char *usage, int n_words)
{
    if (n_words != (common->socket < 0 ? 2 : 0))
        usage_error(usage, "a host and a port are needed, or --socket");
}

size_t number(const char *usage, const char *option, const char *text, size_t least, size_t most)
{
    char *end, what[120];
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && value >= (long long)least &&
        value <= (long long)most)
        return (size_t)value;
    snprintf(what, sizeof(what), "%s is '%.20s': it must be a whole number from %zu to %zu", option,
             text, least, most);
    usage_error(usage, what);
}

double real(const char *usage, const char *option, const char *text)
{
    char *end, what[120];
    double value = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(value) && value > 0)
        return value;
    snprintf(what, sizeof(what), "%s is '%.20s': it must be a number above 0", option, text);
    usage_error(usage, what);
}
