/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a stream fills: which there are, and which heap goes where. One thread at a time
 * calls these.
 */
#ifndef SPTI_CHUNKS_H
#define SPTI_CHUNKS_H

#include "depacketizer.h"

typedef struct spti_chunks spti_chunks;

/* Make them; one heap that stops the stream, if it stops it, goes nowhere. NULL for what cannot be.
 */
spti_chunks *spti_chunks_create(const spt_chunk_config *config, bool stops, spt_error *err);
/* How a depacketizer has its heaps placed there. */
spti_placing spti_chunks_placing(spti_chunks *c);
/* Before the first packet: who puts heaps together. From now on the rings are used, until the end.
 */
void spti_chunks_serve(spti_chunks *c, spt_depacketizer *d);
void spti_chunks_destroy(spti_chunks *c);

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
