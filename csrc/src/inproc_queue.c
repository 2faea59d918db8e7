/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns packets on their way within the process, and who waits for them or for room. Knows nothing
 * of what is in them. */
#include "inproc_queue.h"

#include "status.h"
#include "sync.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct spt_inproc_queue {
    size_t holders; /* atomic */
    size_t max_packets, max_bytes;
    pthread_mutex_t lock; /* for all that follows; nothing is waited for under it */
    spti_inproc_packet *first, **end;
    size_t n_packets, n_bytes;
    spti_inproc_waiter *receivers, *senders; /* that wait */
    bool stopped;
};

/* ---- Waiting, under the lock ----------------------------------------------------------------- */

static void wait_in(spti_inproc_waiter **list, spti_inproc_waiter *w, bool for_room)
{
    if (w == NULL || w->waits)
        return;
    if (for_room)
        spti_event_add(w->fd, UINT64_MAX - 1); /* no more fits: it is not writable */
    w->waits = true;
    w->next = *list;
    *list = w;
}

/* All of them: one alone may have other things to do. */
static void tell(spti_inproc_waiter **list, bool of_room)
{
    for (spti_inproc_waiter *w = *list; w != NULL; w = w->next) {
        w->waits = false;
        w->told = !of_room;
        if (of_room)
            spti_event_empty(w->fd);
        else
            spti_event_add(w->fd, 1);
    }
    *list = NULL;
}

static void unlist(spti_inproc_waiter **list, spti_inproc_waiter *w)
{
    while (*list != NULL && *list != w)
        list = &(*list)->next;
    if (*list == w)
        *list = w->next;
}

spt_status spti_inproc_waiter_init(spti_inproc_waiter *w, spt_error *err)
{
    *w = (spti_inproc_waiter){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    return w->fd < 0 ? spti_fail_errno(err, "could not make an eventfd") : SPT_OK;
}

void spti_inproc_give_up(spt_inproc_queue *q, spti_inproc_waiter *w)
{
    SPTI_HOLD(&q->lock);
    if (w->waits) {
        unlist(&q->receivers, w);
        unlist(&q->senders, w);
        spti_event_empty(w->fd);
        w->waits = false;
    }
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Under the lock. */
static spt_status has_room(spt_inproc_queue *q, size_t n_bytes, spti_inproc_waiter *waiter)
{
    if (q->stopped)
        return SPT_ERR_STOPPED;
    if (q->n_packets < q->max_packets && n_bytes <= q->max_bytes - q->n_bytes)
        return SPT_OK;
    wait_in(&q->senders, waiter, true);
    return SPT_PENDING;
}

spt_status spti_inproc_has_room(spt_inproc_queue *q, size_t n_bytes, spti_inproc_waiter *waiter)
{
    SPTI_HOLD(&q->lock);
    return has_room(q, n_bytes, waiter);
}

spt_status spti_inproc_put(spt_inproc_queue *q, spti_inproc_packet *packet,
                           spti_inproc_waiter *waiter)
{
    SPTI_HOLD(&q->lock);
    spt_status status = has_room(q, packet->n_bytes, waiter);
    if (status == SPT_OK) {
        packet->next = NULL;
        *q->end = packet;
        q->end = &packet->next;
        q->n_packets++;
        q->n_bytes += packet->n_bytes;
        tell(&q->receivers, false);
    }
    return status;
}

static void take(spt_inproc_queue *q, spti_inproc_packet *packet)
{
    q->first = packet->next;
    if (q->first == NULL)
        q->end = &q->first;
    q->n_packets--;
    q->n_bytes -= packet->n_bytes;
}

spt_status spti_inproc_take(spt_inproc_queue *q, spti_inproc_packet **packet,
                            spti_inproc_waiter *waiter)
{
    spt_status status = SPT_OK;
    SPTI_HOLD(&q->lock);
    if (waiter->told)
        spti_event_empty(waiter->fd);
    waiter->told = false;
    *packet = q->first;
    if (q->first != NULL) {
        take(q, q->first);
    } else if (q->stopped) {
        status = SPT_DONE;
    } else {
        status = SPT_PENDING;
        wait_in(&q->receivers, waiter, false);
    }
    return status;
}

void spti_inproc_took(spt_inproc_queue *q)
{
    SPTI_HOLD(&q->lock);
    if (q->n_packets < q->max_packets && q->n_bytes < q->max_bytes)
        tell(&q->senders, true);
}

size_t spti_inproc_max_bytes(const spt_inproc_queue *q)
{
    return q->max_bytes;
}

/* ---- For its owner --------------------------------------------------------------------------- */

spt_inproc_queue *spt_inproc_queue_create(size_t max_packets, size_t max_bytes, spt_error *err)
{
    spt_inproc_queue *q = calloc(1, sizeof(*q));
    if (q == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a queue");
    q->holders = 1;
    q->max_packets = max_packets > 0 ? max_packets : SIZE_MAX;
    q->max_bytes = max_bytes > 0 ? max_bytes : SIZE_MAX;
    q->end = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

spt_inproc_queue *spti_inproc_hold(spt_inproc_queue *q)
{
    __atomic_add_fetch(&q->holders, 1, __ATOMIC_RELAXED);
    return q;
}

void spt_inproc_queue_destroy(spt_inproc_queue *q)
{
    if (q == NULL || __atomic_sub_fetch(&q->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (spti_inproc_packet *packet = q->first, *next; packet != NULL; packet = next) {
        next = packet->next;
        free(packet);
    }
    pthread_mutex_destroy(&q->lock);
    free(q);
}

void spt_inproc_queue_stop(spt_inproc_queue *q)
{
    SPTI_HOLD(&q->lock);
    q->stopped = true;
    tell(&q->receivers, false);
    tell(&q->senders, true);
}

static spt_status explain(spt_status status, size_t n_bytes, spt_error *err)
{
    if (status == SPT_ERR_STOPPED)
        return spti_fail(err, status, "the queue has been stopped: make a new one");
    if (status != SPT_PENDING)
        return status;
    return spti_fail(err, SPT_ERR_QUEUE_FULL,
                     "the queue has no room for a packet of %zu bytes: receive from it first, or "
                     "raise its max_packets or max_bytes",
                     n_bytes);
}

spt_status spt_inproc_queue_add_packet(spt_inproc_queue *q, const void *bytes, size_t n_bytes,
                                       spt_error *err)
{
    if (n_bytes > q->max_bytes)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "a packet of %zu bytes never fits in the queue: its max_bytes is %zu",
                         n_bytes, q->max_bytes);
    spti_inproc_packet *packet =
        n_bytes > PTRDIFF_MAX - sizeof(*packet) ? NULL : malloc(sizeof(*packet) + n_bytes);
    if (packet == NULL)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a packet of %zu bytes", n_bytes);
    packet->n_bytes = n_bytes;
    if (n_bytes > 0)
        memcpy(packet->bytes, bytes, n_bytes);
    spt_status status = spti_inproc_put(q, packet, NULL);
    if (status != SPT_OK)
        free(packet);
    return explain(status, n_bytes, err);
}
