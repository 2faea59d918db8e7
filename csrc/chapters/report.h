/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the chapters' programs share: their options, the last line they print, and how they fail.
 * Its twin in Python is report.py.
 */
#ifndef REPORT_H
#define REPORT_H

#include "command_line.h"
#include <pthread.h>
#include <spead_tutorial/spt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the programs are written in that it is built for. */
#ifndef LANGUAGE
#define LANGUAGE "c"
#endif

/* The command line. */
struct options {
    size_t n_heaps, heap_size, packet_size, n_streams;
    bool random, copy, small_pages, fill, json, pinned;
    int cores[2];          /* of the program's thread and the stream's, if they are pinned */
    spt_endpoint endpoint; /* where to send to */
    /* In an array: MB/s of all packets, which of the senders it is, and where the packets go. */
    double rate;
    size_t sender, senders;
    const char *interface;      /* the address of one; or NULL */
    int ttl;                    /* -1: the system's */
    spt_endpoint *destinations; /* with the ports of the first sender */
    size_t n_destinations;
};

/* Read a port, and a host before it where there is one: the text is cut in two where that ends. */
spt_endpoint read_place(char *text);

/* Senders of an array, at most; and the end of a program where there are not ports for all. */
enum { MOST_SENDERS = 256 };
void check_last_port(int port, size_t senders);

/* A packet size that stands for what the route to the destination takes in one piece. */
#define ROUTE_SIZE SIZE_MAX

/* Read the command line, and say where its packets would travel in fragments. A letter of accepted
 * stands for each option: n, H, p, r, s, c; z for --copy, --small-pages and --fill; d for a
 * destination, and a for those of an array. --json always is. Defaults that are 0 are the usual
 * ones. A program whose default is ROUTE_SIZE asks the route, refuses fragments, and reports the
 * size that it used. */
struct options parse_options(int argc, char **argv, const char *doc, const char *accepted,
                             struct options defaults);

/* What a clock says, in ns. */
static inline int64_t time_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What the process has used, and of it the thread that asks: time in ns, and counts. */
struct usage {
    int64_t elapsed_ns, cpu_user_ns, cpu_system_ns, program_cpu_ns, page_faults, context_switches;
};

/* Since the clock's zero, and the difference of two. */
struct usage usage_now(void);
struct usage usage_since(struct usage start);

/* Begin a JSON object: which program it is of. */
void print_about(void);

/* Print its members as those of a JSON object. */
void print_usage(const struct usage *used);

/* Print the last line: the rate, or a JSON object, of all that some streams have sent. Without
 * used, the whole life of the process counts. */
void report(const struct options *options, spt_stream *const *streams, size_t n_streams,
            const struct usage *used);

/* Say that messages were copied which were to be read in place, if they are more than a few. */
void tell_of_copies(spt_stream *stream);

/* End the program with one line if something went wrong. */
void check(spt_status status, const spt_error *err);
void *check_made(void *made, const spt_error *err);

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The cores that this thread may run on: how many, and the i-th of them, or -1 where there is none.
 */
size_t n_usable_cores(void);
int usable_core(size_t i);

/* Run a function on a thread of its own; the program ends where there can be none. */
pthread_t start_thread(void *(*function)(void *), void *argument);

/* Memory, as it comes, written to, or zero; the program ends where there is none. Only what has
 * been written to has pages behind it: zeros, too, are put there at the first touch. */
void *alloc_bytes(size_t n_bytes);
void *alloc_touched(size_t n_bytes);
void *alloc_zeros(size_t n_bytes);

/* Such memory, written to, in ordinary pages wherever the system prefers huge ones. */
void *alloc_small_pages(size_t n_bytes);

#ifdef __cplusplus
}
#endif

#endif
