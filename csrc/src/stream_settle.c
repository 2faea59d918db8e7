/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what becomes of packets that were handed over, and of heaps that have none left: their slots
 * are freed, and their completions given back. For the worker.
 */
#include "stream.h"

#include "heap.h"
#include "sync.h"

#include <errno.h>
#include <unistd.h>

static void record_times(spt_stream *s, const spti_slot *slot)
{
    spt_times *times = spti_times_of(s, slot);
    times->cnt = slot->packetizer.cnt;
    times->completed_ns = spti_now_ns();
    SPTI_HOLD(&s->timeline_lock);
    s->timeline[s->n_timeline++ % s->config.timeline] = *times;
}

void spti_give_back(spt_completion *list)
{
    for (spt_completion *c = list, *next; c != NULL; c = next) {
        next = c->next_; /* c is its owner's as soon as it is done */
        __atomic_store_n(&c->state_, SPTI_WITH_OWNER, __ATOMIC_SEQ_CST);
    }
}

void spti_stream_signal(spt_stream *s)
{
    if (!__atomic_exchange_n(&s->armed, 0, __ATOMIC_SEQ_CST))
        return;
    if (s->own_pool != NULL)
        spti_pool_signal(s->own_pool);
    else
        spti_event_add(s->event_fd, 1);
}

/* Put what is complete into the list that is polled. */
static void list_completed(spt_stream *s)
{
    pthread_mutex_lock(&s->done_lock);
    for (spt_completion *c = s->completed; c != NULL; c = c->next_)
        __atomic_store_n(&c->state_, SPTI_LISTED, __ATOMIC_SEQ_CST);
    *s->polled_end = s->completed;
    s->polled_end = s->completed_end;
    pthread_mutex_unlock(&s->done_lock);
    spti_stream_signal(s);
}

static void wake_waiters(spt_stream *s)
{
    if (__atomic_load_n(&s->waiters, __ATOMIC_SEQ_CST) == 0)
        return;
    if (s->own_pool != NULL) {
        spti_pool_rouse(s->own_pool);
        return;
    }
    SPTI_HOLD(&s->done_lock);
    pthread_cond_broadcast(&s->done);
}

/* Tell the owners of what is complete, who may be waiting. */
static void announce(spt_stream *s)
{
    if (s->completed == NULL)
        return;
    if (s->config.poll)
        list_completed(s);
    else
        spti_give_back(s->completed);
    s->completed = NULL;
    s->completed_end = &s->completed;
    __atomic_store_n(&s->given_back, s->head, __ATOMIC_SEQ_CST);
    wake_waiters(s);
}

void spti_stream_finish_heap(spt_stream *s, spti_slot *slot)
{
    if (s->times != NULL)
        record_times(s, slot);
    spti_heap_return((spt_heap *)(uintptr_t)slot->packetizer.heap);
    spti_count(&s->heaps, 1);
    if (slot->last) {
        slot->completion->next_ = NULL;
        *s->completed_end = slot->completion;
        s->completed_end = &slot->completion->next_;
    }
    slot->completion = NULL; /* finished */
}

void spti_stream_retire(spt_stream *s)
{
    size_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    size_t head = s->head;
    while (s->finished != tail) {
        spti_slot *slot = spti_slot_at(s, s->finished);
        if (!slot->exhausted || slot->in_batch > 0)
            break;
        if (slot->completion != NULL)
            spti_stream_finish_heap(s, slot);
        s->finished++;
        if (slot->last)
            head = s->finished;
    }
    if (head != s->head)
        __atomic_store_n(&s->head, head, __ATOMIC_SEQ_CST); /* before anybody is told */
    announce(s);
}

void spti_stream_fail(spti_slot *slot, spt_status status, int sys_errno, size_t packet_size,
                      size_t fits)
{
    spt_completion *c = slot->completion;
    if (c->status != SPT_OK)
        return; /* the first error is the one that is told */
    c->status = status;
    c->sys_errno = sys_errno;
    c->failed_cnt = slot->packetizer.cnt;
    c->failed_packet_size = packet_size;
    c->fitting_packet_size = fits;
}

/* Deal with the packets of a batch that were handed over and are not held, in order. */
static void settle_batch(spt_stream *s, spti_batch *batch)
{
    for (; batch->done < batch->next; batch->done++) {
        const spti_packet *packet = &batch->packets[batch->done];
        if (spti_transport_holds(s->transport, packet))
            break;
        spti_slot *slot = packet->sender;
        slot->in_batch--;
        if (packet->error != 0) {
            size_t fits = packet->error == EMSGSIZE ? s->transport->fits : 0;
            spti_stream_fail(slot, SPT_ERR_SYSTEM, packet->error, packet->size, fits);
            continue;
        }
        slot->completion->bytes += packet->size;
    }
}

void spti_stream_settle(spt_stream *s)
{
    if (s->transport->ops->release != NULL)
        s->transport->ops->release(s->transport);
    for (;; s->oldest_batch++) {
        spti_batch *batch = spti_batch_at(s, s->oldest_batch);
        settle_batch(s, batch);
        if (batch->done < batch->n || s->oldest_batch == s->new_batch)
            break;
    }
    spti_stream_retire(s);
}
