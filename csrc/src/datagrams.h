/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that come through a UDP socket, many with each call. It knows neither packets nor
 * heaps, and it never waits.
 */
#ifndef SPTI_DATAGRAMS_H
#define SPTI_DATAGRAMS_H

#include "spead_tutorial/spt_recv.h"

typedef struct spti_datagrams spti_datagrams;

/* A socket of our own, bound to an endpoint; or a duplicate of one that is given. */
spti_datagrams *spti_datagrams_open(const spt_endpoint *endpoint, const spt_receive_config *config,
                                    spt_error *err);
spti_datagrams *spti_datagrams_open_socket(int socket, const spt_receive_config *config,
                                           spt_error *err);
void spti_datagrams_close(spti_datagrams *d);

int spti_datagrams_fd(const spti_datagrams *d);

/* Read what has come, once all that came before has been taken. SPT_PENDING: nothing has; an error
 * is that of the socket. */
spt_status spti_datagrams_read(spti_datagrams *d, spt_error *err);

/* Take the next one; false where there is none. One that was longer than max_size is cut, and so
 * one byte longer than that. It stays until the next read. */
bool spti_datagrams_next(spti_datagrams *d, const uint8_t **bytes, size_t *n_bytes);

void spti_datagrams_stats(const spti_datagrams *d, spt_receive_stats *stats);

#endif
