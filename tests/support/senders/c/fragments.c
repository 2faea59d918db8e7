/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets larger than the MTU: the kernel cuts each into IP fragments. */
#include "core.h"

int main(int argc, char **argv)
{
    static uint8_t samples[HEAP_SIZE];
    struct arguments to = parse(argc, argv);
    spt_stream *stream = stream_to(to, NULL, 32000);
    spt_heap *heap = heap_of(samples);
    for (size_t i = 0; i < to.heaps; i++) {
        memset(samples, (int)(i % 256), HEAP_SIZE);
        send_heap(stream, heap);
    }
    spt_heap_destroy(heap);
    spt_stream_destroy(stream);
    return 0;
}
