/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of heap.c: what a heap takes, and what it refuses. */
#include "../src/heap.h"

#include "check.h"

static const spt_flavour default_flavour = SPT_FLAVOUR_DEFAULT;

static spt_heap *new_heap(uint8_t address_bits)
{
    spt_flavour flavour = {address_bits, 0};
    spt_heap *heap = spt_heap_create(&flavour, NULL);
    REQUIRE(heap != NULL);
    return heap;
}

static spt_status add(spt_heap *heap, uint64_t id, const void *value, size_t length, bool immediate)
{
    spt_item item = {id, value, length, immediate};
    return spt_heap_add_item(heap, &item, NULL);
}

static void test_a_new_heap_is_empty_and_idle(void)
{
    spt_heap *heap = new_heap(48);
    CHECK_EQUAL(heap->n_items, 0);
    CHECK_EQUAL(heap->payload_length, 0);
    CHECK_EQUAL(spt_heap_in_flight(heap), 0);
    CHECK(!spt_heap_repeat_pointers(heap));
    CHECK_EQUAL(spt_heap_flavour(heap).heap_address_bits, 48);
    spt_heap_destroy(heap);
}

static void test_destroy_takes_null(void)
{
    spt_heap_destroy(NULL);
}

static void test_a_wrong_flavour_makes_no_heap(void)
{
    spt_error err = {0};
    spt_flavour flavour = {41, 0};
    CHECK(spt_heap_create(&flavour, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
}

static void test_addresses_accumulate_in_the_order_of_adding(void)
{
    static const uint8_t value[100];
    spt_heap *heap = new_heap(40);
    CHECK_EQUAL(add(heap, 0x1000, value, 100, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x1001, value, 0, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x1002, value, 4, true), SPT_OK);
    CHECK_EQUAL(add(heap, 0x1003, value, 7, false), SPT_OK);
    CHECK_EQUAL(heap->n_items, 4);
    CHECK_EQUAL(heap->items[0].address, 0);
    CHECK_EQUAL(heap->items[1].address, 100);
    CHECK(heap->items[2].immediate);
    CHECK_EQUAL(heap->items[3].address, 100);
    CHECK_EQUAL(heap->payload_length, 107);
    CHECK(heap->items[0].value == value);
    spt_heap_destroy(heap);
}

static void test_what_fits_the_address_bits_may_be_an_immediate(void)
{
    static const uint8_t value[8];
    for (uint8_t bits = 8; bits <= 56; bits = (uint8_t)(bits + 8)) {
        spt_heap *heap = new_heap(bits);
        CHECK_EQUAL(add(heap, 0x11, value, bits / 8U, true), SPT_OK);
        CHECK_EQUAL(add(heap, 0x11, value, bits / 8U + 1, true), SPT_OK);
        CHECK_EQUAL(add(heap, 0x11, value, 1, false), SPT_OK);
        CHECK(heap->items[0].immediate);
        CHECK(!heap->items[1].immediate);
        CHECK(!heap->items[2].immediate);
        spt_heap_destroy(heap);
    }
}

static void test_an_immediate_is_right_aligned_and_read_when_asked_for(void)
{
    uint8_t value[] = {0x07, 0x00, 0x00, 0x00}; /* a little-endian 7 */
    spti_heap_item item = {.value = value, .length = 4, .immediate = true};
    CHECK_EQUAL(spti_heap_item_immediate(&item), 0x07000000);
    value[3] = 0x21;
    CHECK_EQUAL(spti_heap_item_immediate(&item), 0x07000021);
    item.length = 0;
    CHECK_EQUAL(spti_heap_item_immediate(&item), 0);
    item = (spti_heap_item){.immediate = true, .inline_value = 2};
    CHECK_EQUAL(spti_heap_item_immediate(&item), 2);
}

static void test_an_id_beyond_the_flavour_is_refused(void)
{
    spt_heap *heap = new_heap(40);
    CHECK_EQUAL(add(heap, 0x7fffff, "v", 1, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x800000, "v", 1, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(heap->n_items, 1);
    CHECK_EQUAL(heap->payload_length, 1);
    spt_heap_destroy(heap);
}

static void test_ids_of_the_protocol_are_refused(void)
{
    spt_heap *heap = new_heap(40);
    spt_descriptor descriptor = {.name = "", .description = ""};
    spt_error err = {0};
    for (descriptor.id = 0; descriptor.id < 7; descriptor.id++) {
        CHECK_EQUAL(add(heap, descriptor.id, "v", 1, true), SPT_ERR_ARGUMENT);
        CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, &err), SPT_ERR_ARGUMENT);
        CHECK(strstr(err.message, "0x0 to 0x6 are the protocol's own") != NULL);
    }
    CHECK_EQUAL(heap->n_items, 0);
    CHECK_EQUAL(add(heap, 7, "v", 1, true), SPT_OK);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_OK);
    spt_heap_destroy(heap);
}

static void test_a_heap_ends_where_its_addresses_do(void)
{
    static const uint8_t value[256];
    spt_heap *heap = new_heap(8);
    CHECK_EQUAL(add(heap, 0x11, value, 256, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 250, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x11, value, 6, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, SIZE_MAX, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 5, false), SPT_OK);
    CHECK_EQUAL(add(heap, 0x11, value, 1, false), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(add(heap, 0x11, value, 1, true), SPT_OK); /* immediates take no payload */
    CHECK_EQUAL(heap->payload_length, 255);
    spt_heap_destroy(heap);
}

static void test_start_and_end_are_stream_control_immediates(void)
{
    spt_heap *heap = new_heap(40);
    CHECK_EQUAL(spt_heap_add_start(heap, NULL), SPT_OK);
    CHECK_EQUAL(spt_heap_add_end(heap, NULL), SPT_OK);
    CHECK_EQUAL(heap->items[0].id, 6);
    CHECK(heap->items[0].immediate);
    CHECK_EQUAL(spti_heap_item_immediate(&heap->items[0]), 0);
    CHECK_EQUAL(heap->items[1].id, 6);
    CHECK_EQUAL(spti_heap_item_immediate(&heap->items[1]), 2);
    spt_heap_destroy(heap);
}

static void test_a_descriptor_is_copied_into_the_payload(void)
{
    char name[] = "name";
    spt_descriptor descriptor = {.id = 0x1000, .name = name, .description = "text"};
    spt_heap *heap = new_heap(40);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_OK);
    name[0] = 'X';
    CHECK_EQUAL(heap->items[0].id, 5);
    CHECK(!heap->items[0].immediate);
    CHECK_EQUAL(heap->payload_length, 80 + 4 + 4);
    CHECK_BYTES(heap->items[0].value + 80, "nametext", 8);
    spt_heap_destroy(heap);
}

static void test_a_descriptor_that_is_refused_leaves_the_heap_alone(void)
{
    static const uint8_t value[250];
    spt_descriptor descriptor = {.id = 0x1000, .name = "", .description = ""};
    spt_heap *heap = new_heap(8);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_ERR_ARGUMENT); /* its id */
    descriptor.id = 0x11;
    CHECK_EQUAL(add(heap, 0x11, value, 250, false), SPT_OK);
    CHECK_EQUAL(spt_heap_add_descriptor(heap, &descriptor, NULL), SPT_ERR_ARGUMENT); /* its size */
    CHECK_EQUAL(heap->n_items, 1);
    CHECK_EQUAL(heap->n_owned, 0);
    spt_heap_destroy(heap);
}

static void test_a_heap_in_flight_does_not_change(void)
{
    spt_error err = {0};
    spt_descriptor descriptor = {.id = 0x1000, .name = "", .description = ""};
    spt_item item = {0x1000, "v", 1, false};
    spt_heap *heap = new_heap(40);
    spti_heap_borrow(heap);
    spti_heap_borrow(heap);
    CHECK_EQUAL(spt_heap_in_flight(heap), 2);
    spti_heap_return(heap);
    CHECK_EQUAL(spt_heap_add_item(heap, &item, &err), SPT_ERR_BUSY);
    CHECK_EQUAL(err.status, SPT_ERR_BUSY);
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
    spt_heap_destroy(heap);
}

static void test_a_heap_grows_to_thousands_of_items(void)
{
    spt_heap *heap = new_heap(default_flavour.heap_address_bits);
    for (uint64_t i = 0; i < 5000; i++)
        CHECK_EQUAL(add(heap, 0x1000 + i, "abc", 3, false), SPT_OK);
    CHECK_EQUAL(heap->n_items, 5000);
    CHECK_EQUAL(heap->items[4999].id, 0x1000 + 4999);
    CHECK_EQUAL(heap->items[4999].address, 4999 * 3);
    spt_heap_destroy(heap);
}

int main(void)
{
    RUN(test_a_new_heap_is_empty_and_idle);
    RUN(test_destroy_takes_null);
    RUN(test_a_wrong_flavour_makes_no_heap);
    RUN(test_addresses_accumulate_in_the_order_of_adding);
    RUN(test_what_fits_the_address_bits_may_be_an_immediate);
    RUN(test_an_immediate_is_right_aligned_and_read_when_asked_for);
    RUN(test_an_id_beyond_the_flavour_is_refused);
    RUN(test_ids_of_the_protocol_are_refused);
    RUN(test_a_heap_ends_where_its_addresses_do);
    RUN(test_start_and_end_are_stream_control_immediates);
    RUN(test_a_descriptor_is_copied_into_the_payload);
    RUN(test_a_descriptor_that_is_refused_leaves_the_heap_alone);
    RUN(test_a_heap_in_flight_does_not_change);
    RUN(test_a_heap_grows_to_thousands_of_items);
    return check_done();
}
