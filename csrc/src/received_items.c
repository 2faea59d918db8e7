/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the list of what is in a received heap. Knows pointers, but not what values mean. */
#include "spead_tutorial/spt_recv.h"
#include "wire.h"

#include <stdlib.h>

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Those with an address first, by that; the rest as it was sent. */
static int by_place(const void *one, const void *other)
{
    const spt_received_item *a = one, *b = other;
    int order = a->is_immediate - b->is_immediate;
    if (order == 0 && !a->is_immediate)
        order = compare(a->offset, b->offset);
    if (order == 0)
        order = compare(a->packet_offset_, b->packet_offset_);
    return order == 0 ? compare(a->index_, b->index_) : order;
}

static int by_pointer(const void *one, const void *other)
{
    const spt_received_item *a = one, *b = other;
    int order = a->is_immediate - b->is_immediate;
    if (order == 0)
        order = compare(a->id, b->id);
    if (order == 0)
        order =
            a->is_immediate ? compare(a->immediate, b->immediate) : compare(a->offset, b->offset);
    return order == 0 ? by_place(one, other) : order;
}

static bool same_pointer(const spt_received_item *a, const spt_received_item *b)
{
    return a->is_immediate == b->is_immediate && a->id == b->id && a->immediate == b->immediate &&
           a->offset == b->offset;
}

/* Of identical ones, keep the last that was sent: the last of different ones counts, too; and of
 * those at one address only the last has bytes. */
static size_t keep_one_of_each(spt_received_item *items, size_t n)
{
    qsort(items, n, sizeof(*items), by_pointer);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && same_pointer(&items[kept - 1], &items[i]))
            kept--;
        items[kept++] = items[i];
    }
    return kept;
}

size_t spt_received_heap_items(const spt_received_heap *heap, spt_received_item *items)
{
    unsigned bits = heap->heap_address_bits;
    if (heap->n_pointers == 0)
        return 0; /* there may be no memory for any */
    for (size_t i = 0; i < heap->n_pointers; i++) {
        uint64_t word = heap->pointers[i].word, value = word & spti_address_mask(bits);
        bool immediate = spti_is_immediate(word);
        items[i] = (spt_received_item){
            .id = spti_pointer_id(word, bits),
            .is_immediate = immediate,
            .immediate = immediate ? value : 0,
            .offset = immediate ? 0 : value,
            .packet_offset_ = heap->pointers[i].packet_offset,
            .index_ = i,
        };
    }
    size_t n = keep_one_of_each(items, heap->n_pointers), listed = 0;
    qsort(items, n, sizeof(*items), by_place);
    for (size_t i = 0; i < n; i++) {
        spt_received_item item = items[i];
        bool last = i + 1 == n || items[i + 1].is_immediate;
        if (!item.is_immediate) {
            /* What nobody said the length of may have addresses beyond what has arrived. */
            uint64_t end =
                last || items[i + 1].offset > heap->length ? heap->length : items[i + 1].offset;
            item.length = end > item.offset ? end - item.offset : 0;
        }
        if (item.id != SPT_ID_NULL)
            items[listed++] = item;
    }
    return listed;
}
