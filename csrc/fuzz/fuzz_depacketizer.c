/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever packets come, well-formed or not, in whatever order, each is in
 * the account once, memory is bounded and put back, and what a heap says has arrived are the bytes
 * that were sent for that place.
 */
#include "../tests/make_packet.h"
#include "choices.h"
#include "spead_tutorial/spt_recv.h"

enum {
    COUNTS = 32,
    MAX_HEAP = 2000,
    MAX_HEAPS = 5,
    MAX_SUBSTREAMS = 3,
    TAKEN_EVERY = 8, /* packets: who never takes heaps has them all */
    /* Live ones, those that each packet since has begun at most, and one that is outgrown. */
    MOST_PAYLOADS = MAX_HEAPS * MAX_SUBSTREAMS + TAKEN_EVERY + 1,
};

static made_packet made;
static uint8_t series[TAKEN_EVERY * 200]; /* packets of the size of the one that was made last */
static bool strange[COUNTS];              /* heaps that got bytes which nobody made */
static size_t given;                      /* bytes of payload */
static size_t short_of;                   /* the how-manieth request finds no memory; 0: none */

static void *get(void *user, size_t size, const spt_received_packet *first)
{
    (void)user, (void)first;
    REQUIRE(size > 0 && size <= MAX_HEAP);
    if (short_of > 0 && --short_of == 0)
        return NULL;
    given += size;
    REQUIRE(given <= MAX_HEAP * MOST_PAYLOADS);
    return __real_malloc(size);
}

static void put(void *user, void *memory, size_t size)
{
    (void)user;
    given -= size;
    free(memory);
}

static void make(choices *c)
{
    static const unsigned widths[] = {40, 40, 40, 48, 8};
    static const size_t lengths[] = {0, 8, 100, 1000, MAX_HEAP, MAX_HEAP + 1};
    uint64_t cnt = choose(c, COUNTS);
    size_t length = lengths[choose(c, 6)], begin = choose(c, MAX_HEAP), n = choose(c, 600);
    if (choose(c, 4) != 0) { /* one of equal parts, as senders make them */
        n = length / 4;
        begin = choose(c, 4) * n;
    }
    unsigned bits = widths[choose(c, 5)];
    make_part_as(&made, bits, cnt, choose(c, 4) != 0 ? (int64_t)length : -1, begin, n);
    bool strange_made = bits == 8; /* whose values spill into the ids */
    for (size_t extra = choose(c, 4); extra > 0; extra--) {
        bool immediate = choose(c, 2) != 0;
        size_t id = choose(c, 8);
        make_add(&made, immediate, id, choose(c, MAX_HEAP + 2));
        strange_made = strange_made || (immediate && id >= 1 && id <= 4);
    }
    if (strange_made) /* it says of another heap, or of another place, what is not so */
        memset(strange, true, sizeof(strange));
    make_end_of(&made, cnt, begin, n);
}

/* Make packets of one size, most of them one after the other in a heap. Returns how many. */
static size_t make_series(choices *c)
{
    uint64_t cnt = choose(c, COUNTS), length = choose(c, MAX_HEAP), each = 40 + choose(c, 100);
    uint64_t begin = choose(c, 8) * each, at = begin;
    size_t n = 1 + choose(c, TAKEN_EVERY);
    for (size_t i = 0; i < n; i++, at += each) {
        uint64_t its_cnt = choose(c, 8) == 1 ? (cnt + 1) % COUNTS : cnt;
        if (choose(c, 8) == 1)
            at = choose(c, 8) * each;
        make_part(&made, its_cnt, (int64_t)length, at, each);
        make_end_of(&made, its_cnt, at, each);
        memcpy(series + i * made.size, made.bytes, made.size);
    }
    return n;
}

static void check_heap(const spt_received_heap *heap)
{
    uint64_t end = 0, received = 0;
    for (size_t i = 0; i < heap->n_ranges; i++) {
        spt_range range = heap->ranges[i];
        REQUIRE(range.begin < range.end && (i == 0 || end < range.begin));
        for (uint64_t at = range.begin; at < range.end && !strange[heap->cnt % COUNTS]; at++)
            REQUIRE(heap->payload[at] == byte_of(heap->cnt, at));
        end = range.end;
        received += range.end - range.begin;
    }
    REQUIRE(received == heap->received_length && end <= heap->length);
    REQUIRE(heap->length <= heap->room || heap->length == 0);
    REQUIRE(heap->packets > 0 && heap->state != SPT_HEAP_LIVE);
    REQUIRE((heap->state == SPT_HEAP_INCOMPLETE) || received == heap->length);
    REQUIRE((heap->state == SPT_HEAP_COMPLETE) == (heap->has_length && received == heap->length));
}

/* Items lie within the heap, side by side; whatever is in them may be meant for a descriptor. */
static void check_items(const spt_received_heap *heap)
{
    spt_received_item *items = __real_calloc(heap->n_pointers + 1, sizeof(*items));
    REQUIRE(items != NULL);
    size_t n = spt_received_heap_items(heap, items);
    REQUIRE(n <= heap->n_pointers);
    for (size_t i = 0; i < n && !items[i].is_immediate; i++) {
        REQUIRE(i == 0 || items[i - 1].offset + items[i - 1].length <= items[i].offset);
        REQUIRE(items[i].length == 0 || items[i].offset + items[i].length <= heap->length);
        if (heap->state == SPT_HEAP_INCOMPLETE || items[i].length == 0)
            continue;
        spt_received_descriptor d;
        if (!spt_received_descriptor_parse(&d, heap->payload + items[i].offset, items[i].length, 0))
            continue;
        for (size_t j = 0; j < d.n_format; j++)
            spt_received_descriptor_field(&d, j);
        for (size_t j = 0; j < d.n_shape; j++)
            REQUIRE(spt_received_descriptor_dimension(&d, j) >= -1);
    }
    free(items);
}

static void take_heaps(spt_depacketizer *d)
{
    for (spt_received_heap *heap; (heap = spt_depacketizer_next(d)) != NULL;) {
        check_heap(heap);
        check_items(heap);
        spt_depacketizer_recycle(d, heap);
    }
}

/* Take a packet apart; it is in memory of exactly its size, so that reading beyond it is seen. */
static void take_apart(spt_depacketizer *d, const uint8_t *bytes, size_t size)
{
    spt_received_packet packet;
    spt_fault fault = spt_received_packet_parse(&packet, bytes, size);
    if (fault != SPT_FAULT_NONE) {
        spt_depacketizer_malformed(d, fault);
        return;
    }
    uint8_t *to;
    REQUIRE(packet.size <= size);
    spt_fate fate = spt_depacketizer_take(d, &packet, &to);
    REQUIRE(fate == SPT_PLACED || to == NULL);
    REQUIRE(fate != SPT_PLACED || to != NULL || packet.payload_length == 0);
    if (to != NULL)
        memcpy(to, packet.payload, packet.payload_length);
    if (fate == SPT_PLACED && packet.is_stop)
        spt_depacketizer_stop(d);
}

/* Before it is known what comes: write payloads to where packets of their size are expected. */
static void write_in_place(const spt_depacketizer *d, spti_packet_run *run)
{
    uint8_t *to;
    size_t n_bytes, n = spti_depacketizer_expected(d, &n_bytes, &to);
    if (n == 0 || n_bytes != run->n_bytes)
        return;
    run->n = run->n < n ? run->n : n;
    run->in_place = true;
    for (size_t i = 0, payload = n_bytes - SPTI_PREFIX; i < run->n; i++)
        memcpy(to + i * payload, (const uint8_t *)run->bytes + i * run->step + SPTI_PREFIX,
               payload);
}

/* Take packets of a size that came together; before they are known, or once they are. */
static void take(spt_depacketizer *d, const uint8_t *bytes, size_t size, size_t n, bool in_place)
{
    uint8_t *copy = __real_malloc(n * size + (size == 0));
    REQUIRE(copy != NULL);
    memcpy(copy, bytes, n * size);
    for (size_t i = 0, taken; i < n; i += taken) {
        spti_packet_run run = {copy + i * size, size, size, n - i, false};
        if (in_place)
            write_in_place(d, &run);
        taken = spti_depacketizer_take_run(d, &run);
        REQUIRE(taken <= run.n);
        if (taken == 0) {
            taken = 1;
            take_apart(d, copy + i * size, size);
        }
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    memset(strange, 0, sizeof(strange));
    spt_depacketizer_config config = SPT_DEPACKETIZER_CONFIG_DEFAULT;
    config.max_heaps = 1 + choose(&c, MAX_HEAPS);
    config.substreams = 1 + choose(&c, MAX_SUBSTREAMS);
    config.allow_out_of_order = choose(&c, 2) != 0;
    config.allow_unsized_heaps = choose(&c, 4) != 0;
    config.max_heap_size = MAX_HEAP;
    config.max_gaps = choose(&c, 8);
    config.max_pointers = 2 + choose(&c, 39);
    config.memory = (spt_heap_memory){NULL, get, put};
    short_of = choose(&c, 30);
    spt_depacketizer *d = spt_depacketizer_create(&config, NULL);
    REQUIRE(d != NULL);
    begin_failing(&c);
    uint64_t packets = 0;
    while (c.size > 0) {
        bool in_place = choose(&c, 2) != 0;
        size_t what = choose(&c, 16), n = 1;
        if (what == 0) {
            size_t n_bytes = choose(&c, 200);
            n_bytes = n_bytes < c.size ? n_bytes : c.size;
            memset(strange, true, sizeof(strange));
            take(d, c.data, n_bytes, 1, in_place);
            c = (choices){c.data + n_bytes, c.size - n_bytes};
        } else if (what < 5) {
            take_heaps(d);
            n = make_series(&c);
            take(d, series, made.size, n, in_place);
            take_heaps(d);
        } else {
            make(&c);
            take(d, made.bytes, made.size, 1, in_place);
        }
        packets += n;
        if (choose(&c, 3) == 0)
            take_heaps(d);
        if (choose(&c, 64) == 1)
            spt_depacketizer_flush(d);
        spt_account account;
        spt_depacketizer_account(d, &account);
        REQUIRE(account.packets == packets && account_adds_up(&account));
        if (packets % TAKEN_EVERY == 0)
            take_heaps(d);
    }
    take_heaps(d);
    stop_failing();
    spt_depacketizer_destroy(d);
    REQUIRE(given == 0);
    return 0;
}
