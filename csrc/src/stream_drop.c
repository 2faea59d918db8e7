/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns giving up: with the task paused, so that the caller is the worker.
 */
#include "stream.h"

#include "sync.h"

#include <poll.h>

enum {
    HELD_MS = 1000, /* how long who cancels or stops waits until memory is not read any more */
};

static bool is_of(const spti_slot *slot, const spt_completion *completion)
{
    return slot->completion != NULL && (completion == NULL || slot->completion == completion);
}

/* Forget the packets that were made of the heaps of a completion, or of all, and not handed over.
 */
static void forget_packets(spt_stream *s, const spt_completion *completion, spt_status status)
{
    spti_batch *batch = spti_batch_at(s, s->new_batch);
    size_t kept = batch->next;
    for (size_t i = batch->next; i < batch->n; i++) {
        spti_slot *slot = batch->packets[i].sender;
        if (is_of(slot, completion)) {
            if (i == batch->next && s->transport->ops->keep != NULL)
                s->transport->ops->keep(s->transport, batch);
            spti_stream_fail(slot, status, 0, 0, 0);
            slot->in_batch--;
        } else {
            batch->packets[kept++] = batch->packets[i];
        }
    }
    batch->n = kept;
}

/* Make no more packets of them. */
static void make_no_more(spt_stream *s, const spt_completion *completion, size_t tail,
                         spt_status status)
{
    for (size_t i = s->finished; i != tail; i++) {
        spti_slot *slot = spti_slot_at(s, i);
        if (!is_of(slot, completion) || slot->exhausted)
            continue;
        spti_stream_fail(slot, status, 0, 0, 0);
        slot->exhausted = true;
    }
    spti_stream_find_group_again(s);
}

/* Wait until their memory is not read any more; for a device that never lets go, not for ever. */
static void await_release(spt_stream *s, const spt_completion *completion, size_t tail)
{
    uint64_t end_ns = spti_now_ns() + (uint64_t)HELD_MS * 1000000U;
    for (size_t i = s->finished; i != tail; i++) {
        const spti_slot *slot = spti_slot_at(s, i);
        while ((ptrdiff_t)(i - s->finished) >= 0 && is_of(slot, completion) && slot->in_batch > 0) {
            struct pollfd news = {.fd = s->transport->fd};
            if (spti_now_ns() >= end_ns)
                s->transport->released = s->transport->handed;
            else
                poll(&news, 1, HELD_MS);
            spti_stream_settle(s);
        }
    }
}

void spti_stream_drop(spt_stream *s, const spt_completion *completion, spt_status status)
{
    size_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    forget_packets(s, completion, status);
    make_no_more(s, completion, tail, status);
    await_release(s, completion, tail);
    for (size_t i = s->finished; i != tail; i++)
        if (is_of(spti_slot_at(s, i), completion))
            spti_stream_finish_heap(s, spti_slot_at(s, i));
    spti_stream_retire(s);
}

void spti_stream_refuse_sends(spt_stream *s)
{
    SPTI_HOLD(&s->queue_lock);
    s->stopped = true;
}

void spti_stream_pool_stopped(spti_task *task)
{
    spt_stream *s = (spt_stream *)task;
    spti_stream_refuse_sends(s);
    spti_stream_drop(s, NULL, SPT_ERR_STOPPED);
}

void spt_stream_stop(spt_stream *stream)
{
    spti_stream_refuse_sends(stream);
    spti_task_pause(&stream->task);
    spti_stream_drop(stream, NULL, SPT_ERR_STOPPED);
    spti_task_resume(&stream->task);
}

void spt_stream_cancel(spt_stream *stream, spt_completion *completion)
{
    if (spt_completion_done(completion))
        return;
    spti_task_pause(&stream->task);
    spti_stream_drop(stream, completion, SPT_ERR_CANCELLED);
    spti_task_resume(&stream->task);
}
