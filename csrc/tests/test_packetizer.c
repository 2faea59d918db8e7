/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of packetizer.c: the bytes of packets, worked out by hand. */
#include "reader.h"
#include "support.h"

#include "spead_tutorial/spt.h"

/* The packets of a heap, one after the other. */
typedef struct packets {
    uint8_t *bytes;
    size_t n, size[600];
} packets;

static spt_heap *new_heap(uint8_t address_bits)
{
    spt_flavour flavour = {address_bits, 0};
    spt_heap *heap = NEW(spt_heap_create(&flavour, NULL));
    return heap;
}

static void add(spt_heap *heap, uint64_t id, const void *value, size_t length, bool immediate)
{
    spt_item item = {id, value, length, immediate};
    REQUIRE(spt_heap_add_item(heap, &item, NULL) == SPT_OK);
}

/* Scratch and pieces have exactly the room that is promised to be enough. */
static packets cut(const spt_heap *heap, uint64_t cnt, size_t max_size)
{
    packets all = {.bytes = malloc(1 << 22)};
    uint8_t *scratch = malloc(max_size);
    struct iovec *pieces = calloc(SPT_MAX_PIECES(max_size), sizeof(*pieces));
    REQUIRE(all.bytes != NULL && scratch != NULL && pieces != NULL);
    spt_packetizer p;
    spt_packet packet;
    REQUIRE(spt_packetizer_init(&p, heap, cnt, max_size, NULL) == SPT_OK);
    uint8_t *to = all.bytes;
    while (spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_OK) {
        size_t in_pieces = 0, in_scratch = 0;
        CHECK(packet.n_pieces <= SPT_MAX_PIECES(max_size));
        CHECK(packet.size <= max_size);
        for (size_t i = 0; i < packet.n_pieces; i++) {
            const uint8_t *from = pieces[i].iov_base;
            memcpy(to + in_pieces, from, pieces[i].iov_len);
            in_pieces += pieces[i].iov_len;
            if (from >= scratch && from < scratch + max_size)
                in_scratch += pieces[i].iov_len;
        }
        CHECK_EQUAL(in_pieces, packet.size, in_scratch, packet.scratch_used);
        REQUIRE(all.n < sizeof(all.size) / sizeof(all.size[0]));
        to += packet.size;
        all.size[all.n++] = packet.size;
    }
    CHECK_EQUAL(spt_packetizer_next(&p, scratch, pieces, &packet), SPT_DONE);
    free(scratch);
    free(pieces);
    return all;
}

static void check_bytes(packets all, const uint8_t *expected, size_t size)
{
    size_t got = 0;
    for (size_t i = 0; i < all.n; i++)
        got += all.size[i];
    CHECK_EQUAL(got, size);
    for (size_t i = 0; i < size && i < got; i++)
        if (all.bytes[i] != expected[i]) {
            printf("# byte %zu: %02x instead of %02x\n", i, all.bytes[i], expected[i]);
            CHECK(all.bytes[i] == expected[i]);
        }
    free(all.bytes);
}

TEST(an_empty_heap_still_sends_one_packet_of_49_bytes)
{
    static const uint8_t expected[49] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x05, /* the 4, and the NULL pointer */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap length: the padding */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x01, /* payload length */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* NULL at 0 */
        0x00,                                           /* padding */
    };
    OWN(spt_heap) heap = new_heap(40);
    check_bytes(cut(heap, 1, 1472), expected, sizeof(expected));
}

TEST(a_small_heap_is_its_pointers_and_its_values)
{
    static const uint8_t expected[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x09, /* nine pointers */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x2a, /* heap count 42 */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x05, /* heap length */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x05, /* payload length */
        0x80, 0x10, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, /* 0x1000: little-endian uint32 7 */
        0x00, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0x1001: "abc" */
        0x80, 0x10, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0x1002: of no length */
        0x00, 0x10, 0x03, 0x00, 0x00, 0x00, 0x00, 0x03, /* 0x1003: "de", may vary */
        0x80, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x02, /* the stream ends */
        'a',  'b',  'c',  'd',  'e',
    };
    static const uint8_t seven[] = {7, 0, 0, 0};
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x1000, seven, 4, true);
    add(heap, 0x1001, "abc", 3, false);
    add(heap, 0x1002, NULL, 0, true);
    add(heap, 0x1003, "de", 2, false);
    REQUIRE(spt_heap_add_end(heap, NULL) == SPT_OK);
    check_bytes(cut(heap, 42, 1472), expected, sizeof(expected));
}

TEST(payload_is_cut_at_multiples_of_8)
{
    static const uint8_t expected[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x05, /* first packet, 64 bytes */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01, /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x1a, /* heap length 26 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x10, /* payload length 16 */
        0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* the item */
        'a',  'b',  'c',  'd',  'e',  'f',  'g',  'h',  'i',  'j',  'k',  'l',
        'm',  'n',  'o',  'p',  0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x04, /* second packet */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x01,                         /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x1a,                         /* heap length 26 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x10, /* payload offset 16 */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x0a, /* payload length 10 */
        'q',  'r',  's',  't',  'u',  'v',  'w',  'x',  'y',  'z',
    };
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x1000, "abcdefghijklmnopqrstuvwxyz", 26, false);
    check_bytes(cut(heap, 1, 64), expected, sizeof(expected));
    check_bytes(cut(heap, 1, 71), expected, sizeof(expected)); /* rounded down */
}

TEST(spilling_pointers_pad_the_payload_at_its_end)
{
    /* At 56 bytes there is one pointer in a packet, with 8 bytes of payload: two items need three
     * packets and 17 bytes, of which the last 14 are padding. */
    static const uint8_t expected[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x05, /* first packet */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x07, /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x11, /* heap length 17 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset 0 */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x08, /* payload length 8 */
        0x80, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x61, /* immediate "a" */
        'x',  'y',  'z',  0x00, 0x00, 0x00, 0x00, 0x00, /* data, padding */
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x05, /* second packet */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x07, /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x11, /* heap length 17 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x08, /* payload offset 8 */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x08, /* payload length 8 */
        0x00, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, /* "xyz" at 0 */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* padding */
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x05, /* third packet */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x07, /* heap count */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x11, /* heap length 17 */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x10, /* payload offset 16 */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x01, /* payload length 1 */
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, /* NULL at 3: the real data ends */
        0x00,                                           /* padding */
    };
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x1000, "a", 1, true);
    add(heap, 0x1001, "xyz", 3, false);
    check_bytes(cut(heap, 7, 56), expected, sizeof(expected));
}

TEST(177_immediates_and_3_bytes_are_padded_after_the_data)
{
    /* 1472 bytes have room for P = 178 pointers: 178 items need 2 packets, and 9 bytes. */
    OWN(spt_heap) heap = new_heap(40);
    for (uint64_t i = 0; i < 177; i++)
        add(heap, 0x1000 + i, "i", 1, true);
    add(heap, 0x2000, "xyz", 3, false);
    packets all = cut(heap, 1, 1472);
    REQUIRE(all.n == 2);
    CHECK_EQUAL(all.size[0], 40 + 8 * 178 + 8, all.size[1], 40 + 8 * 1 + 1);
    CHECK_BYTES(all.bytes + 40 + 8 * 178, "xyz\0\0\0\0\0", 8);
    static const uint8_t null_at_3[] = {0, 0, 0, 0, 0, 0, 0, 3, 0};
    CHECK_BYTES(all.bytes + all.size[0] + 40, null_at_3, 9);
    free(all.bytes);
}

TEST(a_payload_that_is_long_enough_is_not_padded)
{
    /* P = 2 at 64 bytes: 2 items need 2 packets and 9 bytes. */
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, "i", 1, true);
    add(heap, 0x12, "123456789", 9, false);
    packets all = cut(heap, 1, 64);
    REQUIRE(all.n == 2);
    CHECK_EQUAL(all.size[0], 64, all.size[1], 41);
    CHECK_EQUAL(all.bytes[64 + 7], 4); /* no pointers in the second */
    CHECK_EQUAL(all.bytes[64 + 40], '9');
    free(all.bytes);
}

TEST(repeated_pointers_are_in_every_packet)
{
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, "i", 1, true);
    add(heap, 0x12, "abcdefghijklmnopq", 17, false);
    REQUIRE(spt_heap_set_repeat_pointers(heap, true, NULL) == SPT_OK);
    packets all = cut(heap, 1, 64);
    REQUIRE(all.n == 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_EQUAL(all.size[i], i < 2 ? 64 : 57, all.bytes[64 * i + 7], 6);
        CHECK_BYTES(all.bytes + 64 * i + 40, all.bytes + 40, 16);
    }
    free(all.bytes);
}

TEST(repeated_pointers_must_fit_in_a_packet)
{
    spt_packetizer p;
    spt_error err = {0};
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, "abc", 3, false);
    add(heap, 0x12, "i", 1, true);
    REQUIRE(spt_heap_set_repeat_pointers(heap, true, NULL) == SPT_OK);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 63, &err), SPT_ERR_ARGUMENT);
    CHECK_WORDS(err.message, "raise max_packet_size to 64");
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 64, &err), SPT_OK);
    add(heap, 0x13, "i", 1, true);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 64, &err), SPT_ERR_ARGUMENT);
}

TEST(repeated_immediates_need_room_for_the_null_pointer_too)
{
    spt_packetizer p;
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, "i", 1, true);
    REQUIRE(spt_heap_set_repeat_pointers(heap, true, NULL) == SPT_OK);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 56, NULL), SPT_ERR_ARGUMENT);
    packets all = cut(heap, 1, 64);
    CHECK_EQUAL(all.n, 1, all.size[0], 57);
    free(all.bytes);
}

static int check_equal_n; /* how many heaps were cut into equal packets */

/* Of so many bytes, with so many immediates beside them. */
static void check_equal_packets(size_t length, int immediates, bool repeat, size_t max_size)
{
    static const uint8_t zeros[40000];
    OWN(spt_heap) heap = new_heap(40);
    REQUIRE(length <= sizeof(zeros));
    for (int i = 0; i < immediates; i++)
        add(heap, 0x20 + (unsigned)i, "i", 1, true);
    add(heap, 0x11, zeros, length, false);
    REQUIRE(spt_heap_set_repeat_pointers(heap, repeat, NULL) == SPT_OK);
    size_t size = spt_equal_packet_size(heap, max_size);
    packets most = cut(heap, 1, max_size), equal = cut(heap, 1, size);
    CHECK(size <= max_size);
    CHECK_EQUAL(equal.n, most.n);
    for (size_t i = 0; size < max_size && i < equal.n; i++)
        CHECK_EQUAL(equal.size[i], size);
    check_equal_n += size < max_size;
    free(most.bytes);
    free(equal.bytes);
}

TEST(a_heap_is_cut_into_equal_packets_where_it_takes_no_more_of_them)
{
    static const size_t sizes[] = {104, 1472, 9000};
    for (int s = 0; s < 3; s++)
        for (size_t length = 8; length < 90 * sizes[s] && length < 40000;
             length += 8 * (1 + length / 40))
            for (int immediates = 0; immediates < 6; immediates += 2)
                check_equal_packets(length, immediates, immediates == 4, sizes[s]);
    CHECK(check_equal_n > 20);
    static const uint8_t samples[16384];
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x1600, "12345", 5, true);
    add(heap, 0x3300, samples, sizeof(samples), false);
    CHECK_EQUAL(spt_equal_packet_size(heap, 9000), 8240);
    packets all = cut(heap, 1, 8240);
    CHECK(all.n == 2 && all.size[0] == all.size[1]);
    CHECK_EQUAL(spt_equal_packet_size(heap, 64), 64); /* for it to say that it is too small */
    free(all.bytes);
}

TEST(packets_below_56_bytes_are_too_small)
{
    spt_packetizer p;
    spt_error err = {0};
    OWN(spt_heap) heap = new_heap(40);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 55, &err), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 0, NULL), SPT_ERR_ARGUMENT);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 56, NULL), SPT_OK);
}

TEST(a_heap_count_keeps_its_low_bits)
{
    OWN(spt_heap) heap = new_heap(16);
    packets all = cut(heap, 0x12345678, 1472);
    static const uint8_t expected[] = {0x80, 0x00, 0x00, 0x00, 0x00, 0x01, 0x56, 0x78};
    CHECK_BYTES(all.bytes + 8, expected, 8);
    free(all.bytes);
}

TEST(padding_must_not_exceed_what_addresses_reach)
{
    /* 31 items at one pointer each make 32 packets: 249 bytes; 32 items 257, more than 255. */
    spt_packetizer p;
    OWN(spt_heap) heap = new_heap(8);
    for (uint64_t i = 0; i < 31; i++)
        add(heap, 0x1000 + i, "i", 1, true);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 56, NULL), SPT_OK);
    add(heap, 0x1000 + 31, "i", 1, true);
    CHECK_EQUAL(spt_packetizer_init(&p, heap, 1, 56, NULL), SPT_ERR_ARGUMENT);
}

TEST(values_edited_in_place_change_the_next_packets)
{
    uint8_t immediate = 1, long_value[1000] = {0};
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, &immediate, 1, true);
    add(heap, 0x12, long_value, sizeof(long_value), false);
    free(cut(heap, 1, 1472).bytes);
    immediate = 0x55;
    long_value[999] = 0x66;
    packets all = cut(heap, 2, 1472);
    CHECK_EQUAL(all.bytes[47], 0x55, all.bytes[all.size[0] - 1], 0x66);
    free(all.bytes);
}

TEST(long_values_are_listed_and_short_ones_copied)
{
    static uint8_t value[3 * 256];
    uint8_t scratch[1472];
    struct iovec pieces[SPT_MAX_PIECES(1472)];
    spt_packetizer p;
    spt_packet packet;
    OWN(spt_heap) heap = new_heap(40);
    add(heap, 0x11, value, 256, false);
    add(heap, 0x12, value + 256, 255, false);
    add(heap, 0x13, value + 512, 256, false);
    REQUIRE(spt_packetizer_init(&p, heap, 1, 1472, NULL) == SPT_OK);
    REQUIRE(spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_OK);
    CHECK_EQUAL(packet.n_pieces, 4, packet.scratch_used, 40 + 3 * 8 + 255);
    CHECK(pieces[1].iov_base == value);
    CHECK(pieces[3].iov_base == value + 512);
}

TEST(a_huge_packet_has_no_more_pointers_than_16_bits_count)
{
    OWN(spt_heap) heap = new_heap(40);
    for (uint64_t i = 0; i < 70000; i++)
        add(heap, 0x1000 + i, "i", 1, true);
    packets all = cut(heap, 1, 1 << 20);
    size_t at = 0, n_pointers = 0;
    for (size_t i = 0; i < all.n; i++) {
        reader_packet packet;
        REQUIRE(reader_read(&packet, all.bytes + at, all.size[i]));
        CHECK_EQUAL(packet.size, all.size[i]);
        CHECK(packet.payload_length > 0);
        CHECK(i == all.n - 1 || packet.payload_length % 8 == 0);
        for (size_t j = 0; j < packet.n_pointers; j++, n_pointers++)
            if (n_pointers < 70000)
                CHECK_EQUAL(reader_get(&packet, j).id, 0x1000 + n_pointers);
        at += packet.size;
    }
    CHECK_EQUAL(n_pointers, 70001); /* and the NULL pointer */
    free(all.bytes);
}
