/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns packets that are read from memory, where one follows the other. */
#include "source.h"

#include "status.h"

#include <stdlib.h>

enum { BATCH = 64 }; /* packets, before others have their turn */

typedef struct memory_source {
    spti_source base;
    const uint8_t *bytes;
    size_t n_bytes;
} memory_source;

static spti_wait memory_read(spti_source *source, spti_intake *in)
{
    memory_source *m = (memory_source *)source;
    for (int i = 0; i < BATCH && m->n_bytes > 0; i++) {
        size_t used = spti_intake_take(in, m->bytes, m->n_bytes, false, 0);
        m->bytes += used;
        m->n_bytes = used > 0 ? m->n_bytes - used : 0;
        if (!spti_intake_go_on(in))
            return SPTI_WAIT_WORK;
    }
    if (m->n_bytes > 0)
        return SPTI_WAIT_TURN;
    spti_intake_end(in);
    return SPTI_WAIT_WORK;
}

static void memory_close(spti_source *source)
{
    free(source);
}

static const spti_source_ops memory_ops = {memory_read, NULL, NULL, memory_close};

spti_source *spti_source_memory(const void *bytes, size_t n_bytes, spt_error *err)
{
    memory_source *m = malloc(sizeof(*m));
    if (m == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    *m =
        (memory_source){.base = {.ops = &memory_ops, .fd = -1}, .bytes = bytes, .n_bytes = n_bytes};
    return &m->base;
}
