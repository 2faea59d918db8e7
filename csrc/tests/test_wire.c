/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of wire.h: the bytes of headers and item pointers. */
#include "../src/wire.h"

#include "check.h"

TEST(numbers_are_written_big_endian_in_one_to_eight_bytes)
{
    static const uint8_t expected[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
    for (size_t n = 1; n <= 8; n++) {
        uint8_t got[9];
        memset(got, 0xee, sizeof(got));
        CHECK(spti_put(got, 0x0123456789abcdef, n) == got + n);
        CHECK_BYTES(got, expected + 8 - n, n);
        CHECK_EQUAL(got[n], 0xee);
    }
}

TEST(an_immediate_has_its_top_bit_set_and_an_address_has_not)
{
    static const uint8_t expected[][8] = {
        {0x80, 0x12, 0x34, 0x00, 0x00, 0x00, 0x00, 0x07}, /* SPEAD-64-40 */
        {0x92, 0x34, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07}, /* SPEAD-64-48 */
        {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe},
    };
    uint8_t got[3][8];
    spti_put_immediate(got[0], 40, 0x1234, 7);
    spti_put_immediate(got[1], 48, 0x1234, 7);
    spti_put_address(got[2], 40, 0x7fffff, 0xfffffffffe);
    CHECK_BYTES(got, expected, sizeof(expected));
}

TEST(the_address_mask_covers_the_address_bits)
{
    CHECK_EQUAL(spti_address_mask(8), 0xff, spti_address_mask(40), 0xffffffffff);
    CHECK_EQUAL(spti_address_mask(56), 0xffffffffffffff);
}

TEST(the_prefix_of_two_flavours)
{
    static const uint8_t expected[][40] = {
        {
            0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x06, /* 2 pointers and the 4 */
            0x80, 0x00, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, /* heap count */
            0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x20, 0x00, /* heap length */
            0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x10, 0x00, /* payload offset */
            0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x05, 0x80, /* payload length */
        },
        {
            0x53, 0x04, 0x02, 0x06, 0x00, 0x00, 0xff, 0xff, /* as many as 16 bits count */
            0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x09, /* heap count */
            0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap length */
            0x80, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
            0x80, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, /* payload length */
        },
    };
    uint8_t got[2][40];
    CHECK(spti_put_prefix(got[0], 40, 2, 0x0102030405, 8192, 4096, 1408) == got[0] + 40);
    CHECK(spti_put_prefix(got[1], 48, 65531, 9, 1, 0, 1) == got[1] + 40);
    CHECK_BYTES(got, expected, sizeof(expected));
}
