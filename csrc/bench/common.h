/* SPDX-License-Identifier: BSD-3-Clause */
/* What blast and those that it sends to are both told. */
#ifndef COMMON_H
#define COMMON_H

#include "../chapters/command_line.h"

struct common {
    size_t warm_up, heap_size, packet_size;
    int socket; /* that was given, or -1: then there are a host and a port */
    bool json;
    const char *host;
    int port;
};

/* clang-format off */
#define COMMON_DEFAULTS {.heap_size = 1024 * 1024, .packet_size = 9000, .socket = -1}
#define COMMON_WORDS(c)                                                                            \
    {"-w", "HEAPS", "heaps before the others, to warm up: they do not count (%)",                  \
     WORD_SIZE, &(c).warm_up, .range = {0, WORD_MOST}},                                            \
    {"-H", "BYTES", "bytes of samples in a heap (%)",                                              \
     WORD_SIZE, &(c).heap_size, .range = {1, WORD_MOST}},                                          \
    {"-p", "BYTES", "bytes in a packet at most, UDP and IP not counted (%)",                       \
     WORD_SIZE, &(c).packet_size, .range = {128, 65507}},                                          \
    {"--json", NULL, "print a JSON object, not the rate", WORD_ON, .to = &(c).json},               \
    {"--socket", "FD", "a UDP socket that is ready, in the place of host and port",                \
     WORD_INT, &(c).socket, .range = {0, 65535}},                                                  \
    {"host", NULL, "name or address", WORD_TEXT, .to = &(c).host, .optional = true},               \
    {"port", NULL, "UDP port, 1 to 65535",                                                         \
     WORD_INT, &(c).port, .range = {1, 65535}, .optional = true}
/* clang-format on */

/* The socket that was given, or one that is connected_to() a place, or bound_to() it. */
static inline int common_socket(const struct common *common, int make(const char *host, int port))
{
    int n_places = (common->host != NULL) + (common->port > 0);
    if (n_places != (common->socket < 0 ? 2 : 0))
        usage_error("a host and a port are needed, or --socket");
    return common->socket >= 0 ? common->socket : make(common->host, common->port);
}

#endif
