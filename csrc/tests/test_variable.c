/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of variable.c: they make the packets that items and descriptors make. */
#include "../src/heap.h"
#include "support.h"

#include <endian.h>

static void check_same(spt_heap *got, spt_heap *expected)
{
    static uint8_t mine[4096], theirs[4096];
    size_t n = packets_of(expected, theirs, sizeof(theirs));
    CHECK_EQUAL(packets_of(got, mine, sizeof(mine)), n);
    CHECK_BYTES(mine, theirs, n);
}

static void add_expected(spt_heap *heap, const spt_descriptor *descriptor, const void *value,
                         size_t length)
{
    REQUIRE(spt_heap_add_descriptor(heap, descriptor, NULL) == SPT_OK);
    add_item(heap, descriptor->id, value, length, true);
}

TEST(a_number_in_host_order_is_an_immediate_of_the_flavours_bits)
{
    const uint8_t widths[] = {24, 40, 48};
    for (size_t i = 0; i < sizeof(widths); i++)
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            uint64_t number = is_signed ? (uint64_t)-5 : 0x123456;
            uint64_t big = htobe64(number);
            spt_type type = is_signed ? SPT_INT_IMMEDIATE : SPT_UINT_IMMEDIATE;
            spt_variable v = {0x1600, "timestamp", "Index", type, &number, 0, {0}};
            spt_field field = {is_signed ? 'i' : 'u', widths[i]};
            spt_descriptor d = {0x1600, "timestamp", "Index", NULL, &field, 1, NULL, 0};
            OWN(spt_heap) got = new_heap_as(widths[i], 0);
            OWN(spt_heap) expected = new_heap_as(widths[i], 0);
            REQUIRE(spt_heap_add(got, &v, 1, SPT_ALL, NULL) == SPT_OK);
            add_expected(expected, &d, (uint8_t *)&big + 8 - widths[i] / 8, widths[i] / 8U);
            check_same(got, expected);
            number++; /* read when packets are made */
            big = htobe64(number);
            check_same(got, expected);
        }
}

TEST(a_number_too_large_for_the_flavour_leaves_id_and_mode_alone)
{
    uint64_t number = UINT64_MAX, low = 0xffff;
    spt_variable large = {0x1600, "", "", SPT_UINT_IMMEDIATE, &number, 0, {0}};
    spt_variable fits = {0x1600, "", "", SPT_UINT_IMMEDIATE, &low, 0, {0}};
    OWN(spt_heap) got = new_heap_as(16, 0);
    OWN(spt_heap) expected = new_heap_as(16, 0);
    REQUIRE(spt_heap_add(got, &large, 1, SPT_VALUES, NULL) == SPT_OK);
    REQUIRE(spt_heap_add(expected, &fits, 1, SPT_VALUES, NULL) == SPT_OK);
    check_same(got, expected);
}

/* As numpy.dtype.str has it on a little-endian machine. */
static const struct {
    spt_type type;
    const char *dtype;
    size_t size;
} types[] = {
    {SPT_INT8, "|i1", 1},    {SPT_INT16, "<i2", 2},     {SPT_INT32, "<i4", 4},
    {SPT_INT64, "<i8", 8},   {SPT_UINT8, "|u1", 1},     {SPT_UINT16, "<u2", 2},
    {SPT_UINT32, "<u4", 4},  {SPT_UINT64, "<u8", 8},    {SPT_FLOAT32, "<f4", 4},
    {SPT_FLOAT64, "<f8", 8}, {SPT_COMPLEX64, "<c8", 8}, {SPT_COMPLEX128, "<c16", 16},
};

static void check_array(size_t type, size_t n_shape, const char *shape_text, uint8_t bug_compat,
                        const char *dtype)
{
    static uint8_t value[16 * 2 * 3 * 4];
    const int64_t shape[] = {2, 3, 4};
    spt_variable v = {0x3300, "name", "text", types[type].type, value, n_shape, {2, 3, 4}};
    char header[128];
    snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': %s}", dtype,
             shape_text);
    spt_descriptor d = {0x3300, "name", "text", header, NULL, 0, shape, n_shape};
    size_t length = types[type].size;
    for (size_t i = 0; i < n_shape; i++)
        length *= (size_t)shape[i];
    for (size_t i = 0; i < length; i++)
        value[i] = (uint8_t)(i * 7 + 1);
    OWN(spt_heap) got = new_heap_as(40, bug_compat);
    OWN(spt_heap) expected = new_heap_as(40, bug_compat);
    REQUIRE(spt_heap_add(got, &v, 1, SPT_ALL, NULL) == SPT_OK);
    add_expected(expected, &d, value, length);
    check_same(got, expected);
}

TEST(arrays_of_every_type_go_as_they_lie_in_memory)
{
    if (BYTE_ORDER != LITTLE_ENDIAN) {
        SKIP("the expected headers are those of a little-endian machine");
        return;
    }
    const char *shapes[] = {"()", "(2,)", "(2, 3)", "(2, 3, 4)"};
    for (size_t t = 0; t < LENGTH(types); t++)
        for (size_t n = 0; n < 4; n++)
            check_array(t, n, shapes[n], 0, types[t].dtype);
    check_array(1, 1, "(2,)", SPT_COMPAT_SWAP_ENDIAN, ">i2");
}

TEST(parts_are_chosen_and_keep_the_order_of_the_variables)
{
    uint32_t a = 1;
    float b[2] = {0};
    const spt_variable both[] = {{0x1001, "a", "", SPT_UINT32, &a, 0, {0}},
                                 {0x1002, "b", "", SPT_FLOAT32, b, 1, {2}}};
    OWN(spt_heap) got = new_heap_as(40, 0);
    OWN(spt_heap) expected = new_heap_as(40, 0);
    REQUIRE(spt_heap_add(got, both, 2, SPT_DESCRIPTORS, NULL) == SPT_OK);
    REQUIRE(spt_heap_add(got, both, 2, SPT_VALUES, NULL) == SPT_OK);
    for (size_t i = 0; i < 2; i++)
        REQUIRE(spt_heap_add(expected, &both[i], 1, SPT_DESCRIPTORS, NULL) == SPT_OK);
    for (size_t i = 0; i < 2; i++)
        REQUIRE(spt_heap_add(expected, &both[i], 1, SPT_VALUES, NULL) == SPT_OK);
    check_same(got, expected);
}

TEST(a_variable_that_is_refused_leaves_the_heap_as_it_was)
{
    static const struct {
        spt_variable variable;
        const char *words;
    } wrong[] = {
        {{0x1001, "v", "", 0, "", 0, {0}}, "no type 0"},
        {{0x1001, "v", "", SPT_COMPLEX128 + 1, "", 0, {0}}, "no type"},
        {{0x1001, "v", "", SPT_INT8, "", 9, {0}}, "9 dimensions"},
        {{0x1001, "v", "", SPT_UINT_IMMEDIATE, "", 1, {1}}, "1 dimensions"},
        {{0x1001, "v", "", SPT_INT64, "", 2, {SIZE_MAX / 4, 2}}, ""},
        {{0x1001, "v", "", SPT_INT64, "", 2, {(size_t)1 << 32, (size_t)1 << 31}}, "bytes"},
        {{6, "v", "", SPT_INT8, "", 0, {0}}, "reserved"},
        {{6, "v", "", SPT_UINT_IMMEDIATE, "", 0, {0}}, "reserved"},
    };
    spt_variable good = {0x1000, "good", "", SPT_INT8, "x", 1, {1}};
    OWN(spt_heap) heap = new_heap_as(40, 0);
    OWN(spt_heap) expected = new_heap_as(40, 0);
    REQUIRE(spt_heap_add(heap, &good, 1, SPT_VALUES, NULL) == SPT_OK);
    REQUIRE(spt_heap_add(expected, &good, 1, SPT_VALUES, NULL) == SPT_OK);
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        const spt_variable both[] = {good, wrong[i].variable};
        CHECK_REFUSED(SPT_ERR_ARGUMENT, wrong[i].words, spt_heap_add(heap, both, 2, SPT_ALL, &err));
        CHECK_EQUAL(spt_heap_add(heap, both, 2, SPT_VALUES, NULL), SPT_ERR_ARGUMENT);
        CHECK_EQUAL(spt_heap_add(heap, both, 2, SPT_DESCRIPTORS, NULL), SPT_ERR_ARGUMENT);
        check_same(heap, expected);
        spti_heap_borrow(heap); /* while it is being sent, nobody writes to it */
        CHECK_EQUAL(spt_heap_add(heap, both, 2, SPT_ALL, NULL), SPT_ERR_BUSY);
        spti_heap_return(heap);
    }
}
