/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever heaps describe, and whatever values they bring, a group of
 * items is bounded, and each value lies in the heap, or in the group.
 */
#include "../tests/make_packet.h"
#include "choices.h"
#include "spead_tutorial/spt_recv.h"

enum { MAX_ITEMS = 8, MOST_NAMES = 4, MOST_TEXT = 80, ROOM = MAX_ITEMS * 400, LITTLE = 1000 };

static made_packet made;
static uint8_t payload[ROOM];

/* Some of the fuzzer's bytes; fewer where there are no more. */
static size_t take_bytes(choices *c, uint8_t *to, size_t most)
{
    size_t n = choose(c, most + 1);
    n = n < c->size ? n : c->size;
    memcpy(to, c->data, n);
    *c = (choices){c->data + n, c->size - n};
    return n;
}

/* A descriptor that is one, whatever it says; returns its bytes. */
static size_t put_descriptor(choices *c, uint8_t *to, uint64_t id)
{
    static const uint64_t texts[] = {SPT_ID_DESCRIPTOR_DESCRIPTION, SPT_ID_DESCRIPTOR_SHAPE,
                                     SPT_ID_DESCRIPTOR_FORMAT, SPT_ID_DESCRIPTOR_DTYPE};
    uint8_t all[1 + 4 * MOST_TEXT];
    size_t n = 1;
    all[0] = (uint8_t)('a' + choose(c, MOST_NAMES));
    make_begin(&made, 40);
    make_add(&made, true, SPT_ID_HEAP_CNT, 1);
    make_add(&made, true, SPT_ID_PAYLOAD_OFFSET, 0);
    make_add(&made, true, SPT_ID_DESCRIPTOR_ID, id);
    make_add(&made, false, SPT_ID_DESCRIPTOR_NAME, 0);
    for (size_t i = 0; i < 4; i++) {
        make_add(&made, false, texts[i], n);
        n += take_bytes(c, all + n, MOST_TEXT);
    }
    make_add(&made, true, SPT_ID_PAYLOAD_LENGTH, n);
    make_end(&made, all, n);
    memcpy(to, made.bytes, made.size);
    return made.size;
}

/* Every byte of a value can be read, and of text. */
static void look_at(const spt_group_item *item, const spt_received_heap *heap)
{
    static volatile uint8_t sum;
    REQUIRE(strlen(item->name) > 0 && strlen(item->description) <= MOST_TEXT);
    if (!item->has_value)
        return;
    size_t most = item->is_immediate ? heap->heap_address_bits / 8U : heap->length;
    REQUIRE(item->value.length <= most);
    for (size_t i = 0; i < item->value.length; i++)
        sum = (uint8_t)(sum + item->value.data[i]);
}

/* A heap of a few descriptors and values, in memory of exactly its size. */
static void update(spt_item_group *group, choices *c)
{
    spt_received_pointer pointers[MAX_ITEMS];
    size_t n_pointers = choose(c, MAX_ITEMS + 1), n = 0;
    for (size_t i = 0; i < n_pointers; i++) {
        uint64_t id = 7 + choose(c, MOST_NAMES), word = make_address(40, id, n);
        size_t what = choose(c, 3);
        if (what == 0)
            word = make_immediate(40, id, choose(c, (size_t)1 << 40));
        else if (what == 1)
            n += take_bytes(c, payload + n, MOST_TEXT);
        else
            word = make_address(40, SPT_ID_DESCRIPTOR, n);
        if (what == 2)
            n += put_descriptor(c, payload + n, id);
        pointers[i] = (spt_received_pointer){word, 0};
    }
    spt_received_heap heap = {
        .heap_address_bits = 40,
        .state = choose(c, 8) == 0 ? SPT_HEAP_INCOMPLETE : SPT_HEAP_COMPLETE,
        .has_length = true,
        .length = n,
        .received_length = n,
        .payload = n > 0 ? __real_malloc(n) : NULL,
        .room = n,
        .pointers = pointers,
        .n_pointers = n_pointers,
    };
    if (n > 0)
        memcpy(heap.payload, payload, n);
    size_t undescribed;
    spt_status status = spt_item_group_update(group, &heap, &undescribed, NULL);
    REQUIRE(status == SPT_OK || (status == SPT_ERR_MEMORY && has_failed()));
    REQUIRE(undescribed <= n_pointers && spt_item_group_size(group) <= MOST_NAMES);
    REQUIRE(spt_item_group_left_out(group) <= n_pointers);
    for (size_t i = 0; i < spt_item_group_size(group); i++) {
        REQUIRE(status == SPT_OK || !spt_item_group_at(group, i)->has_value);
        look_at(spt_item_group_at(group, i), &heap);
        REQUIRE(spt_item_group_find(group, spt_item_group_at(group, i)->name) ==
                spt_item_group_at(group, i));
    }
    free(heap.payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    size_t how = choose(&c, 16);
    spt_item_group *group = spt_item_group_create((int)how % 8, NULL);
    REQUIRE(group != NULL);
    if (how >= 8)
        spt_item_group_set_max_memory(group, LITTLE);
    begin_failing(&c);
    do
        update(group, &c);
    while (c.size > 0);
    stop_failing();
    spt_item_group_destroy(group);
    return 0;
}
