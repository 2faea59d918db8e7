/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has to be known to send without copying (MSG_ZEROCOPY): which messages fit, which of them
 * the kernel still reads, and whether it is worth it.
 */
#ifndef SPTI_TRANSPORT_ZERO_COPY_H
#define SPTI_TRANSPORT_ZERO_COPY_H

#include "transport.h"

enum {
    SPTI_ZERO_COPY_HELD = 4096, /* more messages than a ring of batches can have */
};

typedef struct spti_zero_copy {
    bool on;
    unsigned skip;                      /* calls to make without, before it is tried again */
    unsigned careful;                   /* calls to make that do not count on large pages */
    uint64_t copied;                    /* messages in a row that the kernel has copied after all */
    bool released[SPTI_ZERO_COPY_HELD]; /* by number: those after one that is not */
} spti_zero_copy;

/* Turn it on, where the system has it. */
void spti_zero_copy_init(spti_zero_copy *z, int fd);

/* Whether to try it with the next call. */
bool spti_zero_copy_try(spti_zero_copy *z);

/* Whether that has paid: n messages of so many bytes are worth it. */
bool spti_zero_copy_pays(size_t n_messages, size_t n_bytes);

/* How many of n packets from first on fit in a message whose memory is not copied; may be 0. */
size_t spti_zero_copy_run(const spti_zero_copy *z, const spti_batch *batch, size_t first, size_t n);

/* Packets [first, first + n) have been taken as one message. */
void spti_zero_copy_taken(spti_zero_copy *z, spti_transport *t, const spti_batch *batch,
                          size_t first, size_t n);

/* A call has been refused. Returns whether to try again, in another way; else there is news to wait
 * for. */
bool spti_zero_copy_refused(spti_zero_copy *z, spti_transport *t, int error);

/* Take the news of which messages are not read any more. */
void spti_zero_copy_release(spti_zero_copy *z, spti_transport *t);

#endif
