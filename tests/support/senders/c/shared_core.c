/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads on one core: what fills the heaps and what sends them, though there are others. */
#include "core.h"

#include <sched.h>

/* The first core that this process may use. */
static int first_core(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        fail(strerror(errno));
    size_t core = 0;
    while (!CPU_ISSET(core, &cores))
        core++;
    return (int)core;
}

int main(int argc, char **argv)
{
    static uint8_t samples[2][HEAP_SIZE];
    spt_completion sent[2] = {0};
    spt_error err = {0};
    struct arguments to = parse(argc, argv);
    int core = first_core();
    must(spt_set_affinity(core, &err), &err);
    spt_thread_pool *pool = spt_thread_pool_create(1, &core, 1, &err);
    if (pool == NULL)
        fail(err.message);
    spt_stream *stream = stream_to(to, pool, PACKET_SIZE);
    spt_heap *heaps[2] = {heap_of(samples[0]), heap_of(samples[1])};
    for (size_t i = 0; i < to.heaps; i++) {
        must(spt_stream_wait(stream, &sent[i % 2], -1, &err), &err);
        memset(samples[i % 2], (int)(i % 256), HEAP_SIZE);
        must(spt_stream_send_heap(stream, heaps[i % 2], &sent[i % 2], &err), &err);
    }
    must(spt_stream_flush(stream, -1), &err);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_heap_destroy(heaps[0]);
    spt_heap_destroy(heaps[1]);
    return 0;
}
