/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of memory.c and heap_memory.c: pages of the system, for arrays and for heaps.
 * Whether there are huge ones is the machine's business. */
#include "support.h"

#include <sys/mman.h>

TEST(memory_is_whole_pages_of_zeros_that_are_huge_or_it_says_why_not)
{
    enum { HUGE = 1 << 21 };
    for (size_t pages = 1; pages <= 3; pages++) {
        spt_memory memory;
        REQUIRE(spt_alloc((pages - 1) * HUGE + 1, &memory, NULL) == SPT_OK);
        CHECK_EQUAL(memory.size, pages * HUGE, memory.size % memory.page_size, 0);
        CHECK_EQUAL((uintptr_t)memory.data % memory.page_size, 0);
        CHECK((memory.page_size == HUGE) == (memory.reason == NULL));
        const uint8_t *bytes = memory.data;
        CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, memory.size - 1) == 0);
        memset(memory.data, 1, memory.size);
        spt_free(&memory);
        CHECK(memory.data == NULL && memory.size == 0);
        spt_free(&memory);
    }
}

TEST(sizes_that_cannot_be_are_refused)
{
    spt_memory memory;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_alloc(0, &memory, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_alloc(SIZE_MAX, &memory, &err));
    CHECK_REFUSED(SPT_ERR_MEMORY, "", spt_alloc((size_t)1 << 50, &memory, &err));
    CHECK(memory.data == NULL);
    spt_free(&memory);
}

/* How many of the pages that hold so many bytes from there are mapped. */
static size_t count_mapped(const uint8_t *memory, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
    unsigned char resident;
    for (size_t i = 0; i < size; i += page)
        n += mincore((void *)(memory + i), page, &resident) == 0;
    return n;
}

static spt_heap_memory mapped(int flags, bool huge)
{
    static spt_mmap_config config;
    spt_heap_memory memory;
    config = (spt_mmap_config){flags, huge};
    REQUIRE(spt_mmap_memory(&config, &memory, NULL) == SPT_OK);
    return memory;
}

TEST(mapped_memory_holds_zeros_can_be_written_to_and_goes_whole)
{
    static const size_t sizes[] = {1, 4096, 5000, 2 << 20, (2 << 20) + 1, 5000000};
    for (int huge = 0; huge < 2; huge++) {
        for (size_t i = 0; i < LENGTH(sizes); i++) {
            spt_heap_memory memory = mapped(0, huge);
            uint8_t *bytes = NEW(memory.get(memory.user, sizes[i], NULL));
            CHECK_EQUAL((uintptr_t)bytes % (huge ? 2 << 20 : 4096), 0);
            CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, sizes[i] - 1) == 0);
            memset(bytes, 1, sizes[i]);
            CHECK(count_mapped(bytes, sizes[i]) > 0);
            memory.put(memory.user, bytes, sizes[i]);
            CHECK_EQUAL(count_mapped(bytes, sizes[i]), 0);
        }
    }
}

TEST(reserved_huge_pages_that_are_asked_for_go_whole_too)
{
    enum { SIZE = 5000 };
    spt_heap_memory memory = mapped(MAP_HUGETLB, false);
    uint8_t *bytes = memory.get(memory.user, SIZE, NULL);
    if (bytes == NULL) {
        SKIP("no huge pages are reserved");
        return;
    }
    memset(bytes, 1, SIZE);
    memory.put(memory.user, bytes, SIZE);
    CHECK_EQUAL(count_mapped(bytes, SIZE), 0);
}

TEST(populated_memory_has_its_pages_before_it_is_written_to)
{
    enum { SIZE = 1 << 20 };
    spt_heap_memory memory = mapped(MAP_POPULATE, false);
    uint8_t *bytes = NEW(memory.get(memory.user, SIZE, NULL));
    unsigned char resident = 0;
    CHECK(mincore(bytes + SIZE / 2, 1, &resident) == 0 && (resident & 1) != 0);
    memory.put(memory.user, bytes, SIZE);
}

TEST(where_there_is_no_memory_nothing_is_given)
{
    for (int huge = 0; huge < 2; huge++) {
        spt_heap_memory memory = mapped(0, huge);
        CHECK(memory.get(memory.user, (size_t)1 << 50, NULL) == NULL);
        CHECK(memory.get(memory.user, SIZE_MAX, NULL) == NULL);
    }
}

TEST(flags_that_would_do_something_else_are_refused)
{
    static const int refused[] = {MAP_SHARED, MAP_FIXED, MAP_GROWSDOWN, -1};
    for (size_t i = 0; i < LENGTH(refused); i++) {
        spt_mmap_config config = {.flags = refused[i]};
        spt_heap_memory memory;
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "MAP_POPULATE", spt_mmap_memory(&config, &memory, &err));
    }
}
