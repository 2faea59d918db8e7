/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the tail of the queue: heaps are checked, and put into free slots; and the heap that says to
 * receivers that the stream ends. For senders.
 */
#include "stream.h"

#include "heap.h"
#include "status.h"
#include "sync.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

/* Bytes of the packets that are made: no transport is given more than it takes. */
static size_t packet_size(const spt_stream *s)
{
    size_t size = s->config.max_packet_size, most = s->transport->max_packet_size;
    return size < most ? size : most;
}

/* A packet may be larger than the transport takes, if no packet of the heap would be. */
static spt_status check_size(const spt_stream *s, const spt_heap *heap, spt_error *err)
{
    size_t most = s->transport->max_packet_size & ~(size_t)7, padding = heap->payload_length == 0;
    if (s->config.max_packet_size <= s->transport->max_packet_size ||
        (heap->payload_length < most &&
         SPTI_PREFIX + SPTI_POINTER * (heap->n_items + padding) + heap->payload_length + padding <=
             most))
        return SPT_OK;
    (void)spti_fail(err, SPT_ERR_SYSTEM,
                    "cannot send packets of %zu bytes: %s; lower max_packet_size",
                    s->config.max_packet_size, s->transport->limit);
    if (err != NULL)
        err->sys_errno = EMSGSIZE;
    return SPT_ERR_SYSTEM;
}

static spt_status check_reference(const spt_stream *s, const spt_heap_reference *r, spt_error *err)
{
    uint64_t mask = spti_address_mask(r->heap->flavour.heap_address_bits);
    if (r->substream_index >= s->transport->n_substreams)
        return spti_fail(err, SPT_ERR_GROUP,
                         "substream %zu does not exist: the stream has %zu, counted from 0",
                         r->substream_index, s->transport->n_substreams);
    if (r->cnt >= 0 && (uint64_t)r->cnt > mask)
        return spti_fail(err, SPT_ERR_GROUP,
                         "heap count %" PRId64 " is out of range: the flavour has %d bits for it "
                         "(%" PRIu64 " at most)",
                         r->cnt, r->heap->flavour.heap_address_bits, mask);
    if (!isfinite(r->rate))
        return spti_fail(err, SPT_ERR_GROUP, "the heap's rate must be a finite number");
    return check_size(s, r->heap, err);
}

static spt_status check_send(const spt_stream *s, const spt_heap_reference *heaps, size_t n,
                             const spt_completion *completion, spt_error *err)
{
    if (n == 0)
        return spti_fail(err, SPT_ERR_GROUP, "a group must have at least one heap");
    if (__atomic_load_n(&completion->state_, __ATOMIC_SEQ_CST) != SPTI_WITH_OWNER)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the completion is in use: wait for it (or take it from "
                         "spt_stream_poll) before sending with it again");
    for (size_t i = 0; i < n; i++)
        SPTI_TRY(check_reference(s, &heaps[i], err));
    return SPT_OK;
}

static spt_status check_room(spt_stream *s, size_t n, spt_error *err)
{
    size_t max = s->config.max_heaps;
    if (n > max - (s->tail - s->seen_head))
        s->seen_head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
    size_t used = s->tail - s->seen_head;
    if (n > max)
        return spti_fail(err, SPT_ERR_QUEUE_FULL,
                         "a group of %zu heaps never fits in a queue of %zu: raise max_heaps", n,
                         max);
    if (n > max - used)
        return spti_fail(err, SPT_ERR_QUEUE_FULL,
                         "the queue is full (%zu of max_heaps=%zu in flight, %zu more asked for): "
                         "wait for a heap to complete, or raise max_heaps",
                         used, max, n);
    return SPT_OK;
}

/* Fill free slots from the tail on; the worker does not see them yet. */
static spt_status fill_slots(spt_stream *s, const spt_heap_reference *heaps, size_t n,
                             spt_group_mode mode, spt_completion *completion, uint64_t *next_cnt,
                             spt_error *err)
{
    uint64_t queued_ns = s->config.timeline > 0 ? spti_now_ns() : 0;
    for (size_t i = 0; i < n; i++) {
        const spt_heap_reference *r = &heaps[i];
        spti_slot *slot = spti_slot_at(s, s->tail + i);
        uint64_t cnt = (uint64_t)r->cnt;
        if (r->cnt < 0) {
            cnt = *next_cnt;
            *next_cnt += s->cnt_step;
        }
        size_t size = packet_size(s);
        if (s->config.equal_packets)
            size = spt_equal_packet_size(r->heap, size);
        SPTI_TRY(spt_packetizer_init(&slot->packetizer, r->heap, cnt, size, err));
        slot->completion = completion;
        slot->rate = r->rate;
        slot->substream = (uint32_t)r->substream_index;
        slot->group_size = mode == SPT_GROUP_ROUND_ROBIN ? n : 1;
        slot->last = i == n - 1;
        slot->exhausted = false;
        slot->in_batch = 0;
        if (s->times != NULL)
            *spti_times_of(s, slot) = (spt_times){.queued_ns = queued_ns};
    }
    return SPT_OK;
}

static void begin_flight(spt_completion *completion)
{
    completion->status = SPT_OK;
    completion->sys_errno = 0;
    completion->bytes = 0;
    completion->failed_cnt = 0;
    completion->failed_packet_size = 0;
    completion->fitting_packet_size = 0;
    __atomic_store_n(&completion->state_, SPTI_IN_FLIGHT, __ATOMIC_RELAXED);
}

static spt_status enqueue(spt_stream *s, const spt_heap_reference *heaps, size_t n,
                          spt_group_mode mode, spt_completion *completion, spt_error *err)
{
    SPTI_HOLD(&s->queue_lock);
    if (s->stopped)
        return spti_fail(err, SPT_ERR_STOPPED,
                         "the stream is closed, or its thread pool has been stopped");
    SPTI_TRY(check_room(s, n, err));
    uint64_t next_cnt = s->next_cnt;
    SPTI_TRY(fill_slots(s, heaps, n, mode, completion, &next_cnt, err));
    s->next_cnt = next_cnt;
    for (size_t i = 0; i < n; i++) {
        spti_heap_borrow(heaps[i].heap);
        spti_count(&s->gathered, SPTI_PREFIX + heaps[i].heap->payload_length);
    }
    begin_flight(completion);
    __atomic_store_n(&s->tail, s->tail + n, __ATOMIC_SEQ_CST);
    return SPT_OK;
}

spt_status spt_stream_send_heaps(spt_stream *stream, const spt_heap_reference *heaps,
                                 size_t n_heaps, spt_group_mode mode, spt_completion *completion,
                                 spt_error *err)
{
    SPTI_TRY(check_send(stream, heaps, n_heaps, completion, err));
    spt_error full; /* not err: that is only written when this function fails */
    spt_status status =
        enqueue(stream, heaps, n_heaps, mode, completion, stream->own_pool == NULL ? err : &full);
    if (status != SPT_OK && stream->own_pool != NULL) {
        if (status == SPT_ERR_QUEUE_FULL)
            spti_stream_send_gathered(stream); /* there is room now, unless something holds it up */
        status = enqueue(stream, heaps, n_heaps, mode, completion, err);
    }
    if (status != SPT_OK)
        return status;
    if (stream->own_pool != NULL)
        spti_stream_gathered(stream);
    else
        spti_task_wake(&stream->task);
    return SPT_OK;
}

spt_status spt_stream_send_heap(spt_stream *stream, spt_heap *heap, spt_completion *completion,
                                spt_error *err)
{
    spt_heap_reference reference = {.heap = heap, .cnt = -1, .rate = -1.0};
    return spt_stream_send_heaps(stream, &reference, 1, SPT_GROUP_SERIAL, completion, err);
}

spt_status spt_stream_set_cnt_sequence(spt_stream *stream, uint64_t next, uint64_t step,
                                       spt_error *err)
{
    if (step == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the step of heap counts must not be 0: receivers tell heaps apart by "
                         "their count");
    SPTI_HOLD(&stream->queue_lock);
    stream->next_cnt = next;
    stream->cnt_step = step;
    return SPT_OK;
}

/* ---- The end ---- */

static spt_status send_to_all(spt_stream *stream, spt_heap *heap, spt_error *err)
{
    spt_heap_reference end = {.heap = heap, .cnt = -1, .rate = -1.0};
    spt_status first = SPT_OK;              /* that went wrong; the other receivers are to end */
    SPTI_TRY(spt_stream_flush(stream, -1)); /* for room in the queue */
    for (; end.substream_index < stream->transport->n_substreams; end.substream_index++) {
        spt_error *wrong = first == SPT_OK ? err : NULL;
        spt_completion sent = {0};
        spt_status status = spt_stream_send_heaps(stream, &end, 1, SPT_GROUP_SERIAL, &sent, wrong);
        if (status == SPT_OK)
            status = spt_stream_wait(stream, &sent, -1, wrong);
        first = first == SPT_OK ? status : first;
    }
    return first;
}

spt_status spt_stream_send_end(spt_stream *stream, const spt_flavour *flavour, spt_error *err)
{
    if (stream->config.poll)
        return spti_fail(
            err, SPT_ERR_ARGUMENT,
            "on a stream with config.poll send a heap with spt_heap_add_end() yourself: "
            "its completion is taken by spt_stream_poll()");
    err = SPTI_SOME(err);
    spt_heap *heap = spt_heap_create(flavour, err);
    if (heap == NULL)
        return err->status;
    spt_status status = spt_heap_add_end(heap, err);
    if (status == SPT_OK)
        status = send_to_all(stream, heap, err);
    spt_heap_destroy(heap);
    return status;
}
