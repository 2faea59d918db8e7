/* SPDX-License-Identifier: BSD-3-Clause */
/* Says where a heap belongs in its chunk, by its count. */
#ifndef PLACE_H
#define PLACE_H

#include <spead_tutorial/spt_recv.h>

struct chunk_shape {
    int64_t heaps, heap_size;
};

SPT_API void place(spt_place_data *data, size_t size, void *user);

#endif
