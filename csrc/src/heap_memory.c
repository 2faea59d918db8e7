/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the simplest memory for heaps, that of malloc. Keeps none of it.
 */
#include "heap_memory.h"

#include "status.h"

#include <stdlib.h>

static void *get_from_malloc(void *user, size_t size, const spt_received_packet *first)
{
    (void)user;
    (void)first;
    return malloc(size);
}

static void put_to_malloc(void *user, void *memory, size_t size)
{
    (void)user;
    (void)size;
    free(memory);
}

spt_status spti_heap_memory_check(const spt_heap_memory *memory, spt_error *err)
{
    if ((memory->get == NULL) != (memory->put == NULL))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "memory has only one of its functions: set get and put, or neither");
    return SPT_OK;
}

spt_heap_memory spti_heap_memory_or_malloc(spt_heap_memory memory)
{
    return memory.get != NULL ? memory : (spt_heap_memory){NULL, get_from_malloc, put_to_malloc};
}
