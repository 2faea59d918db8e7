/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a stream fills: which there are, and which heap goes where. One thread at a time
 * calls these.
 */
#ifndef SPTI_CHUNKS_H
#define SPTI_CHUNKS_H

#include "depacketizer.h"
#include "sink.h"

typedef struct spti_chunks spti_chunks;

/* Make them; one heap that stops the stream, if it stops it, goes nowhere. NULL for what cannot be.
 */
spti_chunks *spti_chunks_create(const spt_chunk_config *config, bool stops, spt_error *err);
void spti_chunks_destroy(spti_chunks *c);

/* How a depacketizer has its heaps placed there, */
const spti_placing *spti_chunks_placing(const spti_chunks *c);
/* and where it has those go that are finished. */
spti_sink *spti_chunks_sink(spti_chunks *c);

/* Before the first packet: which depacketizer. From now on the rings are used, until the end. */
void spti_chunks_serve(spti_chunks *c, spt_depacketizer *d);

/* Whom to tell when it is worth trying again. */
void spti_chunks_watch(spti_chunks *c, void (*tell)(void *user), void *user);

/* At the end chunks may have gone back to a ring that other streams wait for; and rings may be
 * stopped. Both tell who watches, and are not called under a lock that this takes. */
void spti_chunks_tell_of_free(spti_chunks *c);
void spti_chunks_stop_rings(spti_chunks *c);

void spti_chunks_stats(const spti_chunks *c, spt_chunk_stats *stats, uint64_t *place_stats);

#endif
