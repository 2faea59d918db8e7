/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the receivers that are measured share: their options, and what they claim when the stream
 * has ended. Their twin in Python is claims.py in bench/peer.
 */
#ifndef RECEIVING_H
#define RECEIVING_H

#include "../chapters/report.h"
#include "common.h"

enum { RECEIVE_MESSAGES = 8 };

struct receiving {
    struct common common;  /* with a bound socket: one that was given, or our own */
    size_t ring, messages; /* in a call, at most */
    size_t buffer;         /* bytes that the socket keeps */
    bool gro, copy, pool, thread, check, out_of_order;
    /* What has come. */
    uint64_t n_heaps, incomplete, packets, calls, wrong;
    struct usage start; /* when the last heap had come that warms up */
};

/* Read the command line, and open the socket where none is given. A letter of accepted stands for
 * an option that not all have: b for -b and -m, g for --no-gro, c for --no-copy, o for
 * --out-of-order, m for --no-pool, t for --no-thread. */
struct receiving receiving_begin(int argc, char **argv, const char *doc, const char *accepted);

/* Say that packets may come. */
void receiving_ready(struct receiving *r);

/* Count heaps of which all has come. */
void receiving_heaps(struct receiving *r, uint64_t n);

/* Look whether a heap's samples are those that blast --fill makes. */
void receiving_check(struct receiving *r, uint64_t cnt, const uint8_t *samples);

/* Say what has come, and fail where it was wrong. */
int receiving_end(struct receiving *r);

#endif
