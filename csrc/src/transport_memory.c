/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a growing buffer of packets: for tests, files, and looking at what would be sent. */
#include "transport.h"

#include "status.h"
#include "sync.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory_transport {
    spti_transport base;
    pthread_mutex_t lock;
    uint8_t *bytes;
    size_t length, room;
} memory_transport;

static bool reserve(memory_transport *m, size_t more)
{
    if (m->length + more <= m->room)
        return true;
    size_t room = m->room * 2 > m->length + more ? m->room * 2 : m->length + more;
    uint8_t *bytes = realloc(m->bytes, room);
    if (bytes == NULL)
        return false;
    m->bytes = bytes;
    m->room = room;
    return true;
}

static spt_status memory_send(spti_transport *t, spti_batch *batch)
{
    memory_transport *m = (memory_transport *)t;
    SPTI_HOLD(&m->lock);
    for (; batch->next < batch->n; batch->next++) {
        spti_packet *packet = &batch->packets[batch->next];
        if (!reserve(m, packet->size)) {
            spti_transport_failed(t, batch, batch->next, 1, ENOMEM);
            continue;
        }
        spti_packet_copy(batch, packet, m->bytes + m->length);
        m->length += packet->size;
        spti_transport_taken(t, batch, batch->next, 1);
    }
    return SPT_OK;
}

static void memory_destroy(spti_transport *t)
{
    memory_transport *m = (memory_transport *)t;
    pthread_mutex_destroy(&m->lock);
    free(m->bytes);
    free(m);
}

static const spti_transport_ops memory_ops = {memory_send, NULL, memory_destroy, NULL};

spti_transport *spti_transport_memory(spt_error *err)
{
    memory_transport *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a memory transport");
    m->base = (spti_transport){
        .ops = &memory_ops,
        .n_substreams = 1,
        .max_packet_size = UINT32_MAX,
        .limit = "a packet's size has 32 bits",
        .fd = -1,
    };
    pthread_mutex_init(&m->lock, NULL);
    return &m->base;
}

size_t spti_transport_memory_copy(spti_transport *t, void *to, size_t size)
{
    if (t->ops != &memory_ops)
        return 0;
    memory_transport *m = (memory_transport *)t;
    SPTI_HOLD(&m->lock);
    size_t length = m->length;
    if (size > 0 && length > 0)
        memcpy(to, m->bytes, size < length ? size : length);
    return length;
}
