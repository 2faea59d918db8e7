/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the chapters' programs that receive share: options, waiting with an end, items, the account.
 * Its twin in Python is receiving.py.
 */
#ifndef RECEIVING_H
#define RECEIVING_H

#include "report.h"
#include "squares.h"
#include <inttypes.h>
#include <spead_tutorial/spt_recv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The command line; what is 0 is no option of the program. */
struct receiver_options {
    spt_endpoint endpoint; /* where to listen; "" for any address of this machine */
    double silence_s;
    bool json, text; /* text: say what comes, which json alone does not */
    size_t heap_size, buffers, sockets, senders;
    const char *interface; /* the address of one to join a group on; or NULL */
    bool lossy;
};

/* Read the command line. Of the defaults only those are the program's that are sizes. */
struct receiver_options parse_receiver_options(int argc, char **argv, const char *doc,
                                               struct receiver_options usual);

/* Print, unless a JSON object was asked for, and no text. */
void say(const struct receiver_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What several sockets on one port share. The stop heap comes to one of them, and silence is not
 * that of one: so they end together, a moment after nothing comes to any. */
struct together {
    int64_t since_ns; /* atomic: when something came last; 0 before */
    bool ended, told; /* ended, atomic: one had the stop heap */
};

/* The heaps that a stream receives; the program counts those that it does not understand. */
struct heaps {
    spt_recv_stream *stream;
    const struct receiver_options *options;
    spt_memory_pool *pool; /* the stream's, to be told of at the end; or NULL */
    size_t not_understood;
    size_t n;
    bool silent, interrupted; /* how it has ended, if not by the stop heap */
    uint64_t came;
    int64_t first_ns, last_ns;
    int64_t first_packets_ns; /* when something was there first, at a look or with a chunk */
    int64_t longest_pause_ns; /* the most that nothing has come after that, at a look */
    uint64_t bytes_before;
    int64_t faults_before;
    struct usage at_first;  /* what had been used when the first heap came */
    spt_chunk_ring *chunks; /* of a stream that fills chunks, whose place function counts those
                             * heaps that are of another size; or NULL */
    struct together alone, *together;
    const struct heaps *sockets; /* which these are the heaps of; or NULL */
    size_t n_sockets;
    spt_chunk_group *group; /* of which this stream is the first; or NULL */
    spt_recv_stream *const *members;
    size_t n_members;
    bool awaits;    /* whether its streams waited, at the last look, */
    size_t awaited; /* for this one */
};

/* Those of a stream that has its reader already. From then on Ctrl-C and SIGTERM are an end, too:
 * it stops the stream, and the program goes on with what has come whole. */
struct heaps heaps_of(spt_recv_stream *stream, const struct receiver_options *options);

/* Those of one of several streams, each of which has a socket on the same port, and a thread. */
struct heaps heaps_of_one(spt_recv_stream *stream, const struct receiver_options *options,
                          struct together *together);

/* All of theirs, to be reported, once no more come. */
struct heaps heaps_of_all(const struct heaps *sockets, size_t n);

/* The next heap, to be returned to the stream; NULL when the stream has ended, or has been silent
 * for some time. Before the first packet has come, it waits for as long as it takes. */
spt_received_heap *next_heap(struct heaps *heaps);

/* The same for a stream that fills chunks, which are to be put into its ring of free ones. */
struct heaps chunks_of(spt_recv_stream *stream, spt_chunk_ring *filled,
                       const struct receiver_options *options);
spt_chunk *next_chunk(struct heaps *heaps);

/* The same for a group of streams, each of which has the port of a sender. */
struct heaps chunks_of_all(spt_chunk_group *group, spt_recv_stream *const *members, size_t n,
                           spt_chunk_ring *filled, const struct receiver_options *options);

/* How many heaps are in a chunk. */
size_t n_present(const spt_chunk *chunk);

/* Print the account and, if not NULL, a line of the program's own; or a JSON object, or both.
 * Return the program's status: 1 if heaps are missing; 130 after Ctrl-C, 143 after SIGTERM, when
 * what still was arriving is not. */
int report_heaps(const struct heaps *heaps, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print what descriptors have said in the heap that a group was last updated with. */
void say_described(const struct receiver_options *options, const spt_item_group *group);

/* An item by its name, if it has a value in that heap that is made of whole numbers, as many as its
 * shape says; or NULL. */
const spt_group_item *numbers(const spt_item_group *group, const char *name);

/* How many numbers it has, and the i-th of them. */
size_t n_numbers(const spt_group_item *item);
int64_t number_at(const spt_group_item *item, size_t i);

/* Whether it is an array of numbers of 8 bits, of which there is a mean square: see chapter 7. */
bool is_int8(const spt_group_item *item);

#ifdef __cplusplus
}
#endif

#endif
