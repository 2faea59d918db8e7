/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of item.c: flavours, ids, and the bytes of descriptors. */
#include "../src/item.h"

#include "support.h"

TEST(address_bits_are_multiples_of_8_from_8_to_56_and_compatibility_bits_0_to_7)
{
    spt_error err;
    for (int bits = -8; bits <= 72; bits++)
        for (int compat = -1; compat <= 9; compat++) {
            spt_flavour flavour = {1, 1};
            bool valid = bits >= 8 && bits <= 56 && bits % 8 == 0 && compat >= 0 && compat <= 7;
            CHECK_EQUAL(spt_flavour_init(&flavour, bits, compat, &err),
                        valid ? SPT_OK : SPT_ERR_ARGUMENT);
            CHECK_EQUAL(flavour.heap_address_bits, valid ? bits : 1, flavour.bug_compat,
                        valid ? compat : 1);
        }
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
}

TEST(a_descriptor_is_the_packet_of_its_flavour_and_compatibility)
{
    static made_packet made;
    static const spt_field u8 = {'u', 8};
    static const int64_t three_by_any[] = {3, -1};
    static const spt_descriptor all[] = {
        {0x12, "ab", "cde", NULL, &u8, 1, three_by_any, 2},
        {0x11, "n", "", "{}", NULL, 0, three_by_any, 1},
    };
    for (int bits = 8; bits <= 56; bits += 8)
        for (int compat = 0; compat < 8; compat++)
            for (size_t i = 0; i < LENGTH(all); i++) {
                spt_flavour flavour = {(uint8_t)bits, (uint8_t)compat};
                uint8_t *got;
                size_t length;
                make_descriptor(&made, flavour, &all[i]);
                REQUIRE(spti_descriptor_encode(&flavour, &all[i], &got, &length, NULL) == SPT_OK);
                CHECK_EQUAL(length, made.size);
                CHECK_BYTES(got, made.bytes, length < made.size ? length : made.size);
                free(got);
            }
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
