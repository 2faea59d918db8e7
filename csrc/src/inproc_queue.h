/* SPDX-License-Identifier: BSD-3-Clause */
/* What senders and receivers need of a queue in the process: to put packets in, to take them out,
 * and to wait for that by a descriptor. */
#ifndef SPTI_INPROC_QUEUE_H
#define SPTI_INPROC_QUEUE_H

#include "spead_tutorial/spt.h"

typedef struct spti_inproc_packet {
    struct spti_inproc_packet *next;
    size_t n_bytes;
    uint8_t bytes[];
} spti_inproc_packet;

/* Who may have to wait, at one queue at a time; of the queue's lock. Its eventfd costs a system
 * call only where it does: for packets until it is readable, for room until it is writable. */
typedef struct spti_inproc_waiter {
    int fd;
    bool waits;
    bool told; /* it is readable */
    struct spti_inproc_waiter *next;
} spti_inproc_waiter;

spt_status spti_inproc_waiter_init(spti_inproc_waiter *waiter, spt_error *err);

/* Have it wait no more. */
void spti_inproc_give_up(spt_inproc_queue *queue, spti_inproc_waiter *waiter);

/* The queue lives until all who hold it, and who made it, have called spt_inproc_queue_destroy().
 */
spt_inproc_queue *spti_inproc_hold(spt_inproc_queue *queue);

/* What a packet can have at most. */
size_t spti_inproc_max_bytes(const spt_inproc_queue *queue);

/* Whether there is room for so many bytes: SPT_OK; SPT_PENDING, then the waiter waits for it, where
 * there is one; SPT_ERR_STOPPED. */
spt_status spti_inproc_has_room(spt_inproc_queue *queue, size_t n_bytes,
                                spti_inproc_waiter *waiter);

/* The same, and put a packet in, which is taken unless there is no room. */
spt_status spti_inproc_put(spt_inproc_queue *queue, spti_inproc_packet *packet,
                           spti_inproc_waiter *waiter);

/* Take a packet, to be freed: SPT_OK; SPT_PENDING, then the waiter waits for one; SPT_DONE where
 * none comes any more. */
spt_status spti_inproc_take(spt_inproc_queue *queue, spti_inproc_packet **packet,
                            spti_inproc_waiter *waiter);

/* All that are taken for now have been: senders that wait for room are told, if there is any. */
void spti_inproc_took(spt_inproc_queue *queue);

#endif
