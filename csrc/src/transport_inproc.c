/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns how packets get into queues of the process: one for each substream. */
#include "transport.h"

#include "inproc_queue.h"
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct inproc_transport {
    spti_transport base;
    spti_inproc_waiter waiter;
    spt_inproc_queue *waits_at; /* or NULL */
    spt_inproc_queue *queues[];
} inproc_transport;

static void stop_waiting(inproc_transport *p)
{
    if (p->waits_at != NULL)
        spti_inproc_give_up(p->waits_at, &p->waiter);
    p->waits_at = NULL;
}

/* Others may have filled the queue while it was copied. */
static spt_status put(inproc_transport *p, const spti_batch *batch, const spti_packet *packet)
{
    spt_inproc_queue *queue = p->queues[packet->substream];
    SPTI_TRY(spti_inproc_has_room(queue, packet->size, &p->waiter));
    spti_inproc_packet *made = malloc(sizeof(*made) + packet->size);
    if (made == NULL)
        return SPT_ERR_MEMORY;
    made->n_bytes = packet->size;
    spti_packet_copy(batch, packet, made->bytes);
    spt_status status = spti_inproc_put(queue, made, &p->waiter);
    if (status != SPT_OK)
        free(made);
    return status;
}

static spt_status inproc_send(spti_transport *t, spti_batch *batch)
{
    inproc_transport *p = (inproc_transport *)t;
    stop_waiting(p);
    for (; batch->next < batch->n; batch->next++) {
        const spti_packet *packet = &batch->packets[batch->next];
        spt_status status = put(p, batch, packet);
        if (status == SPT_PENDING) {
            p->waits_at = p->queues[packet->substream];
            spti_count(&t->stats.waits, 1);
            return SPT_PENDING;
        }
        if (status == SPT_OK)
            spti_transport_taken(t, batch, batch->next, 1);
        else
            spti_transport_failed(t, batch, batch->next, 1,
                                  status == SPT_ERR_MEMORY ? ENOMEM : ECANCELED);
    }
    return SPT_OK;
}

static void inproc_destroy(spti_transport *t)
{
    inproc_transport *p = (inproc_transport *)t;
    stop_waiting(p);
    for (size_t i = 0; i < t->n_substreams; i++)
        spt_inproc_queue_destroy(p->queues[i]);
    close(t->fd);
    free(p);
}

static const spti_transport_ops inproc_ops = {inproc_send, NULL, inproc_destroy, NULL};

spti_transport *spti_transport_inproc(spt_inproc_queue *const *queues, size_t n_queues,
                                      spt_error *err)
{
    if (n_queues == 0)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT, "a stream needs at least one queue");
    inproc_transport *p = calloc(1, sizeof(*p) + n_queues * sizeof(*p->queues));
    if (p == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for %zu queues", n_queues);
    if (spti_inproc_waiter_init(&p->waiter, err) != SPT_OK) {
        free(p);
        return NULL;
    }
    p->base = (spti_transport){
        .ops = &inproc_ops,
        .n_substreams = n_queues,
        .max_packet_size = UINT32_MAX,
        .limit = "a packet's size has 32 bits",
        .fd = p->waiter.fd,
    };
    for (size_t i = 0; i < n_queues; i++) {
        p->queues[i] = spti_inproc_hold(queues[i]);
        if (spti_inproc_max_bytes(queues[i]) < p->base.max_packet_size) {
            p->base.max_packet_size = spti_inproc_max_bytes(queues[i]);
            p->base.limit = "max_bytes of a queue is less";
        }
    }
    return &p->base;
}
