/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of packets from sources into heaps, and of finished heaps to a sink. Whose thread reads,
 * and when, is its caller's business: any may, one at a time.
 */
#ifndef SPTI_INTAKE_H
#define SPTI_INTAKE_H

#include "datagrams.h"
#include "depacketizer.h"
#include "sink.h"
#include "thread_pool.h"
#include "waits.h"

/* What packets come from. */
typedef struct spti_source {
    spti_datagrams *datagrams; /* or NULL, for packets in memory: */
    const uint8_t *bytes;
    size_t n_bytes;
    size_t max_size; /* of a packet */
} spti_source;

typedef struct spti_intake {
    spt_depacketizer *depacketizer;
    spti_sink *sink;
    bool stop_on_stop_item;
    bool ended; /* atomic */

    uint64_t batch;                  /* packets that were found so far, this time */
    spt_received_heap *waiting_heap; /* that the sink had no room for */
    spt_received_packet held;        /* whose heap had no place, in its source's memory */
    bool holds;
    bool held_datagram;
    spti_waits waits;     /* for one of them */
    spt_recv_stats stats; /* but for the waits, and sockets that are open */
} spti_intake;

/*
 * Read a bounded share of what has come to a source, and put it into heaps; first what has waited.
 * Returns what to wait for before it is worth trying again: SPTI_WAIT_TURN, nothing;
 * SPTI_WAIT_READABLE, the source; SPTI_WAIT_WORK, room, a place, or, where it has ended, nothing
 * ever. It never waits itself.
 */
spti_wait spti_intake_read(spti_intake *in, spti_source *source);

/* Whether nothing comes any more: a packet or the source's end said so, or somebody did. Any thread
 * may ask. */
bool spti_intake_has_ended(const spti_intake *in);

/* Have it end, unless it has. */
void spti_intake_end(spti_intake *in);

/* It has ended: count what was read from a source, and is not looked at. */
void spti_intake_leave(spti_intake *in, spti_source *source);

#endif
