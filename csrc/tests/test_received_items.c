/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of received_items.c: pointers written by hand, and items that they stand for. */
#include "support.h"

enum { ROOM = 16 };

static spt_received_pointer pointers[ROOM];
static spt_received_heap heap;
static spt_received_item items[ROOM];

typedef struct pointer {
    char kind; /* 'a': an address, 'i': an immediate */
    uint64_t id, value, packet;
} pointer;

typedef struct item {
    char kind;
    uint64_t id, value, length; /* an address is where it begins */
} item;

/* CHECK_ITEMS(length, POINTERS(...), n, items...): pointers of a heap of so many bytes are these.
 */
#define POINTERS(...) (const pointer[]){__VA_ARGS__}, LENGTH(((pointer[]){__VA_ARGS__}))
#define CHECK_ITEMS(length, pointers, ...)                                                         \
    check_items(length, pointers, (const item[]){__VA_ARGS__}, LENGTH(((item[]){__VA_ARGS__})))

static void check_items(uint64_t length, const pointer *from, size_t n_from, const item *expected,
                        size_t n)
{
    heap = (spt_received_heap){.heap_address_bits = 40, .length = length, .pointers = pointers};
    for (; heap.n_pointers < n_from; from++) {
        uint64_t word = from->kind == 'i' ? make_immediate(40, from->id, from->value)
                                          : make_address(40, from->id, from->value);
        pointers[heap.n_pointers++] = (spt_received_pointer){word, from->packet};
    }
    REQUIRE(spt_received_heap_items(&heap, items) == n);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQUAL(items[i].id, expected[i].id, items[i].is_immediate, expected[i].kind == 'i');
        if (items[i].is_immediate)
            CHECK_EQUAL(items[i].immediate, expected[i].value);
        else
            CHECK_EQUAL(items[i].offset, expected[i].value, items[i].length, expected[i].length);
    }
}

TEST(an_item_reaches_to_the_next_address_and_the_last_one_to_the_end)
{
    CHECK_ITEMS(100, POINTERS({'a', 0x1002, 60, 0}, {'a', 0x1000, 0, 0}, {'a', 0x1001, 10, 0}),
                {'a', 0x1000, 0, 10}, {'a', 0x1001, 10, 50}, {'a', 0x1002, 60, 40});
}

TEST(items_without_bytes_are_listed_in_the_order_in_which_they_were_sent)
{
    CHECK_ITEMS(20, POINTERS({'a', 0x1003, 0, 0}, {'a', 0x1001, 0, 0}, {'a', 0x1002, 20, 8}),
                {'a', 0x1003, 0, 0}, {'a', 0x1001, 0, 20}, {'a', 0x1002, 20, 0});
}

TEST(padding_ends_an_item_and_is_none)
{
    CHECK_ITEMS(17, POINTERS({'a', 0x1000, 0, 0}, {'a', 0x1001, 3, 0}, {'a', 0, 3, 0}),
                {'a', 0x1000, 0, 3}, {'a', 0x1001, 3, 0});
    CHECK_ITEMS(5, POINTERS({'a', 0, 0, 0}, {'a', 0x1000, 0, 0}, {'a', 0, 0, 0}),
                {'a', 0x1000, 0, 0}); /* and one without bytes stays so */
}

TEST(immediates_follow_as_they_were_sent_whenever_their_packets_came)
{
    CHECK_ITEMS(100,
                POINTERS({'i', 0x1000, 3, 50}, {'i', 0x1000, 9, 0}, {'i', 0x1001, 1, 0},
                         {'a', 0x1002, 0, 50},
                         {'i', 0x1000, 9, 25}), /* again: it is listed where it was sent last */
                {'a', 0x1002, 0, 100}, {'i', 0x1001, 1, 0}, {'i', 0x1000, 9, 0},
                {'i', 0x1000, 3, 0});
}

TEST(identical_pointers_are_one_item)
{
    CHECK_ITEMS(100,
                POINTERS({'a', 0x1000, 0, 0}, {'a', 0x1001, 40, 0}, {'i', 0x1002, 5, 0},
                         {'a', 0x1000, 0, 25}, {'a', 0x1001, 40, 25}, {'i', 0x1002, 5, 25},
                         {'a', 0x1000, 0, 50}, {'a', 0x1001, 40, 50}, {'i', 0x1002, 5, 50}),
                {'a', 0x1000, 0, 40}, {'a', 0x1001, 40, 60}, {'i', 0x1002, 5, 0});
}

TEST(an_item_does_not_reach_beyond_what_has_arrived)
{
    CHECK_ITEMS(50, POINTERS({'a', 0x1000, 10, 0}, {'a', 0x1001, 2000, 0}), {'a', 0x1000, 10, 40},
                {'a', 0x1001, 2000, 0});
}

TEST(a_heap_without_pointers_has_no_items)
{
    heap = (spt_received_heap){.heap_address_bits = 40, .pointers = pointers};
    CHECK_EQUAL(spt_received_heap_items(&heap, items), 0);
    CHECK_EQUAL(spt_received_heap_items(&heap, NULL), 0); /* which needs no room */
}
