/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a reading of SPEAD packets that is independent of the library: written from the
 * specification, byte by byte, for tests and fuzzing.
 */
#ifndef READER_H
#define READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct reader_pointer {
    bool immediate;
    uint64_t id, value;
} reader_pointer;

typedef struct reader_packet {
    unsigned address_bits;
    uint64_t cnt, heap_length, payload_offset, payload_length;
    size_t n_pointers; /* beside the four that every packet has */
    const uint8_t *pointers, *payload;
    size_t size;
} reader_packet;

static inline uint64_t reader_number(const uint8_t *from, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | from[i];
    return value;
}

static inline reader_pointer reader_pointer_at(const reader_packet *p, const uint8_t *from)
{
    uint64_t word = reader_number(from, 8);
    uint64_t address_range = (uint64_t)1 << p->address_bits;
    return (reader_pointer){
        .immediate = word >> 63 != 0,
        .id = (word & ~((uint64_t)1 << 63)) / address_range,
        .value = word % address_range,
    };
}

/* Pointer i of those after the first four. */
static inline reader_pointer reader_get(const reader_packet *p, size_t i)
{
    return reader_pointer_at(p, p->pointers + 8 * i);
}

/* Read the packet that starts here; false unless it is well-formed and lies within the room. */
static inline bool reader_read(reader_packet *p, const uint8_t *bytes, size_t room)
{
    if (room < 40 || bytes[0] != 0x53 || bytes[1] != 4 || bytes[2] + bytes[3] != 8 ||
        bytes[3] == 0 || bytes[3] == 8 || bytes[4] != 0 || bytes[5] != 0)
        return false;
    size_t n_pointers = (size_t)reader_number(bytes + 6, 2);
    if (n_pointers < 4 || room < 8 + 8 * n_pointers)
        return false;
    p->address_bits = 8U * bytes[3];
    uint64_t *const to[4] = {&p->cnt, &p->heap_length, &p->payload_offset, &p->payload_length};
    for (size_t i = 0; i < 4; i++) {
        reader_pointer mandatory = reader_pointer_at(p, bytes + 8 + 8 * i);
        if (!mandatory.immediate || mandatory.id != i + 1)
            return false;
        *to[i] = mandatory.value;
    }
    p->n_pointers = n_pointers - 4;
    p->pointers = bytes + 40;
    p->payload = bytes + 8 + 8 * n_pointers;
    if (p->payload_length > room - (8 + 8 * n_pointers))
        return false;
    p->size = 8 + 8 * n_pointers + (size_t)p->payload_length;
    return true;
}

#endif
