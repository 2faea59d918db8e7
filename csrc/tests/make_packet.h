/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns packets as a test wants them, well-formed or not: written from the specification, byte by
 * byte; the chunks that they may end in; and whether an account has them all.
 */
#ifndef MAKE_PACKET_H
#define MAKE_PACKET_H

#include "../src/depacketizer.h"
#include "../src/wire.h"

#include <stdlib.h>
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
static inline void make_part_as(made_packet *p, unsigned address_bits, uint64_t cnt,
                                int64_t heap_length, uint64_t begin, uint64_t n)
{
    make_begin(p, address_bits);
    make_add(p, true, 1, cnt);
    if (heap_length >= 0)
        make_add(p, true, 2, (uint64_t)heap_length);
    make_add(p, true, 3, begin);
    make_add(p, true, 4, n);
}

static inline void make_part(made_packet *p, uint64_t cnt, int64_t heap_length, uint64_t begin,
                             uint64_t n)
{
    make_part_as(p, 40, cnt, heap_length, begin, n);
}

/* What the payload of a heap is at a place: every heap has its own bytes, and no zeros, by which
 * one sees where nothing has been written. */
static inline uint8_t byte_of(uint64_t cnt, uint64_t place)
{
    return (uint8_t)(1 + (cnt * 131 + place * 7 + place / 256) % 255);
}

/* Write a part with the bytes of its heap. */
static inline void make_end_of(made_packet *p, uint64_t cnt, uint64_t begin, size_t n)
{
    static uint8_t payload[1 << 16];
    for (size_t i = 0; i < n; i++)
        payload[i] = byte_of(cnt, begin + i);
    make_end(p, payload, n);
}

/* The packet of a descriptor, as the specification has it. */
static inline void make_descriptor(made_packet *p, spt_flavour flavour, const spt_descriptor *d)
{
    static uint8_t payload[1 << 12];
    bool wide = (flavour.bug_compat & SPT_COMPAT_DESCRIPTOR_WIDTHS) != 0;
    size_t address_bytes = flavour.heap_address_bits / 8U;
    const char *numpy = d->numpy_header != NULL ? d->numpy_header : "";
    uint8_t *description = (uint8_t *)stpcpy((char *)payload, d->name);
    uint8_t *format = (uint8_t *)stpcpy((char *)description, d->description);
    uint8_t *shape = format;
    for (size_t i = 0; i < d->n_format; i++) {
        *shape++ = (uint8_t)d->format[i].code;
        shape = make_put(shape, d->format[i].bits, wide ? 3 : 8 - address_bytes);
    }
    uint8_t *dtype = shape;
    for (size_t i = 0; i < d->n_shape; i++) {
        bool varies = d->shape[i] < 0;
        *dtype++ = !varies ? 0 : flavour.bug_compat & SPT_COMPAT_SHAPE_BIT_1 ? 2 : 1;
        dtype = make_put(dtype, varies ? 0 : (uint64_t)d->shape[i], wide ? 7 : address_bytes);
    }
    size_t n = (size_t)((uint8_t *)stpcpy((char *)dtype, numpy) - payload);
    make_part_as(p, flavour.heap_address_bits, 1, (int64_t)n, 0, n);
    make_add(p, true, 0x14, d->id);
    make_add(p, false, 0x10, 0);
    make_add(p, false, 0x11, (uint64_t)(description - payload));
    make_add(p, false, 0x13, (uint64_t)(format - payload));
    make_add(p, false, 0x12, (uint64_t)(shape - payload));
    if (numpy[0] != '\0')
        make_add(p, false, 0x15, (uint64_t)(dtype - payload));
    make_end(p, payload, n);
}

/* Every packet and every heap is in the account once. */
static inline bool account_adds_up(const spt_account *a)
{
    uint64_t fates = 0, faults = 0;
    for (int i = 0; i < SPT_N_FATES; i++)
        fates += a->fates[i];
    for (int i = 0; i < SPT_N_FAULTS; i++)
        faults += a->faults[i];
    return fates == a->packets && faults == a->fates[SPT_MALFORMED] &&
           a->heaps_complete + a->heaps_evicted + a->heaps_flushed + a->heaps_dropped +
                   a->heaps_live ==
               a->heaps_begun;
}

/* Packets one after the other, as they come. */
enum { SERIES_BYTES = 1 << 22, SERIES_PACKETS = 4096 };

typedef struct made_series {
    size_t n, at[SERIES_PACKETS + 1]; /* where each begins, and the end */
    uint8_t bytes[SERIES_BYTES];
} made_series;

static inline size_t series_size(const made_series *s, size_t i)
{
    return s->at[i + 1] - s->at[i];
}

/* What there is no room for is left out. */
static inline void series_add(made_series *s, const made_packet *p)
{
    size_t at = s->at[s->n];
    if (s->n == SERIES_PACKETS || at + p->size > SERIES_BYTES)
        return;
    memcpy(s->bytes + at, p->bytes, p->size);
    s->at[++s->n] = at + p->size;
}

/* So many packets from one on, at most, as far as they are equally long. */
static inline size_t series_run(const made_series *s, size_t first, size_t most)
{
    size_t n = 1;
    while (n < most && first + n < s->n && series_size(s, first + n) == series_size(s, first))
        n++;
    return n;
}

/* A chunk in memory of exactly its size, so that a byte too far is seen by a sanitizer. What was
 * present before is nonsense: whoever fills the chunk cleans it. */
static inline spt_chunk make_chunk(size_t size, size_t marks, size_t extra)
{
    spt_chunk chunk = {
        .data = calloc(1, size),
        .data_size = size,
        .present = malloc(marks),
        .present_size = marks,
        .extra = calloc(1, extra),
        .extra_size = extra,
        .chunk_id = -1,
    };
    memset(chunk.present, 9, marks);
    return chunk;
}

static inline void free_chunk(spt_chunk *chunk)
{
    free(chunk->data);
    free(chunk->present);
    free(chunk->extra);
    *chunk = (spt_chunk){0};
}

#endif
