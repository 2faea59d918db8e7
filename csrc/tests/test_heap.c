/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of heap.c: what a heap takes, and what it refuses. */
#include "../src/heap.h"

#include "support.h"

static spt_status add(spt_heap *heap, uint64_t id, const void *value, size_t length, bool immediate)
{
    spt_item item = {id, value, length, immediate};
    return spt_heap_add_item(heap, &item, NULL);
}

TEST(a_wrong_flavour_makes_no_heap)
{
    spt_flavour flavour = {41, 0};
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_heap_create(&flavour, &err));
    spt_heap_destroy(NULL);
}

TEST(ids_of_the_protocol_and_beyond_the_flavour_are_refused)
{
    OWN(spt_heap) heap = new_heap_as(40, 0);
    spt_descriptor descriptor = {.name = "", .description = ""};
    for (descriptor.id = 0; descriptor.id < 7; descriptor.id++) {
        CHECK_EQUAL(add(heap, descriptor.id, "v", 1, true), SPT_ERR_ARGUMENT);
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "0x0 to 0x6 are the protocol's own",
                      spt_heap_add_descriptor(heap, &descriptor, &err));
    }
    CHECK_EQUAL(add(heap, 0x800000, "v", 1, false), SPT_ERR_ARGUMENT); /* beyond the flavour */
    CHECK_EQUAL(heap->n_items, 0);
    CHECK_EQUAL(add(heap, 7, "v", 1, true), SPT_OK);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_OK);
}

TEST(a_heap_ends_where_its_addresses_do)
{
    static const uint8_t value[256];
    OWN(spt_heap) heap = new_heap_as(8, 0);
    CHECK_EQUAL(spt_heap_flavour(heap).heap_address_bits, 8);
    CHECK_EQUAL(add(heap, 0x11, value, 256, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 250, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x11, value, 6, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, SIZE_MAX, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 5, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x11, value, 1, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 1, true), SPT_OK); /* immediates take no payload */
    CHECK_EQUAL(heap->payload_length, 255);
}

TEST(a_descriptor_is_copied_into_the_payload)
{
    char name[] = "name";
    spt_descriptor descriptor = {.id = 0x1000, .name = name, .description = "text"};
    OWN(spt_heap) heap = new_heap_as(40, 0);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_OK);
    name[0] = 'X';
    CHECK_EQUAL(heap->items[0].id, 5);
    CHECK(!heap->items[0].immediate);
    CHECK_EQUAL(heap->payload_length, 80 + 4 + 4);
    CHECK_BYTES(heap->items[0].value + 80, "nametext", 8);
}

TEST(a_descriptor_that_is_refused_leaves_the_heap_alone)
{
    static const uint8_t value[250];
    spt_descriptor descriptor = {.id = 0x1000, .name = "", .description = ""};
    OWN(spt_heap) heap = new_heap_as(8, 0);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_ERR_ARGUMENT); /* its id */
    descriptor.id = 0x11;
    CHECK_EQUAL(add(heap, 0x11, value, 250, false), SPT_OK);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_ERR_ARGUMENT); /* its size */
    CHECK_EQUAL(heap->n_items, 1, heap->n_owned, 0);
}

TEST(a_heap_in_flight_does_not_change)
{
    spt_descriptor descriptor = {.id = 0x1000, .name = "", .description = ""};
    spt_item item = {0x1000, "v", 1, false};
    OWN(spt_heap) heap = new_heap_as(40, 0);
    spti_heap_borrow(heap);
    spti_heap_borrow(heap);
    CHECK_EQUAL(spt_heap_in_flight(heap), 2);
    spti_heap_return(heap);
    CHECK_REFUSED(SPT_ERR_BUSY, "", spt_heap_add_item(heap, &item, &err));
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_ERR_BUSY);
    CHECK_EQUAL(spt_heap_add_start(heap, NULL), SPT_ERR_BUSY);
    CHECK_EQUAL(spt_heap_add_end(heap, NULL), SPT_ERR_BUSY);
    CHECK_EQUAL(spt_heap_set_repeat_pointers(heap, true, NULL), SPT_ERR_BUSY);
    CHECK_EQUAL(heap->n_items, 0);
    CHECK(!spt_heap_repeat_pointers(heap));
    spti_heap_return(heap);
    CHECK_EQUAL(spt_heap_add_item(heap, &item, NULL), SPT_OK);
    CHECK_EQUAL(spt_heap_set_repeat_pointers(heap, true, NULL), SPT_OK);
    CHECK(spt_heap_repeat_pointers(heap));
}
