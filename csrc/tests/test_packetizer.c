/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of packetizer.c: the bytes of packets, worked out by hand. */
#include "../src/heap.h"
#include "../src/wire.h"
#include "reader.h"
#include "support.h"

/* The packets of a heap, one after the other. */
static uint8_t bytes[1 << 22];
typedef struct packets {
    size_t n, size[600], all; /* of them */
} packets;

static void repeat_pointers(spt_heap *heap)
{
    REQUIRE(spt_heap_set_repeat_pointers(heap, true, NULL) == SPT_OK);
}

/* So many immediates. */
static void add_immediates(spt_heap *heap, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        add_item(heap, first + i, "i", 1, true);
}

static spt_status try_size(const spt_heap *heap, size_t max_size, spt_error *err)
{
    spt_packetizer p;
    return spt_packetizer_init(&p, heap, 1, max_size, err);
}

/* Cut a heap into packets, up to so many at once where they are alike. Scratch and pieces have
 * exactly the room that is promised to be enough. */
static packets cut_at_once(const spt_heap *heap, uint64_t cnt, size_t max_size, size_t at_once,
                           uint8_t *to)
{
    packets made = {0};
    uint8_t *scratch = NEW(malloc(max_size + at_once * SPTI_PREFIX));
    struct iovec *pieces = NEW(calloc(SPT_MAX_PIECES(max_size) + 2 * at_once, sizeof(*pieces)));
    spt_packetizer p;
    REQUIRE(spt_packetizer_init(&p, heap, cnt, max_size, NULL) == SPT_OK);
    for (;;) {
        spt_packet packet;
        size_t n = at_once == 0 ? 0 : spti_packetizer_run(&p, scratch, pieces, at_once);
        bool alone = n == 0;
        if (alone && spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_DONE)
            break;
        size_t n_pieces = alone ? packet.n_pieces : 2 * n, in_scratch = 0, begin = made.all;
        for (size_t i = 0; i < n_pieces; i++) {
            const uint8_t *from = pieces[i].iov_base;
            REQUIRE(made.all + pieces[i].iov_len <= sizeof(bytes));
            memcpy(to + made.all, from, pieces[i].iov_len);
            made.all += pieces[i].iov_len;
            if (from >= scratch && from < scratch + max_size)
                in_scratch += pieces[i].iov_len;
        }
        if (alone) {
            CHECK(n_pieces <= SPT_MAX_PIECES(max_size) && packet.size <= max_size);
            CHECK_EQUAL(made.all - begin, packet.size, in_scratch, packet.scratch_used);
            REQUIRE(made.n < LENGTH(made.size));
            made.size[made.n] = packet.size;
        }
        made.n += alone ? 1 : n;
    }
    free(scratch);
    free(pieces);
    return made;
}

/* The packets are the same where those that are alike are made at once. */
static packets cut(const spt_heap *heap, uint64_t cnt, size_t max_size)
{
    static uint8_t same[sizeof(bytes)];
    packets made = cut_at_once(heap, cnt, max_size, 0, bytes);
    packets some = cut_at_once(heap, cnt, max_size, 3, same);
    CHECK_EQUAL(some.all, made.all, some.n, made.n);
    CHECK_BYTES(same, bytes, made.all);
    return made;
}

/* The packets that are expected: each is begun by make_part(). */
static made_packet made;
static uint8_t expected[1000];
static size_t n_expected;

static void expect(const char *payload, size_t n)
{
    make_end(&made, payload, n);
    memcpy(expected + n_expected, made.bytes, made.size);
    n_expected += made.size;
}

static void check_packets(const spt_heap *heap, uint64_t cnt, size_t max_size)
{
    CHECK_EQUAL(cut(heap, cnt, max_size).all, n_expected);
    CHECK_BYTES(bytes, expected, n_expected);
}

TEST(a_small_heap_is_its_pointers_and_its_values)
{
    static const uint8_t by_hand[] = {
        0x53, 0x04, 0x03, 0x05, 0x00, 0x00, 0x00, 0x0b, /* eleven pointers */
        0x80, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x2a, /* heap count 42 */
        0x80, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x05, /* heap length */
        0x80, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, /* payload offset */
        0x80, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x05, /* payload length */
        0x80, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, /* the stream begins */
        0x80, 0x10, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00, /* 0x1000: little-endian uint32 7 */
        0x00, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0x1001: "abc" */
        0x80, 0x10, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, /* 0x1002: of no length */
        0x80, 0x10, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, /* again */
        0x00, 0x10, 0x03, 0x00, 0x00, 0x00, 0x00, 0x03, /* 0x1003: "de", may vary */
        0x80, 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x02, /* the stream ends */
        'a',  'b',  'c',  'd',  'e',
    };
    static const uint8_t seven[] = {7, 0, 0, 0};
    OWN(spt_heap) heap = new_heap_as(40, 0);
    REQUIRE(spt_heap_add_start(heap, NULL) == SPT_OK);
    add_item(heap, 0x1000, seven, 4, true);
    add_item(heap, 0x1001, "abc", 3, false);
    add_item(heap, 0x1002, NULL, 0, true);
    add_item(heap, 0x1002, "", 0, true);
    add_item(heap, 0x1003, "de", 2, false);
    REQUIRE(spt_heap_add_end(heap, NULL) == SPT_OK);
    CHECK_EQUAL(cut(heap, 42, 1472).all, sizeof(by_hand));
    CHECK_BYTES(bytes, by_hand, sizeof(by_hand));
}

TEST(spilling_pointers_pad_the_payload_at_its_end)
{
    /* At 56 bytes there is one pointer in a packet, with 8 bytes of payload: two items need three
     * packets and 17 bytes, of which the last 14 are padding. */
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x1000, "a", 1, true);
    add_item(heap, 0x1001, "xyz", 3, false);
    n_expected = 0;
    make_part(&made, 7, 17, 0, 8);
    make_add(&made, true, 0x1000, 'a');
    expect("xyz\0\0\0\0", 8);
    make_part(&made, 7, 17, 8, 8);
    make_add(&made, false, 0x1001, 0);
    expect("\0\0\0\0\0\0\0", 8);
    make_part(&made, 7, 17, 16, 1);
    make_add(&made, false, 0, 3); /* the real data ends */
    expect("", 1);
    check_packets(heap, 7, 56);
}

TEST(repeated_pointers_must_fit_in_a_packet_with_the_null_pointer)
{
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x11, "abc", 3, false);
    add_item(heap, 0x12, "i", 1, true);
    repeat_pointers(heap);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "raise max_packet_size to 64", try_size(heap, 63, &err));
    CHECK_EQUAL(try_size(heap, 64, NULL), SPT_OK);
    add_item(heap, 0x13, "i", 1, true);
    CHECK_EQUAL(try_size(heap, 64, NULL), SPT_ERR_ARGUMENT);

    OWN(spt_heap) padded = new_heap_as(40, 0);
    add_item(padded, 0x11, "i", 1, true);
    repeat_pointers(padded);
    CHECK_EQUAL(try_size(padded, 56, NULL), SPT_ERR_ARGUMENT);
    packets all = cut(padded, 1, 64);
    CHECK_EQUAL(all.n, 1, all.size[0], 57);
}

TEST(a_run_is_what_is_between_the_first_packet_and_the_last)
{
    static uint8_t samples[10 * 512], scratch[1024];
    struct iovec pieces[32];
    spt_packetizer p;
    spt_packet packet;
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x1000, samples, sizeof(samples), false);
    REQUIRE(spt_packetizer_init(&p, heap, 1, 512 + SPTI_PREFIX, NULL) == SPT_OK);
    CHECK_EQUAL(spti_packetizer_run(&p, scratch, pieces, 16), 0);
    REQUIRE(spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_OK);
    CHECK_EQUAL(spti_packetizer_run(&p, scratch, pieces, 6), 6);
    CHECK_EQUAL(spti_packetizer_run(&p, scratch, pieces, 16), 3);
    CHECK_EQUAL(spti_packetizer_run(&p, scratch, pieces, 16), 0);
    REQUIRE(spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_OK);
    CHECK_EQUAL(packet.size, SPTI_PREFIX + 8, p.done, true); /* what the item's pointer took */
    CHECK_EQUAL(spti_packetizer_run(&p, scratch, pieces, 16), 0);
}

static int check_equal_n; /* how many heaps were cut into equal packets */

/* Of so many bytes, with so many immediates beside them. */
static void check_equal_packets(size_t length, uint64_t immediates, bool repeat, size_t max_size)
{
    static const uint8_t zeros[40000];
    OWN(spt_heap) heap = new_heap_as(40, 0);
    REQUIRE(length <= sizeof(zeros));
    add_immediates(heap, 0x20, immediates);
    add_item(heap, 0x11, zeros, length, false);
    REQUIRE(spt_heap_set_repeat_pointers(heap, repeat, NULL) == SPT_OK);
    size_t size = spt_equal_packet_size(heap, max_size);
    packets most = cut(heap, 1, max_size), equal = cut(heap, 1, size);
    CHECK(size <= max_size);
    CHECK_EQUAL(equal.n, most.n);
    for (size_t i = 0; size < max_size && i < equal.n; i++)
        CHECK_EQUAL(equal.size[i], size);
    check_equal_n += size < max_size;
}

TEST(a_heap_is_cut_into_equal_packets_where_it_takes_no_more_of_them)
{
    static const size_t sizes[] = {104, 1472, 9000};
    for (int s = 0; s < 3; s++)
        for (size_t length = 8; length < 90 * sizes[s] && length < 40000;
             length += 8 * (1 + length / 40))
            for (uint64_t immediates = 0; immediates < 6; immediates += 2)
                check_equal_packets(length, immediates, immediates == 4, sizes[s]);
    CHECK(check_equal_n > 20);
    static const uint8_t samples[16384];
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x1600, "12345", 5, true);
    add_item(heap, 0x3300, samples, sizeof(samples), false);
    CHECK_EQUAL(spt_equal_packet_size(heap, 9000), 8240);
    packets all = cut(heap, 1, 8240);
    CHECK(all.n == 2 && all.size[0] == all.size[1]);
    CHECK_EQUAL(spt_equal_packet_size(heap, 64), 64); /* for it to say that it is too small */
}

TEST(packets_below_56_bytes_are_too_small)
{
    OWN(spt_heap) heap = new_heap_as(40, 0);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", try_size(heap, 55, &err));
    CHECK_EQUAL(try_size(heap, 0, NULL), SPT_ERR_ARGUMENT, try_size(heap, 56, NULL), SPT_OK);
}

TEST(padding_must_not_exceed_what_addresses_reach)
{
    /* 31 items at one pointer each make 32 packets: 249 bytes; 32 items 257, more than 255. */
    OWN(spt_heap) heap = new_heap_as(8, 0);
    add_immediates(heap, 0x1000, 31);
    CHECK_EQUAL(try_size(heap, 56, NULL), SPT_OK);
    add_item(heap, 0x1000 + 31, "i", 1, true);
    CHECK_EQUAL(try_size(heap, 56, NULL), SPT_ERR_ARGUMENT);
}

TEST(long_values_are_listed_and_short_ones_copied)
{
    static uint8_t value[3 * 256];
    uint8_t scratch[1472];
    struct iovec pieces[SPT_MAX_PIECES(1472)];
    spt_packetizer p;
    spt_packet packet;
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x11, value, 256, false);
    add_item(heap, 0x12, value + 256, 255, false);
    add_item(heap, 0x13, value + 512, 256, false);
    REQUIRE(spt_packetizer_init(&p, heap, 1, 1472, NULL) == SPT_OK);
    REQUIRE(spt_packetizer_next(&p, scratch, pieces, &packet) == SPT_OK);
    CHECK_EQUAL(packet.n_pieces, 4, packet.scratch_used, 40 + 3 * 8 + 255);
    CHECK(pieces[1].iov_base == value);
    CHECK(pieces[3].iov_base == value + 512);
}

TEST(a_heap_is_one_packet_where_that_is_large_enough)
{
    static const uint8_t value[1 << 20];
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_item(heap, 0x1000, value, sizeof(value), false);
    packets all = cut(heap, 1, (1 << 20) + 48);
    CHECK_EQUAL(all.n, 1, all.size[0], (1 << 20) + 48);
}

TEST(a_huge_packet_has_no_more_pointers_than_16_bits_count)
{
    OWN(spt_heap) heap = new_heap_as(40, 0);
    add_immediates(heap, 0x1000, 70000);
    packets all = cut(heap, 1, 1 << 20);
    size_t at = 0, n_pointers = 0;
    for (size_t i = 0; i < all.n; i++) {
        reader_packet packet;
        REQUIRE(reader_read(&packet, bytes + at, all.size[i]));
        CHECK_EQUAL(packet.size, all.size[i]);
        CHECK(packet.payload_length > 0);
        CHECK(i == all.n - 1 || packet.payload_length % 8 == 0);
        for (size_t j = 0; j < packet.n_pointers; j++, n_pointers++)
            if (n_pointers < 70000)
                CHECK_EQUAL(reader_get(&packet, j).id, 0x1000 + n_pointers);
        at += packet.size;
    }
    CHECK_EQUAL(n_pointers, 70001); /* and the NULL pointer */
}
