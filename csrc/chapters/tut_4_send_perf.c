/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 4: measure the sender. No limit to its rate, and a clock around the loop. */
#include "report.h"

static void fill_random(int8_t *samples, size_t n, unsigned short seed[3])
{
    for (size_t i = 0; i < n; i++)
        samples[i] = (int8_t)(nrand48(seed) % 200 - 100);
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv,
        "Chapter 4: measure the sender. No limit to its rate, and a clock around the loop.", "nHcd",
        (struct options){.n_heaps = 100});
    spt_error err = {0};
    spt_thread_pool *thread_pool =
        check_made(spt_thread_pool_create(1, &options.cores[1], options.pinned, &err), &err);
    if (options.pinned)
        check(spt_set_affinity(options.cores[0], &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    spt_stream *stream = check_made(
        spt_stream_create_udp(thread_pool, &options.endpoint, 1, &config, NULL, &err), &err);

    size_t heap_size = options.heap_size;
    unsigned short seed[3] = {1};
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps; i++) {
        spt_completion sent = {0};
        spt_heap *heap = check_made(spt_heap_create(NULL, &err), &err);
        uint64_t timestamp = i * heap_size;
        int8_t *adc_samples = alloc_bytes(heap_size);
        fill_random(adc_samples, heap_size, seed);
        const spt_variable items[] = {
            spt_immediate(0x1600, "timestamp", "Index of the first sample", &timestamp),
            spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8, adc_samples,
                      heap_size),
        };
        unsigned parts = i == 0 ? SPT_ALL : SPT_VALUES;
        check(spt_heap_add(heap, items, 2, parts, &err), &err);
        check(spt_stream_send_heap(stream, heap, &sent, &err), &err);
        check(spt_stream_wait(stream, &sent, -1, &err), &err);
        spt_heap_destroy(heap);
        free(adc_samples);
    }
    struct usage used = usage_since(start);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
