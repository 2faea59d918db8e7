/* SPDX-License-Identifier: BSD-3-Clause */
/* Fresh memory for every heap, which is given back when the heap has gone. */
#include "core.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    struct arguments to = parse(argc, argv);
    spt_stream *stream = stream_to(to, NULL, PACKET_SIZE);
    for (size_t i = 0; i < to.heaps; i++) {
        /* As malloc() does for what is large; in small pages wherever huge ones are preferred. */
        uint8_t *samples =
            mmap(NULL, HEAP_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (samples == MAP_FAILED)
            fail(strerror(errno));
        madvise(samples, HEAP_SIZE, MADV_NOHUGEPAGE);
        memset(samples, (int)(i % 256), HEAP_SIZE);
        spt_heap *heap = heap_of(samples);
        send_heap(stream, heap);
        spt_heap_destroy(heap);
        munmap(samples, HEAP_SIZE);
    }
    spt_stream_destroy(stream);
    return 0;
}
