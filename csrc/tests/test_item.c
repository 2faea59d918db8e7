/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of item.c: flavours, ids, and the bytes of descriptors. */
#include "../src/item.h"

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

static void check_encoding(spt_flavour flavour, const spt_descriptor *descriptor,
                           const uint8_t *expected, size_t size)
{
    uint8_t *got;
    size_t length;
    spt_error err;
    REQUIRE(spti_descriptor_encode(&flavour, descriptor, &got, &length, &err) == SPT_OK);
    CHECK_EQUAL(length, size);
    for (size_t i = 0; i < size && i < length; i++)
        if (got[i] != expected[i]) {
            printf("# byte %zu: %02x instead of %02x\n", i, got[i], expected[i]);
            CHECK(got[i] == expected[i]);
        }
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

TEST(the_flavour_gives_the_widths_of_format_and_shape)
{
    static const uint8_t expected[] = {
        0x53, 0x04, 0x02, 0x06, 0x00, 0x00, 0x00, 0x09, /* SPEAD-64-48 */
        0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count 1 */
        0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 22,   /* heap length */
        0x80, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 22,   /* payload length */
        0x80, 0x14, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34, /* id */
        0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0,    /* name */
        0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 2,    /* description */
        0x00, 0x13, 0x00, 0x00, 0x00, 0x00, 0x00, 5,    /* format */
        0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 8,    /* shape */
        'a',  'b',  'c',  'd',  'e',                    /* name, description */
        'u',  0x00, 0x08,                               /* u of 8 bits */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,       /* 3 */
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,       /* any */
    };
    check_encoding((spt_flavour){48, 0}, &example, expected, sizeof(expected));
}

TEST(compatibility_widens_fields_and_marks_variable_by_2)
{
    static const uint8_t expected[] = {
        0x53, 0x04, 0x02, 0x06, 0x00, 0x00, 0x00, 0x09, /* SPEAD-64-48 */
        0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count 1 */
        0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 25,   /* heap length */
        0x80, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 25,   /* payload length */
        0x80, 0x14, 0x00, 0x00, 0x00, 0x00, 0x12, 0x34, /* id */
        0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0,    /* name */
        0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 2,    /* description */
        0x00, 0x13, 0x00, 0x00, 0x00, 0x00, 0x00, 5,    /* format */
        0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 9,    /* shape */
        'a',  'b',  'c',  'd',  'e',                    /* name, description */
        'u',  0x00, 0x00, 0x08,                         /* 4 bytes */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, /* 8 bytes */
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* any */
    };
    check_encoding((spt_flavour){48, SPT_COMPAT_DESCRIPTOR_WIDTHS | SPT_COMPAT_SHAPE_BIT_1},
                   &example, expected, sizeof(expected));
}

TEST(a_numpy_header_is_a_tenth_item)
{
    static const int64_t five[] = {5};
    static const spt_descriptor descriptor = {.id = 0x11,
                                              .name = "n",
                                              .description = "",
                                              .numpy_header = "{}",
                                              .shape = five,
                                              .n_shape = 1};
    static const uint8_t expected[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x0a, /* ten pointers */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count 1 */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 9,    /* heap length */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 9,    /* payload length */
        0x80, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x11, /* id */
        0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0,    /* name */
        0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 1,    /* description: empty */
        0x00, 0x00, 0x13, 0x00, 0x00, 0x00, 0x00, 1,    /* format: empty */
        0x00, 0x00, 0x12, 0x00, 0x00, 0x00, 0x00, 1,    /* shape */
        0x00, 0x00, 0x15, 0x00, 0x00, 0x00, 0x00, 7,    /* dtype */
        'n',  0x00, 0x00, 0x00, 0x00, 0x00, 0x05, '{',  '}',
    };
    check_encoding((spt_flavour){40, 0}, &descriptor, expected, sizeof(expected));
}

static spt_status encode(spt_flavour flavour, spt_descriptor descriptor)
{
    uint8_t *got = NULL;
    size_t length;
    spt_status status = spti_descriptor_encode(&flavour, &descriptor, &got, &length, NULL);
    free(got);
    return status;
}

TEST(numbers_that_do_not_fit_a_descriptor_are_refused)
{
    spt_field field = {'u', 0xff};
    int64_t dimension = 0xff;
    spt_descriptor d = {.id = 0x7f, .name = "", .description = ""};
    d.format = &field;
    d.n_format = 1;
    CHECK_EQUAL(encode((spt_flavour){56, 0}, d), SPT_OK); /* one byte for the bits */
    field.bits = 0x100;
    CHECK_EQUAL(encode((spt_flavour){56, 0}, d), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(encode((spt_flavour){48, 0}, d), SPT_OK); /* two bytes */
    field.bits = 0x1000000;
    CHECK_EQUAL(encode((spt_flavour){40, 0}, d), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(encode((spt_flavour){32, 0}, d), SPT_OK);
    d.n_format = 0;
    d.shape = &dimension;
    d.n_shape = 1;
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_OK); /* one byte for the dimension */
    dimension = 0x100;
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(encode((spt_flavour){8, SPT_COMPAT_DESCRIPTOR_WIDTHS}, d), SPT_OK);
    dimension = -2;
    CHECK_EQUAL(encode((spt_flavour){40, 0}, d), SPT_ERR_ARGUMENT);
    dimension = INT64_MIN;
    CHECK_EQUAL(encode((spt_flavour){40, 0}, d), SPT_ERR_ARGUMENT);
}

TEST(an_id_that_does_not_fit_an_immediate_cannot_be_described)
{
    spt_descriptor d = {.id = 0xff, .name = "", .description = ""};
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_OK);
    d.id = 0x100; /* a valid id, but 8 bits of value cannot say it */
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(encode((spt_flavour){16, 0}, d), SPT_OK);
    d.id = 0x800000;
    CHECK_EQUAL(encode((spt_flavour){40, 0}, d), SPT_ERR_ARGUMENT);
}

TEST(a_descriptor_longer_than_addresses_reach_is_refused)
{
    char name[257];
    memset(name, 'x', sizeof(name));
    name[255] = '\0';
    spt_descriptor d = {.id = 0x11, .name = name, .description = ""};
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_OK);
    d.description = "y";
    CHECK_EQUAL(encode((spt_flavour){8, 0}, d), SPT_ERR_ARGUMENT);
}
