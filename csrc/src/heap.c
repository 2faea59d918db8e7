/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the list of a heap's items. Knows nothing of packets. */
#include "heap.h"

#include "item.h"
#include "status.h"
#include "wire.h"

#include <stdlib.h>

spt_heap *spt_heap_create(const spt_flavour *flavour, spt_error *err)
{
    spt_flavour checked = SPT_FLAVOUR_DEFAULT;
    if (flavour != NULL &&
        spt_flavour_init(&checked, flavour->heap_address_bits, flavour->bug_compat, err) != SPT_OK)
        return NULL;
    spt_heap *heap = calloc(1, sizeof(*heap));
    if (heap == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a heap");
    heap->flavour = checked;
    return heap;
}

void spt_heap_destroy(spt_heap *heap)
{
    if (heap == NULL)
        return;
    for (size_t i = 0; i < heap->n_owned; i++)
        free(heap->owned[i]);
    free(heap->owned);
    free(heap->items);
    free(heap);
}

size_t spt_heap_in_flight(const spt_heap *heap)
{
    return __atomic_load_n(&heap->in_flight, __ATOMIC_ACQUIRE);
}

void spti_heap_borrow(spt_heap *heap)
{
    __atomic_add_fetch(&heap->in_flight, 1, __ATOMIC_RELAXED);
}

void spti_heap_return(spt_heap *heap)
{
    __atomic_sub_fetch(&heap->in_flight, 1, __ATOMIC_RELEASE);
}

spt_status spti_heap_check_not_in_flight(const spt_heap *heap, spt_error *err)
{
    if (spt_heap_in_flight(heap) != 0)
        return spti_fail(
            err, SPT_ERR_BUSY,
            "the heap is being sent: wait for its completion before changing its items");
    return SPT_OK;
}

static spt_status append(spt_heap *heap, const spti_heap_item *item, spt_error *err)
{
    SPTI_TRY(spti_heap_check_not_in_flight(heap, err));
    SPTI_TRY(spti_check_id(&heap->flavour, item->id, err));
    uint64_t limit = spti_address_mask(heap->flavour.heap_address_bits);
    if (!item->immediate && item->length > limit - heap->payload_length)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "a heap with another %zu bytes would be longer than %d address bits "
                         "reach; send less at once, or choose a flavour with more address bits",
                         item->length, heap->flavour.heap_address_bits);
    if (heap->n_items == heap->room) {
        size_t room = heap->room ? 2 * heap->room : 8;
        spti_heap_item *items = realloc(heap->items, room * sizeof(*items));
        if (items == NULL)
            return spti_fail(err, SPT_ERR_MEMORY, "no memory for %zu items in a heap", room);
        heap->items = items;
        heap->room = room;
    }
    heap->items[heap->n_items] = *item;
    if (!item->immediate) {
        heap->items[heap->n_items].address = heap->payload_length;
        heap->payload_length += item->length;
    }
    heap->n_items++;
    return SPT_OK;
}

spt_status spt_heap_add_item(spt_heap *heap, const spt_item *item, spt_error *err)
{
    SPTI_TRY(spti_check_own_id(&heap->flavour, item->id, err));
    spti_heap_item added = {
        .id = item->id,
        .value = item->value,
        .length = item->length,
        .immediate = item->allow_immediate && item->length <= heap->flavour.heap_address_bits / 8U,
    };
    return append(heap, &added, err);
}

spt_status spti_heap_add_number(spt_heap *heap, uint64_t id, const void *number, spt_error *err)
{
    SPTI_TRY(spti_check_own_id(&heap->flavour, id, err));
    spti_heap_item added = {.id = id, .value = number, .immediate = true, .number = true};
    return append(heap, &added, err);
}

void spti_heap_cut(spt_heap *heap, size_t n_items, size_t payload_length, size_t n_owned)
{
    while (heap->n_owned > n_owned)
        free(heap->owned[--heap->n_owned]);
    heap->n_items = n_items;
    heap->payload_length = payload_length;
}

static spt_status add_control(spt_heap *heap, uint64_t value, spt_error *err)
{
    spti_heap_item added = {.id = SPT_ID_STREAM_CTRL, .immediate = true, .inline_value = value};
    return append(heap, &added, err);
}

spt_status spt_heap_add_start(spt_heap *heap, spt_error *err)
{
    return add_control(heap, SPTI_CTRL_START, err);
}

spt_status spt_heap_add_end(spt_heap *heap, spt_error *err)
{
    return add_control(heap, SPTI_CTRL_STOP, err);
}

spt_status spt_heap_add_descriptor(spt_heap *heap, const spt_descriptor *descriptor, spt_error *err)
{
    uint8_t **owned = realloc(heap->owned, (heap->n_owned + 1) * sizeof(*owned));
    if (owned == NULL)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a descriptor");
    heap->owned = owned;

    uint8_t *packet;
    size_t length;
    SPTI_TRY(spti_descriptor_encode(&heap->flavour, descriptor, &packet, &length, err));
    spti_heap_item added = {.id = SPT_ID_DESCRIPTOR, .value = packet, .length = length};
    spt_status status = append(heap, &added, err);
    if (status == SPT_OK)
        heap->owned[heap->n_owned++] = packet;
    else
        free(packet);
    return status;
}

spt_status spt_heap_set_repeat_pointers(spt_heap *heap, bool repeat, spt_error *err)
{
    SPTI_TRY(spti_heap_check_not_in_flight(heap, err));
    heap->repeat_pointers = repeat;
    return SPT_OK;
}

bool spt_heap_repeat_pointers(const spt_heap *heap)
{
    return heap->repeat_pointers;
}

spt_flavour spt_heap_flavour(const spt_heap *heap)
{
    return heap->flavour;
}

uint64_t spti_heap_item_immediate(const spti_heap_item *item)
{
    if (item->value == NULL)
        return item->inline_value;
    uint64_t big = 0;
    if (item->number) {
        memcpy(&big, item->value, sizeof(big));
        return big;
    }
    if (item->length > 0)
        memcpy((uint8_t *)&big + (8 - item->length), item->value, item->length);
    return be64toh(big);
}
