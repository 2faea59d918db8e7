/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one promise: what runs allocates nothing, per heap or per packet, sending or receiving. */
#define CHECK_AFTER end_filling

#include "failing.h"
#include "filling.h"

enum { STATES = 16, ROUNDS = 20000 };

TEST(a_running_stream_allocates_nothing)
{
    static uint8_t value[5000];
    OWN(spt_heap) heap = new_heap_of(value, sizeof(value));
    const spt_stream_config *config = STREAM_CONFIG(its.max_heaps = STATES, its.timeline = 10);
    spt_endpoint nobody = {"127.0.0.1", 9};
    pool = new_pool(1);
    OWN(spt_stream) stream = NEW(spt_stream_create_udp(pool, &nobody, 1, config, NULL, NULL));

    spt_completion sent[STATES] = {0};
    long before = allocations;
    CHECK(before > 0); /* the count works */
    for (int i = 0; i < ROUNDS; i++) {
        spt_completion *c = &sent[i % STATES];
        CHECK_EQUAL(spt_stream_wait(stream, c, -1, NULL), SPT_OK);
        REQUIRE(spt_stream_send_heap(stream, heap, c, NULL) == SPT_OK);
    }
    CHECK_EQUAL(spt_stream_flush(stream, -1), SPT_OK);
    CHECK_EQUAL(allocations, before);
}

TEST(a_running_stream_of_chunks_allocates_nothing)
{
    enum { N = 2000, WARM = 20 }; /* heaps, and chunks until it has had all that it needs */
    static made_series packets;
    begin_filling(true, 1, 2, HEAPS);
    for (uint64_t n = 0; n < N; n++) { /* in any order, and of some heaps a half is lost */
        append_half(&packets, n, 1);
        if (n % HEAPS > 0)
            append_half(&packets, n, 0);
    }
    spt_chunk_config how = chunks_by_timestamp(1);
    const spt_recv_config *config = RECV_CONFIG(its.heaps.allow_out_of_order = true);
    OWN(spt_recv_stream) stream = NEW(spt_recv_stream_create_chunks(pool, config, &how, NULL));
    receive_from(stream, &packets);
    long before = 0;
    for (int64_t id = 0; id < N / HEAPS; id++) {
        spt_chunk *chunk = check_chunk(id, "0111");
        if (id == WARM)
            before = allocations;
        put_chunk(free_ring, chunk);
    }
    check_end_of(data_ring);
    CHECK_EQUAL(allocations, before);
}
