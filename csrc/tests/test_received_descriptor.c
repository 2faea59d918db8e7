/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_descriptor.c: what senders write, and what strangers do. */
#include "support.h"

static made_packet made;
static const spt_field fields[] = {{'u', 12}, {'f', 32}};
static const int64_t shape[] = {3, -1, 200};

static bool equal(spt_bytes bytes, const char *text)
{
    return bytes.length == strlen(text) && memcmp(bytes.data, text, bytes.length) == 0;
}

TEST(what_senders_write_is_read_in_every_flavour_and_compatibility)
{
    for (int bits = 8; bits <= 56; bits += 8)
        for (int compat = 0; compat < 8; compat++) {
            spt_flavour flavour = {(uint8_t)bits, (uint8_t)compat};
            spt_descriptor written = {0x70, "adc", "", NULL, fields, 2, shape, 3};
            make_descriptor(&made, flavour, &written);
            spt_received_descriptor d;
            REQUIRE(spt_received_descriptor_parse(&d, made.bytes, made.size, compat));
            CHECK_EQUAL(d.id, 0x70);
            CHECK(equal(d.name, "adc") && equal(d.description, ""));
            CHECK_EQUAL(d.numpy_header.length, 0);
            REQUIRE(d.n_format == 2 && d.n_shape == 3);
            for (size_t i = 0; i < 2; i++) {
                spt_field field = spt_received_descriptor_field(&d, i);
                CHECK_EQUAL(field.code, fields[i].code, field.bits, fields[i].bits);
            }
            for (size_t i = 0; i < 3; i++)
                CHECK_EQUAL(spt_received_descriptor_dimension(&d, i), shape[i]);
        }
}

TEST(a_numpy_header_is_read_as_it_is)
{
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    const char *header = "{'descr': '<i2', 'fortran_order': False, 'shape': (4,)}";
    spt_descriptor written = {0x1000, "x", "what it is", header, NULL, 0, shape, 1};
    make_descriptor(&made, flavour, &written);
    spt_received_descriptor d;
    REQUIRE(spt_received_descriptor_parse(&d, made.bytes, made.size, 0));
    CHECK(equal(d.numpy_header, header) && equal(d.description, "what it is"));
    CHECK_EQUAL(d.n_format, 0, d.n_shape, 1);
    for (size_t less = 0; less < made.size; less++) {
        uint8_t *cut = NEW(malloc(less + 1));
        memcpy(cut, made.bytes, less);
        CHECK(!spt_received_descriptor_parse(&d, cut, less, 0));
        free(cut);
    }
}

/* A descriptor of an id, with a name of so many bytes; id 0: it has none. */
static bool parse(uint64_t id, uint64_t name_at, uint64_t name_length, uint64_t begin)
{
    static const uint8_t payload[16] = "abcdefghijklmno";
    make_part(&made, 1, 16, begin, 16 - begin);
    if (id != 0)
        make_add(&made, true, SPT_ID_DESCRIPTOR_ID, id);
    make_add(&made, false, SPT_ID_DESCRIPTOR_NAME, name_at);
    make_add(&made, false, SPT_ID_DESCRIPTOR_DESCRIPTION, name_at + name_length);
    make_end(&made, payload, 16 - begin);
    spt_received_descriptor d;
    return spt_received_descriptor_parse(&d, made.bytes, made.size, 0);
}

TEST(one_that_describes_nothing_or_has_no_name_is_refused)
{
    CHECK(parse(0x1000, 0, 3, 0));
    CHECK(!parse(0, 0, 3, 0));      /* no id */
    CHECK(!parse(3, 0, 3, 0));      /* the protocol's */
    CHECK(!parse(0x1000, 4, 0, 0)); /* no name */
    CHECK(!parse(0x1000, 0, 3, 8)); /* not all of it */
}

TEST(numbers_that_fit_nothing_are_bounded)
{
    uint8_t payload[32] = {'n', 'u'};
    memset(payload + 2, 0xff, 7); /* a field of more bits than there are, in a flavour of 8 */
    memset(payload + 9, 0, 1);
    memset(payload + 10, 0xff, 1);
    make_part_as(&made, 8, 1, -1, 0, 11);
    make_add(&made, true, SPT_ID_DESCRIPTOR_ID, 0x70);
    make_add(&made, false, SPT_ID_DESCRIPTOR_NAME, 0);
    make_add(&made, false, SPT_ID_DESCRIPTOR_FORMAT, 1);
    make_add(&made, false, SPT_ID_DESCRIPTOR_SHAPE, 9);
    make_end(&made, payload, 11);
    spt_received_descriptor d;
    REQUIRE(spt_received_descriptor_parse(&d, made.bytes, made.size, 0));
    REQUIRE(d.n_format == 1 && d.n_shape == 1);
    CHECK_EQUAL(spt_received_descriptor_field(&d, 0).code, 'u');
    CHECK_EQUAL(spt_received_descriptor_field(&d, 0).bits, UINT32_MAX);
    CHECK_EQUAL(spt_received_descriptor_dimension(&d, 0), 0xff);
}
