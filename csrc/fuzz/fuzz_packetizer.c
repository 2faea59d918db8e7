/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever heap of items and descriptors the bytes describe, its packets,
 * read by an independent reader, hold every pointer and every byte of payload once, and nothing
 * else.
 */
#include "../tests/make_packet.h"
#include "../tests/reader.h"
#include "choices.h"
#include "spead_tutorial/spt.h"

#include <string.h>

enum { MAX_ITEMS = 300, MAX_VALUE = 70000, MAX_PACKET = 66000, MAX_FIELDS = 4, MAX_NAME = 40 };

/* What was put into the heap, in order: for addressed items, where the value lies. */
typedef struct item {
    bool immediate;
    uint64_t id, value;
} item;

typedef struct heap {
    spt_heap *heap;
    spt_flavour flavour;
    unsigned address_bits;
    item items[MAX_ITEMS];
    size_t n_items;
    uint8_t *payload;
    size_t length;
} heap;

static uint8_t values[MAX_VALUE];

static void add_payload(heap *h, const uint8_t *bytes, size_t length)
{
    h->payload = __real_realloc(h->payload, h->length + length + 1);
    REQUIRE(h->payload != NULL);
    if (length > 0)
        memcpy(h->payload + h->length, bytes, length);
    h->length += length;
}

static void add_random_item(heap *h, choices *c)
{
    static const size_t lengths[] = {9, 16, 300, 3000, MAX_VALUE};
    size_t length = choose(c, lengths[choose(c, 5)]);
    spt_item added = {
        .id = choose(c, 200), /* also ids that are reserved, or that the flavour may not have */
        .value = values + choose(c, MAX_VALUE - length + 1),
        .length = length,
        .allow_immediate = choose(c, 2) != 0,
    };
    item expected = {added.allow_immediate && length <= h->address_bits / 8, added.id, h->length};
    uint64_t limit = ((uint64_t)1 << h->address_bits) - 1;
    spt_status status = spt_heap_add_item(h->heap, &added, NULL);
    bool fits = added.id > 6 && added.id >> (63 - h->address_bits) == 0 &&
                (expected.immediate || h->length + length <= limit);
    if (status == SPT_ERR_MEMORY && has_failed())
        return; /* as if it had not been tried */
    REQUIRE((status == SPT_OK) == fits);
    if (!fits)
        return;
    if (expected.immediate)
        expected.value = reader_number(added.value, length);
    else
        add_payload(h, added.value, length);
    h->items[h->n_items++] = expected;
}

/* Small numbers and names, which fit; what does not is for the unit tests. */
static void add_random_descriptor(heap *h, choices *c)
{
    char names[3][MAX_NAME];
    spt_field format[MAX_FIELDS];
    int64_t shape[MAX_FIELDS];
    for (int i = 0; i < 3; i++) {
        size_t n = choose(c, MAX_NAME);
        memset(names[i], (int)(1 + choose(c, 255)), n);
        names[i][n] = '\0';
    }
    spt_descriptor d = {
        .id = choose(c, 128),
        .name = names[0],
        .description = names[1],
        .numpy_header = choose(c, 2) ? names[2] : NULL,
        .format = format,
        .n_format = choose(c, MAX_FIELDS + 1),
        .shape = shape,
        .n_shape = choose(c, MAX_FIELDS + 1),
    };
    for (size_t i = 0; i < MAX_FIELDS; i++) {
        format[i] = (spt_field){(char)choose(c, 128), (uint32_t)choose(c, 256)};
        shape[i] = (int64_t)choose(c, 257) - 1;
    }
    for (size_t i = 0; i < d.n_shape; i++)
        if (shape[i] > 127)
            shape[i] = -1;
    static made_packet encoded;
    make_descriptor(&encoded, h->flavour, &d);
    size_t length = encoded.size;
    uint64_t limit = ((uint64_t)1 << h->address_bits) - 1;
    spt_status status = spt_heap_add_descriptor(h->heap, &d, NULL);
    if (status == SPT_ERR_MEMORY && has_failed())
        return;
    REQUIRE((status == SPT_OK) == (d.id > 6 && h->length + length <= limit));
    if (status != SPT_OK)
        return;
    h->items[h->n_items++] = (item){false, SPT_ID_DESCRIPTOR, h->length};
    add_payload(h, encoded.bytes, length);
}

static void add_end(heap *h)
{
    spt_status status = spt_heap_add_end(h->heap, NULL);
    if (status == SPT_ERR_MEMORY && has_failed())
        return;
    REQUIRE(status == SPT_OK);
    h->items[h->n_items++] = (item){true, SPT_ID_STREAM_CTRL, 2};
}

static void check_pointers(const heap *h, const reader_packet *packet, size_t first)
{
    for (size_t i = 0; i < packet->n_pointers; i++) {
        reader_pointer got = reader_get(packet, i);
        if (first + i == h->n_items) { /* where padding begins */
            REQUIRE(!got.immediate && got.id == SPT_ID_NULL && got.value == h->length);
            continue;
        }
        const item *expected = &h->items[first + i];
        REQUIRE(got.immediate == expected->immediate && got.id == expected->id);
        REQUIRE(got.value == expected->value);
    }
}

static void check_payload(const heap *h, const reader_packet *packet)
{
    for (uint64_t i = 0; i < packet->payload_length; i++) {
        uint64_t at = packet->payload_offset + i;
        REQUIRE(packet->payload[i] == (at < h->length ? h->payload[at] : 0));
    }
}

static void check_packets(const heap *h, uint64_t cnt, size_t max_size, bool repeat)
{
    spt_packetizer p;
    spt_packet made;
    if (spt_packetizer_init(&p, h->heap, cnt, max_size, NULL) != SPT_OK) {
        /* too small, also for pointers in every packet, or padded beyond 255 bytes */
        REQUIRE(max_size < SPT_MIN_PACKET_SIZE || repeat || h->address_bits == 8);
        return;
    }
    uint8_t *scratch = __real_malloc(max_size), *joined = __real_malloc(max_size);
    struct iovec *pieces = __real_calloc(SPT_MAX_PIECES(max_size), sizeof(*pieces));
    REQUIRE(scratch != NULL && joined != NULL && pieces != NULL);
    uint64_t offset = 0, heap_length = 0;
    size_t n_pointers = 0, n_in_packet = 0;
    bool last = false;
    while (spt_packetizer_next(&p, scratch, pieces, &made) == SPT_OK) {
        REQUIRE(!last && made.size <= max_size && made.n_pieces <= SPT_MAX_PIECES(max_size));
        size_t joined_size = 0;
        for (size_t i = 0; i < made.n_pieces; i++) {
            memcpy(joined + joined_size, pieces[i].iov_base, pieces[i].iov_len);
            joined_size += pieces[i].iov_len;
        }
        reader_packet packet;
        REQUIRE(joined_size == made.size && reader_read(&packet, joined, made.size));
        REQUIRE(packet.size == made.size && packet.address_bits == h->address_bits);
        REQUIRE(packet.cnt == cnt % ((uint64_t)1 << h->address_bits));
        REQUIRE(offset == 0 || packet.heap_length == heap_length);
        heap_length = packet.heap_length;
        REQUIRE(packet.payload_offset == offset && packet.payload_length > 0);
        offset += packet.payload_length;
        last = packet.payload_length % 8 != 0;
        check_pointers(h, &packet, repeat ? 0 : n_pointers);
        check_payload(h, &packet);
        n_pointers += packet.n_pointers;
        n_in_packet = packet.n_pointers;
    }
    size_t n_expected = h->n_items + (heap_length > h->length);
    REQUIRE(offset == heap_length && heap_length >= h->length && heap_length > 0);
    REQUIRE((repeat ? n_in_packet : n_pointers) == n_expected);
    free(scratch);
    free(joined);
    free(pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    static bool filled;
    for (size_t i = 0; !filled && i < MAX_VALUE; i++)
        values[i] = (uint8_t)(i * 7 + i / 256 + 1);
    filled = true;
    heap h = {.address_bits = 8 * (unsigned)(1 + choose(&c, 7))};
    h.flavour = (spt_flavour){(uint8_t)h.address_bits, (uint8_t)choose(&c, 8)};
    begin_failing(&c);
    h.heap = spt_heap_create(&h.flavour, NULL);
    REQUIRE(h.heap != NULL || has_failed());
    if (h.heap == NULL) {
        stop_failing();
        return 0;
    }
    size_t max_size = choose(&c, MAX_PACKET >> (choose(&c, 3) * 4));
    bool repeat = choose(&c, 4) == 0;
    uint64_t cnt = choose(&c, 1U << 31);
    REQUIRE(spt_heap_set_repeat_pointers(h.heap, repeat, NULL) == SPT_OK);
    while (c.size > 0 && h.n_items < MAX_ITEMS - 1) {
        if (choose(&c, 8) == 0)
            add_random_descriptor(&h, &c);
        else
            add_random_item(&h, &c);
    }
    if (repeat)
        add_end(&h);
    stop_failing();
    check_packets(&h, cnt, max_size, repeat);
    spt_heap_destroy(h.heap);
    free(h.payload);
    return 0;
}
