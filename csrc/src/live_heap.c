/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what becomes of a packet within its heap: which bytes and items it brings, whether it agrees
 * with those before, and memory for all of it. Knows nothing of other heaps.
 */
#include "live_heap.h"

#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_POINTERS = 64,
    FIRST_PAYLOAD = 4096, /* of heaps that do not say how long they are */
};

/* ---- Beginning and end ----------------------------------------------------------------------- */

static bool have_pointers(spti_live_heap *it, size_t n)
{
    if (n <= it->room_pointers)
        return true;
    size_t room = it->room_pointers == 0 ? FIRST_POINTERS : it->room_pointers;
    while (room < n)
        room *= 2;
    spt_received_pointer *pointers = realloc(it->pointers, room * sizeof(*pointers));
    if (pointers == NULL)
        return false;
    it->pointers = pointers;
    it->room_pointers = room;
    return true;
}

bool spti_live_heap_begin(spti_live_heap *it, const spt_received_packet *first)
{
    spti_ranges_clear(&it->ranges);
    if (!have_pointers(it, first->n_items) || !spti_ranges_reserve(&it->ranges))
        return false;
    it->heap = (spt_received_heap){
        .cnt = first->cnt,
        .source = first->source,
        .heap_address_bits = first->heap_address_bits,
        .has_length = first->has_heap_length,
        .length = first->heap_length,
    };
    it->last_pointers = 0;
    it->highest_address = 0;
    it->highest_end = 0;
    it->asked = 0;
    return true;
}

static spt_heap_state state_of(const spti_live_heap *it)
{
    const spt_received_heap *heap = &it->heap;
    if (heap->has_length)
        return heap->received_length == heap->length ? SPT_HEAP_COMPLETE : SPT_HEAP_INCOMPLETE;
    bool whole = heap->received_length == heap->length && it->highest_address <= heap->length &&
                 it->highest_end <= heap->length;
    return whole ? SPT_HEAP_CONTIGUOUS : SPT_HEAP_INCOMPLETE;
}

void spti_live_heap_end(spti_live_heap *it, bool evicted)
{
    spt_received_heap *heap = &it->heap;
    heap->state = state_of(it);
    heap->evicted = evicted;
    heap->ranges = it->ranges.at;
    heap->n_ranges = it->ranges.n;
    heap->pointers = it->pointers;
}

void spti_live_heap_put_payload(spti_live_heap *it, const spt_depacketizer_config *config)
{
    if (it->heap.payload != NULL)
        config->memory.put(config->memory.user, it->heap.payload, it->asked);
    it->heap.payload = NULL;
}

void spti_live_heap_destroy(spti_live_heap *it)
{
    spti_ranges_fini(&it->ranges);
    free(it->pointers);
    free(it);
}

/* ---- Memory for payload ---------------------------------------------------------------------- */

/* See to it that a heap has so many bytes for its payload. */
static bool have_room(const spt_depacketizer_config *config, spti_live_heap *it, size_t size,
                      const spt_received_packet *first)
{
    spt_received_heap *heap = &it->heap;
    if (size <= heap->room)
        return true;
    uint8_t *payload = config->memory.get(config->memory.user, size, first);
    if (payload == NULL)
        return false;
    for (size_t i = 0; i < it->ranges.n; i++) {
        spt_range range = it->ranges.at[i];
        memcpy(payload + range.begin, heap->payload + range.begin,
               (size_t)(range.end - range.begin));
    }
    spti_live_heap_put_payload(it, config);
    heap->payload = payload;
    heap->room = it->asked = size;
    return true;
}

/* Bytes that a heap needs once it has a packet: all, or more than now where nobody knows. */
static size_t room_for(const spti_live_heap *it, const spt_received_packet *packet,
                       uint64_t max_heap_size)
{
    if (packet->has_heap_length)
        return (size_t)packet->heap_length;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (it->heap.has_length || end <= it->heap.room)
        return (size_t)(it->heap.has_length ? it->heap.length : it->heap.room);
    uint64_t size = it->heap.room == 0 ? FIRST_PAYLOAD : 2 * it->heap.room;
    size = size < end ? end : size;
    return (size_t)(size < max_heap_size ? size : max_heap_size);
}

bool spti_live_heap_make_room(spti_live_heap *it, const spt_received_packet *packet,
                              const spt_received_packet *first,
                              const spt_depacketizer_config *config)
{
    return have_room(config, it, room_for(it, packet, config->max_heap_size), first);
}

/* ---- A packet -------------------------------------------------------------------------------- */

spt_fate spti_live_heap_check_size(const spt_received_packet *packet,
                                   const spt_depacketizer_config *config)
{
    if (packet->n_items > config->max_pointers)
        return SPT_TOO_LARGE;
    if (!packet->has_heap_length && !config->allow_unsized_heaps)
        return SPT_UNSIZED;
    uint64_t end = packet->payload_offset + packet->payload_length;
    uint64_t size = packet->has_heap_length ? packet->heap_length : end;
    return size > config->max_heap_size || size > PTRDIFF_MAX ? SPT_TOO_LARGE : SPT_PLACED;
}

/* Whether a packet of a heap that has begun says the same of it as those before. */
static spt_fate agree(const spt_depacketizer_config *config, const spti_live_heap *it,
                      const spt_received_packet *packet)
{
    const spt_received_heap *heap = &it->heap;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (packet->heap_address_bits != heap->heap_address_bits)
        return SPT_INCONSISTENT;
    if (packet->has_heap_length && heap->has_length && packet->heap_length != heap->length)
        return SPT_INCONSISTENT;
    if (packet->has_heap_length &&
        (packet->heap_length < heap->length || packet->heap_length < it->highest_address))
        return SPT_INCONSISTENT;
    if (heap->has_length && (end > heap->length || packet->highest_address > heap->length))
        return SPT_INCONSISTENT;
    return spti_live_heap_check_size(packet, config);
}

/*
 * Write down the items of a packet, behind those that the heap has. There are no new ones where the
 * last packet with items had the same.
 */
static spt_fate add_pointers(spti_live_heap *it, const spt_received_packet *packet, size_t most,
                             size_t *n_new)
{
    *n_new = packet->n_items;
    if (packet->n_items == 0)
        return SPT_PLACED; /* there may be no memory for any yet */
    if (!have_pointers(it, it->heap.n_pointers + packet->n_items))
        return SPT_NO_MEMORY;
    spt_received_pointer *to = it->pointers + it->heap.n_pointers;
    bool same = packet->n_items == it->last_pointers;
    for (size_t i = 0; i < packet->n_pointers; i++) {
        uint64_t word = spti_get(packet->pointers + SPTI_POINTER * i, SPTI_POINTER);
        if (spti_is_own(word, packet->heap_address_bits))
            continue;
        same = same && (to - packet->n_items)->word == word;
        *to++ = (spt_received_pointer){word, packet->payload_offset};
    }
    if (same)
        *n_new = 0;
    return it->heap.n_pointers + *n_new <= most ? SPT_PLACED : SPT_TOO_LARGE;
}

/* Note which bytes a packet brings. */
static spt_fate add_range(const spt_depacketizer_config *config, spti_live_heap *it,
                          const spt_received_packet *packet, size_t new_pointers)
{
    uint64_t begin = packet->payload_offset, end = begin + packet->payload_length;
    if (!config->allow_out_of_order && begin > it->heap.received_length)
        return SPT_AFTER_LOSS;
    if (packet->payload_length == 0) /* it brings pointers, or nothing */
        return new_pointers > 0 || it->heap.packets == 0 ? SPT_PLACED : SPT_DUPLICATE;
    switch (spti_ranges_add(&it->ranges, begin, end, config->max_gaps)) {
    case SPTI_NEW:
        return SPT_PLACED;
    case SPTI_KNOWN:
        return SPT_DUPLICATE;
    case SPTI_OVERLAPS:
        return SPT_INCONSISTENT;
    case SPTI_NO_MEMORY:
        return SPT_NO_MEMORY;
    case SPTI_NO_ROOM:
        break;
    }
    return SPT_TOO_LARGE;
}

/* A packet is lost: a heap that nobody says the length of is known to go on up to its end. */
static void note_lost(spti_live_heap *it, const spt_received_packet *packet)
{
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (end > it->highest_end)
        it->highest_end = end;
}

/* The last packet's items were sent with this one, too. */
static void came_last(spti_live_heap *it, uint64_t packet_offset)
{
    spt_received_pointer *pointers = it->pointers + it->heap.n_pointers - it->last_pointers;
    for (size_t i = 0; i < it->last_pointers && pointers[i].packet_offset < packet_offset; i++)
        pointers[i].packet_offset = packet_offset;
}

static void add(spti_live_heap *it, const spt_received_packet *packet, size_t new_pointers)
{
    spt_received_heap *heap = &it->heap;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (packet->has_heap_length) {
        heap->has_length = true;
        heap->length = packet->heap_length;
    } else if (!heap->has_length && end > heap->length) {
        heap->length = end;
    }
    if (packet->highest_address > it->highest_address)
        it->highest_address = packet->highest_address;
    if (new_pointers > 0)
        it->last_pointers = new_pointers;
    heap->n_pointers += new_pointers;
    if (packet->n_items > 0)
        came_last(it, packet->payload_offset);
    heap->received_length += packet->payload_length;
    heap->packets++;
}

spt_fate spti_live_heap_take(spti_live_heap *it, const spt_received_packet *packet,
                             const spt_depacketizer_config *config)
{
    size_t new_pointers = 0;
    spt_fate fate = agree(config, it, packet);
    if (fate == SPT_PLACED && !spti_live_heap_make_room(it, packet, NULL, config))
        fate = SPT_NO_MEMORY;
    if (fate == SPT_PLACED)
        fate = add_pointers(it, packet, config->max_pointers, &new_pointers);
    if (fate == SPT_PLACED)
        fate = add_range(config, it, packet, new_pointers);
    if (fate == SPT_AFTER_LOSS || fate == SPT_NO_MEMORY)
        note_lost(it, packet);
    if (fate == SPT_PLACED)
        add(it, packet, new_pointers);
    else
        it->heap.packets_not_taken++;
    return fate;
}
