/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns packets that are taken from a queue of the process, one at a time: others may take some,
 * too, and those that are left stay in the queue when the stream ends. */
#include "source.h"

#include "inproc_queue.h"
#include "status.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 64 }; /* packets, before others have their turn */

typedef struct inproc_source {
    spti_source base;
    spt_inproc_queue *queue;
    spti_inproc_waiter waiter;
    spti_inproc_packet *packet; /* the last one, which may still be looked at, or NULL */
} inproc_source;

static spti_wait take_packets(inproc_source *s, spti_intake *in)
{
    for (int i = 0; i < BATCH; i++) {
        free(s->packet);
        spt_status status = spti_inproc_take(s->queue, &s->packet, &s->waiter);
        if (status == SPT_PENDING)
            return SPTI_WAIT_READABLE;
        if (status == SPT_DONE) {
            spti_intake_end(in);
            return SPTI_WAIT_WORK;
        }
        (void)spti_intake_take(in, s->packet->bytes, s->packet->n_bytes, true, 0);
        if (!spti_intake_go_on(in))
            return SPTI_WAIT_WORK;
    }
    return SPTI_WAIT_TURN;
}

static spti_wait inproc_read(spti_source *source, spti_intake *in)
{
    inproc_source *s = (inproc_source *)source;
    spti_wait wait = take_packets(s, in);
    spti_inproc_took(s->queue);
    return wait;
}

static void inproc_close(spti_source *source)
{
    inproc_source *s = (inproc_source *)source;
    spti_inproc_give_up(s->queue, &s->waiter);
    spt_inproc_queue_destroy(s->queue);
    close(s->waiter.fd);
    free(s->packet);
    free(s);
}

static const spti_source_ops inproc_ops = {inproc_read, NULL, NULL, inproc_close};

spti_source *spti_source_inproc(spt_inproc_queue *queue, spt_error *err)
{
    inproc_source *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    if (spti_inproc_waiter_init(&s->waiter, err) != SPT_OK) {
        free(s);
        return NULL;
    }
    s->base = (spti_source){.ops = &inproc_ops, .fd = s->waiter.fd};
    s->queue = spti_inproc_hold(queue);
    return &s->base;
}
