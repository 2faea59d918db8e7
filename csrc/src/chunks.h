/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chunks that a stream fills: which there are, and which heap goes where. One thread at a time
 * calls these.
 */
#ifndef SPTI_CHUNKS_H
#define SPTI_CHUNKS_H

#include "chunk_window.h"
#include "depacketizer.h"
#include "sink.h"

typedef struct spti_chunks spti_chunks;

/* Make them, in a window of their own or that of a group (or NULL); one heap that stops the stream,
 * if it stops it, goes nowhere. NULL for what cannot be. */
spti_chunks *spti_chunks_create(const spt_chunk_config *config, spti_window *of_group, bool stops,
                                spt_error *err);
void spti_chunks_destroy(spti_chunks *c);

/* How a depacketizer has its heaps placed there, */
const spti_placing *spti_chunks_placing(const spti_chunks *c);
/* and where it has those go that are finished. */
spti_sink *spti_chunks_sink(spti_chunks *c);

/* Before the first packet: which depacketizer; and whom to wake when it is worth trying again. From
 * now on the rings are used, until the end. */
spt_status spti_chunks_serve(spti_chunks *c, spt_depacketizer *d, void (*wake)(void *user),
                             void *user, spt_error *err);

/* Its own, or that of its group: of all streams that fill the same chunks. */
spti_window *spti_chunks_window(const spti_chunks *c);

/* Before packets are looked at: leave what others want to be left. */
void spti_chunks_catch_up(spti_chunks *c);

/* Other streams may go on; at the end chunks may have gone back to a ring that they wait for. Not
 * under a lock that is taken by who is woken. */
void spti_chunks_tell(spti_chunks *c, bool ended);

/* Nor is this under such a lock. */
void spti_chunks_stop_rings(spti_chunks *c);

void spti_chunks_stats(const spti_chunks *c, spt_chunk_stats *stats, uint64_t *place_stats);

#endif
