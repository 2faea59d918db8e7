/* SPDX-License-Identifier: BSD-3-Clause */
/* Called from receive_chunks.c, and from receivers in Python, of any library: what theirs is given
 * is laid out in the same way. */
#include "place.h"

void place(spt_place_data *data, size_t size, void *user)
{
    const struct chunk_shape *shape = user;
    int64_t cnt = data->items[0];
    (void)size;
    if (cnt < 0)
        return; /* its first packet says no count: it has no place */
    data->chunk_id = cnt / shape->heaps;
    data->heap_index = (uint64_t)(cnt % shape->heaps);
    data->heap_offset = data->heap_index * (uint64_t)shape->heap_size;
}
