/* SPDX-License-Identifier: BSD-3-Clause */
/* Says where a heap belongs in its chunk: called from receivers in Python, of any library. */
#include <stddef.h>
#include <stdint.h>

/* What such a function is given: eight bytes each. */
struct place_data {
    const uint8_t *packet;
    size_t packet_size;
    const int64_t *items; /* the first: the heap's count */
    int64_t chunk_id;
    uint64_t heap_index, heap_offset;
    uint64_t *batch_stats;
    uint8_t *extra;
    uint64_t extra_offset, extra_size;
};

struct chunk_shape {
    int64_t heaps, heap_size;
};

__attribute__((visibility("default"))) void place(void *data, size_t size, void *user)
{
    struct place_data *d = data;
    const struct chunk_shape *shape = user;
    (void)size;
    if (d->items[0] < 0)
        return; /* its first packet says no count: it has no place */
    d->chunk_id = d->items[0] / shape->heaps;
    d->heap_index = (uint64_t)(d->items[0] % shape->heaps);
    d->heap_offset = d->heap_index * (uint64_t)shape->heap_size;
}
