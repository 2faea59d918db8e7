/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the simple kinds of memory for heaps: that of malloc, and what is mapped. Keeps none of it.
 */
#include "heap_memory.h"

#include "memory.h"
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* ---- Mapped ---------------------------------------------------------------------------------- */

static void *get_mapped(void *user, size_t size, const spt_received_packet *first)
{
    const spt_mmap_config *config = user;
    (void)first;
    if (!config->prefer_huge)
        return spti_map(size, config->flags);
    bool reserved;
    size = spti_whole_pages(size);
    return size == 0 ? NULL : spti_map_huge(size, config->flags, &reserved);
}

/*
 * What is unmapped has to be whole pages, and how large they are nobody says: for fewer bytes than
 * that the kernel refuses to.
 */
static void put_mapped(void *user, void *memory, size_t size)
{
    const spt_mmap_config *config = user;
    size_t page = config->prefer_huge ? SPTI_HUGE_PAGE : (size_t)sysconf(_SC_PAGESIZE);
    while (munmap(memory, (size + page - 1) / page * page) != 0 && errno == EINVAL &&
           page <= SIZE_MAX / 4)
        page *= 2;
}

spt_status spt_mmap_memory(const spt_mmap_config *config, spt_heap_memory *memory, spt_error *err)
{
    unsigned known = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_LOCKED | MAP_NORESERVE |
                     MAP_POPULATE | (unsigned)MAP_HUGE_MASK << MAP_HUGE_SHIFT;
    unsigned flags = (unsigned)config->flags;
    if ((flags & ~known) != 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "flags is 0x%x, of which 0x%x cannot be: give a sum of MAP_HUGETLB, "
                         "MAP_LOCKED, MAP_NORESERVE and MAP_POPULATE",
                         flags, flags & ~known);
    *memory = (spt_heap_memory){(void *)config, get_mapped, put_mapped};
    return SPT_OK;
}
