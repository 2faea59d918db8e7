/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_group.c: descriptors and values of heaps that the sender sends. */
#include "failing.h"
#include "support.h"

#include "spead_tutorial/spt_recv.h"

static spt_thread_pool *pool;
static spt_item_group *group;

enum { ROOM = 1 << 20 };
static uint8_t packets[ROOM];

/* The how-manieth allocation fails while a heap is taken in, and how many have; 0: none. */
static long failing_at, n_failed;

/* Take in a heap; after a failure nothing is taken of it, and it is taken in again. */
static size_t update(const spt_received_heap *heap)
{
    size_t undescribed;
    fail_once(failing_at);
    spt_status status = spt_item_group_update(group, heap, &undescribed, NULL);
    n_failed = stop_failing();
    CHECK_EQUAL(status, n_failed > 0 ? SPT_ERR_MEMORY : SPT_OK);
    if (status == SPT_OK)
        return undescribed;
    for (size_t i = 0; i < spt_item_group_size(group); i++)
        CHECK(!spt_item_group_at(group, i)->has_value);
    REQUIRE(spt_item_group_update(group, heap, &undescribed, NULL) == SPT_OK);
    return undescribed;
}

/* Take in what is received of one heap. Its memory goes back before this returns. */
static size_t receive(const spt_heap *heap, void (*look)(void))
{
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    spt_stream *sender = spt_stream_create_memory(pool, &config, NULL);
    spt_recv_config how = spt_recv_config_default();
    spt_recv_stream *receiver = spt_recv_stream_create(pool, &how, NULL);
    REQUIRE(sender != NULL && receiver != NULL);
    spt_completion sent = {0};
    spt_heap_reference reference = {(spt_heap *)heap, -1, 0, -1};
    REQUIRE(spt_stream_send_heaps(sender, &reference, 1, SPT_GROUP_SERIAL, &sent, NULL) == SPT_OK);
    REQUIRE(spt_stream_wait(sender, &sent, -1, NULL) == SPT_OK);
    size_t size = spt_stream_memory(sender, packets, ROOM);
    REQUIRE(size <= ROOM && spt_recv_stream_add_memory(receiver, packets, size, NULL) == SPT_OK);
    spt_received_heap *received;
    REQUIRE(spt_recv_stream_get(receiver, -1, &received) == SPT_OK);
    size_t undescribed = update(received);
    if (look != NULL)
        look();
    spt_recv_stream_return(receiver, received);
    spt_recv_stream_destroy(receiver);
    spt_stream_destroy(sender);
    return undescribed;
}

static void start_as(int bug_compat)
{
    pool = spt_thread_pool_create(1, NULL, 0, NULL);
    group = spt_item_group_create(bug_compat, NULL);
    REQUIRE(pool != NULL && group != NULL);
}

static void start(void)
{
    start_as(0);
}

static void end(void)
{
    spt_item_group_destroy(group);
    spt_thread_pool_destroy(pool);
}

static void add_value(spt_heap *heap, uint64_t id, const void *value, size_t length)
{
    spt_item item = {id, value, length, true};
    REQUIRE(spt_heap_add_item(heap, &item, NULL) == SPT_OK);
}

static spt_heap *new_heap(void)
{
    spt_heap *heap = NEW(spt_heap_create(NULL, NULL));
    return heap;
}

static const spt_field u40 = {'u', 40};
static const uint8_t timestamp[5] = {0, 0, 1, 2, 3};
static const uint8_t samples[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static spt_heap *described(void)
{
    static const int64_t sixteen = 16, varies = -1;
    const spt_descriptor descriptors[] = {
        {.id = 0x1600, .name = "timestamp", .description = "when", .format = &u40, .n_format = 1},
        {.id = 0x3300,
         .name = "adc_samples",
         .description = "",
         .numpy_header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4)}"},
        {.id = 0x3301,
         .name = "text",
         .description = "",
         .format = &(spt_field){'c', 8},
         .n_format = 1,
         .shape = &varies,
         .n_shape = 1},
        {.id = 0x3302,
         .name = "pairs",
         .description = "",
         .format = (const spt_field[]){{'u', 3}, {'i', 5}},
         .n_format = 2,
         .shape = &sixteen,
         .n_shape = 1},
    };
    spt_heap *heap = new_heap();
    for (size_t i = 0; i < 4; i++)
        REQUIRE(spt_heap_add_descriptor(heap, &descriptors[i], NULL) == SPT_OK);
    add_value(heap, 0x1600, timestamp, 5);
    add_value(heap, 0x3300, samples, 16);
    return heap;
}

static void look_at_values(void)
{
    const spt_group_item *item = spt_item_group_find(group, "timestamp");
    REQUIRE(item != NULL && item->has_value && item->is_immediate && item->is_new);
    CHECK_EQUAL(item->immediate, 0x10203);
    CHECK(item->value.length == 5 && memcmp(item->value.data, timestamp, 5) == 0);
    CHECK(item->code == 'u' && item->bits == 40 && item->n_shape == 0);
    CHECK(strcmp(item->description, "when") == 0);
    item = spt_item_group_find(group, "adc_samples");
    REQUIRE(item != NULL && item->has_value && !item->is_immediate);
    CHECK(item->value.length == 16 && memcmp(item->value.data, samples, 16) == 0);
    CHECK(item->code == 'i' && item->bits == 16 && item->little_endian && !item->fortran_order);
    CHECK(item->n_shape == 2 && item->shape[0] == 2 && item->shape[1] == 4);
    item = spt_item_group_find(group, "text");
    REQUIRE(item != NULL && !item->has_value);
    CHECK(item->code == 'c' && item->bits == 8 && item->n_shape == 1 && item->shape[0] == -1);
    item = spt_item_group_find(group, "pairs");
    REQUIRE(item != NULL);
    CHECK(item->code == 0 && item->bits == 8 && item->shape[0] == 16);
    CHECK(spt_item_group_find(group, "adc") == NULL);
}

TEST(items_are_found_by_name_with_their_types_and_values)
{
    start();
    spt_heap *heap = described();
    CHECK_EQUAL(receive(heap, look_at_values), 0);
    CHECK_EQUAL(spt_item_group_size(group), 4);
    spt_heap_destroy(heap);
    end();
}

TEST(where_memory_is_short_a_heap_is_taken_in_as_a_whole_or_not_at_all)
{
    OWN(spt_heap) heap = described();
    for (failing_at = 1, n_failed = 1; n_failed > 0; failing_at++) {
        start();
        CHECK_EQUAL(receive(heap, look_at_values), 0);
        CHECK_EQUAL(spt_item_group_size(group), 4);
        end();
    }
    CHECK(failing_at > 10);
    failing_at = 0;
}

static void look_at_later_values(void)
{
    const spt_group_item *item = spt_item_group_find(group, "timestamp");
    REQUIRE(item != NULL && item->has_value && !item->is_new);
    CHECK_EQUAL(item->immediate, 0x10203);
    CHECK(!spt_item_group_find(group, "adc_samples")->has_value);
}

TEST(descriptors_are_remembered_and_values_without_one_are_counted)
{
    start();
    spt_heap *later = new_heap();
    add_value(later, 0x1600, timestamp, 5);
    CHECK_EQUAL(receive(later, NULL), 1); /* nothing is known yet */
    CHECK_EQUAL(spt_item_group_size(group), 0);
    spt_heap *heap = described();
    CHECK_EQUAL(receive(heap, NULL), 0);
    add_value(later, 0x4000, samples, 1);
    CHECK_EQUAL(receive(later, look_at_later_values), 1);
    spt_heap_destroy(heap);
    spt_heap_destroy(later);
    end();
}

TEST(what_is_described_anew_replaces_what_has_its_id_or_name)
{
    start();
    spt_heap *heap = described(), *other = new_heap();
    CHECK_EQUAL(receive(heap, NULL), 0);
    const spt_descriptor descriptor = {
        .id = 0x3300, .name = "timestamp", .description = "", .format = &u40, .n_format = 1};
    REQUIRE(spt_heap_add_descriptor(other, &descriptor, NULL) == SPT_OK);
    CHECK_EQUAL(receive(other, NULL), 0);
    CHECK_EQUAL(spt_item_group_size(group), 3);
    CHECK(spt_item_group_find(group, "adc_samples") == NULL);
    const spt_group_item *item = spt_item_group_find(group, "timestamp");
    REQUIRE(item != NULL && item->is_new);
    CHECK_EQUAL(item->id, 0x3300);
    CHECK_EQUAL(receive(other, NULL), 0);
    CHECK(!spt_item_group_find(group, "timestamp")->is_new); /* it is the same */
    CHECK(spt_item_group_at(group, 2) == spt_item_group_find(group, "timestamp"));
    spt_heap_destroy(heap);
    spt_heap_destroy(other);
    end();
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
        OWN(spt_heap) heap = new_heap();
        const spt_descriptor descriptor = {
            .id = 0x3300, .name = "x", .description = "", .numpy_header = headers[i]};
        REQUIRE(spt_heap_add_descriptor(heap, &descriptor, NULL) == SPT_OK);
        CHECK_EQUAL(receive(heap, NULL), 0);
        const spt_group_item *item = spt_item_group_find(group, "x");
        REQUIRE(item != NULL);
        CHECK(item->code == 0 && item->n_shape == 0);
    }
    end();
}

/* Values of so many bytes each, inside their pointers and not. */
static spt_heap *of_lengths(size_t in_pointer, size_t addressed)
{
    spt_heap *heap = new_heap();
    add_value(heap, 0x1600, samples, in_pointer);
    const spt_item item = {0x3300, samples, addressed, false};
    REQUIRE(spt_heap_add_item(heap, &item, NULL) == SPT_OK);
    return heap;
}

/* An item of 3 bytes, and one whose shape and type a test chooses. */
static void describe(spt_heap *heap, const spt_field *fields, size_t n_fields, const int64_t *shape,
                     size_t n_shape)
{
    const spt_descriptor descriptors[] = {
        {.id = 0x1600,
         .name = "few",
         .description = "",
         .format = &(spt_field){'u', 8},
         .n_format = 1,
         .shape = (const int64_t[]){3},
         .n_shape = 1},
        {.id = 0x3300,
         .name = "many",
         .description = "",
         .format = fields,
         .n_format = n_fields,
         .shape = shape,
         .n_shape = n_shape},
    };
    for (size_t i = 0; i < 2; i++)
        REQUIRE(spt_heap_add_descriptor(heap, &descriptors[i], NULL) == SPT_OK);
}

static struct {
    size_t few, many; /* bytes that are taken */
} expected;

static void look_at_lengths(void)
{
    const spt_group_item *few = spt_item_group_find(group, "few");
    const spt_group_item *many = spt_item_group_find(group, "many");
    REQUIRE(few != NULL && few->has_value && many != NULL && many->has_value);
    CHECK(few->value.length == expected.few && memcmp(few->value.data, samples, 3) == 0);
    CHECK_EQUAL(many->value.length, expected.many);
    CHECK(expected.many == 0 || memcmp(many->value.data, samples, expected.many) == 0);
}

static void look_at_no_values(void)
{
    CHECK_EQUAL(spt_item_group_size(group), 2);
    for (size_t i = 0; i < 2; i++)
        CHECK(!spt_item_group_at(group, i)->has_value);
}

TEST(a_value_has_as_many_bytes_as_its_shape_takes)
{
    static const spt_field u8 = {'u', 8}, u12 = {'u', 12}, both[] = {{'u', 8}, {'f', 32}};
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
        start();
        spt_heap *heap = of_lengths(3, cases[i].came);
        describe(heap, cases[i].fields, cases[i].n_fields, cases[i].shape, cases[i].n_shape);
        bool good = cases[i].taken != SIZE_MAX;
        expected.few = 3;
        expected.many = cases[i].taken;
        CHECK_EQUAL(receive(heap, good ? look_at_lengths : look_at_no_values), !good);
        spt_heap_destroy(heap);
        end();
    }
}

TEST(descriptors_stay_that_come_with_a_value_that_is_too_short)
{
    static const int64_t sixteen[] = {16};
    start();
    spt_heap *heap = of_lengths(3, 15);
    describe(heap, &(spt_field){'u', 8}, 1, sixteen, 1);
    CHECK_EQUAL(receive(heap, look_at_no_values), 1);
    spt_heap *later = of_lengths(3, 16);
    expected.few = 3;
    expected.many = 16;
    CHECK_EQUAL(receive(later, look_at_lengths), 0);
    spt_heap_destroy(heap);
    spt_heap_destroy(later);
    end();
}

TEST(where_headers_give_the_other_byte_order_it_is_the_other_one)
{
    static const struct {
        const char *header;
        bool little_endian;
    } cases[] = {
        {"{'descr': '<i2', 'fortran_order': False, 'shape': ()}", false},
        {"{'descr': '>i2', 'fortran_order': False, 'shape': ()}", true},
    };
    for (size_t i = 0; i < 2; i++) {
        start_as(SPT_COMPAT_SWAP_ENDIAN);
        spt_heap *heap = new_heap();
        const spt_descriptor descriptor = {
            .id = 0x3300, .name = "x", .description = "", .numpy_header = cases[i].header};
        REQUIRE(spt_heap_add_descriptor(heap, &descriptor, NULL) == SPT_OK);
        CHECK_EQUAL(receive(heap, NULL), 0);
        CHECK_EQUAL(spt_item_group_find(group, "x")->little_endian, cases[i].little_endian);
        spt_heap_destroy(heap);
        end();
    }
}

TEST(groups_do_not_grow_without_end)
{
    start();
    for (uint64_t first = 0x1000; first < 0x3000; first += 0x400) {
        OWN(spt_heap) heap = new_heap();
        for (uint64_t id = first; id < first + 0x400; id++) {
            char name[24];
            snprintf(name, sizeof(name), "item %llx", (unsigned long long)id);
            const spt_descriptor descriptor = {
                .id = id, .name = name, .description = "", .format = &u40, .n_format = 1};
            REQUIRE(spt_heap_add_descriptor(heap, &descriptor, NULL) == SPT_OK);
        }
        CHECK_EQUAL(receive(heap, NULL), 0);
        CHECK_EQUAL(spt_item_group_size(group), 512);
    }
    CHECK(spt_item_group_find(group, "item 1000") != NULL);
    end();
}
