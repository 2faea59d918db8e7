/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_packet.c: packets written byte by byte, whole, cut, and that lie. */
#include "support.h"

static made_packet made;
static const uint8_t payload[1024] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Parse a copy of exactly the bytes there are: what looks beyond them is seen by sanitizers. */
static spt_fault parse(const uint8_t *bytes, size_t size, spt_received_packet *packet)
{
    uint8_t *copy = NEW(malloc(size + (size == 0)));
    memcpy(copy, bytes, size);
    spt_fault fault = spt_received_packet_parse(packet, copy, size);
    free(copy);
    return fault;
}

static spt_received_packet p; /* what was parsed last */

static spt_fault parse_made(void)
{
    return parse(made.bytes, made.size, &p);
}

TEST(a_packet_is_what_its_bytes_say)
{
    static const uint8_t bytes[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x06, /* SPEAD-64-40, six pointers */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x2a, /* heap count 42 */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x10, /* heap length 16 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x08, /* payload offset 8 */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x03, /* payload length 3 */
        0x80, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x07, /* 0x1000: 7 */
        0x00, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x09, /* 0x1001: at 9 */
        0xaa, 0xbb, 0xcc, 0xdd,                         /* a byte more than its payload */
    };
    REQUIRE(spt_received_packet_parse(&p, bytes, sizeof(bytes)) == SPT_FAULT_NONE);
    CHECK_EQUAL(p.heap_address_bits, 40, p.cnt, 42);
    CHECK(p.has_heap_length);
    CHECK_EQUAL(p.heap_length, 16, p.payload_offset, 8, p.payload_length, 3, p.highest_address, 9);
    CHECK_EQUAL(p.n_pointers, 6);
    CHECK(p.pointers == bytes + 8);
    CHECK(p.payload == bytes + 56);
    CHECK_EQUAL(p.size, sizeof(bytes) - 1);
    CHECK(!p.is_stop);
}

TEST(every_flavour_has_its_own_widths)
{
    for (unsigned bits = 8; bits <= 56; bits += 8) {
        uint64_t most = ((uint64_t)1 << bits) - 1;
        make_part_as(&made, bits, most, -1, 2, 1);
        make_add(&made, false, 7, most);
        make_end(&made, payload, 1);
        CHECK_EQUAL(parse_made(), SPT_FAULT_NONE);
        CHECK_EQUAL(p.heap_address_bits, bits);
        CHECK(p.cnt == most && p.highest_address == most);
        CHECK(!p.has_heap_length && p.heap_length == 0);
        CHECK_EQUAL(p.payload_offset, 2);
    }
}

TEST(what_is_said_twice_counts_as_said_last_wherever_it_stands)
{
    make_begin(&made, 40);
    make_add(&made, true, 0x1000, 5);
    make_add(&made, true, 4, 100);
    make_add(&made, true, 5, 7); /* no address, and so no descriptor */
    make_add(&made, true, 1, 1);
    make_add(&made, false, 1, 0); /* an address is no count */
    make_add(&made, true, 3, 0);
    make_add(&made, true, 1, 2);
    make_add(&made, true, 4, 3);
    make_end(&made, payload, 3);
    CHECK_EQUAL(parse_made(), SPT_FAULT_NONE);
    CHECK_EQUAL(p.cnt, 2, p.payload_length, 3);
}

TEST(only_an_immediate_of_2_ends_the_stream)
{
    const struct {
        bool immediate;
        uint64_t value;
        bool stop;
    } cases[] = {
        {true, 0, false}, {true, 1, false}, {true, 2, true}, {true, 3, false}, {false, 2, false}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        make_part(&made, 1, 8, 0, 8);
        make_add(&made, cases[i].immediate, 6, cases[i].value);
        make_end(&made, payload, 8);
        CHECK_EQUAL(parse_made(), SPT_FAULT_NONE);
        CHECK_EQUAL(p.is_stop, cases[i].stop);
    }
}

TEST(a_packet_that_is_cut_off_anywhere_is_refused)
{
    make_part(&made, 1, 100, 0, 100);
    make_add(&made, false, 0x1000, 0);
    make_end(&made, payload, 100);
    CHECK_EQUAL(parse_made(), SPT_FAULT_NONE);
    for (size_t size = 0; size < made.size; size++) {
        spt_fault expected = size < 8    ? SPT_FAULT_HEADER
                             : size < 48 ? SPT_FAULT_POINTERS
                                         : SPT_FAULT_PAYLOAD;
        CHECK_EQUAL(parse(made.bytes, size, &p), expected);
    }
}

TEST(a_header_of_another_kind_is_refused)
{
    const struct {
        size_t at;
        uint8_t value;
        spt_fault fault;
    } cases[] = {
        {0, 0x54, SPT_FAULT_HEADER}, {1, 3, SPT_FAULT_HEADER},   {1, 5, SPT_FAULT_HEADER},
        {2, 2, SPT_FAULT_FLAVOUR},   {3, 6, SPT_FAULT_FLAVOUR},  {2, 0, SPT_FAULT_FLAVOUR},
        {3, 0, SPT_FAULT_FLAVOUR},   {6, 1, SPT_FAULT_POINTERS}, {7, 3, SPT_FAULT_MISSING},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        make_part(&made, 1, 8, 0, 8);
        make_end(&made, payload, 8);
        made.bytes[cases[i].at] = cases[i].value;
        CHECK_EQUAL(parse_made(), cases[i].fault);
    }
    /* 0 and 8 add up, too, but leave no bits for one of them. */
    made.bytes[0] = 0x53;
    made.bytes[2] = 0;
    made.bytes[3] = 8;
    CHECK_EQUAL(parse_made(), SPT_FAULT_FLAVOUR);
}

TEST(each_of_the_three_items_that_are_needed_is_missed)
{
    for (uint64_t left_out = 1; left_out <= 4; left_out++) {
        make_begin(&made, 40);
        for (uint64_t id = 1; id <= 4; id++)
            make_add(&made, id != left_out, id, 0);
        make_end(&made, NULL, 0);
        CHECK_EQUAL(parse_made(), left_out == 2 ? SPT_FAULT_NONE : SPT_FAULT_MISSING);
    }
}

TEST(payload_and_items_beyond_the_heap_are_refused)
{
    const struct {
        uint64_t length, offset, address;
        spt_fault fault;
    } cases[] = {
        {100, 92, 0, SPT_FAULT_NONE},
        {100, 93, 0, SPT_FAULT_BEYOND},
        {100, 0, 100, SPT_FAULT_NONE}, /* an item of no bytes, at the end */
        {100, 0, 101, SPT_FAULT_BEYOND},
        {7, 0, 0, SPT_FAULT_BEYOND},
        {((uint64_t)1 << 40) - 1, ((uint64_t)1 << 40) - 1, 0, SPT_FAULT_BEYOND},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        make_part(&made, 1, (int64_t)cases[i].length, cases[i].offset, 8);
        make_add(&made, false, 0x1000, cases[i].address);
        make_end(&made, payload, 8);
        CHECK_EQUAL(parse_made(), cases[i].fault);
    }
}
