/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that come through a UDP socket, many with each call. It knows neither packets nor
 * heaps, and it never waits.
 */
#ifndef SPTI_DATAGRAMS_H
#define SPTI_DATAGRAMS_H

#include "packet_run.h"
#include "spead_tutorial/spt_recv.h"

typedef struct spti_datagrams spti_datagrams;

/* A socket of our own, bound to an endpoint; without one, a duplicate of one that is given. */
spti_datagrams *spti_datagrams_open(int given, const spt_endpoint *endpoint,
                                    const spt_receive_config *config, spt_error *err);
void spti_datagrams_close(spti_datagrams *d);

int spti_datagrams_fd(const spti_datagrams *d);

/* Read what has come, once all that came before has been taken. SPT_PENDING: nothing has; an error
 * is that of the socket. */
spt_status spti_datagrams_read(spti_datagrams *d, spt_error *err);

/* Packets that are likely to come next: all of a size, with payloads one after the other in a place
 * that they are to come to. */
typedef struct spti_guess {
    size_t n;
    size_t n_bytes; /* of each, */
    size_t prefix;  /* of which so many are before its payload */
    uint8_t *to;
} spti_guess;

/* Whether a guess saves more than it costs. */
bool spti_datagrams_worth_a_guess(const spti_datagrams *d, const spti_guess *guess);

/* As spti_datagrams_read(), but have payloads written to where they belong if the guess is right.
 * If not, there is something else there. Fills in the packets that have the size that was guessed,
 * whose beginnings have to be looked at; then comes spti_datagrams_right(). */
spt_status spti_datagrams_read_guess(spti_datagrams *d, const spti_guess *guess,
                                     spti_packet_run *run, spt_error *err);

/* So many of them were right, and are taken with that. All others are there to be taken as usual:
 * what is in the place of their payload is copied from there. */
void spti_datagrams_right(spti_datagrams *d, const spti_guess *guess, size_t n_right);

/* Whether nothing of what was read is left. */
bool spti_datagrams_all_taken(const spti_datagrams *d);

/* The next ones, those of a message that are equally long; false where there are none. Such as were
 * longer than max_size may be cut, but are longer than that still. They stay until the next read.
 */
bool spti_datagrams_next(spti_datagrams *d, spti_packet_run *run);

/* The first n of them are taken. */
void spti_datagrams_take(spti_datagrams *d, const spti_packet_run *run, size_t n);

void spti_datagrams_stats(const spti_datagrams *d, spt_receive_stats *stats);

#endif
