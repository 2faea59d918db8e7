/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_group.c: descriptors and values of heaps that the sender sends. */
#define CHECK_AFTER end

#include "failing.h"
#include "support.h"

#include <search.h>

/* The nodes of trees are allocated by the C library, which fails as all else does. */
typedef int compare(const void *one, const void *other);
void *__real_tsearch(const void *key, void **root, compare *by);
void *__wrap_tsearch(const void *key, void **root, compare *by);
void *__wrap_tsearch(const void *key, void **root, compare *by)
{
    return fails() ? NULL : __real_tsearch(key, root, by);
}

static spt_item_group *group;
static spt_recv_stream *receiver;
static spt_received_heap *received; /* what the group's values lie in */

static uint8_t packets[1 << 22];

/* The how-manieth allocation fails while a heap is taken in, and how many have; 0: none. */
static long failing_at, n_failed;

static void give_back(void)
{
    if (received != NULL)
        spt_recv_stream_return(receiver, received);
    received = NULL;
    END(spt_recv_stream, receiver);
}

static void end(void)
{
    give_back();
    END(spt_item_group, group);
}

static void start_as(int bug_compat)
{
    end();
    group = NEW(spt_item_group_create(bug_compat, NULL));
}

static void start(void)
{
    start_as(0);
}

/* Take in what is received of one heap. That before has gone; after a failure nothing is taken, and
 * it is taken in again. */
static size_t receive(spt_heap *heap)
{
    give_back();
    receiver = new_receiver(NULL);
    size_t size = packets_of(heap, packets, sizeof(packets)), undescribed = 99;
    REQUIRE(spt_recv_stream_add_memory(receiver, packets, size, NULL) == SPT_OK);
    received = get_heap_of(receiver);
    fail_once(failing_at);
    spt_status status = spt_item_group_update(group, received, &undescribed, NULL);
    n_failed = stop_failing();
    CHECK_EQUAL(status, n_failed > 0 ? SPT_ERR_MEMORY : SPT_OK);
    if (status == SPT_OK)
        return undescribed;
    CHECK_EQUAL(undescribed, 0);
    for (size_t i = 0; i < spt_item_group_size(group); i++)
        CHECK(!spt_item_group_at(group, i)->has_value);
    REQUIRE(spt_item_group_update(group, received, &undescribed, NULL) == SPT_OK);
    return undescribed;
}

static void describe(spt_heap *heap, spt_descriptor descriptor)
{
    REQUIRE(spt_heap_add_descriptor(heap, &descriptor, NULL) == SPT_OK);
}

/* By the fields of an element, and the shape. */
static void add_fields(spt_heap *heap, uint64_t id, const char *name, const spt_field *fields,
                       size_t n_fields, const int64_t *shape, size_t n_shape)
{
    describe(heap, (spt_descriptor){id, name, "", NULL, fields, n_fields, shape, n_shape});
}

static void add_header(spt_heap *heap, uint64_t id, const char *name, const char *header)
{
    describe(heap, (spt_descriptor){id, name, "", header, NULL, 0, NULL, 0});
}

static const spt_field u40 = {'u', 40}, u8 = {'u', 8};
static const uint8_t timestamp[5] = {0, 0, 1, 2, 3};
static const uint8_t samples[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static spt_heap *described(void)
{
    static const int64_t sixteen = 16, varies = -1;
    static const spt_field c8 = {'c', 8}, pair[] = {{'u', 3}, {'i', 5}};
    spt_heap *heap = new_heap_as(40, 0);
    describe(heap, (spt_descriptor){0x1600, "timestamp", "when", NULL, &u40, 1, NULL, 0});
    add_header(heap, 0x3300, "adc_samples",
               "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4)}");
    add_fields(heap, 0x3301, "text", &c8, 1, &varies, 1);
    add_fields(heap, 0x3302, "pairs", pair, 2, &sixteen, 1);
    add_item(heap, 0x1600, timestamp, 5, true);
    add_item(heap, 0x3300, samples, 16, true);
    return heap;
}

static const spt_group_item *find(const char *name)
{
    return NEW(spt_item_group_find(group, name));
}

static void check_values(void)
{
    const spt_group_item *item = find("timestamp");
    REQUIRE(item->has_value && item->is_immediate && item->is_new);
    CHECK_EQUAL(item->immediate, 0x10203, item->value.length, 5);
    CHECK_BYTES(item->value.data, timestamp, 5);
    CHECK_EQUAL(item->code, 'u', item->bits, 40, item->n_shape, 0);
    CHECK(strcmp(item->description, "when") == 0);
    item = find("adc_samples");
    REQUIRE(item->has_value && !item->is_immediate && item->value.length == 16);
    CHECK_BYTES(item->value.data, samples, 16);
    CHECK_EQUAL(item->code, 'i', item->bits, 16);
    CHECK(item->little_endian && !item->fortran_order);
    CHECK_EQUAL(item->n_shape, 2, item->shape[0], 2, item->shape[1], 4);
    item = find("text");
    CHECK(!item->has_value);
    CHECK_EQUAL(item->code, 'c', item->bits, 8, item->n_shape, 1, item->shape[0], -1);
    item = find("pairs");
    CHECK_EQUAL(item->code, 0, item->bits, 8, item->shape[0], 16);
    CHECK(spt_item_group_find(group, "adc") == NULL);
}

/* Where memory is short, a heap is taken in as a whole or not at all. */
TEST(items_are_found_by_name_with_their_types_and_values_once_there_is_memory)
{
    OWN(spt_heap) heap = described();
    for (failing_at = 1, n_failed = 1; n_failed > 0; failing_at++) {
        start();
        CHECK_EQUAL(receive(heap), 0, spt_item_group_size(group), 4);
        check_values();
    }
    CHECK(failing_at > 10);
    failing_at = 0;
}

TEST(descriptors_are_remembered_and_values_without_one_are_counted)
{
    OWN(spt_heap) later = new_heap_as(40, 0);
    OWN(spt_heap) heap = described();
    start();
    add_item(later, 0x1600, timestamp, 5, true);
    CHECK_EQUAL(receive(later), 1, spt_item_group_size(group), 0); /* nothing is known yet */
    CHECK_EQUAL(receive(heap), 0);
    add_item(later, 0x4000, samples, 1, true);
    CHECK_EQUAL(receive(later), 1);
    const spt_group_item *item = find("timestamp");
    CHECK(item->has_value && !item->is_new && item->immediate == 0x10203);
    item = find("adc_samples");
    CHECK(!item->has_value && item->value.data == NULL && item->value.length == 0);
}

TEST(what_is_described_anew_replaces_what_has_its_id_or_name)
{
    OWN(spt_heap) heap = described();
    OWN(spt_heap) other = new_heap_as(40, 0);
    start();
    add_fields(other, 0x3300, "timestamp", &u40, 1, NULL, 0);
    CHECK_EQUAL(receive(heap), 0, receive(other), 0, spt_item_group_size(group), 3);
    CHECK(spt_item_group_find(group, "adc_samples") == NULL);
    CHECK(find("timestamp")->is_new && find("timestamp")->id == 0x3300);
    CHECK_EQUAL(receive(other), 0);
    CHECK(!find("timestamp")->is_new); /* it is the same */
    CHECK(spt_item_group_at(group, 2) == find("timestamp"));
}

TEST(a_header_of_numpy_that_is_none_leaves_the_type_open)
{
    static const char *const headers[] = {
        "",
        "{",
        "{'descr': ",
        "{'descr': '",
        "{'descr': '<",
        "{'descr': '<i",
        "{'descr': '<i99999999999999999999'",
        "{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (x",
    };
    start();
    for (size_t i = 0; i < LENGTH(headers); i++) {
        OWN(spt_heap) heap = new_heap_as(40, 0);
        add_header(heap, 0x3300, "x", headers[i]);
        CHECK_EQUAL(receive(heap), 0, find("x")->code, 0, find("x")->n_shape, 0);
    }
}

/* Values of so many bytes each, inside their pointers and not. */
static spt_heap *of_lengths(size_t in_pointer, size_t addressed)
{
    spt_heap *heap = new_heap_as(40, 0);
    add_item(heap, 0x1600, samples, in_pointer, true);
    add_item(heap, 0x3300, samples, addressed, false);
    return heap;
}

/* An item of 3 bytes, and one whose shape and type a test chooses. */
static void describe_both(spt_heap *heap, const spt_field *fields, size_t n_fields,
                          const int64_t *shape, size_t n_shape)
{
    static const int64_t three = 3;
    add_fields(heap, 0x1600, "few", &u8, 1, &three, 1);
    add_fields(heap, 0x3300, "many", fields, n_fields, shape, n_shape);
}

TEST(a_value_has_as_many_bytes_as_its_shape_takes)
{
    static const spt_field u12 = {'u', 12}, both[] = {{'u', 8}, {'f', 32}};
    static const int64_t three[] = {3}, none[] = {0}, rows[] = {-1, 3}, huge[] = {1 << 30, 1 << 30};
    static const struct {
        const spt_field *fields;
        size_t n_fields;
        const int64_t *shape;
        size_t n_shape, came, taken; /* SIZE_MAX: that is too few */
    } cases[] = {
        {&u8, 1, three, 1, 3, 3},        {&u8, 1, three, 1, 8, 3},
        {&u8, 1, three, 1, 2, SIZE_MAX}, {&u8, 1, none, 1, 4, 0},
        {&u8, 1, none, 1, 0, 0},         {&u8, 1, NULL, 0, 0, SIZE_MAX},
        {&u8, 1, rows, 2, 8, 6},         {&u8, 1, rows, 2, 2, 0},
        {&u12, 1, three, 1, 5, 5},       {&u12, 1, three, 1, 4, SIZE_MAX},
        {both, 2, three, 1, 16, 15},     {both, 2, three, 1, 14, SIZE_MAX},
        {&u8, 1, huge, 2, 16, SIZE_MAX},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        OWN(spt_heap) heap = of_lengths(3, cases[i].came);
        bool good = cases[i].taken != SIZE_MAX;
        start();
        describe_both(heap, cases[i].fields, cases[i].n_fields, cases[i].shape, cases[i].n_shape);
        CHECK_EQUAL(receive(heap), !good);
        const spt_group_item *few = find("few"), *many = find("many");
        REQUIRE(few->has_value == good && many->has_value == good);
        if (!good)
            continue;
        CHECK_EQUAL(few->value.length, 3, many->value.length, cases[i].taken);
        CHECK_BYTES(few->value.data, samples, 3);
        CHECK_BYTES(many->value.data, samples, cases[i].taken);
    }
}

TEST(where_headers_give_the_other_byte_order_it_is_the_other_one)
{
    static const char *const headers[] = {
        "{'descr': '<i2', 'fortran_order': False, 'shape': ()}",
        "{'descr': '>i2', 'fortran_order': False, 'shape': ()}",
    };
    for (size_t i = 0; i < 2; i++) {
        OWN(spt_heap) heap = new_heap_as(40, 0);
        start_as(SPT_COMPAT_SWAP_ENDIAN);
        add_header(heap, 0x3300, "x", headers[i]);
        CHECK_EQUAL(receive(heap), 0, find("x")->little_endian, i == 1);
    }
}

/* So many items, of numbers from one on. */
static spt_heap *of_items(uint64_t first, uint64_t n)
{
    spt_heap *heap = new_heap_as(40, 0);
    for (uint64_t id = first; id < first + n; id++) {
        char name[24];
        snprintf(name, sizeof(name), "item %llx", (unsigned long long)id);
        add_fields(heap, id, name, &u40, 1, NULL, 0);
        add_item(heap, id, timestamp, 5, true);
    }
    return heap;
}

TEST(a_heap_of_metadata_is_taken_in_with_all_of_its_items)
{
    enum { N = 20000 };
    OWN(spt_heap) heap = of_items(0x1000, N);
    start();
    for (int again = 0; again < 2; again++) {
        CHECK_EQUAL(receive(heap), 0, spt_item_group_size(group), N);
        CHECK_EQUAL(spt_item_group_left_out(group), 0);
        for (size_t i = 0; i < N; i += 1999) {
            const spt_group_item *item = spt_item_group_at(group, i);
            CHECK_EQUAL(item->id, 0x1000 + i, item->immediate, 0x10203, item->is_new, again == 0);
            CHECK(find(item->name) == item);
        }
    }
}

TEST(items_are_in_the_order_in_which_they_were_described_last)
{
    OWN(spt_heap) heap = of_items(0x1000, 100);
    OWN(spt_heap) others = new_heap_as(40, 0);
    start();
    for (uint64_t i = 0; i < 100; i += 2)
        add_fields(others, 0x1000 + i, "x", &u8, 1, NULL, 0); /* each replaces the one before */
    CHECK_EQUAL(receive(heap), 0, receive(others), 0, spt_item_group_size(group), 51);
    for (size_t i = 0; i < 50; i++)
        CHECK_EQUAL(spt_item_group_at(group, i)->id, 0x1001 + 2 * i);
    CHECK(spt_item_group_at(group, 50) == find("x") && find("x")->id == 0x1062);
}

/* Of a heap with more than there is room for, what fits is taken in. */
TEST(groups_do_not_grow_beyond_their_memory_and_count_what_is_left_out)
{
    enum { N = 400 };
    start();
    spt_item_group_set_max_memory(group, 1 << 16);
    OWN(spt_heap) heap = of_items(0x1000, N);
    size_t left_out = receive(heap), size = spt_item_group_size(group); /* and their values */
    CHECK_EQUAL(size + left_out, N, spt_item_group_left_out(group), left_out);
    CHECK(size > (1 << 16) / (512 + 10) && size < N / 2);
    CHECK(find("item 1000")->has_value);
    OWN(spt_heap) more = of_items(0x9000, 1);
    CHECK_EQUAL(receive(more), 1, spt_item_group_left_out(group), 1);
    CHECK_EQUAL(receive(heap), left_out); /* those that there are, are the same */
    spt_item_group_set_max_memory(group, SPT_GROUP_MEMORY);
    CHECK_EQUAL(receive(heap), 0, spt_item_group_size(group), N, spt_item_group_left_out(group), 0);
    spt_item_group_set_max_memory(group, 0); /* they stay */
    CHECK_EQUAL(receive(heap), 0, spt_item_group_size(group), N);
}

TEST(what_is_described_again_and_again_takes_no_more_memory)
{
    start();
    spt_item_group_set_max_memory(group, 1 << 13);
    for (int64_t i = 0; i < 100; i++) {
        OWN(spt_heap) heap = new_heap_as(40, 0);
        add_fields(heap, 0x1000, "x", &u8, 1, &i, 1);
        CHECK_EQUAL(receive(heap), 0, find("x")->shape[0], i, spt_item_group_left_out(group), 0);
    }
}

TEST(a_descriptor_with_too_long_a_text_or_no_name_is_left_out_and_the_others_are_not)
{
    static char text[(1 << 16) + 2];
    memset(text, 'x', sizeof(text) - 1);
    OWN(spt_heap) heap = new_heap_as(40, 0);
    describe(heap, (spt_descriptor){0x1000, text, "", NULL, &u8, 1, NULL, 0});
    describe(heap, (spt_descriptor){0x1001, "long", text, NULL, &u8, 1, NULL, 0});
    add_fields(heap, 0x1003, "", &u8, 1, NULL, 0);
    describe(heap, (spt_descriptor){0x1002, "longest", text + 1, NULL, &u8, 1, NULL, 0});
    start();
    CHECK_EQUAL(receive(heap), 0, spt_item_group_size(group), 1, spt_item_group_left_out(group), 3);
    CHECK_EQUAL(strlen(find("longest")->description), 1 << 16);
}

TEST(of_an_item_with_many_dimensions_the_first_are_remembered_and_all_bytes_are_its_value)
{
    static const int64_t ones[SPT_GROUP_DIMENSIONS + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 2};
    OWN(spt_heap) heap = of_lengths(1, 3);
    start();
    add_fields(heap, 0x1600, "few", &u8, 1, NULL, 0);
    add_fields(heap, 0x3300, "many", &u8, 1, ones, LENGTH(ones));
    CHECK_EQUAL(receive(heap), 0, find("many")->n_shape, LENGTH(ones));
    CHECK_EQUAL(find("many")->shape[SPT_GROUP_DIMENSIONS - 1], 1, find("many")->value.length, 3);
}
