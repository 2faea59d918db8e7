/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is mapped, in huge pages where there are any. */
#ifndef SPTI_MEMORY_H
#define SPTI_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { SPTI_HUGE_PAGE = 1 << 21 }; /* of most machines; others fall back to ordinary pages */

/* Bytes, rounded up to whole huge pages; 0 where there cannot be so many. */
size_t spti_whole_pages(size_t size);

/* Map memory, with flags besides those for memory of one's own; NULL where there is none. */
void *spti_map(size_t size, int flags);

/* The same in huge pages, that many bytes of which are whole ones: reserved pages, or memory that
 * the kernel is asked to make them of. */
void *spti_map_huge(size_t size, int flags, bool *reserved);

#endif
