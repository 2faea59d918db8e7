/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a stream fills: which there are, and which heap goes where. One thread at a time
 * calls these.
 */
#ifndef SPTI_CHUNKS_H
#define SPTI_CHUNKS_H

#include "spead_tutorial/spt_recv.h"

typedef struct spti_chunks spti_chunks;

/* Make them, and have a depacketizer's configuration place its heaps there; one that stops the
 * stream, if it stops it, goes nowhere. NULL for what cannot be. */
spti_chunks *spti_chunks_create(const spt_chunk_config *config, bool stops,
                                spt_depacketizer_config *heaps, spt_error *err);
/* Before the first packet: who puts heaps together. From now on the rings are used, until the end.
 */
void spti_chunks_serve(spti_chunks *c, spt_depacketizer *d);
void spti_chunks_destroy(spti_chunks *c);

/* Packets have just been placed: n of them, from a payload offset on, each with so many bytes of
 * payload. */
void spti_chunks_placed(spti_chunks *c, uint64_t offset, size_t length, size_t n);

/* Whether nothing is said to have arrived in so many bytes, where packets of the last one's heap
 * are expected. Another heap may have been given the same place before. */
bool spti_chunks_unmarked(const spti_chunks *c, const uint8_t *to, size_t n_bytes);

/* Note which heaps are finished, and recycle them: after each packet, before the next. */
void spti_chunks_collect(spti_chunks *c);

/* A ring has been stopped that would be needed: there is no going on. */
bool spti_chunks_stuck(const spti_chunks *c);

/* Add up what the place function has counted. */
void spti_chunks_end_batch(spti_chunks *c);

/* Nothing comes any more, and all heaps are finished: hand over what there is. */
void spti_chunks_end(spti_chunks *c);

void spti_chunks_stats(const spti_chunks *c, spt_chunk_stats *stats, uint64_t *place_stats);

#endif
