/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory a heap gets: the functions that were given, or those of malloc. */
#ifndef SPTI_HEAP_MEMORY_H
#define SPTI_HEAP_MEMORY_H

#include "spead_tutorial/spt_recv.h"

/* Whether memory has both of its functions, or none. */
spt_status spti_heap_memory_check(const spt_heap_memory *memory, spt_error *err);

/* The memory that is meant: malloc's where it has no functions. */
spt_heap_memory spti_heap_memory_or_malloc(spt_heap_memory memory);

#endif
