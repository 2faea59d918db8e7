/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_items.c: pointers written by hand, and items that they stand for. */
#include "make_packet.h"
#include "support.h"

enum { ROOM = 16 };

static spt_received_pointer pointers[ROOM];
static spt_received_heap heap;
static spt_received_item items[ROOM];

static void begin(uint64_t length)
{
    heap = (spt_received_heap){.heap_address_bits = 40, .length = length, .pointers = pointers};
}

static void address(uint64_t packet, uint64_t id, uint64_t at)
{
    pointers[heap.n_pointers++] = (spt_received_pointer){make_address(40, id, at), packet};
}

static void immediate(uint64_t packet, uint64_t id, uint64_t value)
{
    pointers[heap.n_pointers++] = (spt_received_pointer){make_immediate(40, id, value), packet};
}

static void check_addressed(size_t i, uint64_t id, uint64_t offset, uint64_t length)
{
    CHECK(!items[i].is_immediate);
    CHECK_EQUAL(items[i].id, id, items[i].offset, offset, items[i].length, length);
}

static void check_immediate(size_t i, uint64_t id, uint64_t value)
{
    CHECK(items[i].is_immediate);
    CHECK_EQUAL(items[i].id, id, items[i].immediate, value);
}

TEST(an_item_reaches_to_the_next_address_and_the_last_one_to_the_end)
{
    begin(100);
    address(0, 0x1002, 60);
    address(0, 0x1000, 0);
    address(0, 0x1001, 10);
    REQUIRE(spt_received_heap_items(&heap, items) == 3);
    check_addressed(0, 0x1000, 0, 10);
    check_addressed(1, 0x1001, 10, 50);
    check_addressed(2, 0x1002, 60, 40);
}

TEST(items_without_bytes_are_listed_in_the_order_in_which_they_were_sent)
{
    begin(20);
    address(0, 0x1003, 0);
    address(0, 0x1001, 0);
    address(8, 0x1002, 20);
    REQUIRE(spt_received_heap_items(&heap, items) == 3);
    check_addressed(0, 0x1003, 0, 0);
    check_addressed(1, 0x1001, 0, 20);
    check_addressed(2, 0x1002, 20, 0);
}

TEST(padding_ends_an_item_and_is_none)
{
    begin(17);
    address(0, 0x1000, 0);
    address(0, 0x1001, 3);
    address(0, 0, 3);
    REQUIRE(spt_received_heap_items(&heap, items) == 2);
    check_addressed(0, 0x1000, 0, 3);
    check_addressed(1, 0x1001, 3, 0);
}

TEST(an_item_without_bytes_between_padding_stays_so)
{
    begin(5);
    address(0, 0, 0);
    address(0, 0x1000, 0);
    address(0, 0, 0);
    REQUIRE(spt_received_heap_items(&heap, items) == 1);
    check_addressed(0, 0x1000, 0, 0);
}

TEST(immediates_follow_as_they_were_sent_whenever_their_packets_came)
{
    begin(100);
    immediate(50, 0x1000, 3);
    immediate(0, 0x1000, 9);
    immediate(0, 0x1001, 1);
    address(50, 0x1002, 0);
    immediate(25, 0x1000, 9); /* again: it is listed where it was sent last */
    REQUIRE(spt_received_heap_items(&heap, items) == 4);
    check_addressed(0, 0x1002, 0, 100);
    check_immediate(1, 0x1001, 1);
    check_immediate(2, 0x1000, 9);
    check_immediate(3, 0x1000, 3);
}

TEST(identical_pointers_are_one_item)
{
    begin(100);
    for (uint64_t packet = 0; packet < 100; packet += 25) {
        address(packet, 0x1000, 0);
        address(packet, 0x1001, 40);
        immediate(packet, 0x1002, 5);
    }
    REQUIRE(spt_received_heap_items(&heap, items) == 3);
    check_addressed(0, 0x1000, 0, 40);
    check_addressed(1, 0x1001, 40, 60);
    check_immediate(2, 0x1002, 5);
}

TEST(an_item_does_not_reach_beyond_what_has_arrived)
{
    begin(50);
    address(0, 0x1000, 10);
    address(0, 0x1001, 2000);
    REQUIRE(spt_received_heap_items(&heap, items) == 2);
    check_addressed(0, 0x1000, 10, 40);
    check_addressed(1, 0x1001, 2000, 0);
}

TEST(a_heap_without_pointers_has_no_items)
{
    begin(0);
    CHECK_EQUAL(spt_received_heap_items(&heap, items), 0);
    CHECK_EQUAL(spt_received_heap_items(&heap, NULL), 0); /* which needs no room */
}
