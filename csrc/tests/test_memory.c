/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of memory.c. Whether there are huge pages is the machine's business. */
#include "support.h"

#include <string.h>

TEST(memory_begins_with_a_page_holds_zeros_and_can_be_written_to)
{
    enum { SIZE = 5000000 };
    spt_memory memory;
    REQUIRE(spt_alloc(SIZE, &memory, NULL) == SPT_OK);
    CHECK(memory.size >= SIZE && memory.size % memory.page_size == 0);
    CHECK((uintptr_t)memory.data % memory.page_size == 0);
    const uint8_t *bytes = memory.data;
    CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, memory.size - 1) == 0);
    memset(memory.data, 1, memory.size);
    spt_free(&memory);
    CHECK(memory.data == NULL && memory.size == 0);
    spt_free(&memory);
}

TEST(pages_are_huge_or_it_says_why_not)
{
    spt_memory memory;
    REQUIRE(spt_alloc(1, &memory, NULL) == SPT_OK);
    CHECK((memory.page_size == 1 << 21) == (memory.reason == NULL));
    CHECK_EQUAL(memory.size, 1 << 21);
    spt_free(&memory);
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
