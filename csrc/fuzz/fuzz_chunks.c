/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever packets come, and whatever a place function says of them,
 * nothing is written beside a chunk, what is present are the bytes that were sent, no chunk is
 * lost, and a packet that had to wait is in the account once.
 */
#include "../src/chunk_ring.h"
#include "../src/chunks.h"
#include "../tests/make_packet.h"
#include "choices.h"

enum { HEAP = 64, HEAPS = 4, CHUNKS = 5, COUNTS = 64, PARTS = 4 };

static choices input;
static made_packet made;
static spt_chunk chunks[CHUNKS];
static spt_chunk_ring *full, *empty;
static bool wild;          /* the place function has said what cannot be */
static uint64_t cnt, part; /* that were made last */
static size_t packet;      /* bytes of payload in each, where they are marked one by one; or 0 */

/* A number that is small, at an edge, or anything. */
static uint64_t strange(void)
{
    static const uint64_t edges[] = {0, HEAPS, HEAPS * HEAP, INT64_MAX, UINT64_MAX, 1 << 20};
    return choose(&input, 2) == 0 ? choose(&input, 2 * HEAP) : edges[choose(&input, 6)];
}

/* Mostly a place of its own for each heap count; now and then whatever comes to mind. */
static void place(spt_place_data *said, size_t size, void *user)
{
    (void)user;
    REQUIRE(size == sizeof(*said));
    REQUIRE(said->items[0] >= 1 && said->items[0] <= COUNTS);
    uint64_t n = (uint64_t)said->items[0] - 1;
    said->chunk_id = (int64_t)(n / HEAPS);
    said->heap_index = n % HEAPS;
    said->heap_offset = n % HEAPS * HEAP;
    if (choose(&input, 6) != 0)
        return;
    said->chunk_id = (int64_t)(choose(&input, 2) == 0 ? strange() : n / HEAPS);
    said->heap_index = strange();
    said->heap_offset = strange();
    said->extra_size = strange();
    said->extra_offset = strange();
    wild = true; /* bytes may be anywhere in chunks from now on */
}

/* Half of all packets go on where the one before ended; behind the last one is the first again. */
static void make(void)
{
    part = (part + 1) % PARTS;
    if (choose(&input, 2) == 0) {
        cnt = 1 + choose(&input, COUNTS);
        part = choose(&input, PARTS);
    }
    uint64_t n = HEAP / PARTS, begin = part * n;
    make_part(&made, cnt, choose(&input, 20) == 0 ? 2 * HEAPS * HEAP : HEAP, begin, n);
    make_end_of(&made, cnt, begin, n);
}

/* Bytes of heaps that are present; where the place function has been sane so far. */
static void check_chunk(const spt_chunk *chunk)
{
    for (uint64_t i = 0; !wild && packet == 0 && i < HEAPS; i++)
        for (uint64_t at = 0; at < HEAP && chunk->present[i]; at++)
            REQUIRE(((uint8_t *)chunk->data)[i * HEAP + at] ==
                    byte_of((uint64_t)chunk->chunk_id * HEAPS + i + 1, at));
}

/* A program: gets what is filled, and gives it back, sooner or later. */
static void turn(void)
{
    spt_chunk *chunk;
    for (size_t n = choose(&input, 3); n > 0; n--) {
        if (spt_chunk_ring_get(full, 0, &chunk) != SPT_OK)
            return;
        check_chunk(chunk);
        REQUIRE(spt_chunk_ring_put(empty, chunk, 0) == SPT_OK);
    }
}

static void make_chunks(void)
{
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i] = make_chunk(HEAPS * HEAP, packet > 0 ? HEAPS * PARTS : HEAPS, HEAPS);
        REQUIRE(spt_chunk_ring_put(empty, &chunks[i], 0) == SPT_OK);
    }
}

static void free_chunks(void)
{
    REQUIRE(spt_chunk_ring_size(full) + spt_chunk_ring_size(empty) == CHUNKS);
    for (spt_chunk *chunk; spt_chunk_ring_get(full, 0, &chunk) == SPT_OK;)
        check_chunk(chunk);
    for (int i = 0; i < CHUNKS; i++)
        free_chunk(&chunks[i]);
}

static spti_chunks *new_window(void)
{
    spt_chunk_config how = {
        .place = place,
        .items = &(uint64_t){SPT_ID_HEAP_CNT},
        .n_items = 1,
        .max_chunks = 1 + choose(&input, 3),
        .max_heap_extra = HEAPS,
        .packet_payload_size = packet,
        .data_ring = full,
        .free_ring = empty,
    };
    spti_chunks *c = spti_chunks_create(&how, NULL, true, NULL);
    REQUIRE(c != NULL);
    return c;
}

/* Before it is known what comes, it is written to where packets are expected. */
static void write_anything(const spt_depacketizer *d)
{
    uint8_t *to;
    size_t n_bytes, n = spti_depacketizer_expected(d, &n_bytes, &to);
    if (n > 0 && spti_depacketizer_may_overwrite(d, n * (n_bytes - SPTI_PREFIX)))
        memset(to, 0xee, n * (n_bytes - SPTI_PREFIX));
}

/* Take the packet that was made as one that goes on; false where it is none. */
static bool take_next(spt_depacketizer *d)
{
    spti_packet_run run = {made.bytes, made.size, made.size, 1, false};
    return spti_depacketizer_take_run(d, &run) > 0;
}

static void collect(spti_sink *sink, spt_depacketizer *d)
{
    for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL;)
        REQUIRE(sink->take(sink, heap, false));
}

/* Take the packet that was made, again and again while it has to wait. */
static bool take_made(spti_sink *sink, spt_depacketizer *d)
{
    spt_received_packet parsed;
    uint8_t *to;
    spt_fate fate;
    REQUIRE(spt_received_packet_parse(&parsed, made.bytes, made.size) == SPT_FAULT_NONE);
    while ((fate = spt_depacketizer_take(d, &parsed, &to)) == SPTI_NOT_YET && input.size > 0)
        turn();
    if (to != NULL)
        memcpy(to, parsed.payload, parsed.payload_length);
    collect(sink, d);
    return fate != SPTI_NOT_YET;
}

/* Nobody waits: rings are tried again with the next packet. */
static void rest(void *user)
{
    (void)user;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = (choices){data, size};
    wild = false;
    cnt = 1;
    part = 0;
    packet = choose(&input, 2) * HEAP / PARTS;
    full = spt_chunk_ring_create(1 + choose(&input, 3), NULL);
    empty = spt_chunk_ring_create(CHUNKS, NULL);
    REQUIRE(full != NULL && empty != NULL);
    make_chunks();
    spt_depacketizer_config config = SPT_DEPACKETIZER_CONFIG_DEFAULT;
    config.max_heaps = 1 + choose(&input, 4);
    config.allow_out_of_order = choose(&input, 2) != 0;
    spti_chunks *c = new_window();
    spt_depacketizer *d = spti_depacketizer_create(&config, spti_chunks_placing(c), NULL);
    REQUIRE(d != NULL);
    spti_sink *sink = spti_chunks_sink(c);
    REQUIRE(spti_chunks_serve(c, d, rest, NULL, NULL) == SPT_OK);
    begin_failing(&input);
    uint64_t packets = 0;
    while (input.size > 0) {
        make();
        if (choose(&input, 2) == 0)
            write_anything(d);
        packets += take_next(d) || take_made(sink, d);
        turn();
    }
    spt_account account;
    spt_depacketizer_account(d, &account);
    REQUIRE(account.packets == packets);
    stop_failing();
    spt_depacketizer_flush(d);
    collect(sink, d);
    REQUIRE(!sink->settle(sink, SPTI_END));
    spt_depacketizer_destroy(d);
    spti_chunks_destroy(c);
    free_chunks();
    spt_chunk_ring_destroy(full);
    spt_chunk_ring_destroy(empty);
    return 0;
}
