/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of packets from sources into heaps, and of finished heaps to a sink. Whose thread reads,
 * and when, is its caller's business: any may, one at a time.
 */
#ifndef SPTI_INTAKE_H
#define SPTI_INTAKE_H

#include "depacketizer.h"
#include "sink.h"
#include "thread_pool.h"
#include "waits.h"

typedef struct spti_intake spti_intake;

/* What packets come from. */
typedef struct spti_source spti_source;

typedef struct spti_source_ops {
    /* Read a bounded share of what has come, and have the intake take it. Returns what to wait for:
     * SPTI_WAIT_TURN, nothing; SPTI_WAIT_READABLE, the descriptor; SPTI_WAIT_WORK where the intake
     * cannot go on. */
    spti_wait (*read)(spti_source *source, spti_intake *in);
    /* The stream has ended: returns how many packets were read, and are not looked at. NULL: never
     * any. */
    size_t (*leave)(spti_source *source);
    /* Fill in what was counted; NULL where nothing is. */
    void (*read_stats)(const spti_source *source, spt_receive_stats *stats);
    void (*close)(spti_source *source);
} spti_source_ops;

struct spti_source {
    const spti_source_ops *ops;
    int fd;   /* to wait for, or -1 */
    int port; /* that packets come to, or 0 */
};

struct spti_intake {
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
};

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

/* ---- For sources ---- */

/*
 * Take a packet apart, and to its place. One that is alone, as a datagram is, has to be as long as
 * it says; its sender is 0 where it is not known. Returns the bytes it had; 0 where it is
 * malformed. Then comes spti_intake_go_on(), and where that says no, the bytes have to stay as they
 * are until the source's next turn.
 */
size_t spti_intake_take(spti_intake *in, const uint8_t *bytes, size_t n_bytes, bool alone,
                        uint64_t source);

/* Take packets that go on where the one before ended. Returns how many do. */
size_t spti_intake_take_run(spti_intake *in, const spti_packet_run *run);

/* A packet that cannot be one was found. */
void spti_intake_malformed(spti_intake *in, spt_fault fault);

/* Hand over what is finished; false where the source must not go on: something has to wait, or it
 * has ended. */
bool spti_intake_go_on(spti_intake *in);

/* It cannot be read on, for that error. */
void spti_intake_fail(spti_intake *in, int error);

/* ---- After the end ---- */

/* It has ended: count what was read from a source, and is not looked at. */
void spti_intake_leave(spti_intake *in, spti_source *source);

#endif
