/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow data: every sample is a sine, which takes far longer to compute than to send. */
#include "core.h"

#include <math.h>

int main(int argc, char **argv)
{
    static uint8_t samples[HEAP_SIZE];
    struct arguments to = parse(argc, argv);
    spt_stream *stream = stream_to(to, NULL, PACKET_SIZE);
    spt_heap *heap = heap_of(samples);
    for (size_t i = 0; i < to.heaps; i++) {
        for (size_t k = 0; k < HEAP_SIZE; k++)
            samples[k] = (uint8_t)(int8_t)(100 * sin(0.01 * (double)(i * HEAP_SIZE + k)));
        send_heap(stream, heap);
    }
    spt_heap_destroy(heap);
    spt_stream_destroy(stream);
    return 0;
}
