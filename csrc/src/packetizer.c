/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the cutting of a heap into packets. Knows no sockets: it fills memory of the caller. */
#include "heap.h"
#include "status.h"
#include "wire.h"

/* Where padding comes from: never more than 8 bytes for each packet of pointers, in pieces. */
static const uint8_t zeros[SPT_COPY_BELOW];

/*
 * Each packet carries at least one byte of payload, and each but the last a multiple of 8. So a
 * heap whose pointers need k packets needs 8 (k - 1) + 1 bytes; a shorter one is padded, and a NULL
 * pointer to the end of the real data tells a receiver where the last item ends.
 */
spt_status spt_packetizer_init(spt_packetizer *p, const spt_heap *heap, uint64_t cnt,
                               size_t max_packet_size, spt_error *err)
{
    if (max_packet_size < SPT_MIN_PACKET_SIZE)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "packets of %zu bytes are too small: the headers alone need %d; raise "
                         "max_packet_size",
                         max_packet_size, SPT_MIN_PACKET_SIZE);
    /* With more room than for all the pointers that can be counted, the first packet would carry
     * payload that those after it need. */
    size_t size = max_packet_size & ~(size_t)7;
    if (heap->n_items >= SPTI_MAX_POINTERS &&
        size > SPTI_PREFIX + SPTI_POINTER * SPTI_MAX_POINTERS + 8)
        size = SPTI_PREFIX + SPTI_POINTER * SPTI_MAX_POINTERS + 8;
    size_t max_pointers = (size - SPTI_PREFIX - 8) / SPTI_POINTER;
    size_t n_packets = heap->repeat_pointers ? 1 : heap->n_items / max_pointers + 1;
    size_t needed = 8 * (n_packets - 1) + 1;
    bool padded = heap->payload_length < needed;
    *p = (spt_packetizer){
        .heap = heap,
        .cnt = cnt & spti_address_mask(heap->flavour.heap_address_bits),
        .max_packet_size = size,
        .max_pointers = max_pointers,
        .padded = padded,
        .payload_length = padded ? needed : heap->payload_length,
        .n_pointers = heap->n_items + padded,
    };
    if (heap->repeat_pointers && p->n_pointers > max_pointers)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the heap repeats its %zu item pointers in every packet, but packets of "
                         "%zu bytes have room for %zu; raise max_packet_size to %zu",
                         p->n_pointers, size, max_pointers,
                         SPTI_PREFIX + 8 + SPTI_POINTER * p->n_pointers);
    if (p->payload_length > spti_address_mask(heap->flavour.heap_address_bits))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "a heap of %zu bytes is longer than %d address bits reach; choose a "
                         "flavour with more address bits",
                         p->payload_length, heap->flavour.heap_address_bits);
    return SPT_OK;
}

size_t spt_equal_packet_size(const spt_heap *heap, size_t max_packet_size)
{
    /* Each packet has a prefix; the pointers are in the first, or in each. The rest is payload. */
    size_t pointers = SPTI_POINTER * heap->n_items;
    size_t header = SPTI_PREFIX + (heap->repeat_pointers ? pointers : 0);
    size_t spread = heap->payload_length + (heap->repeat_pointers ? 0 : pointers);
    size_t size = max_packet_size & ~(size_t)7;
    if (size < SPT_MIN_PACKET_SIZE || size < SPTI_PREFIX + pointers + 8)
        return max_packet_size;
    size_t n = (spread + size - header - 1) / (size - header);
    if (n <= 1 || spread % (8 * n) != 0)
        return max_packet_size; /* nearly equal is no gain: a shorter one ends a message */
    size_t equal = header + spread / n;
    return equal < SPTI_PREFIX + pointers + 8 ? max_packet_size : equal;
}

static uint8_t *put_pointer(uint8_t *to, const spt_heap *heap, size_t index)
{
    unsigned bits = heap->flavour.heap_address_bits;
    if (index == heap->n_items) /* where padding begins */
        return spti_put_address(to, bits, SPT_ID_NULL, heap->payload_length);
    const spti_heap_item *item = &heap->items[index];
    if (item->immediate)
        return spti_put_immediate(to, bits, item->id,
                                  spti_heap_item_immediate(item) & spti_address_mask(bits));
    return spti_put_address(to, bits, item->id, item->address);
}

/* The next bytes of the payload that lie together, at most n. Moves on by what it returns. */
static const uint8_t *take(spt_packetizer *p, size_t *n)
{
    const spt_heap *heap = p->heap;
    while (p->item < heap->n_items) {
        const spti_heap_item *item = &heap->items[p->item];
        size_t left = item->immediate ? 0 : item->length - p->item_offset;
        if (left > 0) {
            const uint8_t *from = item->value + p->item_offset;
            *n = left < *n ? left : *n;
            p->item_offset += *n;
            return from;
        }
        p->item++;
        p->item_offset = 0;
    }
    *n = sizeof(zeros) < *n ? sizeof(zeros) : *n;
    return zeros;
}

spt_status spt_packetizer_next(spt_packetizer *p, void *scratch, struct iovec *pieces,
                               spt_packet *packet)
{
    if (p->done)
        return SPT_DONE;
    const spt_heap *heap = p->heap;
    size_t first = heap->repeat_pointers ? 0 : p->next_pointer;
    size_t n_pointers = p->n_pointers - first;
    if (n_pointers > p->max_pointers)
        n_pointers = p->max_pointers;
    size_t header = SPTI_PREFIX + SPTI_POINTER * n_pointers;
    size_t payload = p->payload_length - p->payload_offset;
    if (payload > p->max_packet_size - header)
        payload = p->max_packet_size - header;

    uint8_t *to = spti_put_prefix(scratch, heap->flavour.heap_address_bits, n_pointers, p->cnt,
                                  p->payload_length, p->payload_offset, payload);
    for (size_t i = 0; i < n_pointers; i++)
        to = put_pointer(to, heap, first + i);
    p->next_pointer = first + n_pointers;
    p->payload_offset += payload;
    p->done = p->payload_offset == p->payload_length && p->next_pointer == p->n_pointers;

    uint8_t *run = scratch; /* what has been written since the last piece */
    size_t n = 0;
    for (size_t left = payload; left > 0;) {
        size_t length = left;
        const uint8_t *from = take(p, &length);
        left -= length;
        if (length < SPT_COPY_BELOW) {
            memcpy(to, from, length);
            to += length;
            continue;
        }
        if (to > run)
            pieces[n++] = (struct iovec){run, (size_t)(to - run)};
        pieces[n++] = (struct iovec){(void *)(uintptr_t)from, length};
        run = to;
    }
    if (to > run)
        pieces[n++] = (struct iovec){run, (size_t)(to - run)};
    *packet = (spt_packet){
        .size = header + payload,
        .n_pieces = n,
        .scratch_used = (size_t)(to - (uint8_t *)scratch),
    };
    return SPT_OK;
}

size_t spti_packetizer_run(spt_packetizer *p, uint8_t *scratch, struct iovec *pieces, size_t most)
{
    const spt_heap *heap = p->heap;
    const size_t payload = p->max_packet_size - SPTI_PREFIX;
    if (p->next_pointer < p->n_pointers || p->done || heap->repeat_pointers ||
        payload < SPT_COPY_BELOW || p->item == heap->n_items || heap->items[p->item].immediate)
        return 0;
    const spti_heap_item *item = &heap->items[p->item];
    size_t n = (item->length - p->item_offset) / payload;
    if (n * payload == p->payload_length - p->payload_offset)
        n--; /* the last packet says that it is */
    n = n < most ? n : most;

    /* Copies, since for all the compiler knows what is written could change them. */
    const unsigned bits = heap->flavour.heap_address_bits;
    const uint64_t cnt = p->cnt, length = p->payload_length;
    uint64_t offset = p->payload_offset;
    const uint8_t *from = item->value + p->item_offset;
    for (size_t i = 0; i < n; i++) {
        *pieces++ = (struct iovec){scratch, SPTI_PREFIX};
        *pieces++ = (struct iovec){(void *)(uintptr_t)from, payload};
        scratch = spti_put_prefix(scratch, bits, 0, cnt, length, offset, payload);
        offset += payload;
        from += payload;
    }
    p->item_offset += n * payload;
    p->payload_offset = offset;
    return n;
}
