/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of one size, at equal distances in memory: what sockets bring, and heaps are made of. */
#ifndef SPTI_PACKET_RUN_H
#define SPTI_PACKET_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spti_packet_run {
    const void *bytes; /* of the first one */
    size_t n_bytes;    /* of each */
    size_t step;       /* from the beginning of one to that of the next */
    size_t n;
    uint64_t source; /* who has sent them; 0 where that is not known */
    bool in_place;   /* payloads are where they belong already, and are not looked for here */
} spti_packet_run;

#endif
