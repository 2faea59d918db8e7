/* SPDX-License-Identifier: BSD-3-Clause */
/* Which datagrams of a capture are asked for: a part of libpcap's language, with its meaning. */
#ifndef SPTI_FRAME_FILTER_H
#define SPTI_FRAME_FILTER_H

#include "frame.h"

/* Hostile filters are refused beyond these: characters, steps, parentheses within each other. */
enum { SPTI_FILTER_LENGTH = 1000, SPTI_FILTER_STEPS = 100, SPTI_FILTER_DEPTH = 10 };

typedef enum spti_filter_kind {
    SPTI_FILTER_ANY, /* UDP, as everything is that is asked about */
    SPTI_FILTER_IPV4,
    SPTI_FILTER_IPV6,
    SPTI_FILTER_ADDRESS, /* a host or a net */
    SPTI_FILTER_PORT,
    SPTI_FILTER_NOT, /* these are about the steps before them */
    SPTI_FILTER_AND,
    SPTI_FILTER_OR,
} spti_filter_kind;

typedef struct spti_filter_step {
    spti_filter_kind kind;
    bool of[2];        /* from, to: either will do, */
    bool both;         /* or has to */
    uint16_t ports[2]; /* from the first one to the last */
    uint8_t address[16], mask[16];
    size_t address_size;
} spti_filter_step;

/* Conditions, and behind them what joins them. */
typedef struct spti_frame_filter {
    size_t n;
    spti_filter_step steps[SPTI_FILTER_STEPS];
} spti_frame_filter;

/*
 * Conditions are "udp", "ip", "ip6", "[ip|ip6] [WAY] host ADDRESS", the same with "net", and "[udp]
 * [WAY] port NUMBER" or "portrange FIRST-LAST"; WAY is "src", "dst", or both with "or" or "and" in
 * between. They are joined by "and" and "or", of which none goes first, "not", and parentheses.
 * What a condition has before its value may be left out where it is the same as in the one before.
 * Empty: everything.
 */
spt_status spti_frame_filter_parse(spti_frame_filter *filter, const char *text, spt_error *err);

/* Whether a frame is asked for, or may be, as far as it is known where it comes from and goes to.
 */
bool spti_frame_filter_takes(const spti_frame_filter *filter, const spti_frame *frame);

#endif
