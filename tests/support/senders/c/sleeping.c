/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping: a few milliseconds after each heap, in which nothing is sent. */
#include "core.h"

#include <time.h>

int main(int argc, char **argv)
{
    static uint8_t samples[HEAP_SIZE];
    const struct timespec pause = {.tv_nsec = 5000000};
    struct arguments to = parse(argc, argv);
    spt_stream *stream = stream_to(to, NULL, PACKET_SIZE);
    spt_heap *heap = heap_of(samples);
    for (size_t i = 0; i < to.heaps; i++) {
        memset(samples, (int)(i % 256), HEAP_SIZE);
        send_heap(stream, heap);
        nanosleep(&pause, NULL);
    }
    spt_heap_destroy(heap);
    spt_stream_destroy(stream);
    return 0;
}
