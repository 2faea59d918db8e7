/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of item.c: flavours, ids, and the bytes of descriptors. */
#include "../src/item.h"

#include "make_packet.h"
#include "support.h"

TEST(address_bits_are_multiples_of_8_from_8_to_56)
{
    spt_error err;
    for (int bits = -8; bits <= 72; bits++) {
        spt_flavour flavour = {1, 1};
        bool valid = bits >= 8 && bits <= 56 && bits % 8 == 0;
        CHECK_EQUAL(spt_flavour_init(&flavour, bits, 0, &err), valid ? SPT_OK : SPT_ERR_ARGUMENT);
        CHECK_EQUAL(flavour.heap_address_bits, valid ? bits : 1);
    }
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
}

TEST(compatibility_bits_are_0_to_7)
{
    spt_flavour flavour;
    for (int bits = -1; bits <= 9; bits++)
        CHECK_EQUAL(spt_flavour_init(&flavour, 40, bits, NULL),
                    bits >= 0 && bits <= 7 ? SPT_OK : SPT_ERR_ARGUMENT);
    CHECK_EQUAL(spt_flavour_init(&flavour, 48, 5, NULL), SPT_OK);
    CHECK_EQUAL(flavour.bug_compat, 5);
}

TEST(ids_have_63_bits_less_those_of_the_address)
{
    static const struct {
        uint8_t bits;
        uint64_t largest;
    } cases[] = {{8, 0x7fffffffffffff}, {40, 0x7fffff}, {48, 0x7fff}, {56, 0x7f}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        spt_flavour flavour = {cases[i].bits, 0};
        CHECK_EQUAL(spti_check_id(&flavour, cases[i].largest, NULL), SPT_OK);
        CHECK_EQUAL(spti_check_id(&flavour, cases[i].largest + 1, NULL), SPT_ERR_ARGUMENT);
    }
}

static const spt_field one_u8 = {'u', 8};
static const int64_t three_by_any[] = {3, -1};
static const spt_descriptor example = {
    .id = 0x1234,
    .name = "ab",
    .description = "cde",
    .format = &one_u8,
    .n_format = 1,
    .shape = three_by_any,
    .n_shape = 2,
};

static made_packet made;

/* Encoded, a descriptor has these bytes. */
static void check_encoding(spt_flavour flavour, const spt_descriptor *descriptor,
                           const void *expected, size_t size)
{
    uint8_t *got;
    size_t length;
    REQUIRE(spti_descriptor_encode(&flavour, descriptor, &got, &length, NULL) == SPT_OK);
    CHECK_EQUAL(length, size);
    CHECK_BYTES(got, expected, length < size ? length : size);
    free(got);
}

TEST(a_descriptor_is_a_packet_of_nine_items)
{
    static const uint8_t expected[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x09, /* nine pointers */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count 1 */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 21,   /* heap length */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 21,   /* payload length */
        0x80, 0x00, 0x14, 0x00, 0x00, 0x00, 0x12, 0x34, /* id */
        0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0,    /* name */
        0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 2,    /* description */
        0x00, 0x00, 0x13, 0x00, 0x00, 0x00, 0x00, 5,    /* format */
        0x00, 0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 9,    /* shape */
        'a',  'b',  'c',  'd',  'e',                    /* name, description */
        'u',  0x00, 0x00, 0x08,                         /* u of 8 bits */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x03,             /* 3 */
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00,             /* any */
    };
    check_encoding((spt_flavour){40, 0}, &example, expected, sizeof(expected));
}

/* Begin the packet of a descriptor with so many bytes; its strings begin at 0 and there. */
static void begin_expected(unsigned bits, uint64_t length, uint64_t id, uint64_t description,
                           uint64_t format, uint64_t shape)
{
    const uint64_t own[] = {1, length, 0, length};
    make_begin(&made, bits);
    for (uint64_t i = 0; i < 4; i++)
        make_add(&made, true, i + 1, own[i]);
    make_add(&made, true, 0x14, id);
    make_add(&made, false, 0x10, 0);
    make_add(&made, false, 0x11, description);
    make_add(&made, false, 0x13, format);
    make_add(&made, false, 0x12, shape);
}

TEST(the_flavour_gives_the_widths_of_format_and_shape)
{
    begin_expected(48, 22, 0x1234, 2, 5, 8);
    make_end(&made, "abcdeu\0\10\0\0\0\0\0\0\3\1\0\0\0\0\0", 22);
    check_encoding((spt_flavour){48, 0}, &example, made.bytes, made.size);
}

TEST(compatibility_widens_fields_and_marks_variable_by_2)
{
    const spt_flavour old = {48, SPT_COMPAT_DESCRIPTOR_WIDTHS | SPT_COMPAT_SHAPE_BIT_1};
    begin_expected(48, 25, 0x1234, 2, 5, 9);
    make_end(&made, "abcdeu\0\0\10\0\0\0\0\0\0\0\3\2\0\0\0\0\0\0", 25);
    check_encoding(old, &example, made.bytes, made.size);
}

TEST(a_numpy_header_is_a_tenth_item)
{
    static const int64_t five[] = {5};
    static const spt_descriptor descriptor = {0x11,          "n",         "", .numpy_header = "{}",
                                              .shape = five, .n_shape = 1};
    begin_expected(40, 9, 0x11, 1, 1, 1); /* description and format are empty */
    make_add(&made, false, 0x15, 7);
    make_end(&made, "n\0\0\0\0\0\5{}", 9);
    check_encoding((spt_flavour){40, 0}, &descriptor, made.bytes, made.size);
}

static spt_status encode(uint8_t bits, uint8_t compat, spt_descriptor descriptor)
{
    spt_flavour flavour = {bits, compat};
    uint8_t *got = NULL;
    size_t length;
    spt_status status = spti_descriptor_encode(&flavour, &descriptor, &got, &length, NULL);
    free(got);
    return status;
}

TEST(numbers_that_do_not_fit_a_descriptor_are_refused)
{
    static const struct {
        uint8_t bits, compat;
        uint64_t id;
        uint32_t field;    /* of so many bits, or 0: none */
        int64_t dimension; /* or 0 */
        bool fits;
    } cases[] = {
        {56, 0, 0x7f, 0xff, 0, true}, /* one byte for the bits */
        {56, 0, 0x7f, 0x100, 0, false},
        {48, 0, 0x7f, 0x100, 0, true}, /* two bytes */
        {40, 0, 0x7f, 0x1000000, 0, false},
        {32, 0, 0x7f, 0x1000000, 0, true},
        {8, 0, 0x7f, 0, 0xff, true}, /* one byte for the dimension */
        {8, 0, 0x7f, 0, 0x100, false},
        {8, SPT_COMPAT_DESCRIPTOR_WIDTHS, 0x7f, 0, 0x100, true},
        {40, 0, 0x7f, 0, -2, false},
        {40, 0, 0x7f, 0, INT64_MIN, false},
        {8, 0, 0xff, 0, 0, true},
        {8, 0, 0x100, 0, 0, false}, /* a valid id, but 8 bits of value cannot say it */
        {16, 0, 0x100, 0, 0, true},
        {40, 0, 0x800000, 0, 0, false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        spt_field field = {'u', cases[i].field};
        spt_descriptor d = {.id = cases[i].id, .name = "", .description = ""};
        d.format = &field;
        d.n_format = cases[i].field > 0;
        d.shape = &cases[i].dimension;
        d.n_shape = cases[i].dimension != 0;
        CHECK_EQUAL(encode(cases[i].bits, cases[i].compat, d),
                    cases[i].fits ? SPT_OK : SPT_ERR_ARGUMENT);
    }
}

TEST(a_descriptor_longer_than_addresses_reach_is_refused)
{
    char name[256] = {0};
    memset(name, 'x', 255);
    spt_descriptor d = {.id = 0x11, .name = name, .description = ""};
    CHECK_EQUAL(encode(8, 0, d), SPT_OK);
    d.description = "y";
    CHECK_EQUAL(encode(8, 0, d), SPT_ERR_ARGUMENT);
}
