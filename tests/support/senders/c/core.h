/* SPDX-License-Identifier: BSD-3-Clause */
/* What the planted senders share that send with the core: a stream, and heaps with one item. */
#ifndef CORE_H
#define CORE_H

#include "sending.h"

#include <spead_tutorial/spt.h>

static inline void must(spt_status status, const spt_error *err)
{
    if (status != SPT_OK)
        fail(err->message);
}

/* A stream without a limit to its rate; without a pool it has no thread. */
static inline spt_stream *stream_to(struct arguments to, spt_thread_pool *pool, size_t packet_size)
{
    spt_error err = {0};
    spt_endpoint endpoint = {to.host, to.port};
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_packet_size = packet_size;
    spt_stream *stream = spt_stream_create_udp(pool, &endpoint, 1, &config, NULL, &err);
    if (stream == NULL)
        fail(err.message);
    return stream;
}

/* A heap that refers to samples of the caller's. */
static inline spt_heap *heap_of(const uint8_t *samples)
{
    spt_error err = {0};
    spt_heap *heap = spt_heap_create(NULL, &err);
    spt_item item = {.id = 0x3300, .value = samples, .length = HEAP_SIZE};
    if (heap == NULL)
        fail(err.message);
    must(spt_heap_add_item(heap, &item, &err), &err);
    return heap;
}

/* Send a heap, and wait until it has gone. */
static inline void send_heap(spt_stream *stream, spt_heap *heap)
{
    spt_error err = {0};
    spt_completion sent = {0};
    must(spt_stream_send_heap(stream, heap, &sent, &err), &err);
    must(spt_stream_wait(stream, &sent, -1, &err), &err);
}

#endif
