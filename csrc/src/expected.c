/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what the next packet of a heap looks like, if it goes on where the one before ended. Knows
 * of a heap no more than where it is, and how long.
 */
#include "expected.h"

/* Say where the expected packet belongs, and what its pointer is then. */
static void expect_at(spti_expected *e, uint64_t begin, unsigned address_bits)
{
    e->begin = begin;
    uint64_t word = spti_get(e->offset, SPTI_POINTER) & ~spti_address_mask(address_bits);
    spti_put(e->offset, word | begin, SPTI_POINTER);
}

void spti_expect(spti_expected *e, const spt_received_heap *heap, const spt_received_packet *packet)
{
    if (packet->n_items > 0 || packet->n_pointers != SPTI_MANDATORY_POINTERS ||
        packet->payload_length == 0)
        return;
    memcpy(e->prefix, packet->pointers - SPTI_POINTER, SPTI_PREFIX);
    e->offset = NULL;
    for (uint8_t *at = e->prefix + SPTI_POINTER; at < e->prefix + SPTI_PREFIX; at += SPTI_POINTER) {
        uint64_t word = spti_get(at, SPTI_POINTER);
        if (spti_pointer_id(word, packet->heap_address_bits) != SPT_ID_PAYLOAD_OFFSET)
            continue;
        if (e->offset != NULL)
            return; /* it says so twice */
        e->offset = at;
    }
    e->heap = heap;
    e->size = packet->size;
    expect_at(e, packet->payload_offset + packet->payload_length, packet->heap_address_bits);
}

size_t spti_expected_count(const spti_expected *e)
{
    if (e->heap == NULL || e->begin >= e->heap->length)
        return 0;
    return (size_t)(e->heap->length - e->begin - 1) / (e->size - SPTI_PREFIX);
}

/* Whether a packet begins so. Of nearly every packet this is asked: word by word it is in line,
 * where memcmp() would be a call. */
static inline bool begins_so(const uint8_t *bytes, const uint8_t *prefix)
{
    uint64_t differs = 0;
    for (size_t i = 0; i < SPTI_PREFIX; i += SPTI_POINTER) {
        uint64_t is, wanted;
        memcpy(&is, bytes + i, sizeof(is));
        memcpy(&wanted, prefix + i, sizeof(wanted));
        differs |= is ^ wanted;
    }
    return differs == 0;
}

size_t spti_expected_take(spti_expected *e, const spti_packet_run *run)
{
    if (run->n_bytes != e->size)
        return 0;
    size_t most = spti_expected_count(e), length = run->n_bytes - SPTI_PREFIX, n = 0;
    most = run->n < most ? run->n : most;
    const uint8_t *packet = run->bytes;
    while (n < most && begins_so(packet, e->prefix)) {
        if (!run->in_place)
            memcpy(e->heap->payload + e->begin, packet + SPTI_PREFIX, length);
        expect_at(e, e->begin + length, e->heap->heap_address_bits);
        packet += run->step;
        n++;
    }
    return n;
}
