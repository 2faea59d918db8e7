/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one promise: a stream that runs allocates nothing, per heap or per packet. */
#include "spead_tutorial/spt.h"

#include "check.h"

enum { STATES = 16, ROUNDS = 20000 };

static long allocations; /* atomic */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    __atomic_fetch_add(&allocations, 1, __ATOMIC_SEQ_CST);
    return __real_realloc(memory, size);
}

static void test_a_running_stream_allocates_nothing(void)
{
    static uint8_t value[5000];
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    spt_item item = {0x3300, value, sizeof(value), false};
    spt_heap *heap = spt_heap_create(&flavour, NULL);
    REQUIRE(heap != NULL && spt_heap_add_item(heap, &item, NULL) == SPT_OK);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = STATES;
    config.timeline = 10;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_endpoint nobody = {"127.0.0.1", 9};
    spt_thread_pool *pool = spt_thread_pool_create(1, NULL, 0, NULL);
    REQUIRE(pool != NULL);
    spt_stream *stream = spt_stream_create_udp(pool, &nobody, 1, &config, &udp, NULL);
    REQUIRE(stream != NULL);

    spt_completion sent[STATES] = {0};
    long before = __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
    CHECK(before > 0); /* the count works */
    for (int i = 0; i < ROUNDS; i++) {
        spt_completion *c = &sent[i % STATES];
        CHECK_EQUAL(spt_stream_wait(stream, c, -1, NULL), SPT_OK);
        REQUIRE(spt_stream_send_heap(stream, heap, c, NULL) == SPT_OK);
    }
    CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
    CHECK_EQUAL(__atomic_load_n(&allocations, __ATOMIC_SEQ_CST), before);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heap);
}

int main(void)
{
    RUN(test_a_running_stream_allocates_nothing);
    return check_done();
}
