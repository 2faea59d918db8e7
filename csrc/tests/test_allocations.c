/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns one promise: what runs allocates nothing, per heap or per packet, sending or receiving. */
#include "failing.h"
#include "make_packet.h"
#include "support.h"

enum { STATES = 16, ROUNDS = 20000 };

TEST(a_running_stream_allocates_nothing)
{
    static uint8_t value[5000];
    OWN(spt_heap) heap = new_heap_of(value, sizeof(value));
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = STATES;
    config.timeline = 10;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_endpoint nobody = {"127.0.0.1", 9};
    OWN(spt_thread_pool) pool = new_pool(1);
    OWN(spt_stream) stream = NEW(spt_stream_create_udp(pool, &nobody, 1, &config, &udp, NULL));

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
}

static void *get(void *user, size_t size, const spt_received_packet *first)
{
    (void)size, (void)first;
    return user;
}

static void put(void *user, void *memory, size_t size)
{
    (void)size;
    CHECK(memory == user);
}

TEST(a_running_depacketizer_allocates_nothing)
{
    enum { PART = 1000, PARTS = 8 };
    static uint8_t payload[PART * PARTS];
    static made_packet made;
    spt_depacketizer_config config = SPT_DEPACKETIZER_CONFIG_DEFAULT;
    config.allow_out_of_order = true;
    config.memory = (spt_heap_memory){payload, get, put};
    OWN(spt_depacketizer) d = NEW(spt_depacketizer_create(&config, NULL));
    long before = 0;
    for (uint64_t cnt = 0; cnt < ROUNDS; cnt++) {
        for (uint64_t part = 0; part < PARTS; part++) {
            spt_received_packet packet;
            uint8_t *to;
            /* Every second part first, and of every third heap one is lost. */
            uint64_t begin = (part * 2 % PARTS + part / (PARTS / 2)) * PART;
            if (cnt % 3 == 0 && part == 2)
                continue;
            make_part(&made, cnt, PART * PARTS, begin, PART);
            make_add(&made, false, 0x3300, 0);
            make_end(&made, payload, PART);
            REQUIRE(spt_received_packet_parse(&packet, made.bytes, made.size) == SPT_FAULT_NONE);
            CHECK_EQUAL(spt_depacketizer_take(d, &packet, &to), SPT_PLACED);
        }
        for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL;)
            spt_depacketizer_recycle(d, heap);
        if (cnt == 100) /* it has had as many at a time as it will ever have */
            before = __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
    }
    CHECK_EQUAL(__atomic_load_n(&allocations, __ATOMIC_SEQ_CST), before);
}

enum { SMALL = 16, IN_CHUNK = 100 };

static void place_by_count(spt_place_data *data, size_t size, void *user)
{
    (void)size, (void)user;
    data->chunk_id = data->items[0] / IN_CHUNK;
    data->heap_index = (uint64_t)(data->items[0] % IN_CHUNK);
    data->heap_offset = data->heap_index * SMALL;
}

/* Packets of one heap each, one after the other. */
static uint8_t *small_heaps(size_t *n_bytes)
{
    static made_packet made;
    static const uint8_t payload[SMALL];
    uint8_t *bytes = NEW(malloc(ROUNDS * 64));
    *n_bytes = 0;
    for (uint64_t cnt = 0; cnt < ROUNDS; cnt++) {
        make_part(&made, cnt, SMALL, 0, SMALL);
        make_end(&made, payload, SMALL);
        memcpy(bytes + *n_bytes, made.bytes, made.size);
        *n_bytes += made.size;
    }
    return bytes;
}

TEST(a_running_stream_of_chunks_allocates_nothing)
{
    size_t n_bytes;
    uint8_t *bytes = small_heaps(&n_bytes);
    OWN(spt_thread_pool) pool = new_pool(1);
    OWN(spt_chunk_ring) full = NEW(spt_chunk_ring_create(1, NULL));
    OWN(spt_chunk_ring) empty = NEW(spt_chunk_ring_create(2, NULL));
    spt_chunk_config how = {
        .place = place_by_count,
        .items = &(uint64_t){SPT_ID_HEAP_CNT},
        .n_items = 1,
        .max_chunks = 1,
        .data_ring = full,
        .free_ring = empty,
    };
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    OWN(spt_recv_stream) stream = NEW(spt_recv_stream_create_chunks(pool, &config, &how, NULL));
    spt_chunk chunks[2], *chunk;
    for (int i = 0; i < 2; i++) {
        chunks[i] = make_chunk(IN_CHUNK * SMALL, IN_CHUNK, 1);
        put_chunk(how.free_ring, &chunks[i]);
    }
    REQUIRE(spt_recv_stream_add_memory(stream, bytes, n_bytes, NULL) == SPT_OK);
    long before = 0;
    int got = 0;
    while (spt_chunk_ring_get(how.data_ring, -1, &chunk) == SPT_OK) {
        if (got++ == 0)
            before = __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
        CHECK_EQUAL(chunk->present[IN_CHUNK - 1], 1);
        REQUIRE(spt_chunk_ring_put(how.free_ring, chunk, -1) == SPT_OK);
    }
    CHECK_EQUAL(got, ROUNDS / IN_CHUNK);
    CHECK_EQUAL(__atomic_load_n(&allocations, __ATOMIC_SEQ_CST), before);
    END(spt_recv_stream, stream);
    for (int i = 0; i < 2; i++)
        free_chunk(&chunks[i]);
    free(bytes);
}
