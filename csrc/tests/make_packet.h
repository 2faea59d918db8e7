/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns packets as a test wants them, well-formed or not: written from the specification, byte by
 * byte.
 */
#ifndef MAKE_PACKET_H
#define MAKE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MAKE_MAX_POINTERS = 600, MAKE_ROOM = 8 + 8 * MAKE_MAX_POINTERS + (1 << 16) };

typedef struct made_packet {
    unsigned address_bits;
    size_t n_pointers, size;
    uint64_t pointers[MAKE_MAX_POINTERS];
    uint8_t bytes[MAKE_ROOM]; /* once it is finished */
} made_packet;

static inline uint64_t make_immediate(unsigned address_bits, uint64_t id, uint64_t value)
{
    return (uint64_t)1 << 63 | id << address_bits | value;
}

static inline uint64_t make_address(unsigned address_bits, uint64_t id, uint64_t address)
{
    return id << address_bits | address;
}

static inline void make_begin(made_packet *p, unsigned address_bits)
{
    p->address_bits = address_bits;
    p->n_pointers = 0;
}

static inline void make_add(made_packet *p, bool immediate, uint64_t id, uint64_t value)
{
    p->pointers[p->n_pointers++] = immediate ? make_immediate(p->address_bits, id, value)
                                             : make_address(p->address_bits, id, value);
}

static inline uint8_t *make_put(uint8_t *to, uint64_t value, size_t n)
{
    for (size_t i = n; i-- > 0; value >>= 8)
        to[i] = (uint8_t)value;
    return to + n;
}

/* Write header, pointers, and so many bytes of payload from there. */
static inline void make_end(made_packet *p, const void *payload, size_t length)
{
    uint8_t *to = make_put(p->bytes, 0x5304, 2);
    to = make_put(to, 8 - p->address_bits / 8, 1);
    to = make_put(to, p->address_bits / 8, 1);
    to = make_put(to, p->n_pointers, 4);
    for (size_t i = 0; i < p->n_pointers; i++)
        to = make_put(to, p->pointers[i], 8);
    if (length > 0)
        memcpy(to, payload, length);
    p->size = (size_t)(to - p->bytes) + length;
}

/* The part [begin, begin + n) of a heap, with the protocol's own pointers first; a length of -1 is
 * not said. */
static inline void make_part(made_packet *p, uint64_t cnt, int64_t heap_length, uint64_t begin,
                             uint64_t n)
{
    make_begin(p, 40);
    make_add(p, true, 1, cnt);
    if (heap_length >= 0)
        make_add(p, true, 2, (uint64_t)heap_length);
    make_add(p, true, 3, begin);
    make_add(p, true, 4, n);
}

#endif
