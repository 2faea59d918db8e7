/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns memory in large pages for those who want it. Knows nothing of heaps.
 *
 * Reserved huge pages come first, for who has reserved some wants them used; then those that the
 * kernel makes by itself where it is asked to (see its Documentation/admin-guide/mm/, hugetlbpage
 * and transhuge). Whether it did is seen only once the memory has been written to.
 */
#include "memory.h"

#include "status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SETTING "/sys/kernel/mm/transparent_hugepage/enabled"

void *spti_map(size_t size, int flags)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* So that it begins with a page. */
static uint8_t *map_aligned(size_t size, int flags)
{
    uint8_t *all = spti_map(size + SPTI_HUGE_PAGE, flags);
    if (all == NULL)
        return NULL;
    size_t before = -(uintptr_t)all % SPTI_HUGE_PAGE;
    if (before > 0)
        munmap(all, before);
    munmap(all + before + size, SPTI_HUGE_PAGE - before);
    return all + before;
}

size_t spti_whole_pages(size_t size)
{
    size_t rounded = (size + SPTI_HUGE_PAGE - 1) / SPTI_HUGE_PAGE * SPTI_HUGE_PAGE;
    return rounded < size ? 0 : rounded;
}

void *spti_map_huge(size_t size, int flags, bool *reserved)
{
    void *at = spti_map(size, flags | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT));
    *reserved = at != NULL;
    if (*reserved)
        return at;
    at = map_aligned(size, flags);
    if (at != NULL)
        madvise(at, size, MADV_HUGEPAGE);
    return at;
}

/* Whether most of the mapping at an address, which has been written to, is in huge pages. */
static bool is_huge(const void *address)
{
    FILE *file = fopen("/proc/self/smaps", "re");
    if (file == NULL)
        return false;
    uintptr_t first, end, at = (uintptr_t)address;
    size_t kilobytes, resident = 0, huge = 0;
    bool here = false;
    char line[512];
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) == 2)
            here = first <= at && at < end;
        else if (here && sscanf(line, "Rss: %zu kB", &kilobytes) == 1)
            resident = kilobytes;
        else if (here && sscanf(line, "AnonHugePages: %zu kB", &kilobytes) == 1)
            huge = kilobytes;
    }
    fclose(file);
    return 2 * huge > resident;
}

/* Why the kernel has made none. */
static const char *explain(void)
{
    char text[64] = "";
    FILE *file = fopen(SETTING, "re");
    if (file == NULL)
        return "this kernel makes no huge pages by itself; reserve some: sysctl -w "
               "vm.nr_hugepages=512";
    char *line = fgets(text, sizeof(text), file);
    fclose(file);
    if (line != NULL && strstr(text, "[never]") != NULL)
        return "huge pages are turned off; as root: echo madvise > " SETTING;
    return "not enough free memory lies together; reserve huge pages: sysctl -w "
           "vm.nr_hugepages=512";
}

spt_status spt_alloc(size_t size, spt_memory *memory, spt_error *err)
{
    *memory = (spt_memory){0};
    size_t rounded = spti_whole_pages(size);
    if (rounded == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT, "%zu bytes cannot be allocated", size);
    bool reserved;
    memory->page_size = SPTI_HUGE_PAGE;
    memory->data = spti_map_huge(rounded, 0, &reserved);
    if (memory->data == NULL)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for %zu bytes", size);
    memory->size = rounded;
    memset(memory->data, 0, rounded);
    if (!reserved && !is_huge(memory->data)) {
        memory->page_size = (size_t)sysconf(_SC_PAGESIZE);
        memory->reason = explain();
    }
    return SPT_OK;
}

void spt_free(spt_memory *memory)
{
    if (memory->data != NULL)
        munmap(memory->data, memory->size);
    *memory = (spt_memory){0};
}
