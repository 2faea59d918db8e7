/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the heap that says to receivers that the stream ends. Uses what anybody may call.
 */
#include "stream.h"

#include "status.h"

static spt_status send_to_all(spt_stream *stream, spt_heap *heap, spt_error *err)
{
    spt_heap_reference end = {.heap = heap, .cnt = -1, .rate = -1.0};
    SPTI_TRY(spt_stream_flush(stream, -1)); /* for room in the queue */
    for (; end.substream_index < stream->transport->n_substreams; end.substream_index++) {
        spt_completion sent = {0};
        SPTI_TRY(spt_stream_send_heaps(stream, &end, 1, SPT_GROUP_SERIAL, &sent, err));
        SPTI_TRY(spt_stream_wait(stream, &sent, -1, err));
    }
    return SPT_OK;
}

spt_status spt_stream_send_end(spt_stream *stream, const spt_flavour *flavour, spt_error *err)
{
    if (stream->config.poll)
        return spti_fail(
            err, SPT_ERR_ARGUMENT,
            "on a stream with config.poll send a heap with spt_heap_add_end() yourself: "
            "its completion is taken by spt_stream_poll()");
    spt_error local;
    spt_heap *heap = spt_heap_create(flavour, err != NULL ? err : &local);
    if (heap == NULL)
        return err != NULL ? err->status : local.status;
    spt_status status = spt_heap_add_end(heap, err);
    if (status == SPT_OK)
        status = send_to_all(stream, heap, err);
    spt_heap_destroy(heap);
    return status;
}
