/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the bytes of headers and item pointers (SPEAD specification, packet format). */
#ifndef SPTI_WIRE_H
#define SPTI_WIRE_H

#include "spead_tutorial/spt.h"

#include <endian.h>
#include <string.h>

enum {
    SPTI_MAGIC = 0x53,
    SPTI_VERSION = 4,
    SPTI_POINTER = 8,            /* bytes of an item pointer, and of the header before them */
    SPTI_MANDATORY_POINTERS = 4, /* heap count, heap length, payload offset, payload length */
    SPTI_MAX_POINTERS = 0xffff - SPTI_MANDATORY_POINTERS, /* that can follow: 16 bits count all */
    SPTI_PREFIX = SPTI_POINTER * (1 + SPTI_MANDATORY_POINTERS),
    SPTI_CTRL_START = 0, /* what stream control says */
    SPTI_CTRL_STOP = 2,
};

/* Write value as n bytes (1 to 8), big-endian; return the byte after. */
static inline uint8_t *spti_put(uint8_t *to, uint64_t value, size_t n)
{
    uint64_t big = htobe64(value);
    memcpy(to, (const uint8_t *)&big + (8 - n), n);
    return to + n;
}

static inline uint64_t spti_address_mask(unsigned address_bits)
{
    return (UINT64_C(1) << address_bits) - 1;
}

static inline uint8_t *spti_put_immediate(uint8_t *to, unsigned address_bits, uint64_t id,
                                          uint64_t value)
{
    return spti_put(to, UINT64_C(1) << 63 | id << address_bits | value, SPTI_POINTER);
}

static inline uint8_t *spti_put_address(uint8_t *to, unsigned address_bits, uint64_t id,
                                        uint64_t offset)
{
    return spti_put(to, id << address_bits | offset, SPTI_POINTER);
}

/* Read n bytes (1 to 8), big-endian. */
static inline uint64_t spti_get(const uint8_t *from, size_t n)
{
    uint64_t big = 0;
    memcpy((uint8_t *)&big + (8 - n), from, n);
    return be64toh(big);
}

static inline bool spti_is_immediate(uint64_t pointer)
{
    return pointer >> 63 != 0;
}

static inline uint64_t spti_pointer_id(uint64_t pointer, unsigned address_bits)
{
    return (pointer & ~(UINT64_C(1) << 63)) >> address_bits;
}

/* Whether a pointer says something of its packet, or of the heap, and is no item of it. */
static inline bool spti_is_own(uint64_t pointer, unsigned address_bits)
{
    uint64_t id = spti_pointer_id(pointer, address_bits);
    return spti_is_immediate(pointer) && id >= SPT_ID_HEAP_CNT && id <= SPT_ID_PAYLOAD_LENGTH;
}

/* The five words that start every packet; n_pointers are those that follow. */
static inline uint8_t *spti_put_prefix(uint8_t *to, unsigned address_bits, size_t n_pointers,
                                       uint64_t cnt, uint64_t heap_length, uint64_t payload_offset,
                                       uint64_t payload_length)
{
    uint64_t address_bytes = address_bits / 8; /* after those of an item's identifier */
    uint64_t widths = (8 - address_bytes) << 8 | address_bytes;
    uint64_t count = n_pointers + SPTI_MANDATORY_POINTERS; /* two bytes, after two reserved ones */
    to = spti_put(to,
                  (uint64_t)SPTI_MAGIC << 56 | (uint64_t)SPTI_VERSION << 48 | widths << 32 | count,
                  SPTI_POINTER);
    to = spti_put_immediate(to, address_bits, SPT_ID_HEAP_CNT, cnt);
    to = spti_put_immediate(to, address_bits, SPT_ID_HEAP_LENGTH, heap_length);
    to = spti_put_immediate(to, address_bits, SPT_ID_PAYLOAD_OFFSET, payload_offset);
    return spti_put_immediate(to, address_bits, SPT_ID_PAYLOAD_LENGTH, payload_length);
}

#endif
